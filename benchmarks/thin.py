"""Thin products, the trace of a product and tiny products in batches, beside BLAS and NumPy."""

import numpy as np
from harness import Case
from overhead import rng
from throughput import add_dgemm

import pylinop as pl


def thin():
    """A matrix times few columns: the rate beside dgemm's own on a square product."""
    for n in (2, 4, 8, 12, 16, 24, 32):
        for way in ("", "-transposed", "-columns", "-f32"):

            def build(n=n, way=way):
                g = rng()
                dtype = np.float32 if way == "-f32" else np.float64
                a = g.standard_normal((1600, 1600)).astype(dtype)
                x = g.standard_normal((1600, n)).astype(dtype)
                if way == "-columns":
                    x = np.asfortranarray(x)
                m = a.T if way == "-transposed" else a
                y = np.empty_like(x)
                want = m @ x
                case = Case("", "", want, flops=2.0 * a.size * n, rtol=1e-3 if way else 1e-9)
                A = pl.Dense(a).T if way == "-transposed" else pl.Dense(a)
                case.add("pylinop", "pylinop A @ x", "A.matmat(x, out=y)", A=A, x=x, y=y)
                case.add("hand", "numpy matmul", "np.matmul(m, x, out=y)", m=m, x=x, y=y)
                if not way:
                    add_dgemm(case)
                    to = {8: 0.55, 16: 0.82}.get(n)
                    if to:
                        case.goal(
                            "pylinop A @ x",
                            "dgemm, 1024 x 1024",
                            1 / to,
                            f"Dense 1600 x 1600 times {n} columns",
                            f"{to} of dgemm's rate",
                        )
                return case

            yield f"thin/{n}{way}", build


def traces():
    """trace(A @ B) of matrices in C order, beside one pass over both (np.vdot of the two)."""
    for n in (2000, 2048):
        for what, code, text in (
            ("", "trace(A @ B)", "ij,ji->"),
            ("-transposed", "trace(A.T @ B)", "ij,ij->"),
            ("-adjoint-c128", "trace(A.H @ B)", "ij,ij->"),
        ):

            def build(n=n, what=what, code=code, text=text):
                g = rng()
                a, b = g.standard_normal((n, n)), g.standard_normal((n, n))
                if "c128" in what:
                    a, b = a + 1j * b, b - 0.5j * a
                left = a.conj() if "c128" in what else a
                want = np.einsum(text, left, b)
                case = Case("", "", np.asarray(want), rtol=1e-9)
                names = {"trace": pl.trace, "A": pl.Dense(a), "B": pl.Dense(b)}
                case.add("pylinop", f"pylinop {code}", code, **names)
                hand = f"einsum({text!r}, {'a.conj()' if 'c128' in what else 'a'}, b)"
                case.add("hand", "numpy einsum", hand, einsum=np.einsum, a=a, b=b)
                flat = {"x": a.ravel(), "y": b.ravel(), "want": want}
                case.add("floor", "np.vdot", "np.vdot(x, y)", "want", **flat)
                return case

            yield f"trace/{n}{what}", build


def tiny():
    """15,000 products of small matrices, both operands moving."""
    for k in range(2, 9):

        def build(k=k):
            g = rng()
            a, b = g.standard_normal((15_000, k, k)), g.standard_normal((15_000, k, k))
            case = Case("", "", a @ b, flops=2.0 * 15_000 * k**3)
            case.add("pylinop", "pylinop A @ b", "A @ b", A=pl.Dense(a), b=b)
            case.add("hand", "numpy a @ b", "a @ b", a=a, b=b)
            if k == 3:
                case.goal(
                    "pylinop A @ b",
                    "numpy a @ b",
                    0.15,
                    "15,000 products of 3 x 3",
                    "6 ns each where np.matmul takes 40",
                )
            return case

        yield f"tiny/{k}", build


MAKERS = [thin, traces, tiny]
