"""The same operators on arrays of JAX.

    import pylinop.jax as pj
    K = pj.Diag(noise) + pj.LowRank(U)          # traced or not: a pytree of its arrays
    pj.solve(K, y), pj.logdet(K)                # arrays of JAX; derivatives of any order

Names are pylinop's. Operators are formulas; each result is one call of a pylinop program, also
under `jax.jit`, with pylinop's derivatives, in both modes."""

from __future__ import annotations

import functools
from typing import Any

from . import table as _table
from .functions import (
    InvQuadLogdet,
    SlogdetResult,
    cholesky,
    det,
    diagonal,
    eigvalsh,
    inv,
    inv_quad_logdet,
    logdet,
    matrix_norm,
    matrix_power,
    multi_dot,
    multiply,
    pinv,
    slogdet,
    solve,
    svdvals,
    trace,
)
from .operators import Operator
from .operators import kind as _kind
from .program import program

__all__ = [
    "InvQuadLogdet",
    "Operator",
    "SlogdetResult",
    "cholesky",
    "det",
    "diagonal",
    "eigvalsh",
    "inv",
    "inv_quad_logdet",
    "logdet",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "multiply",
    "pinv",
    "program",
    "slogdet",
    "solve",
    "svdvals",
    "trace",
]


def _constructor(name: str) -> Any:
    @functools.wraps(_table.KINDS[name], assigned=("__name__", "__doc__"), updated=())
    def made(*args: Any, **kwargs: Any) -> Operator:
        return _kind(name, *args, **kwargs)

    return made


for _name in _table.KINDS:  # a kind added to the table is here without another line
    globals()[_name] = _constructor(_name)
    __all__.append(_name)
del _name
