"""The same operators on arrays of JAX.

    import pylinop.jax as pj
    K = pj.Diag(noise) + pj.LowRank(U)          # traced or not: a pytree of its arrays
    pj.solve(K, y), pj.logdet(K)                # arrays of JAX; derivatives of any order

Names are pylinop's. Operators are formulas; each result is one call of a pylinop program, also
under `jax.jit`, with pylinop's derivatives, in both modes."""

from __future__ import annotations

from .._programs import table as _table
from .._programs.contractions import einsum_by as _einsum_by
from .._programs.functions import EighResult, InvQuadLogdet, SlogdetResult, SVDResult
from .operators import FUNCTIONS as _F
from .operators import Operator
from .operators import kind as _kind
from .program import program

__all__ = [
    "EighResult",
    "InvQuadLogdet",
    "Operator",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "einsum",
    "expm",
    "inv",
    "inv_quad_logdet",
    "logdet",
    "logm",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "multiply",
    "pinv",
    "program",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "svdvals",
    "trace",
]

cholesky = _F.cholesky
det = _F.det
diagonal = _F.diagonal
eigh = _F.eigh
eigvalsh = _F.eigvalsh
expm = _F.expm
einsum = _einsum_by(program, _F)
inv = _F.inv
inv_quad_logdet = _F.inv_quad_logdet
logdet = _F.logdet
logm = _F.logm
matrix_norm = _F.matrix_norm
matrix_power = _F.matrix_power
multi_dot = _F.multi_dot
multiply = _F.multiply
pinv = _F.pinv
slogdet = _F.slogdet
solve = _F.solve
sqrtm = _F.sqrtm
svd = _F.svd
svdvals = _F.svdvals
trace = _F.trace

_kinds = _table.constructors(_kind)  # a kind added to the table is here without another line
globals().update(_kinds)
__all__ += list(_kinds)
