"""What an operator looks like: SciPy's one line, a small table in a notebook, the plan as text."""

import numpy as np


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


def explain(op, action="apply", x=None):
    """The plan of an action as text."""
    names = {"apply": 0, "dense": 8, "diagonal": 9, "trace": 10}
    if action not in names:
        raise NotImplementedError(f"no explanation of {action!r} yet; there are {sorted(names)}")
    if action == "apply":
        x = np.zeros(op.shape[-1], op.dtype or np.float64) if x is None else np.asarray(x)
    return op._explain(names[action], x)
