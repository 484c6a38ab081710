"""The plain walk, and SciPy's manners about arrays.

Expressions with callables, user subclasses or foreign dtypes run as written: right to left, node
by node, with NumPy's operators and no rules. The walk is a loop over generators: no depth limit."""

import warnings

import numpy as np

from .. import _core
from .._base import dlpack, errors, memory, multiples, scipy_bridge
from .._base.trampoline import run
from .._lazy.array import LazyArray
from . import dense_forms, interpreter_composites

N, T, C, H = 0, 1, 2, 3


# -- the walk --


def _run(request):
    """Answers a request (op, x, mode, vec)."""
    return run(_steps, *request)


def _swapped(mode):
    return mode & T


def _steps(op, x, mode, vec):
    """One node of the walk, applied to an array x: (..., n) when vec, else (..., n, k)."""
    if not op._opaque:
        y = op._apply(x, mode, False, vec, None)
        if y is not NotImplemented:
            return y
    below = op._operands
    head = op._by if below else op._head  # a closed result runs as it was written
    if head == "sum":
        left = yield below[0], x, mode, vec
        right = yield below[1], x, mode, vec
        return left + right
    if head == "prod":
        first, second = below if _swapped(mode) else below[::-1]
        y = yield first, x, mode, vec
        return (yield second, y, mode, vec)
    if head == "scaled":
        y = yield below[0], x, mode, vec
        return _multiple(below[1].conjugate() if mode & C else below[1], y)
    if head == "part":
        mode &= T  # a part is real: its conjugate is itself
        y = yield below[0], x, mode, vec
        if np.iscomplexobj(x):
            z = yield below[0], x, mode ^ C, vec
            return (y - z) * -0.5j if op._mode else (y + z) * 0.5
        return y.imag if op._mode else y.real
    if head == "power":
        if below[1] == 0:
            return _identical(below[0], x, vec)
        for _ in range(below[1]):
            x = yield below[0], x, mode, vec
        return x
    if head == "view":
        return (yield below[0], x, mode ^ op._mode, vec)
    if head == "inverse":
        return (yield from _inverse(below[0], x, mode, vec))
    if head == "sliced":
        return (yield from _sliced(op, x, mode, vec))
    if head == "kron":
        return (yield from _kron(op, x, mode, vec))
    if head == "lowrank":
        return (yield from _lowrank(op, x, mode, vec))
    if head in interpreter_composites.WALKS:
        return (yield from interpreter_composites.WALKS[head](op, x, mode, vec))
    if type(op).__module__ == "pylinop" and op._init is not None:
        a = _seen(dense_forms.dense(op), mode)
        return (a @ x[..., None])[..., 0] if vec else a @ x
    return _call(op, x, mode, vec)


def _inverse(op, x, mode, vec):
    """The solve: by a _solve, also of factors and multiples; else by LU of the dense form."""
    if hasattr(type(op), "_solve") and not mode & T:
        y = np.asarray(op._solve(_conj(x) if mode & C else x))
        return _conj(y) if mode & C else y
    below, by = op._operands, op._by if op._opaque else None
    if by == "prod" and below[0].shape[-1] == below[0].shape[-2]:
        for factor in below[::-1] if mode & T else below:
            x = yield _core._build("inverse", factor), x, mode, vec
        return x
    if by == "scaled" and below[1] != 0:
        y = yield _core._build("inverse", below[0]), x, mode, vec
        return y / (below[1].conjugate() if mode & C else below[1])  # Python numbers stay weak
    if by == "view":
        return (yield _core._build("inverse", below[0]), x, mode ^ op._mode, vec)
    a = _seen(toarray(op), mode)
    return np.linalg.solve(a, x[..., None])[..., 0] if vec else np.linalg.solve(a, x)


def _identical(op, x, vec):
    """op^0 x: x in the dtype and with the batch dimensions that a product would give it."""
    dtype = x.dtype if op.dtype is None else np.result_type(op.dtype, x.dtype)
    core = 1 if vec else 2
    batch = _broadcast(op.shape[:-2], x.shape[:-core])
    return np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :])).astype(dtype)


def _broadcast(*shapes):
    """np.broadcast_shapes with the words of np.matmul."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        words = " and ".join(map(str, shapes))
        raise ValueError(f"batch dimensions could not be broadcast together: {words}") from None


def _conj(a):
    return np.conjugate(a) if np.iscomplexobj(a) else a


def _seen(a, mode):
    a = np.swapaxes(a, -1, -2) if mode & T else a
    return _conj(a) if mode & C else a


def _multiple(c, y):
    """c y; a Python integer wraps in y's dtype, as the core's does."""
    if isinstance(c, int) and not isinstance(c, bool) and y.dtype.kind in "iu":
        c = np.array(c).astype(y.dtype)
    return c * y


def _sliced(op, x, mode, vec):
    """Put back where it was taken from, apply the whole, take."""
    below, steps = op._operands
    if any(s[0] > 1 for s in steps):
        a = _seen(indexing().taken(toarray(below), steps), mode)
        return (a @ x[..., None])[..., 0] if vec else a @ x
    take = {s[0]: s[1] if len(s) == 2 else indexing().as_slice(s) for s in steps}
    into, out = (0, 1) if mode & T else (1, 0)
    if into in take:
        at = (..., take[into]) if vec else (..., take[into], slice(None))
        size = below.shape[-2 + into]
        full = np.zeros(
            (*x.shape[:-1], size) if vec else (*x.shape[:-2], size, x.shape[-1]), x.dtype
        )
        np.add.at(full, at, x)
        x = full
    y = yield below, x, mode, vec
    if out in take:
        y = y[(..., take[out]) if vec else (..., take[out], slice(None))]
    return y


def _kron(op, x, mode, vec):
    """Factor by factor on the axis of x that is the factor's own."""
    x = x[..., None] if vec else x
    batch, k = x.shape[:-2], x.shape[-1]
    factors = op._init if op._init is not None else op._operands
    sizes = [f.shape[-2] if mode & T else f.shape[-1] for f in factors]
    for i in reversed(range(len(factors))):
        lead = int(np.prod(sizes[:i], dtype=np.int64))
        after = int(np.prod(sizes[i + 1 :], dtype=np.int64)) * k
        y = x.reshape(*batch, lead, sizes[i], after)
        # the axes before the factor's own become columns: callables see what SciPy's would
        y = np.moveaxis(y, -3, -2).reshape(*batch, sizes[i], lead * after)
        y = yield factors[i], y, mode, False
        sizes[i] = y.shape[-2]
        y = np.moveaxis(y.reshape(*y.shape[:-1], lead, after), -2, -3)
        batch = _broadcast(batch, y.shape[:-3])
        x = y.reshape(*batch, int(np.prod(sizes, dtype=np.int64)), k)
    return x[..., 0] if vec else x


def _lowrank(op, x, mode, vec):
    u, v, c = op._init if len(op._init) == 3 else (*op._init, None)
    v = u if v is None else v
    if mode & T:
        u, v = v, u
    conj = C if mode in (C, T) else N  # U* and V* stand where T or C is asked
    x = yield v, x, H ^ conj, vec
    if c is not None:
        x = yield c, x, mode, vec
    return (yield u, x, conj, vec)


def shaped(op, x, y, m=None, vec=True):
    """What a callable gave, as the array that is due: reshaped if need be, sparse as it is."""
    m = op.shape[-2] if m is None else m
    if y is NotImplemented:
        raise NotImplementedError(f"{type(op).__name__} gave NotImplemented")
    if not scipy_bridge.issparse(y):
        y = np.asarray(y)
        batch = _broadcast(op.shape[:-2], x.shape[: -1 if vec else -2])
        want = (*batch, m) if vec else (*batch, m, x.shape[-1])
        if y.shape != want:
            if y.size != int(np.prod(want)):
                raise errors.make_error(
                    "ValueError",
                    f"a callable returned an array of shape {y.shape} where {want} was due",
                    op,
                    "apply",
                    -1,
                )
            y = y.reshape(want)
    return y


def _call(op, x, mode, vec):
    """A user's operator: by its hooks; transposes through conjugates."""
    flip = mode in (T, C)
    x = _conj(x) if flip else x
    m = op.shape[-1] if mode & T else op.shape[-2]
    if mode & T:
        y = op._rmatvec(x) if vec else op._rmatmat(x)
    else:
        y = op._matvec(x) if vec else op._matmat(x)
    y = shaped(op, x, y, m, vec)
    return _conj(y) if flip else y


def convert():
    from .._operators import convert

    return convert


def indexing():
    from .._operators import indexing

    return indexing


def apply(op, x, mode=N, vec=False, out=None):
    """mode(op) x for an array that fits; C when it can, the walk otherwise."""
    y = NotImplemented
    if not op._opaque:
        y = op._apply(x, mode, False, vec, out)
    if y is NotImplemented:
        y = _run((op, x, mode, vec))
        if out is not None:
            np.copyto(out, y, casting="same_kind")
            return out
    return y


# -- matvec and kin --


def _plain_array(op, x):
    x = dlpack.as_array(x)
    if x.dtype == object and not op._opaque:
        raise TypeError("arrays of dtype object go only to operators of callables")
    if x.dtype.fields is not None:
        raise TypeError(f"structured arrays are not taken, got dtype {x.dtype}")
    return x


def _refuse_masked(x):
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("masked arrays are not taken: fill them first")


def _vector(op, x, out, mode, name):
    n = op.shape[-2] if mode & T else op.shape[-1]
    m = op.shape[-1] if mode & T else op.shape[-2]
    _refuse_masked(x)
    matrix = isinstance(x, np.matrix)
    x = _plain_array(op, x)
    column = x.ndim == 2 and x.shape == (n, 1)
    if column:
        if not matrix:
            warnings.warn(
                f"Calling `{name}` on 'column vectors' of shape (N, 1) is deprecated; "
                "use `matmat`, or a vector (N,)",
                FutureWarning,
                stacklevel=3,
            )
        y = apply(op, x[:, 0], mode, True).reshape(*op.shape[:-2], m, 1)
    elif x.ndim < 1 or x.shape[-1] != n:
        raise errors.shape_error(op, name, f"({n},) or (..., {n})", x.shape)
    else:
        y = apply(op, x, mode, True, out)
    if matrix:
        y = np.asmatrix(y.reshape(m, 1) if column else y)
    if out is not None and y is not out:
        np.copyto(out, y.reshape(out.shape), casting="same_kind")
        return out
    return y


def _matrix(op, X, out, mode, name):
    n = op.shape[-2] if mode & T else op.shape[-1]
    if scipy_bridge.issparse(X):
        return scipy_bridge.product(op if mode == N else op.H, X)
    _refuse_masked(X)
    matrix = isinstance(X, np.matrix)
    X = _plain_array(op, X)
    if X.ndim < 2:
        raise ValueError(f"Expected at least 2-d ndarray or matrix, not {X.ndim}-d")
    if X.shape[-2] != n:
        raise errors.shape_error(op, name, f"(..., {n}, k)", X.shape)
    y = apply(op, X, mode, False, out)
    return np.asmatrix(y) if matrix else y


def matvec(op, x, out):
    return _vector(op, x, out, N, "matvec")


def rmatvec(op, x, out):
    return _vector(op, x, out, H, "rmatvec")


def matmat(op, X, out):
    return _matrix(op, X, out, N, "matmat")


def rmatmat(op, X, out):
    return _matrix(op, X, out, H, "rmatmat")


# -- @ and * with what is not an operator --


def _is_scalar(x):
    return np.isscalar(x) or (isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype != object)


def _as_other(x):
    """An operator for sparse matrices and SciPy's operators; None for everything else."""
    if scipy_bridge.issparse(x) or scipy_bridge.is_scipy_operator(x):
        return convert().as_operator(x)
    return None


def matmul(op, x, out=None):
    if isinstance(x, _core.Operator):
        return op @ x
    if _is_scalar(x):
        raise ValueError("Scalar operands are not allowed, use '*' instead")
    if scipy_bridge.issparse(x):
        return scipy_bridge.product(op, x)
    other = _as_other(x)
    if other is not None:
        return op @ other
    if _defers(x):
        return NotImplemented
    _refuse_masked(x)
    x = _plain_array(op, x)
    n = op.shape[-1]
    vec = x.ndim == 1
    if x.ndim == 0 or x.shape[-1 if vec else -2] != n:
        raise errors.shape_error(op, "@", f"({n},) or (..., {n}, k)", x.shape)
    return apply(op, x, N, vec, out)


def rmatmul(op, x, out=None):
    if _is_scalar(x):
        raise ValueError("Scalar operands are not allowed, use '*' instead")
    if scipy_bridge.issparse(x):
        return scipy_bridge.rproduct(op, x)
    other = _as_other(x)
    if other is not None:
        return other @ op
    if _defers(x):
        return NotImplemented
    _refuse_masked(x)
    x = _plain_array(op, x)
    m = op.shape[-2]
    if x.ndim == 0 or x.shape[-1] != m:
        raise errors.shape_error(op, "x @", f"({m},) or (..., k, {m})", x.shape)
    if x.ndim == 1:
        return apply(op, x, T, True, out)
    if not op._opaque:
        y = op._apply(x, N, True, False, out)
        if y is not NotImplemented:
            return y
    y = np.swapaxes(_run((op, np.swapaxes(x, -1, -2), T, False)), -1, -2)
    if out is not None:
        np.copyto(out, y, casting="same_kind")
        return out
    return y


def _defers(x):
    """Objects that speak for themselves under @ and +: not arrays, with a reflected method."""
    return isinstance(x, LazyArray) or (
        not isinstance(x, (np.ndarray, list, tuple))
        and getattr(x, "__array_ufunc__", 0) is None
        and not hasattr(x, "__array__")
    )


def multiply(op, x):
    if isinstance(x, LazyArray):
        return NotImplemented
    return _times(op, x) if _is_scalar(x) else matmul(op, x)


def rmultiply(x, op):
    """x * op; the hook gets the operands as they stood."""
    if isinstance(x, LazyArray):
        return NotImplemented
    return _times(op, x) if _is_scalar(x) else rmatmul(op, x)


def _times(op, x):
    if not isinstance(x, (bool, int, float, complex, np.generic, np.ndarray)):
        raise TypeError(
            f"an operator is scaled by numbers of Python and NumPy, got {type(x).__name__}"
        )
    return op * (x[()] if isinstance(x, np.ndarray) else x)


def scale(op, number):
    """c * op for numbers C does not know: longdouble and float16 through a Diag of that dtype."""
    if isinstance(number, (np.longdouble, np.clongdouble, np.float16)):
        return op @ _core.Diag(np.full(op.shape[-1], number))
    return NotImplemented


def divide(op, number):
    if not isinstance(op, _core.Operator) or not _is_scalar(number):
        raise ValueError("Can only divide a linear operator by a scalar.")
    return multiples.divide(op, number)


def _addend(x, to):
    """The operator to add for x, or None: numbers and strangers are not ours to add."""
    other = _as_other(x)
    if other is not None:
        return other
    if _is_scalar(x) or isinstance(x, (str, bytes, dict)) or x is None or _defers(x):
        return None
    op = convert().as_operator(x)
    if op.shape[-2:] != to.shape[-2:] and np.ndim(x) == 1:
        n = op.shape[-1]
        raise ValueError(
            f"a vector of shape ({n},) is not added to an operator of shape {to.shape}: Diag(b) "
            "adds it to the diagonal; pl.lazy(A) broadcasts it as NumPy does"
        )
    return op


def add(a, b):
    left = isinstance(a, _core.Operator)
    op = _addend(*((b, a) if left else (a, b)))
    if op is None:
        return NotImplemented
    return a + op if left else op + b


def subtract(a, b):
    left = isinstance(a, _core.Operator)
    op = _addend(*((b, a) if left else (a, b)))
    if op is None:
        return NotImplemented
    return a - op if left else op - b


# -- dense forms, diagonals of what C cannot --


def toarray(op, out=None):
    if not op._opaque:
        return op.toarray() if out is None else op.toarray(out=out)
    dtype = op.dtype if op.dtype is not None else np.float64
    n = op.shape[-1]
    memory.materialising(op, op.size * np.dtype(dtype).itemsize, True)
    y = _run((op, np.eye(n, dtype=dtype), N, False))
    y = np.broadcast_to(y, (*op.shape[:-2], *y.shape[-2:])) if y.ndim < op.ndim else y
    y = np.array(y)
    if out is not None:
        np.copyto(out, y, casting="same_kind")
        return out
    return y


def diagonal(op, k):
    """The user's _diagonal where there is one; else by blocks of columns, never the dense form."""
    if hasattr(type(op), "_diagonal"):
        return np.asarray(op._diagonal(k))
    return _by_columns(op, k, 1 << 25)


def _by_columns(op, k, room):
    """Products with unit vectors, as many at a time as take about `room` bytes."""
    m, n = op.shape[-2:]
    i0, j0 = max(-k, 0), max(k, 0)
    length = max(min(m - i0, n - j0), 0)
    dtype = np.dtype(op.dtype if op.dtype is not None else np.float64)
    block = min(max(room // (dtype.itemsize * max(m, n, 1)), 1), 256)

    def piece(lo, hi):
        at = np.arange(hi - lo)
        unit = np.zeros((n, hi - lo), dtype=dtype)
        unit[j0 + lo + at, at] = 1
        return apply(op, unit, N, False)[..., i0 + lo + at, at]

    pieces = in_pieces(length, block, piece)
    if not pieces:
        return np.zeros((*op.shape[:-2], 0), dtype=dtype)
    return np.concatenate(pieces, axis=-1)


def in_pieces(length, most, piece):
    """What piece(lo, hi) gives for 0 to length, by `most` at a time, by fewer where these pass the
    memory limit."""
    lo, found = 0, []
    while lo < length:
        hi = min(lo + most, length)
        try:
            found.append(piece(lo, hi))
        except errors.MaterializationError:
            if most == 1:
                raise
            most = max(min(most, length - lo) // 4, 1)
        else:
            lo = hi
    return found


def trace(op):
    return diagonal(op, 0).sum(axis=-1)


def in_blocks(op, k, error):
    """A diagonal (k None: the trace) whose dense factors do not fit, as `error` says, from products
    that do; None: another error, or these need a dense form too."""
    if not isinstance(error, MemoryError):
        return None
    from .._base import config

    limit = config.get("memory_limit")
    try:
        d = _by_columns(op, k or 0, 1 << 25 if limit is None else limit // 4)
    except errors.MaterializationError:
        return None
    return d if k is not None else d.sum(axis=-1)
