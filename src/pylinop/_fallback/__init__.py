"""Runs expressions that C cannot run (callables, foreign dtypes), as they are written."""
