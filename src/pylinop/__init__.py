"""pylinop: structured linear algebra for NumPy."""

from . import _core
from ._base import blas as _blas

_blas.bind(_core)  # before anything calls

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import _core
from ._base import conditioning as _conditioning
from ._base import dlpack as _dlpack
from ._base import errors as _errors
from ._base import memory as _memory
from ._base import scipy_bridge as _scipy_bridge
from ._base.calibration import calibrate
from ._base.config import config, show_config
from ._base.config import there_are as _there_are
from ._base.errors import (
    ConvergenceError,
    FallbackWarning,
    IllConditionedWarning,
    LinAlgError,
    MaterializationError,
    MaterializationWarning,
    SlowComputationWarning,
    VerificationError,
)
from ._base.lazy_import import Later as _Later
from ._base.lazy_import import Method as _Method
from ._base.lazy_import import names_by_module as _names_by_module
from ._base.lazy_import import read_later as _read_later
from ._base.names import elsewhere as _elsewhere
from ._fallback import interpreter as _interpreter
from ._lazy import array as _array
from ._lazy import build as _build
from ._lazy import evaluate as _evaluate
from ._lazy import kinds as _kinds
from ._lazy import program as _program
from ._operators import array_arguments as _array_arguments
from ._operators import block_constructors as _block_constructors
from ._operators import callables as _callables
from ._operators import convert as _convert
from ._operators import indexing as _indexing
from ._operators import kernel_matrices as _kernel_matrices
from ._operators import numpy_protocols as _numpy_protocols
from ._operators.linear_operator import LinearOperator, MatVec
from ._structured import table as _table  # noqa: F401 (its rules are known by name)

_lazy_iterative, _solver = _Later("_api.lazy_iterative"), _Later("_sparse.solver")
_compare, _by_price = _Later("_verify.compare"), _Later("_iterative.by_price")
_ARGUMENTS = "matvec rmatvec matmat rmatmat matmul rmatmul multiply scale divide add subtract"
_WALK = "toarray diagonal trace in_blocks shaped apply"
_MEMORY = "materialising slow passes_limit copies_pass_limit"
_USERS = "user_view foreign_dtype user_attribute overrides_hooks"
_TAKING = "as_array as_shape kind_shape as_operator operand operands_of"
_LAZY = {
    **{
        name: getattr(_build, name)
        for name in "array_ufunc binary index inverse_dtype mismatch not_square unary".split()
    },
    "dtype": _build.ufunc_dtype,
    "part": _evaluate.part_form,
    "over": _evaluate.over_form,
    "indexed": _evaluate.indexed,
    "beyond": _evaluate.beyond,
    "passes_limit": _evaluate.passes_limit,
    "failed": _evaluate.failed,
    "kind": _kinds.kind,
    "instead": lambda *asked: _lazy_iterative.instead(*asked),
}
_core._setup(
    LinearOperator,
    _array.LazyArray,
    {
        **{name: getattr(_array_arguments, name) for name in _ARGUMENTS.split()},
        **{name: getattr(_interpreter, name) for name in _WALK.split()},
        **{name: _program.of_one(getattr(_memory, name)) for name in _MEMORY.split()},
        "slow_einsum": _memory.slow_einsum,
        **{name: getattr(_callables, name) for name in _USERS.split()},
        **{name: getattr(_convert, name) for name in _TAKING.split()},
        "iterated": lambda *asked: _by_price.iterated(*asked),
        "product_iterated": lambda *asked: _by_price.product_iterated(*asked),
        "part_iterated": lambda *asked: _by_price.part_iterated(*asked),
        "immutable": _dlpack.Immutable,
        "immutable_copy": _dlpack.immutable_copy,
        "ill_conditioned": _program.of_one(_conditioning.ill_conditioned),
        "fell_back": _program.of_one(_conditioning.fell_back),
        "array_ufunc": _numpy_protocols.array_ufunc,
        "getitem": _indexing.getitem,
        "rmatmul": lambda x, op: _array_arguments.rmatmul(op, x),
        "rmultiply": _array_arguments.rmultiply,
        "make_error": _errors.make_error,
        "near": _there_are,
        "parts_of_sparse": _scipy_bridge.parts_of_sparse,
        "sparse": lambda *asked: _solver.solver(*asked),
        "sparse_ready": _scipy_bridge.sparse_ready,
        "grid_of": _block_constructors.grid_of,
        "callable_kernel": _kernel_matrices.callable_kernel,
        "of_placeholders": _errors.of_placeholders,
        "verify_apply": lambda *asked: _compare.applied(*asked),
        "verify_lazy": lambda a: _compare.evaluated(a),
        "verify_value": lambda *asked: _compare.valued(*asked),
        **{f"lazy_{name}": f for name, f in _LAZY.items()},
    },
    __file__.rsplit("__init__", 1)[0].encode(),
)

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
)
from ._lazy.array import LazyArray
from ._lazy.leaves import lazy
from ._lazy.program import evaluate
from ._operators.block_constructors import (
    block,
    block_diag,
    block_tridiag,
    hstack,
    multiply,
    vstack,
)

if _TYPE_CHECKING:
    from ._core import *  # every kind of the table
if _TYPE_CHECKING:
    from . import linalg
    from ._api.basic import aslinearoperator, diagonal, freeze, inv, trace
    from ._api.contraction_operator import Contraction, view
    from ._api.contractions import einsum, einsum_path
    from ._api.covariance import inv_quad_logdet, sample, sqrt_inv_matmul
    from ._api.determinants import det, logdet, slogdet
    from ._api.explain import explain
    from ._api.factorizations import (
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
    from ._api.factorized import Factorized, factorized
    from ._api.normal import MultivariateNormal
    from ._api.norms import cond, eigvalsh, matrix_norm, matrix_rank, norm, pinv, svdvals
    from ._api.products import PseudoInverse, multi_dot
    from ._api.solve import solve
    from ._api.spectra import (
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
    from ._api.tables import kinds, rules
    from ._api.user_rules import register_rule, unregister_rule
    from ._base.explanation import Explanation, explaining
    from ._eigen.functions_of_vectors import funm_multiply
    from ._eigen.scipy_api import arnoldi, eigs, eigsh, expm_multiply, lanczos, lobpcg, svds
    from ._gradients.expressions import gradients
    from ._gradients.transforms import (
        custom_vjp,
        grad,
        hessian,
        hvp,
        jacobian,
        jvp,
        stop_gradient,
        value_and_grad,
        vjp,
    )
    from ._iterative.scipy_api import IterativeResult, bicgstab, cg, gmres, minres
    from ._iterative.scipy_api_least_squares import lsmr, lsqr
    from ._operators.draw import check_adjoint
    from ._operators.kernel_matrices import (
        CallableKernel,
        kernel_structure,
        nystrom,
        random_features,
    )
    from ._operators.quasiseparable import quasiseparable
    from ._precondition.api import preconditioner
    from ._programs.called import program
    from ._sparse.matmul_api import (
        load_sparse,
        sparse_matmul,
        sparse_product_size,
        sparse_row_blocks,
    )
    from ._stochastic.estimators import Estimate, estimate_diagonal, estimate_logdet, estimate_trace
    from ._stochastic.spectral_density import spectral_bounds, spectral_density
    from ._symbols.expressions import symbols
    from ._symbols.placeholder import placeholder
    from ._symbols.template import function
    from ._symbols.unify import unify
    from .linalg import matrix_power

# Functions, by the module that is imported when a name of it is first read: with all of them
# `import pylinop` takes twice as long. A test compares the list with the imports above.
_LATER = _names_by_module(
    {
        "_api.basic": "aslinearoperator diagonal freeze inv trace",
        "_api.contraction_operator": "Contraction view",
        "_api.contractions": "einsum einsum_path",
        "_api.covariance": "inv_quad_logdet sample sqrt_inv_matmul",
        "_api.determinants": "det logdet slogdet",
        "_api.explain": "explain",
        "_api.factorizations": (
            "cholesky cholesky_append cholesky_update ldl lstsq lu null_space orth qr"
        ),
        "_api.factorized": "Factorized factorized",
        "_api.normal": "MultivariateNormal",
        "_api.norms": "cond eigvalsh matrix_norm matrix_rank norm pinv svdvals",
        "_api.products": "PseudoInverse multi_dot",
        "_api.solve": "solve",
        "_api.spectra": (
            "eig eigh eigvals expm fractional_matrix_power funm log_pdet logm sqrtm svd"
        ),
        "_api.tables": "kinds rules",
        "_api.user_rules": "register_rule unregister_rule",
        "_base.explanation": "Explanation explaining",
        "_eigen.functions_of_vectors": "funm_multiply",
        "_eigen.scipy_api": "arnoldi eigs eigsh expm_multiply lanczos lobpcg svds",
        "_gradients.expressions": "gradients",
        "_gradients.transforms": (
            "custom_vjp grad hessian hvp jacobian jvp stop_gradient value_and_grad vjp"
        ),
        "_iterative.scipy_api": "IterativeResult bicgstab cg gmres minres",
        "_iterative.scipy_api_least_squares": "lsmr lsqr",
        "_operators.draw": "check_adjoint",
        "_operators.kernel_matrices": "CallableKernel kernel_structure nystrom random_features",
        "_operators.quasiseparable": "quasiseparable",
        "_precondition.api": "preconditioner",
        "_programs.called": "program",
        "_sparse.matmul_api": "load_sparse sparse_matmul sparse_product_size sparse_row_blocks",
        "_stochastic.estimators": "Estimate estimate_diagonal estimate_logdet estimate_trace",
        "_stochastic.spectral_density": "spectral_bounds spectral_density",
        "_symbols.expressions": "symbols",
        "_symbols.placeholder": "placeholder",
        "_symbols.template": "function",
        "_symbols.unify": "unify",
        "linalg": "matrix_power",
        "": "linalg",
    }
)
# Functions that are methods too: `A.solve(b)` is `pl.solve(A, b)`.
_METHODS = "cholesky det eigh eigvalsh factorized inv logdet norm pinv sample slogdet solve svd"
for _name in _METHODS.split():
    for _class in (LinearOperator, LazyArray):
        setattr(_class, _name, _Method(_Later(_LATER[_name]), _name))

__version__ = "0.1.0.dev0"
__all__ = [
    "Adjoint",
    "CallableKernel",
    "Circulant",
    "Conj",
    "ConvergenceError",
    "Contraction",
    "Convolution",
    "DCT",
    "DFT",
    "Dense",
    "Diag",
    "Estimate",
    "Explanation",
    "Factorized",
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
    "MultivariateNormal",
    "Part",
    "Power",
    "Product",
    "PseudoInverse",
    "Scaled",
    "Selection",
    "Sliced",
    "SlowComputationWarning",
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
    "custom_vjp",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigs",
    "eigsh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "einsum_path",
    "estimate_diagonal",
    "estimate_logdet",
    "estimate_trace",
    "evaluate",
    "explain",
    "explaining",
    "expm",
    "expm_multiply",
    "factorized",
    "fractional_matrix_power",
    "freeze",
    "function",
    "funm",
    "funm_multiply",
    "gmres",
    "grad",
    "gradients",
    "hessian",
    "hstack",
    "hvp",
    "inv",
    "inv_quad_logdet",
    "jacobian",
    "jvp",
    "kernel_structure",
    "kinds",
    "lanczos",
    "lazy",
    "ldl",
    "linalg",
    "load_sparse",
    "lobpcg",
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
    "norm",
    "null_space",
    "nystrom",
    "orth",
    "pinv",
    "placeholder",
    "preconditioner",
    "program",
    "qr",
    "quasiseparable",
    "random_features",
    "register_rule",
    "rules",
    "sample",
    "show_config",
    "slogdet",
    "solve",
    "sparse_matmul",
    "sparse_product_size",
    "sparse_row_blocks",
    "spectral_bounds",
    "spectral_density",
    "sqrt_inv_matmul",
    "sqrtm",
    "stop_gradient",
    "svd",
    "svds",
    "svdvals",
    "symbols",
    "trace",
    "unify",
    "unregister_rule",
    "value_and_grad",
    "view",
    "vjp",
    "vstack",
]

for _row in _core.kinds():  # a kind added to the table is here without another line
    globals()[_row["name"]] = getattr(_core, _row["name"])
    if _row["name"] not in __all__:
        __all__.append(_row["name"])

del _row, _class, _name

# Not by `def`, for which type checkers would believe every name.
globals()["__getattr__"] = lambda name: (
    _read_later(globals(), name, _LATER[name])
    if name in _LATER
    else _elsewhere(__name__, __all__, name)
)
globals()["__dir__"] = lambda: sorted({*globals(), *__all__})
