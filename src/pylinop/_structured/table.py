"""All modules whose rows are rules of `pl.rules()`: they are imported with the package, so that
rules are known by name from the start, whatever is called first.

The rows of a kind are in `kinds`, those that several share with their question. They are listed as
the kinds are."""

# ruff: noqa: F401
from __future__ import annotations

from .. import _core
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
from .kinds import (
    banded,
    blocks,
    circulant,
    composites,
    decomposed,
    dense,
    diagonal,
    kron,
    low_rank,
    permutation,
    quasiseparable,
    reflections,
    sparse,
    stencils,
    toeplitz,
    transforms,
    triangular,
    views_multiples,
)
from .rows import QUESTIONS

norms.complete()

_FIRST = "diag identity zeros scaled view kron blockdiag".split()  # then as pl.kinds() lists them
_at: dict[str, int] = {}
for _head in [*_FIRST, *(row["head"] for row in _core.kinds())]:
    _at.setdefault(_head, len(_at))
for _question in QUESTIONS.values():
    _sorted = sorted(_question.rows.items(), key=lambda item: _at.get(item[0], len(_at)))
    _question.rows.clear()
    _question.rows.update(_sorted)
