"""All modules whose rows are rules of `pl.rules()`: they are imported with the package, so that
rules are known by name from the start, whatever is called first."""

# ruff: noqa: F401
from __future__ import annotations

from . import (
    cholesky,
    cholesky_toeplitz,
    determinants,
    eig,
    eigenvalues_hermitian,
    eigh,
    known_bases,
    least_squares,
    lu,
    matrix_functions,
    norms,
    pinv,
    qr,
    questions,
    singular_values,
    square_roots,
    svd,
    thin_shifts,
    thin_updates,
)
