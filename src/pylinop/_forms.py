"""Taking things in, and small forms: operators from anything, shapes, parts, other dtypes."""

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _dlpack, _scipy, _walk

if TYPE_CHECKING:
    from ._operator import LinearOperator


def as_array(x):
    if isinstance(x, np.ndarray):
        return x if type(x) is np.ndarray else np.asarray(x)
    if isinstance(x, _core.Operator):
        return _dense_parameter(x)
    return _dlpack.taken(x) if _dlpack.given(x) else np.asarray(x)


def _dense_parameter(x):
    raise TypeError(f"an array is due here, not an operator ({type(x).__name__} {x.shape})")


def as_shape(shape):
    """A shape a user sets: a tuple of at least two integers, as SciPy words it."""
    try:
        shape = tuple(int(np.asarray(d).__index__()) for d in tuple(shape))
    except (TypeError, ValueError):
        raise ValueError(
            f"invalid shape {shape!r} (must be a tuple of at least two integers)"
        ) from None
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"invalid shape {shape!r} (must be at least 2-d, sizes not negative)")
    return shape


def kind_shape(shape, square):
    """The shape of Identity(n), Identity((n, n)), Zeros((m, n)), Zeros(n).

    ``square`` is the name of a kind that must be square, or None."""
    if isinstance(shape, (bool, np.bool_)) or not hasattr(shape, "__index__"):
        shape = as_shape(shape)
    else:
        shape = as_shape((shape, shape))
    if square and shape[-1] != shape[-2]:
        raise ValueError(f"{square} is square, got shape {shape}")
    if len(shape) > 8:
        raise ValueError(f"at most 8 dimensions, got {len(shape)}")
    return shape


def as_operator(A: Any) -> "LinearOperator":
    """``A`` as an operator of ours: itself, or wrapped without copying."""
    if isinstance(A, _core.Operator):
        return A  # type: ignore[return-value]  # LinearOperator is its one child
    if _scipy.issparse(A):
        return _core.Sparse(A) if A.ndim == 2 else _core.Dense(A.toarray())
    if _dlpack.given(A):
        a = _dlpack.taken(A)
        return _core.Dense(a if a.ndim >= 2 else np.atleast_2d(a))
    if (
        isinstance(A, np.ndarray)
        or hasattr(A, "__array_interface__")
        or isinstance(A, (list, tuple))
    ):
        if isinstance(A, np.ma.MaskedArray):
            raise TypeError("masked arrays are not taken: fill them first")
        a = np.asarray(A)
        return _core.Dense(a if a.ndim >= 2 else np.atleast_2d(a))
    if hasattr(A, "shape") and hasattr(A, "matvec"):
        from ._operator import make_matvec

        return make_matvec(A)
    raise TypeError(
        f"type not understood: {type(A).__name__} is no array, sparse matrix or operator"
    )


# -- small forms --


def _is_real(op):
    return op.dtype is not None and op.dtype.kind != "c"


def real_part(op):
    return op if _is_real(op) else _core._build("part", op, None, 0)


def imag_part(op):
    if _is_real(op):
        return _core.Zeros(op.shape, op.dtype)
    return _core._build("part", op, None, 1)


def astype(op, dtype, copy):
    dtype = np.dtype(dtype)
    if op.dtype == dtype and not op._weak:
        return op.copy() if copy else op
    if op._init is not None and op._head != "opaque" and op._head != "sparse":
        from . import _pickle

        return _pickle.rebuilt(op, lambda a: a.astype(dtype), dtype)
    if np.can_cast(op.dtype, dtype, "same_kind") and np.result_type(op.dtype, dtype) == dtype:
        return op @ _core.Identity(op.shape[-1], dtype)
    return _core.Dense(_walk.toarray(op).astype(dtype))


def arrays_of(op):
    found, stack, seen = [], [op], set()
    while stack:
        o = stack.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        for p in (*o._operands, *(o._init or ())):
            if isinstance(p, _core.Operator):
                stack.append(p)
            elif isinstance(p, np.ndarray):
                if id(p) not in seen:
                    seen.add(id(p))
                    found.append(p)
            elif _scipy.issparse(p) and id(p) not in seen:
                seen.add(id(p))
                found += [v for v in _scipy.parts_of_sparse(p)[0] if isinstance(v, np.ndarray)]
    return found


def nbytes(op):
    return sum(a.nbytes for a in arrays_of(op))


def _one_element(op, key):
    """(batch indices, i, j) of a key that names one element a batch element; None otherwise."""
    key = key if isinstance(key, tuple) else (key,)
    lead, key = (True, key[1:]) if key and key[0] is Ellipsis else (False, key)
    for k in key:
        if not (
            isinstance(k, slice)
            or k is Ellipsis
            or k is None
            or hasattr(k, "__index__")
            or hasattr(k, "__len__")
        ):
            raise TypeError(f"indices must be integers, slices or arrays of integers, got {k!r}")
        if isinstance(k, str):
            raise TypeError(f"indices must be integers, slices or arrays of integers, got {k!r}")
    if len(key) > op.ndim:
        raise IndexError(f"too many indices: {len(key)} for an operator of {op.ndim} dimensions")
    if not all(hasattr(k, "__index__") and not isinstance(k, np.ndarray) for k in key):
        return None
    if len(key) == 2 and (lead or op.ndim == 2):
        return (), int(key[0]), int(key[1])
    if len(key) == op.ndim and not lead:
        return tuple(int(k) for k in key[:-2]), int(key[-2]), int(key[-1])
    return None


def bounded(op, i, j):
    """Indices of one element, counted from 0."""
    for at, size in ((i, op.shape[-2]), (j, op.shape[-1])):
        if not -size <= at < size:
            raise IndexError(
                f"index {at} is out of bounds for size {size} (operator of shape {op.shape})"
            )
    return i % op.shape[-2], j % op.shape[-1]


def getitem(op, key):
    """op[i, j], op[..., i, j]: one element (of each batch element), computed now."""
    found = _one_element(op, key)
    if found is None:
        raise NotImplementedError(
            "only single elements are implemented so far, op[i, j] and op[..., i, j]: "
            "rows, columns and slices come later"
        )
    batch, i, j = found
    i, j = bounded(op, i, j)
    y = op._element(i, j)
    if y is NotImplemented:
        unit = np.zeros(op.shape[-1], dtype=op.dtype)
        unit[j] = 1
        y = _walk.apply(op, unit, _walk.N, True)[..., i][()]
    return y[batch] if batch else y
