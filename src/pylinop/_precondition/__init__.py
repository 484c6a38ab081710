"""Preconditioners."""
