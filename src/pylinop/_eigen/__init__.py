"""Solvers for a few eigenpairs or singular triplets."""
