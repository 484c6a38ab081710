"""All modules whose rows are rules of `pl.rules()`: they are imported with the package, so that
rules are known by name from the start, whatever is called first."""

# ruff: noqa: F401
from __future__ import annotations

from . import (
    cholesky,
    determinants,
    eig,
    eigenvalues_hermitian,
    eigh,
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
)
