"""Kernels of small products read nothing behind the last element of an array: operands that end
where memory ends, and begin where it begins."""

import mmap
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys
import numpy as np
import pylinop as pl

c = ctypes.CDLL(None, use_errno=True)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PAGE, SIZE = {page}, 16 * {page}

def region():
    start = c.mmap(None, SIZE + 2 * PAGE, 3, 0x22, -1, 0)  # private, anonymous
    assert c.mprotect(start, PAGE, 0) == 0 and c.mprotect(start + PAGE + SIZE, PAGE, 0) == 0
    return start + PAGE

def put(start, x, end):
    at = start + (SIZE - x.nbytes if end else 0)
    a = np.frombuffer((ctypes.c_char * x.nbytes).from_address(at), x.dtype).reshape(x.shape)
    a[...] = x
    return a

first, second, dtype = region(), region(), np.dtype(sys.argv[1])
rng = np.random.default_rng()

def drawn(*shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)

for m in (1, 2, 3, 4, 5, 8):
    for k in (1, 2, 3, 4, 7):
        for n in (1, 2, 3, 4, 5, 8):
            for end in (True, False):
                a, b = put(first, drawn(4, m, k), end), put(second, drawn(4, k, n), end)
                near = dict(rtol=1e-3, atol=1e-3)
                assert np.allclose(pl.evaluate(pl.einsum("bij,bjk->bik", a, b)), a @ b, **near)
                assert np.allclose(pl.Dense(a) @ b, a @ b, **near)
                one = put(first, drawn(m, k), end)
                assert np.allclose(pl.Dense(one) @ b, one @ b, **near)
                wide = b.reshape(4 * k, n)
                want = np.kron(np.eye(4), one) @ wide
                assert np.allclose(pl.Kron(pl.Identity(4), pl.Dense(one)) @ wide, want, **near)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="protects pages as Linux does")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_small_products(dtype):
    program = PROGRAM.replace("{page}", str(mmap.PAGESIZE))
    done = subprocess.run(
        [sys.executable, "-c", program, dtype], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
