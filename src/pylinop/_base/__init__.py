"""What knows `_core` and NumPy only."""
