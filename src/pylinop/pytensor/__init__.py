"""pylinop in PyTensor and PyMC: structure found in their graphs.

After ``import pylinop.pytensor`` a matrix that is written as ``W @ W.T + pt.diag(d)``, a Kronecker
product with noise, Toeplitz or block diagonal runs by its structure wherever its Cholesky factor is
used for solves, squares and log-determinants: value and gradients, `pm.MvNormal` too."""

from __future__ import annotations

from . import dispatch_numba as dispatch_numba
from .api import config, explain, grad, rewrite
from .hints import hint
from .ops import Structured
from .report import Explanation, Report
from .rewrites import off, registered

__all__ = [
    "Explanation",
    "Report",
    "Structured",
    "config",
    "explain",
    "grad",
    "hint",
    "off",
    "rewrite",
]

registered()
