"""Contractions with LazyArrays and operators in them: what is a product, transpose, trace or
diagonal of matrices is written as these, so that their structure counts; all else is one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._contractions import equations
from .._contractions.equations import Deferred, Task
from .._operators import einsum
from .contraction_operators import applied
from .leaves import lazy


def structured(task: Task, operands: Sequence[Any]) -> Any:
    """By products, traces, ... of matrices; NotImplemented where the equation is none of these."""
    plain = task.equation.letters and task.path is None and task.outside is None
    if not plain or task.sizes or task.dtype is not None:
        return NotImplemented
    made = einsum.run(task.equation.text, operands)
    if made is NotImplemented:
        return made
    dtype = np.result_type(*(getattr(x, "dtype", None) or np.asarray(x).dtype for x in operands))
    return made if made.dtype == dtype else made.astype(dtype)  # NumPy's sums widen integers


def contraction(task: Task, operands: Sequence[Any]) -> Any:
    """The result as a LazyArray."""
    operands = [
        x if is_lazy(x) else lazy(x if isinstance(x, _core.Operator) else np.asarray(x))
        for x in operands
    ]
    made = structured(task, operands)
    if made is not NotImplemented:
        return made
    operators = [x._args[0] if x._head == "operator" else x for x in operands]
    task, left = applied(task, operators)
    operands = [x if is_lazy(x) else lazy(x) for x in left]
    shape = equations.shape_of(task, [tuple(x.shape) for x in operands])
    dtype = equations.dtype_of(task, operands)
    return _core._LazyArray("call", tuple(operands), shape, dtype, (Deferred(task), {}))
