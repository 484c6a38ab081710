"""LazyArrays of every dtype beside NumPy: the same dtype, shape, values, and kind of error."""

import itertools

import numpy as np
import pytest

import pylinop as pl

DTYPES = """bool int8 uint8 int32 uint64 int64 float16 float32 float64 complex64
            complex128""".split()


def eye_added(a):
    return a + 10 * np.eye(3, dtype=a.dtype)


OF_ONE = {
    "negative": lambda a: -a,
    "positive": lambda a: +a,
    "absolute": abs,
    "invert": lambda a: ~a,
    "adjoint": lambda a: a.conj().T,
    "twice": lambda a: 2 * a,
    "half": lambda a: a * 0.5,
    "imaginary": lambda a: a * 2j,
    "times-true": lambda a: a * True,
    "over": lambda a: a / 2,
    "floor": lambda a: a // 2,
    "sum": lambda a: a.sum(),
    "trace": np.trace,
    "diagonal": np.diagonal,
    "float32": lambda a: np.float32(2) * a,
    "int8": lambda a: np.int8(2) * a,
    "square": lambda a: a @ a,
    "plus": lambda a: a + 1,
    "minus": lambda a: a - 1,
    "squared": lambda a: a**2,
    "np.power": lambda a: np.power(a, 2),
    "cubed": lambda a: a**3,
    "plus-true": lambda a: a + True,
    "mean": lambda a: a.mean(),
    "prod": lambda a: np.prod(a, axis=0),
    "exp": np.exp,
    "sqrt": np.sqrt,
    "real": np.real,
    "max": np.max,
    "norm": np.linalg.norm,
    "kron": lambda a: np.kron(a, a),
    "outer": lambda a: np.outer(a, a),
    "row": lambda a: a[0],
    "where": lambda a: np.where(a, a, 0),
    "cumsum": lambda a: np.cumsum(a, axis=1),
    "std": np.std,
    "argmax": lambda a: np.argmax(a, axis=0),
    "tril": np.tril,
    "power": lambda a: np.linalg.matrix_power(a, 3),
}
# Older NumPys keep int8 for this one exponent; LazyArrays follow the newer rule on all.
if (np.ones(1, np.int8) ** np.int64(2)).dtype == np.int64:
    OF_ONE["squared-by-int64"] = lambda a: a ** np.int64(2)
OF_FLOATS = {  # NumPy has no float16 of these
    "det": lambda a: np.linalg.det(eye_added(a)),
    "inv": lambda a: np.linalg.inv(eye_added(a)),
    "slogdet": lambda a: np.linalg.slogdet(eye_added(a))[1],
    "eigvalsh": lambda a: np.linalg.eigvalsh(a + a.conj().T),
    "svd": lambda a: np.linalg.svd(a, compute_uv=False),
    "solve": lambda a: np.linalg.solve(eye_added(a), np.ones(3, a.dtype)),
}
OF_TWO = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "matmul": lambda a, b: a @ b,
    "divide": lambda a, b: a / (b + 1),
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "maximum": np.maximum,
    "and": lambda a, b: a & b,
    "sums-of-products": lambda a, b: a @ b + a,
    "commutator": lambda a, b: a @ b - b @ a,
    "there-and-back": lambda a, b: a + b - a,
    "transposed": lambda a, b: a.T @ b,
    "dot": np.dot,
    "vdot": np.vdot,
    "inner": np.inner,
    "tensordot": np.tensordot,
    "einsum": lambda a, b: np.einsum("ij,jk->ik", a, b),
    "concatenate": lambda a, b: np.concatenate([a, b]),
}
WITHIN = {np.dtype("float16"): 1e-2, np.dtype("float32"): 1e-4, np.dtype("complex64"): 1e-4}


def drawn(rng, dtype):
    a = rng.integers(0, 4, (3, 3)).astype(dtype)
    return a + (1j * rng.integers(0, 3, (3, 3))).astype(dtype) if a.dtype.kind == "c" else a


def tried(f, *args):
    with np.errstate(all="ignore"):
        try:
            value = f(*args)
            return value, np.asarray(value)
        except TypeError as refused:
            return refused, None


def compare(f, *arrays):
    expected, right = tried(f, *arrays)
    choices = [set(c) for k in (1, 2) for c in itertools.combinations(range(len(arrays)), k)]
    for chosen in choices:
        args = [pl.lazy(a) if i in chosen else a for i, a in enumerate(arrays)]
        found, value = tried(f, *args)
        if right is None:
            assert isinstance(found, TypeError), (found, expected)
            continue
        assert value is not None, found
        assert (found.dtype, value.dtype, value.shape) == (right.dtype, right.dtype, right.shape)
        tol = WITHIN.get(right.dtype, 1e-10)
        np.testing.assert_allclose(value, right, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one(dtype, rng):
    for f in (OF_ONE | (OF_FLOATS if dtype != "float16" else {})).values():
        compare(f, drawn(rng, dtype))


@pytest.mark.parametrize("left", DTYPES)
def test_functions_of_two(left, rng):
    for right in DTYPES:
        for f in OF_TWO.values():
            compare(f, drawn(rng, left), drawn(rng, right))


def test_booleans_are_not_subtracted():
    a = np.array([[True, False], [True, True]])
    for wrong in (lambda x: -x, lambda x: +x, lambda x: x - x, lambda x: x - a, lambda x: a - x):
        with pytest.raises(TypeError, match="boolean|positive"):
            wrong(pl.lazy(a))
