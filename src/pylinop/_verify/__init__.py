"""Compares results with the expression as written."""
