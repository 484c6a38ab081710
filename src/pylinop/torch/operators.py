"""Operators on tensors: formulas, computed when a tensor is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._namespace.formulas import on_one_device
from .._programs import formulas
from .._programs import operators as neutral
from .._programs.functions import Functions
from .arrays import dtype_of, is_array, narrowed, operation, out_dtype
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
    narrowed,
)


class Operator(neutral.Operator):
    """A matrix by its structure, on tensors, parameters of modules too.

    ``A @ x`` and ``x @ A`` with tensors are tensors; ``A @ B``, ``A + B``, ``c * A``, ``A / c``,
    ``A.T``, ``A.H``, ``A ** p`` and ``pylinop.torch.inv(A)`` are operators, and nothing is
    computed. ``A.to(device)``, ``A.double()``, ``A.detach()`` are operators of such tensors.

    Examples
    --------
    >>> import torch, pylinop.torch as pt
    >>> A = pt.Diag(torch.tensor([1.0, 2.0])) + pt.LowRank(torch.ones(2, 1))
    >>> A @ torch.ones(2)
    tensor([3., 4.])
    """

    __slots__ = ()
    face = FACE

    # -- what tensors have

    def _flat(self) -> Any:
        return formulas.flat([self._node], True, torch.compiler.is_dynamo_compiling())

    def _of(self, change: Callable[[Any], Any]) -> Operator:
        """Of other tensors. One that stands at several places is one there too."""
        parts, tensors = self._flat()
        return type(self)(formulas.nodes_of(parts, [change(x) for x in tensors])[0])

    @property
    def device(self) -> Any:
        """Where its tensors are; the CPU, if it has none."""
        tensors = self._flat()[1]
        on_one_device(tensors)
        return tensors[0].device if tensors else torch.device("cpu")

    @property
    def requires_grad(self) -> bool:
        """Does one of its tensors ask for a gradient?"""
        return any(x.requires_grad for x in self._flat()[1])

    def detach(self) -> Operator:
        """Of the same numbers, which ask for no gradient."""
        return self._of(lambda x: x.detach())

    def to(self, *args: Any, **kwargs: Any) -> Operator:
        """On another device, or of another dtype, as `torch.Tensor.to` has it. Indices stay
        integers; of a real dtype complex numbers take the precision alone."""
        device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"operators are of real or complex numbers, not of {dtype}")

        def moved(x: Any) -> Any:
            due = dtype if x.is_floating_point() or x.is_complex() else None
            if due is not None and x.is_complex() and not due.is_complex:
                due = due.to_complex()
            return x.to(device, due or x.dtype, non_blocking)

        return self._of(moved)

    def cpu(self) -> Operator:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Operator:
        """On a GPU: the current one, or that of this number."""
        return self._of(lambda x: x.cuda(device))

    def double(self) -> Operator:
        """In double precision."""
        return self.to(torch.float64)

    def float(self) -> Operator:
        """In single precision."""
        return self.to(torch.float32)

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
    "x @ A of a tensor and an operator of pylinop.torch in a graph of torch.compile: PyTorch's "
    "tracer hides which of them comes first. Write torch.matmul(x, A)"
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
