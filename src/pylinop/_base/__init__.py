"""Errors, options, dtypes: modules that know `_core` and NumPy only."""
