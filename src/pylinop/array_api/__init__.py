"""The same operators on arrays of any library of the array API, where they lie: CuPy, JAX,
array_api_strict, NumPy.

    import pylinop.array_api as pa
    K = pa.Diag(noise) + pa.LowRank(U)          # arrays on a GPU, say
    pa.solve(K, y), pa.logdet(K)                # arrays there

Names are pylinop's. Operators are formulas; each result is computed by the library's own functions
from the form that pylinop's rules give it. Nothing is copied to the host, no value is looked at."""

from __future__ import annotations

from .._programs import table as _table
from .._programs.functions import InvQuadLogdet, SlogdetResult
from .operators import FUNCTIONS as _F
from .operators import Operator, einsum
from .operators import kind as _kind

__all__ = [
    "InvQuadLogdet",
    "Operator",
    "SlogdetResult",
    "det",
    "diagonal",
    "einsum",
    "expm",
    "inv",
    "inv_quad_logdet",
    "logdet",
    "logm",
    "matrix_power",
    "multi_dot",
    "multiply",
    "slogdet",
    "solve",
    "sqrtm",
    "trace",
]

det = _F.det
diagonal = _F.diagonal
expm = _F.expm
inv = _F.inv
inv_quad_logdet = _F.inv_quad_logdet
logdet = _F.logdet
logm = _F.logm
matrix_power = _F.matrix_power
multi_dot = _F.multi_dot
multiply = _F.multiply
slogdet = _F.slogdet
solve = _F.solve
sqrtm = _F.sqrtm
trace = _F.trace

_kinds = _table.constructors(_kind)  # a kind added to the table is here without another line
globals().update(_kinds)
__all__ += list(_kinds)
