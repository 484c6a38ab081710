"""Dense forms by NumPy's own means, for kinds whose arrays have a dtype C does not know (float16,
longdouble). One function a kind; a kind without one says so."""

import numpy as np


def _diag(op):
    d = op._init[0]
    return d[..., None] * np.eye(d.shape[-1], dtype=d.dtype)


def _toeplitz(op):
    c, r = op._init if len(op._init) == 2 else (op._init[0], None)
    r = np.conjugate(c) if r is None else r
    m, n = c.shape[-1], r.shape[-1]
    both = np.concatenate([np.flip(r[..., 1:], -1), c], axis=-1)
    return both[..., (n - 1) + np.arange(m)[:, None] - np.arange(n)]


def _circulant(op):
    c, levels = op._init[0], op._init[1] if len(op._init) == 2 else None
    n = c.shape[-(levels or 1) :]
    index = np.indices(n).reshape(len(n), -1)
    d = (index[:, :, None] - index[:, None, :]) % np.reshape(n, (-1, 1, 1))
    return c[(..., *d)]


def _hankel(op):
    c, r = op._init if len(op._init) == 2 else (op._init[0], None)
    r = np.zeros_like(c) if r is None else r
    both = np.concatenate([c, r[..., 1:]], axis=-1)
    return both[..., np.arange(c.shape[-1])[:, None] + np.arange(r.shape[-1])]


def _selection(op):
    index, n = op._init[:2]
    return np.eye(n, dtype=op._init[2])[index]


_DENSE = {
    "Dense": lambda op: op._init[0],
    "Diag": _diag,
    "Toeplitz": _toeplitz,
    "Circulant": _circulant,
    "Hankel": _hankel,
    "Selection": _selection,
    "Identity": lambda op: np.eye(op.shape[-1], dtype=op._init[1]),
    "Zeros": lambda op: np.zeros(op.shape, dtype=op._init[1]),
    "Sparse": lambda op: op._init[0].toarray(),
}


def dense(op):
    """The dense form of a leaf kind with foreign arrays."""
    for cls in type(op).__mro__:
        if cls.__name__ in _DENSE:
            return _DENSE[cls.__name__](op)
    raise NotImplementedError(
        f"{type(op).__name__} has no form for dtypes outside float32/64, complex64/128, integers"
    )
