"""The text of an operator: one line, as in SciPy."""


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
