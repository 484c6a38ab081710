"""A sparse matrix that is overwritten after an operator was made of it: an error that says so on
every road, never the end of the process, and never an answer that nobody computed.

Each pair of a damage and a road runs in one process for many, which prints the pair before it
begins: the last one printed is the one that ended it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl

N = 60


def matrix():
    """Symmetric positive definite, float64."""
    R = sp.random_array((N, N), density=0.08, rng=0, format="csr")
    return sp.csr_array(R + R.T + 20 * sp.eye_array(N))


def _overwrite(name, value):
    def damage(S):
        array = getattr(S, name[0]) if name[0] != "coords" else S.coords[name[2]]
        array[name[1]] = value

    return damage


def _falls(S):
    S.indptr[4], S.indptr[5] = S.indptr[5], S.indptr[4]


_INDEX = {"large": 2**30, "negative": -1, "far below": -(2**30), "one too far": N}
BROKEN = {
    **{("index", what): _overwrite(("indices", 5), v) for what, v in _INDEX.items()},
    **{("last index", what): _overwrite(("indices", -1), v) for what, v in _INDEX.items()},
    ("indptr", "large"): _overwrite(("indptr", 3), 2**30),
    ("indptr", "negative"): _overwrite(("indptr", 3), -5),
    ("indptr", "falls"): _falls,
    ("indptr", "ends too late"): _overwrite(("indptr", -1), 10**6),
    ("indptr", "begins late"): _overwrite(("indptr", 0), 2),
}
BROKEN_COO = {
    (axis, what): _overwrite(("coords", 5, axis), v)
    for axis in (0, 1)
    for what, v in _INDEX.items()
}


def _set(name, value):
    return lambda S: setattr(S, name, value(S))


# What leaves the operator as it was made: it keeps its arrays and its shape.
KEPT = {
    ("shape", "more rows"): _set("_shape", lambda S: (N + 1, N)),
    ("shape", "more columns"): _set("_shape", lambda S: (N, N + 1)),
    ("shape", "fewer"): _set("_shape", lambda S: (N // 2, N // 2)),
    ("replaced", "data"): _set("data", lambda S: S.data[:5]),
}
KEPT_COMPRESSED = {
    ("replaced", "indices"): _set("indices", lambda S: S.indices[:5]),
    ("replaced", "indptr"): _set("indptr", lambda S: S.indptr[:5]),
}
FORMATS = {
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "coo_array": sp.coo_array,
    "csr_matrix": sp.csr_matrix,
    "long csr_array": lambda S: _long(sp.csr_array(S)),
}


def _long(S):
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


def damages(form):
    broken = BROKEN_COO if form == "coo_array" else BROKEN
    kept = KEPT if form == "coo_array" else {**KEPT, **KEPT_COMPRESSED}
    for name, damage in broken.items():
        yield name, damage, True
    for name, damage in kept.items():
        yield name, damage, False


# -- roads -----------------------------------------------------------------------------------------


def roads():
    """name -> function of (operator, array) that gives something to compare."""
    x, y = np.cos(np.arange(N)), np.cos(np.arange(2 * N)).reshape(N, 2)
    two = np.array([[2.0, 1], [1, 3]])
    other = sp.csr_array(sp.eye_array(N)) * 2
    found = {
        "matvec": lambda A: A @ x,
        "matmat": lambda A: A @ y,
        "adjoint": lambda A: A.H @ y,
        "toarray": lambda A: A.toarray(),
        "diagonal": lambda A: A.diagonal(1),
        "trace": lambda A: A.trace(),
        "element": lambda A: sum(A[i, j] for i in (0, N - 1) for j in range(N)) + A.diagonal(),
        "rows": lambda A: A[::2].toarray(),
        "scaled": lambda A: (2 * A).tosparse(),
        "sum": lambda A: (A + A.T).tosparse(),
        "gram": lambda A: (A.T @ A).tosparse(),
        "power": lambda A: (A**2).tosparse(),
        "sliced": lambda A: A[::-1, ::2].tosparse(),
        "real": lambda A: (1j * A).imag.tosparse(),
        "kron": lambda A: pl.Kron(two, A).tosparse(),
        "kronsum": lambda A: pl.KronSum(A, two).tosparse(),
        "blockdiag": lambda A: pl.BlockDiag(A, two).tosparse(),
        "block": lambda A: pl.Block([[A, A]]).tosparse(),
        "elementwise": lambda A: pl.multiply(A, A).tosparse(),
        "congruence": lambda A: pl.Congruence(A, pl.Diag(x)).tosparse(),
        "triangle": lambda A: pl.SparseTriangular(A).tosparse() + 0 * A.tosparse(),
        "triangle times": lambda A: pl.SparseTriangular(A) @ y,
        "triangle solve": lambda A: pl.solve(pl.SparseTriangular(A), y),
        "sparse_matmul": lambda A: pl.sparse_matmul(A, A.T),
        "sparse_matmul mask": lambda A: pl.sparse_matmul(other, other + A.tosparse(), mask=A),
        "sparse_matmul topk": lambda A: pl.sparse_matmul(A, A, topk=3),
        "row blocks": lambda A: [b for _, b in pl.sparse_row_blocks(A, A, block_rows=7)][2],
        "product size": lambda A: pl.sparse_product_size(A, A).nnz,
        "times scipy": lambda A: A @ other,
        "scipy times": lambda A: other @ A,
        "dense of a product": lambda A: (A @ A).toarray(),
        "diagonal of a product": lambda A: (A @ A).diagonal(),
        "astype": lambda A: A.astype(np.float32).toarray(),
        "longdouble": lambda A: A.astype(np.longdouble).toarray().astype(float),
        "solve": lambda A: pl.solve(A, x),
        "solve of a sum": lambda A: pl.solve(A + pl.Identity(N), x),
        "logdet": lambda A: pl.logdet(A),
        "inverse diagonal": lambda A: pl.inv(A).diagonal(),
        "trace of a quotient": lambda A: pl.trace(pl.inv(A) @ A.T),
        "eigvalsh": lambda A: pl.eigvalsh(A),
        "eigsh": lambda A: pl.eigsh(A, k=2, return_eigenvectors=False),
        "svds": lambda A: pl.svds(A, k=2, return_singular_vectors=False),
        "expm": lambda A: pl.expm(-A / 20).toarray(),
        "expm_multiply": lambda A: pl.expm_multiply(-A / 20, x),
        "sqrtm": lambda A: np.asarray(pl.sqrtm(A) @ x),
        "cholesky": lambda A: pl.cholesky(A).toarray(),
        "qr": lambda A: np.abs(pl.qr(A)[1].toarray() if hasattr(pl.qr(A)[1], "toarray") else 0),
        "lstsq": lambda A: pl.lstsq(A, x)[0],
        "cond": lambda A: pl.cond(A),
        "lanczos bounds": lambda A: np.linalg.norm(A, 2),
        "kaczmarz": lambda A: pl.lstsq(A, x, method="block_kaczmarz", rng=1, rtol=1e-10)[0],
        "sgd": lambda A: pl.lstsq(A, A @ x, method="sgd", rng=1, rtol=1e-9)[0],
        "lazy": lambda A: np.asarray(pl.lazy(A) @ y),
        "deepcopy": lambda A: copy_of(A).tosparse(),
        "pickled": lambda A: pickled(A).tosparse(),
    }
    for ord in (1, -1, np.inf, -np.inf, "fro", 2):
        found[f"norm {ord}"] = lambda A, ord=ord: np.linalg.norm(A, ord)
        found[f"norm of a product {ord}"] = lambda A, ord=ord: np.linalg.norm(A @ A, ord)
    for form in "csr csc coo bsr dia lil dok".split():
        found[f"tosparse {form}"] = lambda A, form=form: A.tosparse(form)
    for kind in "auto jacobi block_jacobi ssor ic ict".split():
        found[f"preconditioner {kind}"] = lambda A, kind=kind: pl.preconditioner(A, kind) @ x
    for method in "cg minres gmres bicgstab lsmr lsqr".split():
        found[method] = lambda A, method=method: getattr(pl, method)(A, x)[0]
    return found


def raw_roads():
    """Roads of a scipy.sparse matrix that meets an operator, or goes to a function."""
    A, x = pl.Sparse(matrix()), np.cos(np.arange(N))
    D = pl.Diag(20 + x)
    return {
        "operator times": lambda S: A @ S,
        "times operator": lambda S: S @ A,
        "diagonal times": lambda S: (D @ S).tosparse(),
        "solve": lambda S: pl.solve(A, S).toarray(),
        "sparse_matmul": lambda S: pl.sparse_matmul(S, S),
        "mask": lambda S: pl.sparse_matmul(A, A, mask=S),
        "as an operator": lambda S: (A + S).tosparse(),
        "block": lambda S: pl.Block([[S], [A]]).tosparse(),
        "norm": lambda S: np.linalg.norm(pl.aslinearoperator(S), 1),
        "dask": lambda S: _blocks(S) @ x,
        "lstsq": lambda S: pl.lstsq(S, x)[0],
    }


def _blocks(S):
    from pylinop import dask

    return dask.from_array(S)


def copy_of(A):
    import copy

    return copy.deepcopy(A)


def pickled(A):
    import pickle

    return pickle.loads(pickle.dumps(A))


def _number(found):
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def _run(form, raw):
    """In the process of its own: prints what was tried, and what came out."""
    import warnings

    warnings.simplefilter("ignore")
    made = FORMATS[form]
    for road, run in (raw_roads() if raw else roads()).items():
        if form == "coo_array" and road.startswith("triangle"):
            continue  # those are of CSR and CSC
        given = (lambda S: S) if raw else pl.Sparse
        expected = _number(run(given(made(matrix()))))
        for name, damage, broken in damages(form):
            if raw and not broken:
                continue
            S = made(matrix())
            A = given(S)
            damage(S)
            print(json.dumps([road, *map(str, name)]), flush=True)
            due = (IndexError,) if broken else (IndexError, ValueError)
            try:
                found = _number(run(A))
            except due:
                continue
            except Exception as error:
                if sys.flags.verbose:
                    raise
                print("WRONG", f"{type(error).__name__}: {error}"[:200], flush=True)
                continue
            same = expected.shape == found.shape and np.allclose(found, expected, atol=1e-6)
            if broken or not same:
                print("WRONG", "an answer", flush=True)


@pytest.mark.parametrize("raw", [False, True], ids=["operator", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_is_an_error_on_every_road(form, raw):
    code = f"import test_sparse_overwritten as t; t._run({form!r}, {raw})"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=600
    )
    lines = done.stdout.splitlines()
    wrong = [f"{a}: {b}" for a, b in zip(lines, lines[1:]) if b.startswith("WRONG")]
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    assert not wrong, "\n".join(wrong)
    assert len(lines) >= 88  # it came through


# -- formats that are converted, and what lies behind the last entry -------------------------------


def _bsr(S):
    return sp.bsr_array(S, blocksize=(2, 3))


@pytest.mark.parametrize("where, value", [("indices", 2**30), ("indices", -1), ("indptr", 2**30)])
def test_blocks_that_were_overwritten(where, value):
    S = _bsr(matrix())
    A = pl.Sparse(S)
    before = A.tosparse().toarray()
    getattr(S, where)[3] = value
    np.testing.assert_array_equal(A.tosparse("bsr").toarray(), before)  # they were copied
    for run in (pl.Sparse, lambda S: pl.Sparse(matrix()) @ S, lambda S: pl.sparse_matmul(S, S)):
        with pytest.raises(IndexError, match=str(value)):
            run(S)


def test_diagonals_and_lists_that_do_not_fit():
    dia, lil = sp.dia_array(matrix()), sp.lil_array(matrix())
    dia.data = dia.data[:1]
    lil.data[3] = lil.data[3][:-1]
    for S in (dia, lil):
        with pytest.raises(ValueError, match="lists|diagonals"):
            pl.Sparse(S)
        with pytest.raises(ValueError, match="lists|diagonals"):
            pl.Sparse(matrix()) @ S
    lil = sp.lil_array(matrix())
    lil.rows[3][-1] = 2**30
    with pytest.raises(IndexError, match=str(2**30)):
        pl.Sparse(matrix()) @ lil


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_an_entry_less_is_a_matrix(form):
    """indptr may end before the arrays do: what lies behind is no part of it, on any road."""
    S = matrix().asformat(form)
    A, want = pl.Sparse(S), matrix().asformat(form)
    S.indptr[-1] -= 1
    at = np.argwhere(want.toarray().T if form == "csc" else want.toarray())[-1]
    want = want.toarray()
    want[tuple(at[::-1] if form == "csc" else at)] = 0
    for other in "csr csc coo lil dia".split():
        np.testing.assert_array_equal(A.tosparse(other).toarray(), want)
    np.testing.assert_array_equal(A @ np.eye(N), want)
    np.testing.assert_array_equal(pl.sparse_matmul(A, sp.eye_array(N)).toarray(), want)
    np.testing.assert_array_equal((A @ sp.eye_array(N)).toarray(), want)


def test_the_error_has_the_numbers():
    S = matrix()
    A = pl.Sparse(S)
    S.indices[7] = 71
    with pytest.raises(
        IndexError, match=r"71 where 60 is the size, in a matrix of shape \(60, 60\)"
    ):
        A.tosparse("csc")
