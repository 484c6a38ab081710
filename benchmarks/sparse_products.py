"""Products of sparse matrices beside SciPy's, and MKL's and sparse_dot_topn's where installed.

What is compared of a product is the product times a vector. SciPy's columns come out unsorted, ours
sorted. `sparse_large.py` beside this is the large case of docs/sparse.md."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl

# rows, columns, entries a row: a graph, two of text, one whose products meet, one of few rows
GRAMS = ((100_000, 100_000, 5), (20_000, 10_000, 20), (20_000, 10_000, 50), (3_000, 30_000, 300))
GRAMS += ((1_000, 50_000, 1_000),)


def rows(g, m, n, each):
    sp = peer("scipy.sparse")
    ptr = np.arange(m + 1, dtype=np.int32) * each
    index = g.integers(0, n, m * each, dtype=np.int32)
    A = sp.csr_array((g.standard_normal(m * each), index, ptr), shape=(m, n))
    A.sum_duplicates()
    return A


def on_two(A):
    before = pl._core._blas()["threads"]
    pl.config(threads=2)
    try:
        return pl.sparse_matmul(A, A.T)
    finally:
        pl.config(threads=before)


def transposes():
    for m, n, each in GRAMS:

        def build(m=m, n=n, each=each):
            A = rows(rng(), m, n, each)
            x = rng().standard_normal(m)
            case = Case("", "", A @ (A.T @ x))
            names = {"A": A, "x": x, "pl": pl, "S": pl.Sparse(A)}
            case.add("pylinop", "pylinop", "pl.sparse_matmul(A, A.T)", "_ @ x", **names)
            code = "two(A)"
            case.add("pylinop", "pylinop, two threads", code, "_ @ x", two=on_two, **names)
            case.add("pylinop", "pylinop tosparse", "(S @ S.T).tosparse()", "_ @ x", **names)
            case.add("peer", "scipy A @ A.T", "A @ A.T", "_ @ x", **names)
            mkl = peer("sparse_dot_mkl")
            code = "mkl.dot_product_mkl(A, A.T)"
            case.add("peer", "sparse_dot_mkl", code, "_ @ x", mkl=mkl, **names)
            return case.goal("pylinop", "scipy A @ A.T", 1 / 1.5, "A @ A.T, sparse", "1.5 x SciPy")

        yield f"sparse/gram-{m}-{n}-{each}", build


def parts():
    def largest():
        A = rows(rng(), 5_000, 10_000, 50)
        A.data = np.abs(A.data)  # sparse_dot_topn takes the largest, not the largest in modulus
        x = rng().standard_normal(5_000)
        top = pl.sparse_matmul(A, A.T, topk=10)
        case = Case("", "", top @ x)
        names = {"A": A, "x": x, "pl": pl, "np": np}
        case.add("pylinop", "pylinop", "pl.sparse_matmul(A, A.T, topk=10)", "_ @ x", **names)
        topn = peer("sparse_dot_topn")
        code = "topn.sp_matmul_topn(M, M.T.tocsr(), top_n=10, n_threads=1)"
        M = peer("scipy.sparse").csr_matrix(A)
        case.add("peer", "sparse_dot_topn", code, "_ @ x", topn=topn, M=M, **names)
        case.add("hand", "scipy, argpartition", "by_hand(A)", "_ @ x", by_hand=by_hand, **names)
        return case

    def diagonal():
        A = rows(rng(), 20_000, 10_000, 50)
        S = pl.Sparse(A)
        case = Case("", "", A.multiply(A).sum(axis=1))
        case.add("pylinop", "pylinop", "pl.diagonal(S @ S.T)", pl=pl, S=S)
        case.add("hand", "scipy by hand", "A.multiply(A).sum(axis=1)", A=A)
        return case

    def masked():
        A = rows(rng(), 20_000, 10_000, 20)
        M = rows(rng(), 20_000, 20_000, 3)
        M.data[:] = 1
        x = rng().standard_normal(20_000)
        case = Case("", "", (A @ A.T).multiply(M) @ x)
        names = {"A": A, "M": M, "x": x, "pl": pl}
        case.add("pylinop", "pylinop", "pl.sparse_matmul(A, A.T, mask=M)", "_ @ x", **names)
        case.add("hand", "scipy, then the mask", "(A @ A.T).multiply(M)", "_ @ x", **names)
        return case

    yield "sparse/largest-10-of-5000", largest
    yield "sparse/diagonal-of-gram", diagonal
    yield "sparse/masked-gram", masked


def by_hand(A):
    """The ten largest of each row of A A^T."""
    C = A @ A.T
    sp = peer("scipy.sparse")
    index, data, ptr = [], [], [0]
    for i in range(C.shape[0]):
        lo, hi = C.indptr[i], C.indptr[i + 1]
        at = lo + np.argpartition(-np.abs(C.data[lo:hi]), min(10, hi - lo - 1))[:10]
        index.append(C.indices[at])
        data.append(C.data[at])
        ptr.append(ptr[-1] + at.size)
    return sp.csr_array((np.concatenate(data), np.concatenate(index), ptr), shape=C.shape)


def sparse():
    if not peer("scipy.sparse"):
        return
    yield from transposes()
    yield from parts()


MAKERS = [sparse]
