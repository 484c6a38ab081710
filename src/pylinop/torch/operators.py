"""Operators on tensors: formulas, computed when a tensor is asked for."""

from __future__ import annotations

from typing import Any

import torch

from .._programs import operators as neutral
from .._programs.functions import Functions
from .arrays import dtype_of, is_array, operation, out_dtype
from .function import kind_of, run

__all__ = ["FUNCTIONS", "Operator", "kind"]

FACE = neutral.Face(
    "pylinop.torch",
    "PyTorch",
    is_array,
    operation,
    dtype_of,
    out_dtype,
    run,
    kind_of,
    torch.compiler.is_dynamo_compiling,
)


class Operator(neutral.Operator):
    """A matrix by its structure, on tensors, parameters of modules too.

    ``A @ x`` and ``x @ A`` with tensors are tensors; ``A @ B``, ``A + B``, ``c * A``, ``A / c``,
    ``A.T``, ``A.H``, ``A ** p`` and ``pylinop.torch.inv(A)`` are operators, and nothing is
    computed.

    Examples
    --------
    >>> import torch, pylinop.torch as pt
    >>> A = pt.Diag(torch.tensor([1.0, 2.0])) + pt.LowRank(torch.ones(2, 1))
    >>> A @ torch.ones(2)
    tensor([3., 4.])
    """

    __slots__ = ()
    face = FACE

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _BINARY and not kwargs and len(args) == 2:
            method, turned = _BINARY[name]
            hidden = name == "matmul" and func is not torch.matmul
            if hidden and torch.compiler.is_dynamo_compiling():
                if getattr(torch._dynamo.config, "nested_graph_breaks", False):
                    raise NotImplementedError(_ORDER)  # it would go on here, as if in order
                torch._dynamo.graph_break(msg=_ORDER)
            a, b = args[::-1] if turned else args
            return _by(method, a, b) if isinstance(a, cls) else _by(_TURNED[method], b, a)
        found = _TORCH.get(name)
        if found is not None and not kwargs:
            return found(*args)
        raise TypeError(
            f"torch.{name} of an operator of pylinop.torch: take A.toarray(), or a function of "
            "pylinop.torch"
        )


_ORDER = (
    "A @ x of an operator of pylinop.torch and a tensor in a graph of torch.compile: PyTorch's "
    "tracer hides which of them comes first. Write torch.matmul(A, x)"
)


def _by(method: str, a: Operator, b: Any) -> Any:
    found = getattr(a, method)(b)
    if found is NotImplemented:
        raise TypeError(f"no {method} of an operator of pylinop.torch and a {type(b).__name__}")
    return found


_BINARY = {
    "matmul": ("__matmul__", False),
    "__matmul__": ("__matmul__", False),
    "__rmatmul__": ("__matmul__", True),
    "add": ("__add__", False),
    "__radd__": ("__add__", True),
    "sub": ("__sub__", False),
    "rsub": ("__sub__", True),
    "__rsub__": ("__sub__", True),
    "mul": ("__mul__", False),
    "__rmul__": ("__mul__", True),
    "div": ("__truediv__", False),
    "__rdiv__": ("__truediv__", True),
    "__rtruediv__": ("__truediv__", True),
}
"""Functions of two operands by torch's names: the method, and whether they come in reverse."""

_TURNED = {
    "__matmul__": "__rmatmul__",
    "__add__": "__radd__",
    "__sub__": "__rsub__",
    "__mul__": "__rmul__",
    "__truediv__": "__rtruediv__",
}
FUNCTIONS = Functions(FACE, Operator)
_TORCH: dict[str, Any] = {
    "linalg_solve": FUNCTIONS.solve,
    "linalg_inv": FUNCTIONS.inv,
    "inverse": FUNCTIONS.inv,
    "linalg_slogdet": FUNCTIONS.slogdet,
    "slogdet": FUNCTIONS.slogdet,
    "logdet": FUNCTIONS.logdet,
    "linalg_det": FUNCTIONS.det,
    "det": FUNCTIONS.det,
    "trace": FUNCTIONS.trace,
    "diagonal": FUNCTIONS.diagonal,
    "linalg_eigvalsh": FUNCTIONS.eigvalsh,
    "linalg_eigh": FUNCTIONS.eigh,
    "matrix_exp": FUNCTIONS.expm,
    "linalg_matrix_exp": FUNCTIONS.expm,
    "linalg_svdvals": FUNCTIONS.svdvals,
    "linalg_cholesky": FUNCTIONS.cholesky,
}


def kind(name: str, *args: Any, **kwargs: Any) -> Operator:
    """An operator of a kind."""
    op: Operator = neutral.made(Operator, operation(name, *args, **kwargs))
    return op
