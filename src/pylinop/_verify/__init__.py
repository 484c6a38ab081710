"""Results compared with the expression as written."""
