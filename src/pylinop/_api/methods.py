"""Functions that are methods of operators and LazyArrays too: ``A.solve(b)`` is ``pl.solve(A, b)``.

A function of a class is a method, with the object as its first argument. So these are the
functions themselves, signatures and docstrings included; the package sets them on the classes when
one is first looked at (`lazy_import.Method`). Type checkers see them in `LinearOperator` and
`LazyArray`."""

from __future__ import annotations

from .basic import inv
from .covariance import sample
from .determinants import det, logdet, slogdet
from .factorizations import cholesky
from .factorized import factorized
from .norms import eigvalsh, norm, pinv
from .solve import solve
from .spectra import eigh, svd

# The methods.
__all__ = [
    "cholesky",
    "det",
    "eigh",
    "eigvalsh",
    "factorized",
    "inv",
    "logdet",
    "norm",
    "pinv",
    "sample",
    "slogdet",
    "solve",
    "svd",
]
