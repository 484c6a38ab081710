"""What nodes compute, by name: each function takes and gives LazyArrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._api import basic, contractions, covariance, determinants, products, solve, spectra
from .._lazy.build import inverse, view
from .._lazy.leaves import lazy
from .._operators import block_constructors

__all__ = ["FUNCTIONS", "KINDS", "constructors"]


def _over(a: Any, c: Any) -> Any:
    return a / c


def _index(a: Any, key: Any) -> Any:
    return a[key]


def _einsum(equation: str, *operands: Any, **given: Any) -> Any:
    return lazy(contractions.einsum(equation, *operands, **given))


def _svd(a: Any) -> Any:
    return np.linalg.svd(a, full_matrices=False)


def _norm(a: Any) -> Any:
    return np.linalg.norm(a)


KINDS: dict[str, Any] = {
    row["name"]: getattr(_core, row["name"])
    for row in _core.kinds()
    if row["name"] not in ("MatVec", "Part")
}


def constructors(kind: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The kinds as functions of a library's arrays, by name; ``kind(name, *args)`` makes one."""

    def of(name: str) -> Callable[..., Any]:
        @functools.wraps(KINDS[name], assigned=("__name__", "__doc__"), updated=())
        def made(*args: Any, **kwargs: Any) -> Any:
            return kind(name, *args, **kwargs)

        return made

    return {name: of(name) for name in KINDS}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **KINDS,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "negative": lambda a: -1 * a,
    "scale": lambda a, c: c * a,
    "over": _over,
    "matmul": lambda a, b: a @ b,
    "view": view,
    "index": _index,
    "inv": inverse,
    "solve": solve.solve,
    "trace": basic.trace,
    "diagonal": basic.diagonal,
    "det": determinants.det,
    "logdet": determinants.logdet,
    "slogdet": determinants.slogdet,
    "inv_quad_logdet": covariance.inv_quad_logdet,
    "einsum": _einsum,
    "multi_dot": products.multi_dot,
    "matrix_power": np.linalg.matrix_power,
    "multiply": block_constructors.multiply,
    "cholesky": np.linalg.cholesky,
    "eigvalsh": np.linalg.eigvalsh,
    "svdvals": np.linalg.svdvals,
    "eigh": np.linalg.eigh,
    "svd": _svd,
    "expm": spectra.expm,
    "sqrtm": spectra.sqrtm,
    "logm": spectra.logm,
    "pinv": np.linalg.pinv,
    "norm": _norm,
    "lazy": lazy,
    "item": lambda values, k: values[k],
}
