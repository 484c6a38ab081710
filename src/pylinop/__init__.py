"""pylinop: structured linear algebra for NumPy."""

from . import _blas, _core

_blas.bind(_core)  # before anything calls

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import (
    _assemble,
    _callables,
    _conditioning,
    _core,
    _errors,
    _forms,
    _indexing,
    _kernels,
    _later,
    _lazy,
    _lazy_build,
    _lazy_eval,
    _memory,
    _numpy,
    _scipy,
    _walk,
)
from ._config import config, show_config
from ._costs import calibrate
from ._errors import (
    ConvergenceError,
    FallbackWarning,
    IllConditionedWarning,
    LinAlgError,
    MaterializationError,
    MaterializationWarning,
    VerificationError,
)
from ._operator import LinearOperator, MatVec

_HOOKS = (
    "matvec rmatvec matmat rmatmat matmul rmatmul multiply scale divide add subtract toarray "
    "diagonal trace in_blocks shaped apply"
)
_MEMORY = "materialising passes_limit copies_pass_limit"
_USERS = "user_view foreign_dtype user_attribute overrides_hooks"
_TAKING = "as_array as_shape kind_shape as_operator operand operands_of"
_LAZY = {
    **{
        name: getattr(_lazy_build, name)
        for name in "array_ufunc binary index inverse_dtype mismatch not_square unary".split()
    },
    "dtype": _lazy_build.ufunc_dtype,
    "part": _lazy_eval.part_form,
    "over": _lazy_eval.over_form,
    "indexed": _lazy_eval.indexed,
    "beyond": _lazy_eval.beyond,
    "passes_limit": _lazy_eval.passes_limit,
    "failed": _lazy_eval.failed,
    "instead": _lazy_eval.instead,
}
_core._setup(
    LinearOperator,
    _lazy.LazyArray,
    {
        **{name: getattr(_walk, name) for name in _HOOKS.split()},
        **{name: getattr(_memory, name) for name in _MEMORY.split()},
        **{name: getattr(_callables, name) for name in _USERS.split()},
        **{name: getattr(_forms, name) for name in _TAKING.split()},
        "ill_conditioned": _conditioning.ill_conditioned,
        "fell_back": _conditioning.fell_back,
        "array_ufunc": _numpy.array_ufunc,
        "getitem": _indexing.getitem,
        "rmatmul": lambda x, op: _walk.rmatmul(op, x),
        "rmultiply": _walk.rmultiply,
        "make_error": _errors.make_error,
        "parts_of_sparse": _scipy.parts_of_sparse,
        "sparse": _scipy.sparse_solver,
        "sparse_ready": _scipy.sparse_ready,
        "grid_of": _assemble.grid_of,
        "callable_kernel": _kernels.callable_kernel,
        "verify_apply": lambda *asked: _later.Later("_verify").applied(*asked),
        "verify_lazy": lambda a: _later.Later("_verify").evaluated(a),
        "verify_value": lambda *asked: _later.Later("_verify").valued(*asked),
        **{f"lazy_{name}": f for name, f in _LAZY.items()},
    },
    __file__.rsplit("__init__", 1)[0].encode(),
)

from . import linalg
from ._assemble import block, block_diag, block_tridiag, hstack, multiply, vstack
from ._core import (
    DCT,
    DFT,
    Adjoint,
    Circulant,
    Conj,
    Convolution,
    Dense,
    Diag,
    Hadamard,
    Hankel,
    Identity,
    Inverse,
    Kron,
    LowRank,
    MultilevelToeplitz,
    Part,
    Power,
    Product,
    Scaled,
    Selection,
    Sliced,
    Sparse,
    Sum,
    Toeplitz,
    Transpose,
    Zeros,
    kinds,
    rules,
)

if _TYPE_CHECKING:
    from ._core import *  # every kind of the table
from ._covariance import inv_quad_logdet, sample, sqrt_inv_matmul
from ._eigs import arnoldi, eigs, eigsh, expm_multiply, lanczos, lobpcg, svds
from ._estimates import (
    Estimate,
    estimate_diagonal,
    estimate_logdet,
    estimate_trace,
)
from ._explain import Explanation, explain, explaining
from ._factorisations import (
    cholesky,
    cholesky_append,
    cholesky_update,
    ldl,
    lstsq,
    lu,
    null_space,
    orth,
    qr,
)
from ._functions import aslinearoperator, diagonal, freeze, inv, trace
from ._kernels import CallableKernel, kernel_structure, nystrom, random_features
from ._krylov import IterativeResult, bicgstab, cg, gmres, minres
from ._krylov_least import lsmr, lsqr
from ._lazy import LazyArray, evaluate, lazy
from ._linalg import (
    cond,
    det,
    eigvalsh,
    logdet,
    matrix_norm,
    matrix_rank,
    pinv,
    slogdet,
    solve,
    svdvals,
)
from ._look import check_adjoint
from ._precondition import preconditioner
from ._products import PseudoInverse, multi_dot
from ._quasi import quasiseparable
from ._rules import register_rule, unregister_rule
from ._sparse_matmul import load_sparse, sparse_matmul, sparse_product_size, sparse_row_blocks
from ._spectra import (
    eig,
    eigh,
    eigvals,
    expm,
    fractional_matrix_power,
    funm,
    log_pdet,
    logm,
    sqrtm,
    svd,
)
from ._spectral import spectral_bounds, spectral_density
from .linalg import matrix_power

__version__ = "0.1.0.dev0"
__all__ = [
    "Adjoint",
    "CallableKernel",
    "Circulant",
    "Conj",
    "ConvergenceError",
    "Convolution",
    "DCT",
    "DFT",
    "Dense",
    "Diag",
    "Estimate",
    "Explanation",
    "FallbackWarning",
    "IllConditionedWarning",
    "Hadamard",
    "Hankel",
    "Identity",
    "Inverse",
    "IterativeResult",
    "Kron",
    "LazyArray",
    "LinAlgError",
    "LinearOperator",
    "LowRank",
    "MatVec",
    "MaterializationError",
    "MaterializationWarning",
    "MultilevelToeplitz",
    "Part",
    "Power",
    "Product",
    "PseudoInverse",
    "Scaled",
    "Selection",
    "Sliced",
    "Sparse",
    "Sum",
    "Toeplitz",
    "Transpose",
    "VerificationError",
    "Zeros",
    "arnoldi",
    "aslinearoperator",
    "bicgstab",
    "block",
    "block_diag",
    "block_tridiag",
    "calibrate",
    "cg",
    "check_adjoint",
    "cholesky",
    "cholesky_append",
    "cholesky_update",
    "cond",
    "config",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigs",
    "eigsh",
    "eigvals",
    "eigvalsh",
    "estimate_diagonal",
    "estimate_logdet",
    "estimate_trace",
    "evaluate",
    "explain",
    "explaining",
    "expm",
    "expm_multiply",
    "fractional_matrix_power",
    "freeze",
    "funm",
    "gmres",
    "hstack",
    "inv",
    "inv_quad_logdet",
    "kernel_structure",
    "kinds",
    "lanczos",
    "lazy",
    "ldl",
    "linalg",
    "lobpcg",
    "load_sparse",
    "log_pdet",
    "logdet",
    "logm",
    "lsmr",
    "lsqr",
    "lstsq",
    "lu",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "minres",
    "multi_dot",
    "multiply",
    "null_space",
    "nystrom",
    "orth",
    "pinv",
    "preconditioner",
    "qr",
    "quasiseparable",
    "random_features",
    "register_rule",
    "rules",
    "sample",
    "show_config",
    "slogdet",
    "solve",
    "spectral_bounds",
    "spectral_density",
    "sparse_matmul",
    "sparse_product_size",
    "sparse_row_blocks",
    "sqrt_inv_matmul",
    "sqrtm",
    "svd",
    "svds",
    "svdvals",
    "trace",
    "unregister_rule",
    "vstack",
]

for _row in kinds():  # a kind added to the table is here without another line
    globals()[_row["name"]] = getattr(_core, _row["name"])
    if _row["name"] not in __all__:
        __all__.append(_row["name"])

del _row
