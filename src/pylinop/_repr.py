"""What an operator looks like: SciPy's one line, a small table in a notebook, the plan as text."""

import html as _html

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


def html(op):
    rows = [("kind", type(op).__name__), ("shape", str(op.shape)), ("dtype", str(op.dtype))]
    below = [o for o in op._operands if hasattr(o, "_operands")] or [
        o for o in (op._init or ()) if hasattr(o, "_operands")
    ]
    if below:
        rows.append(
            (
                "of",
                ", ".join(text(o)[1:-1] for o in below[:6]) + (", ..." if len(below) > 6 else ""),
            )
        )
    rows.append(("memory", f"{op.nbytes:,} bytes"))
    left = "style='text-align:left'"
    body = "".join(
        f"<tr><th {left}>{k}</th><td {left}>{_html.escape(v)}</td></tr>" for k, v in rows
    )
    return f"<table>{body}</table>"


def explain(op, action="apply", x=None):
    """The plan of an action as text."""
    names = {"apply": 0, "dense": 8, "diagonal": 9, "trace": 10, "det": 12}
    if action not in names:
        raise NotImplementedError(f"no explanation of {action!r} yet; there are {sorted(names)}")
    if action == "apply":
        x = np.zeros(op.shape[-1], op.dtype or np.float64) if x is None else np.asarray(x)
    return op._explain(names[action], x)
