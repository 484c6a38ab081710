"""Krylov solvers and large least squares."""
