"""Formulas of placeholders as functions of arrays: values, shapes and dtypes are NumPy's at any
sizes; what does not fit is refused; `bind`, `explain`, `memory`, pickles, threads."""

import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pylinop as pl

# Functions of X (N, K), y (N,), z (K,), S (N, N), which NumPy can run too.
FORMULAS = {
    "product": lambda X, y, z, S: S @ X @ z,
    "from the left": lambda X, y, z, S: y @ S @ X,
    "element-wise": lambda X, y, z, S: np.exp(-abs(X)) * z + y[:, None] / 2 - 3,
    "comparison": lambda X, y, z, S: np.where(X > 0, X, -X) ** 2,
    "reflected": lambda X, y, z, S: 2 - y,
    "power": lambda X, y, z, S: 2.0**z,
    "sums": lambda X, y, z, S: X.sum(axis=0) + np.mean(X, axis=0) + X.max(0) - np.min(X, 0),
    "kept": lambda X, y, z, S: X / X.sum(axis=1, keepdims=True),
    "deviations": lambda X, y, z, S: np.std(X, axis=1) + np.var(y) + np.prod(z),
    "any": lambda X, y, z, S: np.any(X > 0, axis=0) & np.all(X < 9, axis=0),
    "places": lambda X, y, z, S: np.argmax(X, axis=0) - np.argmin(X, axis=0),
    "transposed": lambda X, y, z, S: X.T + X.T,
    "moved": lambda X, y, z, S: np.moveaxis(X[:, :, None] * y[:, None, None], 0, -1),
    "ravelled": lambda X, y, z, S: X.ravel(),
    "reshaped": lambda X, y, z, S: np.reshape(X, (1, -1)) * 2,
    "expanded": lambda X, y, z, S: np.expand_dims(z, 0) * np.expand_dims(y, 1),
    "squeezed": lambda X, y, z, S: np.squeeze(X[:1] * 2, 0),
    "joined": lambda X, y, z, S: np.concatenate([X, X[:1], 2 * X], axis=0),
    "side by side": lambda X, y, z, S: np.hstack([S, X]),
    "stacked": lambda X, y, z, S: np.vstack([z, X]) + np.stack([z, z]).sum(0),
    "slices": lambda X, y, z, S: X[1:-1, ::2],
    "the last ones": lambda X, y, z, S: y[-2:] + z[0],
    "turned": lambda X, y, z, S: y[::-1],
    "an element": lambda X, y, z, S: X[-1, 1] * S[0, 0],
    "steps": lambda X, y, z, S: y[1::3],
    "outer": lambda X, y, z, S: np.outer(y, z),
    "inner": lambda X, y, z, S: np.inner(X, z) + np.dot(X, z),
    "vdot": lambda X, y, z, S: np.vdot(y, S @ y),
    "tensordot": lambda X, y, z, S: np.tensordot(X, S, ((0,), (1,))),
    "kron": lambda X, y, z, S: np.kron(X, S),
    "kron of vectors": lambda X, y, z, S: np.kron(y, z),
    "trace": lambda X, y, z, S: np.trace(S @ S) + np.trace(S),
    "diagonal": lambda X, y, z, S: np.diagonal(S) + np.diag(S),
    "a diagonal matrix": lambda X, y, z, S: np.diag(y) @ X,
    "triangles": lambda X, y, z, S: np.tril(S) @ y + np.triu(S) @ y,
    "solve": lambda X, y, z, S: np.linalg.solve(S, X),
    "inverse": lambda X, y, z, S: np.linalg.inv(S) @ y,
    "ridge": lambda X, y, z, S: np.linalg.inv(X.T @ X + 0.5 * np.diag(z * z)) @ (X.T @ y),
    "determinant": lambda X, y, z, S: np.linalg.det(S),
    "cholesky": lambda X, y, z, S: np.linalg.cholesky(S @ S.T),
    "eigenvalues": lambda X, y, z, S: np.linalg.eigvalsh(S + S.T),
    "norm": lambda X, y, z, S: np.linalg.norm(X),
    "matrix power": lambda X, y, z, S: np.linalg.matrix_power(S, 3) @ y,
    "clipped": lambda X, y, z, S: np.clip(X, -0.5, 0.5) + np.round(X, 1),
    "running": lambda X, y, z, S: np.cumsum(X, axis=0) + np.sort(X, axis=0),
    "broadcast": lambda X, y, z, S: np.broadcast_to(z, X.shape) + X,
    "cast": lambda X, y, z, S: X.astype(np.float32) @ z.astype(np.float32),
    "parts": lambda X, y, z, S: np.real(1j * X) + np.imag(1j * X) + np.conjugate(X).T.T,
    "constants": lambda X, y, z, S: np.eye(3) @ (X[:3] @ z) + np.arange(3),
    "taken": lambda X, y, z, S: np.take(X, [0, 2, 3]) + X.take([1, -1, 0], axis=0)[0, 0],
    "taken once": lambda X, y, z, S: np.take(X, 1, axis=-1),
    "flipped": lambda X, y, z, S: np.flip(X) + np.flipud(X) * np.fliplr(X),
    "rolled": lambda X, y, z, S: np.roll(X, 2, 0) + np.roll(X, -1) + np.roll(X, (1, 2), (0, 1)),
    "repeated": lambda X, y, z, S: np.repeat(X, 2, axis=1) @ np.repeat(z, 2) + X.repeat(3)[0],
    "tiled": lambda X, y, z, S: np.tile(X, (2, 1, 2)).sum(0) * np.tile(z, 2),
    "differences": lambda X, y, z, S: np.diff(X)[1:-1] * np.diff(X, 2, axis=0)[:, 1:],
    "diagonals": lambda X, y, z, S: np.diagonal(S, 1) + np.diag(S, -1) + X.diagonal()[0],
    "of axes": lambda X, y, z, S: np.trace(X[:, None] * S[:, :, None]) + np.trace(S, -1),
    "diagonals of axes": lambda X, y, z, S: np.diagonal(X[:, None] * S[:, :, None]),
    "triangles of a row": lambda X, y, z, S: np.tril(y) @ X + np.triu(y, 1) @ X,
    "the like": lambda X, y, z, S: np.zeros_like(X) + np.ones_like(z) - np.full_like(X, 3, "f4"),
    "blocks": lambda X, y, z, S: np.block([[X, S], [z, y]]),
    "appended": lambda X, y, z, S: np.append(X, X[:1], axis=0).sum() + np.append(X, y),
    "columns": lambda X, y, z, S: np.column_stack([y, X, X]),
    "spread": lambda X, y, z, S: np.ptp(X, axis=0) + X.argmax(0) + X.cumsum(axis=0)[-1],
    "quotients": lambda X, y, z, S: X // 2 + 7 // (1 + X * X) + X % 3 - 2 % (1 + X * X),
    "both": lambda X, y, z, S: divmod(X, 2)[0] * divmod(X, 2)[1] + divmod(3, 1 + X * X)[1],
    "bits": lambda X, y, z, S: ((X > 0) ^ (X > 1)) | (True & (X < -1)),
    "methods": lambda X, y, z, S: X.clip(-1, 1).round(2) + X.std(0) + X.var(axis=1, keepdims=True),
    "two index arrays": lambda X, y, z, S: X[[0, 1, 2], [1, 0, -1]] + S[[[1], [2]], [0, 1, 0]],
    "apart": lambda X, y, z, S: S[None][0, :, [2, 0]] + S[:, None][[1, 2], 0],
    "a mesh": lambda X, y, z, S: S[np.ix_([0, 1], [2, 0])],
    "einsum": lambda X, y, z, S: np.einsum("nk,k,nm->m", X, z, S),
    "einsum, implicit": lambda X, y, z, S: np.einsum("ij,jk", S, X),
    "einsum, dots": lambda X, y, z, S: np.einsum("...k,k->...", X, z),
    "einsum, diagonal": lambda X, y, z, S: np.einsum("ii,ij->i", S, X),
    "einsum, lists": lambda X, y, z, S: np.einsum(X, [0, 1], z, [1], [0]),
}


def arrays(n, k, rng, dtype=np.float64):
    S = rng.normal(size=(n, n)) + 3 * np.sqrt(n) * np.eye(n)
    made = rng.normal(size=(n, k)), rng.normal(size=n), rng.normal(size=k), S
    return [a.astype(dtype) for a in made]


def placeholders(dtype=np.float64):
    N, K = pl.symbols("N K")
    shapes = ((N, K), N, K, (N, N))
    return [pl.placeholder(s, dtype, name=x) for s, x in zip(shapes, "XyzS")]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_template_is_the_formula_at_any_size(name, dtype, rng):
    given = placeholders(dtype)
    made = FORMULAS[name](*given)
    f = pl.function(given, made)
    for n, k in ((5, 3), (8, 3), (5, 3), (4, 7)):
        own = arrays(n, k, rng, dtype)
        expected = FORMULAS[name](*own)
        found = f(*own)
        assert isinstance(found, pl.LazyArray)
        assert found.shape == np.shape(expected)
        assert found.shape == pl.unify(made, (given[0], (n, k)))[made]
        assert made.dtype == found.dtype
        exact = np.asarray(FORMULAS[name](*[a.astype(np.float64) for a in own]))
        tolerance = 1e-4 if np.float32 in (dtype, found.dtype.type) else 1e-9
        scale = np.abs(exact).max(initial=1.0)
        np.testing.assert_allclose(np.asarray(found), exact, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize(
    "equation, sizes, outside",
    [
        ("b (2*o + w), w -> b o", None, None),
        ("b (o + 3*w - 1), w -> b o", {"o": 4}, 0),
        ("b (o - w), w -> b o", {"o": 6}, "wrap"),
        ("b (h t), t -> b h", None, None),
        ("b (h t), t -> h (t b)", None, None),
        ("b (5 - o), w -> b o w", None, None),
    ],
)
def test_index_equations_and_groups(equation, sizes, outside, rng):
    B, N = pl.symbols("B N")
    X, W = pl.placeholder((B, N)), pl.placeholder(pl.symbols("W"))
    made = pl.einsum(equation, X, W, sizes=sizes, outside=outside)
    f = pl.function((X, W), made)
    for b, n, w in ((2, 12, 3), (3, 16, 2), (1, 8, 4)):
        x, v = rng.normal(size=(b, n)), rng.normal(size=w)
        expected = pl.einsum(equation, x, v, sizes=sizes, outside=outside)
        np.testing.assert_allclose(f(x, v).toarray(), expected, rtol=1e-12, atol=1e-12)


def test_views(rng):
    N = pl.symbols("N")
    x = pl.placeholder(N)
    v = pl.view(x, "(2*o + w) -> o w", sizes={"w": 3})
    assert str(v.shape[0]) == "(N + 1) // 2 - 1"
    f = pl.function(x, v @ np.ones(3))
    a = rng.normal(size=11)
    np.testing.assert_allclose(f(a), np.lib.stride_tricks.sliding_window_view(a, 3)[::2].sum(1))
    with pytest.raises(ValueError, match="no sizes fit"):
        f(np.ones(2))
    with pytest.raises(ValueError, match="axis 'w' is not in the result"):
        pl.view(x, "(o + w) -> o", sizes={"w": 3})


def test_sizes_in_shapes_slices_and_labels(rng):
    N, K = pl.symbols("N K")
    X = pl.placeholder(2 * N * K)
    Y = pl.placeholder((N, K))
    both = X.reshape(2, N, K)[0, 1:N, :] + Y[: N - 1]
    wide = np.broadcast_to(Y[0], (N + 1, K))
    split = pl.einsum("(n k) -> k n", X, sizes={"k": 2 * K})
    f = pl.function((X, Y), (both, wide, split))
    x, y = rng.normal(size=24), rng.normal(size=(4, 3))
    found = pl.evaluate(*f(x, y))
    np.testing.assert_allclose(found[0], x.reshape(2, 4, 3)[0, 1:] + y[:3])
    np.testing.assert_allclose(found[1], np.broadcast_to(y[0], (5, 3)))
    np.testing.assert_allclose(found[2], x.reshape(4, 6).T)
    with pytest.raises(ValueError, match="no sizes fit"):
        f(x[:-1], y)


def test_numbers_of_formulas_after_estimates_were_allowed(rng):
    """`accuracy=` is looked at from its first use on; a formula is not an operator to be asked."""
    with pl.config(accuracy="estimate"):
        assert float(pl.logdet(2 * pl.Identity(3))) == pytest.approx(3 * np.log(2))
    c = pl.placeholder(pl.symbols("N"))
    A, col = pl.Toeplitz(c), np.array([4.0, 1.0, 0.5])
    dense = pl.Toeplitz(col).toarray()
    for ask, want in ((pl.logdet, np.linalg.slogdet(dense)[1]), (pl.trace, np.trace(dense))):
        np.testing.assert_allclose(pl.function(c, ask(A))(col), want)
    for ask in (pl.logdet, pl.trace):
        with pytest.raises(NotImplementedError, match="of placeholders takes no method, rng"):
            ask(A, method="slq", rng=0)


def test_operators_in_formulas_and_kinds_of_placeholders(rng):
    N, R = pl.symbols("N R")
    c, U, b = pl.placeholder(N), pl.placeholder((N, R)), pl.placeholder(N)
    A = pl.Toeplitz(c) + pl.LowRank(U) + pl.Diag(c * c + 9)
    f = pl.function((c, U, b), (pl.solve(A, b), pl.logdet(A), pl.trace(A), pl.diagonal(A)))
    n, r = 7, 2
    col, u, rhs = rng.normal(size=n), rng.normal(size=(n, r)), rng.normal(size=n)
    dense = (pl.Toeplitz(col) + pl.LowRank(u) + pl.Diag(col * col + 9)).toarray()
    x, logdet, trace, diagonal = f(col, u, rhs)
    np.testing.assert_allclose(x, np.linalg.solve(dense, rhs), rtol=1e-9)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(dense)[1], rtol=1e-9)
    np.testing.assert_allclose(trace, np.trace(dense))
    np.testing.assert_allclose(diagonal, np.diagonal(dense))
    T = pl.Toeplitz(np.arange(4.0, 0, -1))
    g = pl.function(b, T @ b + b @ T + (2 * T) @ b)
    v = rng.normal(size=4)
    np.testing.assert_allclose(g(v), 4 * T.toarray() @ v)
    with pytest.raises(ValueError, match=r"N = 4: matmul.*\n.*N = 5: the argument b \(5,\)"):
        g(np.ones(5))
    for made in (pl.Kron(U, U), pl.BlockDiag(U, U), pl.Hankel(c), pl.Circulant(c)):
        h = pl.function((c, U), made)
        plain = {"c": col, "U": u}[("U" if made.shape[0] != N else "c")]
        assert h(col, u).shape == pl.unify(made, (U, (n, r)))[made], plain.shape
    K = pl.function(U, pl.Kron(U, U))
    np.testing.assert_allclose(K(u), np.kron(u, u))
    with pytest.raises(NotImplementedError, match="Tridiagonal of placeholders"):
        pl.Tridiagonal(c, c, c)
    # an operator in a placeholder's place keeps its structure
    P = pl.placeholder((N, N), name="P")
    k = pl.function((P, b), pl.solve(P, b))
    assert "LU" not in str(k(pl.Diag(v), v).explain())
    np.testing.assert_allclose(k(pl.Diag(v), v), np.ones(4))


def test_an_assumption_is_that_of_the_array(rng):
    N = pl.symbols("N")
    S, b = pl.placeholder((N, N), assume_a="pos"), pl.placeholder(N)
    f = pl.function((S, b), S.solve(b))
    a = rng.normal(size=(6, 6))
    spd = a @ a.T + np.eye(6)
    v = rng.normal(size=6)
    np.testing.assert_allclose(f(spd, v), np.linalg.solve(spd, v), rtol=1e-9)
    assert "potrf" in str(f.explain(N=50))
    with pytest.raises(TypeError, match="takes 2 arrays, got 1"):
        f(spd)
    with pytest.raises(ValueError, match="square matrices"):
        pl.placeholder(N, assume_a="pos")
    with pytest.raises(ValueError):
        pl.placeholder((N, N), assume_a="positive")


def test_what_does_not_fit_is_refused():
    N, K = pl.symbols("N K")
    X, y = pl.placeholder((N, K)), pl.placeholder(N)
    f = pl.function((X, y), X.T @ y)
    with pytest.raises(ValueError) as error:
        f(np.ones((8, 3)), np.ones(5))
    assert re.search(r"N = 8: the argument X \(8, 3\), line \d+\n", str(error.value))
    assert re.search(r"N = 5: the argument y \(5,\), line \d+$", str(error.value))
    with pytest.raises(ValueError, match="X .N, K. has 2 dimensions, the array"):
        f(np.ones(8), np.ones(8))
    with pytest.raises(TypeError, match="takes 2 arrays, got 3"):
        f(np.ones((8, 3)), np.ones(8), np.ones(8))
    with pytest.raises(TypeError, match="X .N, K. is of float64, the array of complex128"):
        f(np.ones((8, 3)) + 0j, np.ones(8))
    with pytest.raises(ValueError, match="no sizes fit"):  # a symbol is a size of at least 1
        f(np.ones((0, 3)), np.ones(0))
    M = pl.symbols("M", least=0)
    e = pl.placeholder(M)
    assert float(pl.function(e, e.sum())(np.ones(0))) == 0
    assert f(np.ones((8, 3), int), [1] * 8).dtype == np.float64


def test_no_symbol_broadcasts():
    N, M = pl.symbols("N M")
    x, y = pl.placeholder(N), pl.placeholder(M)
    f = pl.function((x, y), x + y)
    with pytest.raises(ValueError, match="add of x"):
        f(np.ones(1), np.ones(4))
    g = pl.function((x, y), x[:, None] + y)  # a 1 that is written does
    assert g(np.ones(1), np.ones(4)).shape == (1, 4)


def test_placeholders_have_no_value():
    N = pl.symbols("N")
    X = pl.placeholder(N)
    for f in (float, int, bool, complex, np.asarray, np.array, lambda x: x.toarray(), np.fft.fft):
        with pytest.raises((TypeError, NotImplementedError), match="X .N,. has no value|np.fft of"):
            f(X)
    with pytest.raises(TypeError, match="the formula of shape .N,. has no value"):
        float(2 * X)
    for f in (pl.eigsh, pl.cg, pl.estimate_trace):
        with pytest.raises(TypeError):
            f(X, X) if f is pl.cg else f(X)
    with pytest.raises(TypeError, match="not a number yet"):
        len(X)
    with pytest.raises(NotImplementedError, match="np.add.reduce of placeholders"):
        np.add.reduce(X)
    with pytest.raises(TypeError, match="it has no value yet"):
        np.add(X, X, out=np.ones(3))
    with pytest.raises(TypeError, match="it has no value yet"):
        pl.einsum("i,i", X, X, out=np.ones(3))
    with pytest.raises(TypeError, match="write @ for the product"):
        pl.Toeplitz(np.ones(3)) * X


def test_wrong_placeholders_and_functions():
    N = pl.symbols("N")
    with pytest.raises(TypeError, match="made of symbols, not 1.5"):
        pl.placeholder((N, 1.5))
    with pytest.raises(ValueError, match="not negative"):
        pl.placeholder(-3)
    with pytest.raises(TypeError, match="of numbers"):
        pl.placeholder(N, dtype=object)
    x, y = pl.placeholder(N), pl.placeholder(N)
    with pytest.raises(ValueError, match="y .N,. is in the formula, and not among the arguments"):
        pl.function(x, x + y)
    with pytest.raises(TypeError, match="are placeholders, not <formula"):
        pl.function(2 * x, x)
    with pytest.raises(ValueError, match="twice"):
        pl.function((x, x), x)
    with pytest.raises(TypeError, match="a formula of placeholders is due"):
        pl.function(x, np.ones(3))
    with pytest.raises(ValueError, match="no sizes fit"):  # of no arrays at all
        pl.function(x, x[5:] @ x[:-4] + x[:3] @ x[:4])
    with pytest.raises(ValueError, match="no sizes fit"):
        pl.placeholder(3) @ pl.placeholder(4)


def test_sizes_by_name():
    N, K = pl.symbols("N K")
    X, W = pl.placeholder(N), pl.placeholder(K)
    f = pl.function((X, W), pl.einsum("(o + w), w -> o", X, W))
    assert f.sizes(N=20, K=3) == {"N": 20, "K": 3}
    g = f.bind(K=3)
    assert "K = 3" in repr(g)
    assert g(np.ones(20), np.ones(3)).shape == (18,)
    with pytest.raises(ValueError, match=r"K = 3: bind"):
        g(np.ones(20), np.ones(4))
    assert f(np.ones(20), np.ones(4)).shape == (17,)
    with pytest.raises(ValueError, match="leave K open"):
        f.explain(N=20)
    with pytest.raises(ValueError, match="no sizes fit"):
        f.bind(N=3, K=4)
    with pytest.raises(ValueError, match="M is the name of 0 symbols; there are K, N"):
        f.bind(M=4)
    with pytest.raises(TypeError, match="N is an integer"):
        f.bind(N=2.0)
    assert "(18,)" in str(f.explain(N=20, K=3))


def test_memory_and_explain():
    N = pl.symbols("N")
    X, y = pl.placeholder((N, N)), pl.placeholder(N)
    f = pl.function((X, y), (X @ X @ y, np.exp(X).sum(0)))
    m = f.memory(N=100)
    assert m.operands == 8 * (100 * 100 + 100)
    assert m.results == 8 * 200
    assert m.values >= 8 * 100 * 100
    assert m.total == sum(m)
    assert f.memory(N=200).operands == 8 * (200 * 200 + 200)
    assert str(f.explain(N=64)).count("64") > 2


def test_pickles_and_threads(rng):
    N, K = pl.symbols("N K")
    X, y = pl.placeholder((N, K)), pl.placeholder(N)
    f = pl.function((X, y), pl.inv(X.T @ X + np.eye(3)) @ (X.T @ y))
    again = pickle.loads(pickle.dumps(f.bind(K=3)))
    assert repr(again) == repr(f.bind(K=3))

    def one(n):
        local = np.random.default_rng(n)
        a, b = local.normal(size=(n, 3)), local.normal(size=n)
        expected = np.linalg.solve(a.T @ a + np.eye(3), a.T @ b)
        return max(np.abs(g(a, b).toarray() - expected).max() for g in (f, again))

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(one, [3 + n % 17 for n in range(120)])) < 1e-10


HELD = {  # formulas of a placeholder and of what they hold
    "array": lambda v, w: v + w,
    "on the left": lambda v, w: w * v,
    "function": lambda v, w: np.maximum(v, w),
    "einsum": lambda v, w: pl.einsum("i,i->i", w, v),
    "product": lambda v, w: w[None, :] @ v,
    "list": lambda v, w: np.concatenate([w, v]),
    "operator": lambda v, w: pl.Diag(w) @ v,
    "LazyArray": lambda v, w: pl.lazy(w) * v,
    "formula": lambda v, w: (pl.lazy(w) * 2) * v,
    "two formulas": lambda v, w: np.exp(pl.lazy(w) * 0.1) + (pl.lazy(w) + 1) * v,
    "solve": lambda v, w: pl.solve(pl.Diag(v) + pl.Diag(w), w),
    "update": lambda v, w: (pl.LowRank(w[:, None]) + pl.Identity(3)) @ v,
}
NUMBERS = {  # of an array of no dimension
    "times": lambda v, w: v * w,
    "plus": lambda v, w: w + v,
    "clip": lambda v, w: np.clip(v, w, None),
    "operator": lambda v, w: (w * pl.Diag(v)) @ np.ones(3),
    "quotient": lambda v, w: (pl.Toeplitz(v) / w) @ np.ones(3),
    "LazyArray": lambda v, w: pl.lazy(w) * v,
    "formula": lambda v, w: (pl.lazy(w) * 2) * v,
}


def follows(make, w, value):
    """Each result is that of what is held when it is computed: in the first calls, which call the
    formula's functions, and in later ones, which run what was recorded."""
    N = pl.symbols("N")
    v, x = pl.placeholder(N), np.array([1.0, 2.0, 3.0])
    f = pl.function(v, make(v, w))
    for k in range(6):
        w[...] = value(2 * k)
        np.testing.assert_allclose(f(x), make(x, w.copy()), rtol=1e-14)
        late = f(x)
        w[...] = value(2 * k + 1)
        np.testing.assert_allclose(late, make(x, w.copy()), rtol=1e-14)
    again = pickle.loads(pickle.dumps(f))
    want = np.asarray(make(x, w.copy()))
    w[...] = 1e3
    np.testing.assert_allclose(again(x), want, rtol=1e-14)


@pytest.mark.parametrize("held", HELD)
def test_what_a_formula_holds_is_read_when_it_is_computed(held, rng):
    follows(HELD[held], np.ones(3), lambda k: 1 + k + rng.random(3))


@pytest.mark.parametrize("held", NUMBERS)
def test_numbers_that_a_formula_holds_are_read_when_it_is_computed(held, rng):
    follows(NUMBERS[held], np.array(1.0), lambda k: 1 + k + rng.random())


def test_what_was_computed_before_is_computed_anew():
    N = pl.symbols("N")
    v, w, c = pl.placeholder(N), np.ones(3), np.array(2.0)
    L, C = pl.lazy(w) + 1, pl.lazy(c)
    np.testing.assert_array_equal(np.asarray(L) * np.asarray(C), [4, 4, 4])
    f = pl.function(v, v * L * C)
    for k in range(4):
        w[:], c[...] = k, 3 * k
        np.testing.assert_array_equal(f(np.ones(3)), 3 * k * (k + 1) * np.ones(3))
    np.testing.assert_array_equal(L, [2, 2, 2])  # itself keeps its value


def test_values_follow_the_arrays_of_each_call(rng):
    N = pl.symbols("N")
    X = pl.placeholder((N, N))
    f = pl.function(X, np.exp(X) @ X)
    for _ in range(3):
        a = rng.normal(size=(4, 4))
        np.testing.assert_allclose(f(a), np.exp(a) @ a, rtol=1e-12)
    assert np.allclose(pl.grad(lambda x: np.sum(f(x)))(np.eye(3)).shape, (3, 3))


def test_the_same_result_as_an_input():
    N = pl.symbols("N")
    X = pl.placeholder(N)
    f = pl.function(X, (X, X + 0))
    a = np.arange(3.0)
    one, other = f(a)
    np.testing.assert_array_equal(one, a)
    np.testing.assert_array_equal(other, a)


def test_a_call_of_sizes_that_were_met_is_the_same_as_the_first(rng):
    N, K = pl.symbols("N K")
    X, y = pl.placeholder((N, K)), pl.placeholder(N)
    f = pl.function((X, y), (X.T @ y, np.exp(y), X))
    x, v = rng.normal(size=(17, 16)), rng.normal(size=17)
    wide = rng.normal(size=(16, 34)).T[::2]
    for a in (x, x, x, wide, wide.astype(">f8"), pl.lazy(x), x.astype(np.float32), x.tolist()):
        for b in (v, pl.lazy(v) + 0.0, v.astype("i4")):
            made = f(a, b)
            assert isinstance(made, tuple) and all(isinstance(m, pl.LazyArray) for m in made)
            one, other = np.asarray(a, float), np.asarray(b, float)
            np.testing.assert_allclose(made[0], one.T @ other, atol=1e-12)
            np.testing.assert_allclose(made[1], np.exp(other))
            np.testing.assert_array_equal(made[2], one)
    for wrong, error in (((x,), TypeError), ((x, v, v), TypeError), ((x, v + 1j), TypeError)):
        with pytest.raises(error):
            f(*wrong)
    with pytest.raises(ValueError, match="no sizes fit"):
        f(x, v[1:])
    with pytest.raises(ValueError, match="dimensions"):
        f(v, v)


def test_what_is_given_to_the_core_is_looked_at():
    leaf = pl.lazy(np.ones(2))
    for wrong in (((),), ({}, ()), (({}, []), ()), (({}, ()), [])):
        with pytest.raises(TypeError):
            pl._core._lazy_template(*wrong)
    double = (np.dtype(float),)
    for kept in (1, (1, 2), ((1,), 0), ((), 1, 2)):
        with pytest.raises(TypeError):
            pl._core._lazy_template(({((2,),): kept}, double), (leaf,))
    for place in (1, -1, 2**70):
        with pytest.raises((IndexError, OverflowError)):
            pl._core._lazy_template(({((2,),): ((), place)}, double), (leaf,))
    assert pl._core._lazy_template(({((2,),): ((), 0)}, double), (leaf,)) is leaf
    assert pl._core._lazy_template(({}, double), (leaf,)) is None
