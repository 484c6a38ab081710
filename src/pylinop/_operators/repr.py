"""What an operator looks like: SciPy's one line, a small table in a notebook, the plan as text."""

import inspect
import operator

import numpy as np

from .. import _core
from .._base import explanation
from . import convert


def _size(shape):
    return "x".join(map(str, shape))


def text(op):
    """<MxN Kind with dtype=...>; never computes."""
    try:
        dtype = op.dtype
        shape = op.shape
    except AttributeError:
        return f"<{type(op).__name__} without shape>"
    words = "unspecified dtype" if dtype is None else f"dtype={dtype}"
    return f"<{_size(shape)} {type(op).__name__} with {words}>"


# -- explain: an action's arguments -> (number of the action, right-hand side, i, j) --


def _rhs(op, x, n):
    return np.zeros(n, op.dtype or np.float64) if x is None else np.asarray(x)


def _apply(op, x=None):
    return op, 0, _rhs(op, x, op.shape[-1]), 0, 0


def _solve(op, b=None):
    return _core._build("inverse", op), 0, _rhs(op, b, op.shape[-2]), 0, 0


def _dense(op):
    return op, 8, None, 0, 0


def _diagonal(op, offset=0):
    return op, 9, None, operator.index(offset), 0


def _trace(op):
    return op, 10, None, 0, 0


def _element(op, i, j):
    return op, 11, None, *convert.bounded(op, operator.index(i), operator.index(j))


def _det(op):
    return op, 12, None, 0, 0


_ACTIONS = {
    "apply": _apply,
    "matvec": _apply,
    "solve": _solve,
    "dense": _dense,
    "diagonal": _diagonal,
    "trace": _trace,
    "element": _element,
    "det": _det,
    "slogdet": _det,
    "logdet": _det,
}


_RUNS = {
    0: lambda op, x, i, j: op @ x,
    8: lambda op, x, i, j: op.toarray(),
    9: lambda op, x, i, j: op.diagonal(i),
    10: lambda op, x, i, j: op.trace(),
    11: lambda op, x, i, j: op._element(i, j),
    12: lambda op, x, i, j: op._scaledet(),
}


def explain(op, action, args, kwargs, run=False):
    """The plan of an action; ``run``: with the times it took."""
    if action in ("trace", "logdet", "diagonal") and "method" in kwargs:
        from .._stochastic import choose_method

        return choose_method.explained(op, action, kwargs["method"], kwargs)
    if action in ("eigh", "eigvalsh"):
        from .._eigen import choose_method

        return choose_method.explained(op, action, *args, **kwargs)
    how = _ACTIONS.get(action) if isinstance(action, str) else None
    if how is None:
        raise ValueError(f"no action {action!r} to explain; there are {', '.join(_ACTIONS)}, eigh")
    if how is _solve and "method" in kwargs:
        from .._iterative import explain as _iterative_said

        return _iterative_said.explained(op, run, *args, **kwargs)
    try:
        inspect.signature(how).bind(op, *args, **kwargs)
    except TypeError as error:
        words = str(inspect.signature(how)).replace("(op", f"({action!r}").replace("=None", "=...")
        raise TypeError(f"explain{words}: {error}") from None
    asked = op
    op, *rest = how(op, *args, **kwargs)
    planned = explanation.Explanation._of(op._explain(*rest))
    if how is _solve:
        from .._iterative import explain as _iterative_said

        if _iterative_said.too_large(asked, planned):
            return _iterative_said.explained(asked, run, *args, **kwargs)
    if not run:
        return planned
    with explanation.explaining() as e:
        _RUNS[rest[0]](op, *rest[1:])
    return e.explanation
