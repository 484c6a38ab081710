"""What of PyTensor is used that is not its public interface, in one place. Tested with 3.3.8."""

from __future__ import annotations

from typing import Any

from pytensor.assumptions.core import register_universal_assumption
from pytensor.compile.mode import optdb
from pytensor.compile.ops import TypeCastingOp
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.features import ReplaceValidate
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.cache import _call_cached_ptr as call_cached_ptr
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.scalar import basic as scalars
from pytensor.tensor.basic import Alloc, AllocDiag, ExtractDiag, Eye
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.eigen import Eig, Eigh
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv
from pytensor.tensor.linalg.products import KroneckerProduct
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.linalg.summary import Det
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Shape, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)

__all__ = [
    "AdvancedIncSubtensor",
    "AdvancedSubtensor",
    "Alloc",
    "AllocDiag",
    "Apply",
    "BlockDiagonal",
    "Blockwise",
    "CAReduce",
    "Cholesky",
    "CholeskySolve",
    "Constant",
    "Det",
    "DimShuffle",
    "DisconnectedType",
    "Dot",
    "Einsum",
    "Elemwise",
    "ExtractDiag",
    "Eye",
    "FunctionGraph",
    "GraphRewriter",
    "IncSubtensor",
    "KroneckerProduct",
    "MatrixInverse",
    "OTHERS",
    "Op",
    "ReplaceValidate",
    "Shape",
    "Solve",
    "SolveTriangular",
    "SpecifyShape",
    "Subtensor",
    "TypeCastingOp",
    "Variable",
    "ancestors",
    "call_cached_ptr",
    "clone_replace",
    "compile_numba_function_src",
    "numba_njit",
    "optdb",
    "register_funcify_default_op_cache_key",
    "register_universal_assumption",
    "rewrite_graph",
    "scalars",
    "toposorted",
    "vectorize_graph",
]

OTHERS = (MatrixInverse, MatrixPinv, Eig, Eigh, SVD, QR)


def toposorted(expr: Any) -> list[Any]:
    """The variables of an expression or of several, each once."""
    found = dict.fromkeys(ancestors(expr if isinstance(expr, list | tuple) else [expr]))
    return [v for v in found if v.owner is not None and v.owner.outputs[0] is v]
