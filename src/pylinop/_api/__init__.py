"""Public functions: docstrings, argument checks, one call down."""
