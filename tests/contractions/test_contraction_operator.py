"""`pl.Contraction` against the dense form by numpy.einsum, as SciPy's operator and in solvers; the
kinds that it is; `pl.view`."""

import pickle

import numpy as np
import pytest
import scipy.sparse.linalg as ssl

import pylinop as pl

CASES = [
    ("nm,in,jm,pn,qm->ijpq", ((3, 4), (5, 3), (2, 4), (5, 3), (2, 4)), "ij", "pq"),
    ("abc,cd->abd", ((2, 3, 4), (4, 5)), "da", "b"),
    ("abc,cd->abd", ((2, 3, 4), (4, 5)), "b", "ad"),
    ("abc->abc", ((2, 3, 4),), "ab", "ac"),
    ("a b r, c r", ((2, 3, 4), (5, 4)), "a b", "c"),
    ("ij,j->ij", ((4, 5), (5,)), "i", "j"),
    ("i,j,ij->ij", ((6,), (6,), (6, 6)), "i", "j"),
]


def dense(equation, arrays, rows, cols):
    left = equation.partition("->")[0].replace(" ", "")
    r, c = rows.replace(" ", ""), cols.replace(" ", "")
    sizes = {x: n for t, a in zip(left.split(","), arrays) for x, n in zip(t, a.shape)}
    shared = [x for x in c if x in r]
    new = {x: x.upper() for x in shared}
    eyes = [np.eye(sizes[x]) for x in shared]
    terms = [left, *(x + new[x] for x in shared)]
    out = r + "".join(new.get(x, x) for x in c)
    found = np.einsum(",".join(terms) + "->" + out, *arrays, *eyes)
    return found.reshape(int(np.prod([sizes[x] for x in r])), -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("equation, shapes, rows, cols", CASES)
def test_against_the_dense_form(equation, shapes, rows, cols, dtype, rng):
    arrays = [rng.normal(size=s).astype(dtype) for s in shapes]
    if dtype is np.complex128:
        arrays = [a + 1j * rng.normal(size=a.shape) for a in arrays]
    A = pl.Contraction(equation, *arrays, rows=rows, cols=cols)
    want = dense(equation, arrays, rows, cols)
    scale = np.abs(want).max() * 50 * np.finfo(dtype).eps * max(want.shape)
    assert A.shape == want.shape and A.dtype == np.dtype(dtype)
    np.testing.assert_allclose(A.toarray(), want, atol=scale)
    x, y = rng.normal(size=(want.shape[1], 3)), rng.normal(size=(want.shape[0], 2))
    for B, b in ((A, want), (A * 2, 2 * want), (pickle.loads(pickle.dumps(A)), want)):
        np.testing.assert_allclose(B @ x, b @ x, atol=9 * scale)
        np.testing.assert_allclose(B @ x[:, 0], b @ x[:, 0], atol=9 * scale)
        np.testing.assert_allclose(B.H @ y, b.conj().T @ y, atol=9 * scale)
        np.testing.assert_allclose(B.T @ y, b.T @ y, atol=9 * scale)
    for k in (0, 1, -1):
        np.testing.assert_allclose(A.diagonal(k), np.diagonal(want, k), atol=scale)
    if want.shape[0] == want.shape[1]:
        np.testing.assert_allclose(A.trace(), np.trace(want), atol=9 * scale)


def test_it_follows_its_arrays_and_goes_to_solvers(rng):
    A, B = rng.normal(size=(3, 4)) ** 2, rng.normal(size=(6, 3))
    C = rng.normal(size=(5, 4))
    M = pl.Contraction("nm,in,jm,pn,qm->ijpq", A, B, C, B, C, rows="ij", cols="pq")
    want = dense("nm,in,jm,pn,qm->ijpq", [A, B, C, B, C], "ij", "pq")
    S = M + pl.Identity(30)
    b = rng.normal(size=30)
    np.testing.assert_allclose(
        pl.solve(S, b, method="cg", rtol=1e-12, atol=1e-12),
        np.linalg.solve(want + np.eye(30), b),
        rtol=1e-8,
    )
    np.testing.assert_allclose(
        ssl.cg(S, b, rtol=1e-12, atol=1e-12)[0], np.linalg.solve(want + np.eye(30), b), rtol=1e-8
    )
    w = pl.eigsh(M, k=2, return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(w), np.linalg.eigvalsh(want)[-2:], rtol=1e-9, atol=1e-9)
    A *= 2
    np.testing.assert_allclose(M @ b, 2 * want @ b, rtol=1e-9, atol=1e-9)


def test_kinds(rng):
    A, B, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 2)), rng.normal(size=4)
    for made, kind, want in (
        (pl.Contraction("ip,jq->ijpq", A, B, rows="ij", cols="pq"), pl.Kron, np.kron(A, B)),
        (pl.Contraction("ip,jq->ijpq", A, B, rows="ji", cols="qp"), pl.Kron, np.kron(B, A)),
        (pl.Contraction("pi,jq->ijpq", A.T, B, rows="ij", cols="pq"), pl.Kron, np.kron(A, B)),
        (pl.Contraction("i->i", v, rows="i", cols="i"), pl.Diag, np.diag(v)),
        (pl.Contraction("ir,jr->ij", A, A, rows="i", cols="j"), pl.LowRank, A @ A.T),
        (pl.Contraction("jr,ir->ij", B, B, rows="i", cols="j"), pl.LowRank, B @ B.T),
        (pl.Contraction("ij->ij", A, rows="j", cols="i"), pl.Dense, A.T),
        (pl.Contraction("ir,jr->ijr", A, A, rows="ij", cols="r"), pl.KhatriRao, None),
        (pl.Contraction("ir,rj->ij", A, A.T, rows="i", cols="j"), pl.Contraction, A @ A.T),
    ):
        assert type(made) is kind
        if want is None:
            want = np.einsum("ir,jr->ijr", A, A).reshape(9, 4)
        np.testing.assert_allclose(made.toarray(), want, rtol=1e-12, atol=1e-12)


def test_mistakes():
    a = np.ones((2, 3))
    for equation, rows, cols, said in (
        ("ij->ij", "i", "k", "are not those of rows"),
        ("ij", "i", "k", "'k' of the result is in no operand"),
        ("ij,jk->ik", "i", "k", "1 operands for an equation of 2"),
        ("ij->ij", "ii", "j", "labels, each once"),
    ):
        with pytest.raises(ValueError, match=said):
            pl.Contraction(equation, a, rows=rows, cols=cols)


def test_views(rng):
    x = rng.normal(size=(4, 12, 3))
    v = pl.view(x, "b (2*o + w) c -> b o w c", sizes={"w": 4})
    want = np.lib.stride_tricks.sliding_window_view(x, 4, 1)[:, ::2].transpose(0, 1, 3, 2)
    np.testing.assert_array_equal(v, want)
    assert np.shares_memory(v, x) and not v.flags.writeable
    np.testing.assert_array_equal(
        pl.view(x, "b (h w) c -> w b h c", sizes={"h": 2}),
        x.reshape(4, 2, 6, 3).transpose(2, 0, 1, 3),
    )
    np.testing.assert_array_equal(pl.view(x[0, :3], "ii->i"), np.diag(x[0, :3]))
    np.testing.assert_array_equal(pl.view(x, "b h c -> (b h) c"), x.reshape(48, 3))
    np.testing.assert_array_equal(pl.view(np.arange(5), "(4 - i) -> i"), np.arange(5)[::-1])
    for equation, said in (
        ("b h c -> b h", "'c' is not in the result"),
        ("b h c -> (h b) c", "do not lie behind each other"),
        ("b (h + w) c -> b h w c", "leaves the sizes"),
        ("b h -> b h", "operand 0 has 3 dimensions"),
    ):
        with pytest.raises(ValueError, match=said):
            pl.view(x, equation)


@pytest.mark.parametrize("outside", [None, 0, "wrap"])
@pytest.mark.parametrize(
    "text, kind",
    [
        ("(i - j{c})", "Toeplitz"),
        ("(j - i{c})", "Toeplitz"),
        ("(i + j{c})", "Hankel"),
        ("({c} - i - j)", "Hankel"),
        ("(2*i + j{c})", "Contraction"),
    ],
)
@pytest.mark.parametrize("m, n", [(4, 4), (3, 7), (6, 2)])
def test_a_vector_read_at_rows_and_columns(outside, text, kind, m, n, rng):
    i, j = np.arange(m)[:, None], np.arange(n)
    places = eval(text.format(c=" + 12").replace(" + 12 -", "12 -"), {"i": i, "j": j})
    length = 26 if outside is None else 4
    x = rng.normal(size=length)
    inside = (places >= 0) & (places < length)
    want = np.where(inside, x[places % length], 0) if outside == 0 else x[places % length]
    written = text.format(c=" + 12").replace(" + 12 -", "12 -")
    A = pl.Contraction(written, x, rows="i", cols="j", sizes={"i": m, "j": n}, outside=outside)
    expected = "Circulant" if outside == "wrap" and m == n == 4 and kind == "Toeplitz" else kind
    assert type(A).__name__ == expected
    np.testing.assert_allclose(A.toarray(), want)
    v, u = rng.normal(size=n), rng.normal(size=(m, 2))
    np.testing.assert_allclose(A @ v, want @ v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(A.T @ u, want.T @ u, rtol=1e-12, atol=1e-12)
    again = pickle.loads(pickle.dumps(A))
    np.testing.assert_allclose(again @ v, want @ v, rtol=1e-12, atol=1e-12)
    if m == n:
        np.testing.assert_allclose(A.diagonal(), np.diagonal(want))


def test_an_index_beyond_the_vector_is_refused():
    with pytest.raises(ValueError, match="runs from"):
        pl.Contraction("(i + j)", np.ones(5), rows="i", cols="j", sizes={"i": 4, "j": 4})
    with pytest.raises(ValueError, match="open"):
        pl.Contraction("(i + j)", np.ones(5), rows="i", cols="j")


def test_a_convolution_as_an_operator(rng):
    """A layer of an image with a missing image: its adjoint is the transposed convolution."""
    w = rng.normal(size=(3, 3, 2, 4))
    image = rng.normal(size=(8, 9, 2))
    sizes = {"p": 8, "q": 9, "y": 6, "x": 7}
    A = pl.Contraction("(p - y) (q - x) c d", w, rows="y x d", cols="p q c", sizes=sizes, outside=0)
    want = pl.einsum("(y + i) (x + j) c, i j c d -> y x d", image, w)
    np.testing.assert_allclose(A @ image.ravel(), want.ravel(), rtol=1e-11, atol=1e-11)
    g = rng.normal(size=want.size)
    np.testing.assert_allclose(g @ (A @ image.ravel()), (A.T @ g) @ image.ravel(), rtol=1e-10)
