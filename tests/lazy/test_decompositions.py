"""NumPy's decompositions of LazyArrays are deferred, and keep the form's structure."""

import copy
import pickle

import numpy as np
import pytest
from drawn import DTYPES, close, positive, values

import pylinop as pl

SIZES = [0, 1, 2, 15, 16, 17]

WHOLE = {  # of what is Hermitian and positive definite
    "cholesky": np.linalg.cholesky,
    "eigvalsh": np.linalg.eigvalsh,
    "eigvalsh U": lambda a: np.linalg.eigvalsh(a, "U"),
    "pinv": np.linalg.pinv,
    "norm": np.linalg.norm,
    "norm 2": lambda a: np.linalg.norm(a, 2),
    "norm nuc": lambda a: np.linalg.norm(a, "nuc"),
    "rank": np.linalg.matrix_rank,
    "rank above": lambda a: np.linalg.matrix_rank(a, 0.5),
    "rank hermitian": lambda a: np.linalg.matrix_rank(a, hermitian=True),
    "pinv below": lambda a: np.linalg.pinv(a, 1e-3),
    "pinv hermitian": lambda a: np.linalg.pinv(a, hermitian=True),
}


def lazy(a):
    return pl.lazy(a)


def is_later(x):
    return isinstance(x, pl.LazyArray) and x._value is None


@pytest.mark.parametrize("dtype", [*DTYPES, "int32"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", WHOLE)
def test_one_result(rng, name, n, dtype):
    f = WHOLE[name]
    a = positive(rng, n, dtype) if dtype != "int32" else np.eye(n, dtype=dtype) * 3
    if n == 0 and ("norm" in name or "pinv" in name):
        return  # NumPy's are of other dtypes there
    got, want = f(lazy(a)), f(a) if n or "rank" not in name else np.intp(0)  # an error in NumPy 2.0
    assert is_later(got)
    assert got.shape == np.shape(want) and got.dtype == want.dtype
    if "rank" in name:
        assert int(got) == want
    else:
        close(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_eigh(rng, n, dtype):
    a = positive(rng, n, dtype)
    w, v = found = np.linalg.eigh(lazy(a))
    assert type(found) is type(np.linalg.eigh(np.eye(2))) and is_later(w) and is_later(v)
    assert w.dtype == np.linalg.eigvalsh(a).dtype and v.dtype == a.dtype
    w, v = pl.evaluate(w, v)
    close(w, np.linalg.eigvalsh(a))
    close((v * w) @ v.conj().T, a)
    assert v.flags.aligned


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (4, 7), (7, 4), (17, 16), (3, 5, 4)])
@pytest.mark.parametrize("full", [True, False])
def test_svd_and_qr(rng, shape, full, dtype):
    a = values(rng, shape, dtype)
    u, s, vh = np.linalg.svd(lazy(a), full_matrices=full)
    for g, w in zip((u, s, vh), np.linalg.svd(a, full_matrices=full), strict=True):
        assert is_later(g) and g.shape == w.shape and g.dtype == w.dtype
    u, s, vh = pl.evaluate(u, s, vh)
    k = s.shape[-1]
    close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)
    close(np.linalg.svdvals(lazy(a)), s)
    close(np.linalg.svd(lazy(a), compute_uv=False), s)
    mode = "complete" if full else "reduced"
    q, r = np.linalg.qr(lazy(a), mode)
    for g, w in zip((q, r), np.linalg.qr(a, mode), strict=True):
        assert is_later(g) and g.shape == w.shape and g.dtype == w.dtype
    close(q.toarray() @ r.toarray(), a)
    close(np.abs(np.linalg.qr(lazy(a), "r")), np.abs(np.linalg.qr(a, "r")))


def test_structure_counts(rng):
    """100 x 100 x 100 points: the dense form would take 8 TB."""
    a = positive(rng, 100, "float64")
    K = pl.lazy(pl.Kron(a, a, a))
    w = np.linalg.eigvalsh(a)
    assert abs(float(np.linalg.norm(K, 2)) - w[-1] ** 3) < 1e-10 * w[-1] ** 3
    assert abs(float(np.linalg.cond(K)) / (w[-1] / w[0]) ** 3 - 1) < 1e-9


def test_the_factorisation_runs_once(rng):
    calls = []

    class Mine(pl.LinearOperator):
        def __init__(self, a):
            self.a = a
            super().__init__(a.dtype, a.shape)

        def _matmat(self, X):
            calls.append(1)
            return self.a @ X

    u, s, vh = np.linalg.svd(pl.lazy(Mine(positive(rng, 30, "float64"))))
    s.toarray()
    once = len(calls)
    u.toarray(), vh.toarray()
    assert len(calls) == once > 0


def test_within_formulas(rng):
    a, y = positive(rng, 12, "float64"), values(rng, 12, "float64")
    K = lazy(a)
    w, v = np.linalg.eigh(K)
    close(v @ ((v.T @ y) / w), np.linalg.solve(a, y))
    L = np.linalg.cholesky(K + np.eye(12))
    close(L @ L.T, a + np.eye(12))
    got = pl.evaluate(L, np.linalg.norm(K), w, pl.logdet(K))
    close(got[0], np.linalg.cholesky(a + np.eye(12)))
    close(got[3], np.linalg.slogdet(a)[1])


def alike(g, w):
    if isinstance(w, np.ndarray):
        np.testing.assert_array_equal(np.asarray(g), w)  # indices
    else:
        close(g, w.toarray())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_lu_ldl_and_roots(rng, dtype):
    a, wide = positive(rng, 6, dtype), values(rng, (4, 7), dtype)
    for m in (a, wide, wide.T, np.stack([a, 2 * a])):
        for how in ({}, {"permute_l": True}, {"p_indices": True}):
            found, want = pl.lu(lazy(m), **how), pl.lu(m, **how)
            assert all(map(is_later, found)) and len(found) == len(want)
            for g, w in zip(found, want, strict=True):
                assert g.shape == w.shape and g.dtype == w.dtype
                alike(g, w)
    for lower in (True, False):
        found, want = pl.ldl(lazy(a), lower), pl.ldl(a, lower)
        assert all(map(is_later, found))
        for g, w in zip(found, want, strict=True):
            assert g.shape == w.shape and g.dtype == w.dtype
            alike(g, w)
    P, L, U = pl.lu(lazy(a) + np.eye(6, dtype=dtype))
    close(P @ L @ U, a + np.eye(6))
    for b in (values(rng, 6, dtype), values(rng, (6, 2), dtype)):
        for x, y in ((lazy(a), b), (lazy(a), lazy(b)), (a, lazy(b))):
            got = pl.sqrt_inv_matmul(x, y)
            assert is_later(got) and got.shape == b.shape and got.dtype == b.dtype
            close(got, pl.sqrt_inv_matmul(a, b))
    for f in (pl.ldl, lambda x: pl.sqrt_inv_matmul(x, np.ones(3))):
        with pytest.raises(np.linalg.LinAlgError, match="square"):
            f(lazy(np.ones((2, 3))))


def test_factors_of_forms_stay_structured(rng):
    """The factor that a formula needs is made of the Kron, once, within pl.evaluate."""
    a, b = positive(rng, 5, "float64"), positive(rng, 40, "float64")
    K = lazy(pl.Kron(a, b))
    P, L, U = pl.lu(K)
    x = values(rng, 200, "float64")
    with pl.config(memory_limit=200 * 200 * 8 - 1):
        one, two = pl.evaluate(P @ (L @ (U @ x)), pl.sqrt_inv_matmul(K, x))
    close(one, np.kron(a, b) @ x)
    close(two, pl.sqrt_inv_matmul(pl.Kron(a, b), x))


def test_repr_copies_and_pickles(rng):
    a = positive(rng, 5, "float64")
    w, v = np.linalg.eigh(lazy(a))
    assert "eigh(A0)" in repr(w)
    for other in (pickle.loads(pickle.dumps(w)), copy.deepcopy(w)):
        close(other, np.linalg.eigvalsh(a))


def test_inv_quad_logdet(rng):
    a, c = positive(rng, 5, "complex128"), positive(rng, 5, "float64")
    b = values(rng, (5, 2), "complex128")
    stack = np.stack([c, 2 * c, 3 * c])
    for A, right in (
        (a, b[:, 0]),
        (a, b),
        (c, b[:, :1]),
        (stack, c[0]),
        (stack, values(rng, (3, 5), "float64")),
        (stack, values(rng, (3, 5, 2), "float64")),
        (c, values(rng, (3, 5, 2), "float64")),
    ):
        want = pl.inv_quad_logdet(A, right)
        for x, y in ((lazy(A), right), (lazy(A), lazy(right)), (A, lazy(right))):
            found = pl.inv_quad_logdet(x, y)
            assert all(map(is_later, found)) and type(found) is type(want)
            for g, w in zip(pl.evaluate(*found), want, strict=True):
                assert g.shape == np.shape(w)
                close(g, w)
    D = pl.LowRank(values(rng, (5, 2), "float64"), values(rng, (3, 2), "float64"))
    close(pl.inv_quad_logdet(lazy(c), D)[0], pl.inv_quad_logdet(c, D)[0])


def test_einsum(rng):
    a, b, x = (values(rng, s, "float64") for s in ((4, 5), (5, 3), 4))
    A, B = lazy(a), lazy(b)
    for text, ours, theirs in (
        ("ij,jk->ik", (A, B), (a, b)),
        ("ij,jk->ki", (A, b), (a, b)),
        ("i,ij,jk->k", (x, A, B), (x, a, b)),
        ("ij,ij->", (A, A), (a, a)),
        ("ij->ji", (A,), (a,)),
        ("ij,ij->i", (A, a), (a, a)),
    ):
        got = np.einsum(text, *ours)
        assert is_later(got)
        close(got, np.einsum(text, *theirs))
    close(np.einsum("ij,kl->ijkl", A, B), np.einsum("ij,kl->ijkl", a, b))


@pytest.mark.parametrize("f", [np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh])
def test_what_is_not_square(f):
    with pytest.raises(np.linalg.LinAlgError, match=r"must be square: \(2, 3\)"):
        f(lazy(np.ones((2, 3))))


def test_what_fails_says_where():
    L = np.linalg.cholesky(lazy(-np.eye(3)))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        L.toarray()


def test_matrices_and_right_sides_that_do_not_fit():
    for f in (pl.lu, pl.qr):
        with pytest.raises(np.linalg.LinAlgError, match="needs a matrix"):
            f(pl.lazy(np.ones(3)))
    for b in (np.ones(4), np.ones((4, 2)), np.float64(1)):
        with pytest.raises(ValueError, match="the 3 rows of A"):
            pl.sqrt_inv_matmul(pl.lazy(np.eye(3)), b)


def test_the_byte_order_of_factors_is_the_machines():
    a = np.array([[4.0, 1.0], [1.0, 3.0]], ">f8")
    for x in (*pl.lu(pl.lazy(a)), *pl.qr(pl.lazy(a))):
        assert x.dtype.isnative and np.asarray(x).dtype == x.dtype


# -- of matrices that are not Hermitian, and functions of matrices ---------------------------------


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", SIZES)
def test_eig(rng, n, dtype):
    a = values(rng, (n, n), dtype)
    for f in (np.linalg.eig, pl.eig):
        w, v = found = f(lazy(a))
        assert type(found) is type(np.linalg.eig(np.eye(2))) and is_later(w) and is_later(v)
        assert w.dtype == v.dtype == dtype and w.shape == (n,) and v.shape == (n, n)
        w, v = pl.evaluate(w, v)
        close(a @ v, v * w)
        close(np.linalg.norm(v, axis=0), np.ones(n))
    for f in (np.linalg.eigvals, pl.eigvals):
        w = f(lazy(a))
        assert is_later(w) and w.dtype == dtype
        close(np.sum(w), np.trace(a)) if n else None
    stack = np.stack([a, 2 * a])
    w, v = pl.eig(lazy(stack))
    close(stack @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None])


def test_eig_is_computed_once(rng, monkeypatch):
    a = values(rng, (40, 40), "complex128")
    calls = []
    real = np.linalg.eig
    monkeypatch.setattr(np.linalg, "eig", lambda x: calls.append(x) or real(x))
    w, v = pl.eig(lazy(a))
    both, once = pl.evaluate((v * w) @ pl.inv(v), w + 1)
    close(both, a)
    close(np.sum(once), np.trace(a) + 40)
    assert len(calls) == 1


def test_results_whose_shape_or_dtype_the_values_say_are_computed(rng):
    a = values(rng, (6, 6), "float64")
    a[:, 0] = a[:, 1]
    w, v = pl.eig(lazy(a))
    assert not isinstance(w, pl.LazyArray)
    close(a @ v.toarray(), v.toarray() * w)
    assert pl.null_space(lazy(a)).shape == (6, 1) and pl.orth(lazy(a)).shape == (6, 5)
    for f in (pl.eig, pl.eigvals, np.linalg.eig, np.linalg.eigvals, pl.null_space, pl.orth):
        with pytest.raises(NotImplementedError, match="depends on"):
            f(pl.placeholder((6, 6), float))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        pl.eig(lazy(np.ones((2, 3), complex)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17])
def test_funm_and_powers(rng, n, dtype):
    a = positive(rng, n, dtype)
    for f in (
        lambda x: pl.funm(x, np.cosh),
        lambda x: pl.fractional_matrix_power(x, 0.3),
        lambda x: pl.fractional_matrix_power(x, -0.5),
    ):
        got, want = f(lazy(a)), f(a)
        assert is_later(got) and got.dtype == want.dtype and got.shape == want.shape
        close(got, want.toarray())
        close(f(lazy(a) + a) @ a, f(2 * a).toarray() @ a)
    for p in (0, 1, 2, -1, 3.0):
        got = pl.fractional_matrix_power(lazy(a), p)
        assert is_later(got) or p == 1
        close(got, np.linalg.matrix_power(a, int(p)))


def test_functions_that_cannot_be(rng):
    a = lazy(values(rng, (4, 4), "float64"))
    with pytest.raises(np.linalg.LinAlgError, match=r"funm of this real matrix.*astype\(complex\)"):
        np.asarray(pl.funm(a + a.T, lambda w: w * 1j))
    for f in (lambda x: pl.funm(x, np.exp), lambda x: pl.fractional_matrix_power(x, 0.5)):
        with pytest.raises(np.linalg.LinAlgError, match="square"):
            f(lazy(np.ones((2, 3))))
    for t in ("1", [1.0], 1j):
        with pytest.raises(TypeError, match="real number"):
            pl.fractional_matrix_power(a, t)
    with pytest.raises(NotImplementedError, match="funm has no derivative"):
        pl.gradients(np.sum(pl.funm(a @ a.T, np.exp)), a)


def test_functions_of_forms_keep_their_structure(rng):
    a, b = positive(rng, 5, "float64"), positive(rng, 40, "float64")
    K, x = lazy(pl.Kron(a, b)), values(rng, 200, "float64")
    with pl.config(memory_limit=200 * 200 * 8 - 1):
        root = pl.fractional_matrix_power(K, 0.5)
        got, again = pl.evaluate(root @ (root @ x), pl.funm(K, np.sqrt) @ x)
    close(got, np.kron(a, b) @ x)
    close(again, pl.sqrtm(pl.Kron(a, b)) @ x)


def test_explanations_of_functions_with_several_results(rng):
    """They show the results' shapes, not the bytes that hold them."""
    a, c = positive(rng, 6, "float64"), values(rng, (5, 5), "complex128")
    for run in (False, True):
        for node in (
            np.linalg.eig(lazy(c))[0],
            np.linalg.svd(lazy(a))[1],
            np.linalg.qr(lazy(a))[0],
            np.linalg.eigh(lazy(a))[1],
            np.linalg.slogdet(lazy(a))[1],
        ):
            text = str(pl.explain(node, run=run))
            assert "by NumPy" not in text and "uint8" not in text and "(2,)  " not in text
    assert "(6, 6) float64 and (6,) float64 and" in str(np.linalg.svd(lazy(a))[1].explain())
    assert "mantissa and exponent" in str(np.linalg.slogdet(lazy(a))[0].explain())


def test_explanations_of_determinants_of_callables(rng):
    """Which have no plan: NumPy computes them from the dense form."""
    a = positive(rng, 5, "float64")
    op = lazy(pl.MatVec((5, 5), lambda x: a @ x, dtype=a.dtype))
    assert "by NumPy" in str(pl.logdet(op).explain())
    close(pl.logdet(op), np.linalg.slogdet(a)[1])


def test_prices_of_condition_numbers(rng):
    """By norms of the inverse, or singular values."""
    e = [pl.Dense(values(rng, (300, 300), "float64")).explain("cond", p=p) for p in (1, 2, "nuc")]
    assert e[0].flops < e[1].flops < e[2].flops and e[0].seconds < e[1].seconds < e[2].seconds


def test_explanations_show_functions(rng):
    """By the same rows and prices as of operators, each once; nothing is computed."""
    a, c = positive(rng, 300, "float64"), values(rng, (30, 30), "complex128")
    A, C = lazy(a), lazy(c)
    for node, name, kwargs in (
        (pl.sqrtm(A), "sqrtm", {}),
        (pl.funm(A, np.exp), "funm", {"func": np.exp}),
        (pl.qr(A, "r"), "qr", {"mode": "r"}),
        (np.linalg.svdvals(A), "svdvals", {}),
        (np.linalg.eigvalsh(A), "eigvalsh", {}),
        (np.linalg.norm(A, 2), "matrix_norm", {"ord": 2}),
        (pl.lstsq(A, np.ones((300, 1)))[0], "lstsq", {}),
        (pl.logdet(A), "logdet", {}),
        (np.linalg.det(A), "det", {}),
        (np.linalg.slogdet(A)[1], "slogdet", {}),
        (np.linalg.lstsq(A, np.ones((300, 1)))[2], "lstsq", {}),
        (np.linalg.cond(A, 1), "cond", {"p": 1}),
        (np.linalg.cond(A), "cond", {}),
    ):
        e, want = node.explain(), pl.Dense(a).explain(name, **kwargs)
        assert node._value is None
        assert e.seconds == want.seconds > 0 and e.flops == want.flops
    K = lazy(pl.Kron(a[:5, :5], a[:4, :4]))
    assert "sqrtm-kron" in [r["name"] for r in pl.sqrtm(K).explain().rules]
    w, v = pl.eig(C)
    e = (v * w).explain()
    assert [s["name"] for s in e.steps] == ["eig-dense"] and w._value is None
    e = pl.funm(pl.sqrtm(A), np.exp).explain()
    assert [s["name"] for s in e.steps if s["seconds"] > 1e-3] == ["eigh-dense"] * 2


PRODUCTS = {
    "sqrtm": pl.sqrtm, "logm": pl.logm, "expm": pl.expm, "cholesky": pl.cholesky, "pinv": pl.pinv,
    "funm": lambda A: pl.funm(A, np.exp), "qr": lambda A: pl.qr(A)[0],
    "eigh": lambda A: pl.eigh(A)[1],
    "fractional_matrix_power": lambda A: pl.fractional_matrix_power(A, 0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_explanations_of_products_with_functions_compute_nothing(name, rng, monkeypatch):
    """A stand-in of the kind that the function makes is priced; one of what a function makes of
    what another made, too."""
    a, b = positive(rng, 16, "float64"), positive(rng, 17, "float64")
    d = np.full(30, 2.0)
    given = [
        pl.Kron(a, b),
        pl.BlockDiag(a, b),
        pl.Dense(a),
        pl.Kron(a, a @ np.diag(d[:16])),
        pl.Diag(d),
    ]
    made = []
    for A in given:
        x = np.ones(A.shape[-1])
        y = PRODUCTS[name](lazy(A)) @ x
        made += [(y, PRODUCTS[name](A) @ x)]
        if name in ("sqrtm", "pinv"):
            made += [(pl.expm(PRODUCTS[name](lazy(A / 99))) @ x, None)]
    with monkeypatch.context() as m:
        m.setattr(pl._structured.dispatch.Question, "_steps", None)
        for k, (y, _) in enumerate(made):
            e = y.explain()
            assert e.seconds > 0 and y._value is None and e.took is None
            if k == 0:
                kron = "Eigen" if name in ("logm", "expm", "funm") else "Kron"
                assert f"priced below as {kron}" in str(e)
                assert sum(s["flops"] for s in e.steps if s["name"] in ("kron", "gemm")) < 1e5
    for y, want in made:
        if want is not None:
            close(y, want)


@pytest.mark.parametrize("given", [[1.0, 2.0], [0.0, 0.0]])
def test_ranks_of_vectors_said_to_be_hermitian(given):
    """NumPy asks nothing of them."""
    want = np.linalg.matrix_rank(np.array(given), hermitian=True)
    for v in (given, np.array(given), lazy(np.array(given))):
        assert pl.matrix_rank(v, hermitian=True) == want
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        pl.matrix_rank(lazy(np.ones((1, 2))), hermitian=True)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 0)])
def test_pseudo_inverses_of_empty_matrices_said_to_be_hermitian(shape):
    a = np.zeros(shape)
    for pinv in (pl.pinv, np.linalg.pinv):
        got = np.asarray(pinv(lazy(a), hermitian=True))
        assert got.shape == np.linalg.pinv(a, hermitian=True).shape
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        np.linalg.pinv(lazy(np.ones((2, 3))), hermitian=True)


def test_two_tolerances_are_refused_as_they_are_written():
    m, n = pl.symbols("m n")
    for pinv in (pl.pinv, np.linalg.pinv):
        for a in (pl.placeholder((m, n)), lazy(np.ones((2, 3))), np.ones((2, 3))):
            for rtol in (0.1, None):
                with pytest.raises(ValueError, match="can't be both set"):
                    pinv(a, rcond=0.1, rtol=rtol)
