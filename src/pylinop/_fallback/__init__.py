"""Runs expressions that C cannot (callables, foreign dtypes), as they are written."""
