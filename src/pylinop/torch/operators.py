"""Operators on tensors: formulas, computed when a tensor is asked for."""

from __future__ import annotations

from typing import Any

from .._programs import operators as neutral
from .._programs.functions import Functions
from .arrays import dtype_of, is_array, operation, out_dtype
from .function import run

__all__ = ["FUNCTIONS", "Operator", "kind"]

FACE = neutral.Face("pylinop.torch", "PyTorch", is_array, operation, dtype_of, out_dtype, run)


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
        if name == "__rmatmul__" or (name in ("matmul", "__matmul__") and not kwargs):
            a, b = args if name != "__rmatmul__" else args[::-1]
            return b.__rmatmul__(a) if isinstance(b, cls) else a.__matmul__(b)
        plain = {"add": "__add__", "__radd__": "__radd__", "mul": "__mul__", "__rmul__": "__rmul__"}
        if name in plain and not kwargs and len(args) == 2:
            a, b = args
            return b.__radd__(a) if "add" in name else (b * a if isinstance(b, cls) else a * b)
        found = _TORCH.get(name)
        if found is not None and not kwargs:
            return found(*args)
        raise TypeError(
            f"torch.{name} of an operator of pylinop.torch: take A.toarray(), or a function of "
            "pylinop.torch"
        )


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
