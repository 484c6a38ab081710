"""Arrays of other libraries, by DLPack: CPU memory is taken as it lies, never copied.

What a pointer cannot say is refused by name: gradients would be lost without a word, conjugate and
negative bits would be read as if they were not there."""

import numpy as np

_CPU = (1, 3, 11)  # kDLCPU, and host memory pinned for CUDA and ROCm


def given(x):
    """Is x an array of another library?"""
    return not isinstance(x, (np.ndarray, np.generic)) and hasattr(type(x), "__dlpack__")


def _refuse(x, why):
    raise TypeError(f"a {type(x).__module__}.{type(x).__name__} {why}")


def taken(x):
    """The array in x's own memory (read-only where x says so)."""
    if getattr(x, "requires_grad", False):
        _refuse(x, "with requires_grad would lose its gradient here: detach() it")
    for bit, cure in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        flag = getattr(x, bit, None)
        if callable(flag) and flag():
            _refuse(x, f"with its {bit[3:]} bit set is not in memory as it reads: {cure}() it")
    try:
        device = x.__dlpack_device__()[0]
    except Exception:
        return np.asarray(x)  # a tracer and the like: it says itself what is wrong
    if device not in _CPU:
        _refuse(x, f"lies on {getattr(x, 'device', device)}: only CPU memory is taken so far")
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        dtype = getattr(x, "dtype", "?")
        raise TypeError(
            f"a {type(x).__module__}.{type(x).__name__} of dtype {dtype} cannot be taken: {error}"
        ) from error
