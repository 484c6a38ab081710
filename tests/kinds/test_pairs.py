"""Every pair of kinds under @, + and - against dense NumPy; which close, and what `args` hold."""

import numpy as np
import pytest
import ref
from samples import leaf, values

import pylinop as pl

PAIRS = [(p, q) for p in ref.KINDS for q in ref.KINDS]
pairs = pytest.mark.parametrize("left,right", PAIRS)
DTYPES = [
    ("complex128", "complex128"),
    ("float32", "complex64"),
    ("float64", "float32"),
    ("int8", "int8"),
    ("uint8", "int64"),
]


def couples(left, right, rng, shapes, dtypes=DTYPES):
    for (m, k), (p, n) in shapes:
        for s, t in dtypes:
            a, b = leaf(left, rng, m, k, s), leaf(right, rng, p, n, t)
            if a and b:
                yield a, b


def agree(e, rng):
    """The expression of description `e` does all that a matrix does."""
    A, a, tol = ref.build(e), ref.dense(e), ref.tolerance(e)
    m, n = a.shape
    dt = ref.dtype(e)
    assert A.shape == (m, n) and A.dtype == dt
    for shape in ((n,), (n, 2)):
        x = values(rng, shape, dt)
        ref.check(A @ x, a @ x, dt, tol @ np.abs(x))
    y = values(rng, (2, m), dt)
    ref.check(y @ A, y @ a, dt, np.abs(y) @ tol)
    ref.check(A.rmatmat(y.T), ref.adj(a) @ y.T, dt, tol.T @ np.abs(y.T))
    ref.check(A.T @ y[0], a.T @ y[0], dt, tol.T @ np.abs(y[0]))
    ref.check(A.H @ y[0], ref.adj(a) @ y[0], dt, tol.T @ np.abs(y[0]))
    ref.check(A.toarray(), a, dt, tol)
    ref.check(A.H.toarray(), ref.adj(a), dt, tol.T)
    for k in (0, 1, -2):
        ref.check(A.diagonal(k), np.diagonal(a, k), dt, np.diagonal(tol, k))
    ref.check(A.trace(), np.trace(a), None, (1 + m) * np.trace(tol))
    ref.check(A[m - 1, 0], a[m - 1, 0], dt, tol[m - 1, 0])


@pytest.mark.sweep(4)
@pairs
def test_products(left, right, rng):
    shapes = [((4, 6), (6, 5)), ((6, 6), (6, 4)), ((4, 6), (6, 6)), ((6, 6), (6, 6))]
    tried = 0
    for a, b in couples(left, right, rng, shapes):
        agree(("Product", a, b), rng)
        tried += 1
    assert tried >= len(DTYPES)


@pytest.mark.sweep(4)
@pairs
def test_sums(left, right, rng):
    shapes = [((4, 6), (4, 6)), ((6, 6), (6, 6))]
    tried = 0
    for a, b in couples(left, right, rng, shapes):
        agree(("Sum", a, b), rng)
        agree(("Sub", a, b), rng)
        tried += 1
    assert tried >= len(DTYPES)


@pytest.mark.sweep(4)
@pairs
def test_turned_pairs(left, right, rng):
    """Transposes and adjoints inside; .T and .H swapped anywhere would show, all is complex."""
    for a, b in couples(
        left, right, rng, [((4, 6), (4, 6)), ((6, 6), (6, 6))], [("complex128", "complex128")]
    ):
        for head in ("T", "H"):
            agree(("Product", (head, a), b), rng)
            agree(("Product", a, (head, b)), rng)
            agree((head, ("Product", (head, a), b)), rng)
            agree((head, ("Sum", ("Scaled", 0.5 - 2j, a), b)), rng)
        agree(("Sub", ("Conj", a), ("Scaled", 2, b)), rng)
        agree(("Kron", a, b), rng)


@pairs
def test_pairs_that_do_not_fit_raise(left, right, rng):
    a, b = (ref.build(leaf(k, rng, 6, 6, "float64")) for k in (left, right))
    c = ref.build(leaf(right, rng, 5, 5, "float64"))
    for bad in (lambda: a @ c, lambda: c @ a, lambda: a + c, lambda: a - c):
        with pytest.raises(ValueError, match=r"6.*5|5.*6"):
            bad()
    assert (a @ b).shape == (6, 6)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("left,right", [(p, q) for p, q in PAIRS if "Sparse" not in p + q])
def test_batched_pairs(left, right, rng):
    for lb, rb in (((3,), ()), ((2, 1), (3,)), ((), (2,)), ((0,), (0,))):
        a, b = leaf(left, rng, 4, 4, "complex128", lb), leaf(right, rng, 4, 4, "complex128", rb)
        for head in ("Product", "Sum", "Sub", "Kron"):
            e = (head, a, b)
            A, w, tol = ref.build(e), ref.dense(e), ref.tolerance(e)
            assert A.shape == w.shape
            ref.check(A.toarray(), w, None, tol)
            x = values(rng, (w.shape[-1], 2), "complex128")
            ref.check(A @ x, w @ x, None, tol @ np.abs(x))
            ref.check(A.H.toarray(), ref.adj(w), None, np.swapaxes(tol, -1, -2))


@pytest.mark.parametrize("kind", ref.KINDS)
def test_powers_scales_signs(kind, rng):
    for dtype in ("complex128", "float32", "int8"):
        d = leaf(kind, rng, 6, 6, dtype)
        for p in range(5):
            agree(("Power", d, p), rng)
        for c in (2, 3.5, 1 - 2j, np.float32(2), True, 0):
            if isinstance(c, (int, np.integer)) or dtype != "int8":
                agree(("Scaled", c, d), rng)
        agree(("Neg", d), rng)
        agree(("Neg", ("Scaled", 2, ("Neg", d))), rng)
        agree(("Sum", d, d), rng)
        agree(("Sub", d, d), rng)


@pytest.mark.parametrize("kind", [k for k in ref.KINDS if k not in ("Zeros", "LowRank", "Full")])
@pytest.mark.parametrize("dtype", ref.FLOATS)
def test_inverses(kind, dtype, rng):
    d = leaf(kind, rng, 6, 6, dtype, invertible=True)
    for e in (
        ("Inverse", d),
        ("Product", ("Inverse", d), d),
        ("H", ("Inverse", d)),
        ("Inverse", ("T", d)),
        ("Inverse", ("Scaled", 2, d)),
        ("Inverse", ("Inverse", d)),
    ):
        agree(e, rng)
    for A in (pl.inv(ref.build(d)), ref.build(d)):
        assert A.shape == (6, 6) and pl.inv(A).shape == (6, 6)


# ---- closing rules: no computing, `args` are the very objects ----


@pytest.fixture
def things(rng):
    def v(*shape):
        return values(rng, shape, "complex128")

    return {
        "D": pl.Diag(v(6)),
        "E": pl.Diag(v(6)),
        "I": pl.Identity(6),
        "Z": pl.Zeros((6, 6)),
        "A": pl.Dense(v(6, 6)),
        "B": pl.Dense(v(6, 6)),
        "K": pl.Kron(v(2, 3), v(3, 2)),
        "L": pl.Kron(v(3, 2), v(2, 3)),
        "S": pl.Toeplitz(v(6), v(6)),
        "T": pl.Toeplitz(v(6)),
        "M": ref.build(("MatVec", v(6, 6), True)),
        "N": ref.build(("MatVec", v(6, 6), False)),
    }


def test_diagonals_close(things):
    D, E, I, Z = (things[k] for k in "DEIZ")
    for A in (
        D @ E,
        D @ D,
        D + E,
        D - E,
        D @ I,
        I @ D,
        D + I,
        I + D,
        D - I,
        I - D,
        D + Z,
        Z + D,
        D - Z,
        2 * D,
        D * 2j,
        -D,
        D / 4,
        D.T,
        D.H,
        D.conj(),
        D.T.H,
        pl.inv(D),
        (D @ E) @ D,
        2 * (D @ E) - D,
    ):
        assert type(A) is pl.Diag, A
    for A in (D @ Z, Z @ D):
        assert type(A) is pl.Zeros
    for A, p, q in (
        (D @ E, D, E),
        (D + E, D, E),
        (D @ I, D, I),
        (I + D, I, D),
        (D @ D, D, D),
        (D + D, D, D),
    ):
        assert len(A.args) == 2 and A.args[0] is p and A.args[1] is q
    A = 2 * D
    assert len(A.args) == 2 and A.args[0] is D and A.args[1] == 2


def test_kronecker_products_close(things):
    K, L = things["K"], things["L"]
    for A in (K @ L, L @ K, K.T, K.H, K.conj(), (K @ L) @ K, K.T @ L.T):
        assert type(A) is pl.Kron, A
    assert (K @ L).args[0] is K and (K @ L).args[1] is L
    np.testing.assert_allclose((K @ L).toarray(), K.toarray() @ L.toarray())
    np.testing.assert_allclose((K.H @ L.H).toarray(), K.toarray().conj().T @ L.toarray().conj().T)
    odd = pl.Kron(np.ones((3, 2)), np.ones((2, 3)), np.ones((1, 1)))
    np.testing.assert_allclose((K @ odd).toarray(), K.toarray() @ odd.toarray())
    mixed = pl.Kron(np.ones((2, 2)), np.ones((3, 3)))
    assert type(K @ mixed) is pl.Product  # inner sizes 3, 2 and 2, 3
    np.testing.assert_allclose((K @ mixed).toarray(), K.toarray() @ mixed.toarray())
    a, b = np.ones((2, 2)), np.eye(3)
    C = pl.Kron(a, b)
    assert len(C.args) == 2 and all(isinstance(f, pl.Dense) for f in C.args)
    F = pl.Kron(things["A"], things["D"])
    assert F.args[0] is things["A"] and F.args[1] is things["D"]


def test_toeplitz_sums_close(things):
    S, T = things["S"], things["T"]
    for A in (S + T, S - T, S + S, (S + T) + S, 2 * S, -S):
        assert type(A) is pl.Toeplitz, A
    assert (S + T).args[0] is S and (S + T).args[1] is T
    np.testing.assert_allclose((S - T).toarray(), S.toarray() - T.toarray())
    np.testing.assert_allclose((S + T)[0, 0], S[0, 0] + T[0, 0])


def test_double_turns_and_inverses_cancel(things):
    for name in "DAKST":
        A = things[name]
        assert A.T.T is A and A.H.H is A and A.conj().conj() is A
        assert A.transpose().transpose() is A and A.adjoint().adjoint() is A
    for name in "DASKT":
        B = things[name]
        if B.shape[0] == B.shape[1] and name != "K":
            assert pl.inv(pl.inv(B)) is B
    A, B = things["A"], things["B"]
    assert type(A.T) is pl.Transpose and type(A.H) is pl.Adjoint and type(A.conj()) is pl.Conj
    assert A.T.args == (A,) and A.T.args[0] is A
    assert type(A.T.H) is type(A.H.T) is pl.Conj and A.T.H.args[0] is A
    assert type(A.T.conj()) is pl.Adjoint and type(A.conj().H) is pl.Transpose
    assert type(pl.inv(A)) is pl.Inverse and pl.inv(A).args[0] is A


def test_callables_never_close(things):
    M, N, D, I, Z = (things[k] for k in "MNDIZ")
    for A, kind in (
        (M + M, pl.Sum),
        (M + N, pl.Sum),
        (M - M, pl.Sum),
        (M @ N, pl.Product),
        (M @ I, pl.Product),
        (I @ M, pl.Product),
        (M + Z, pl.Sum),
        (M @ D, pl.Product),
        (D @ M, pl.Product),
        (2 * M, pl.Scaled),
        (-M, pl.Scaled),
        (M**2, pl.Power),
        (pl.inv(M), pl.Inverse),
    ):
        assert type(A) is kind, (A, kind)


def test_args_are_the_very_objects(things):
    A, B, M = things["A"], things["B"], things["M"]
    for X, Y in ((A, B), (A, A), (A, M), (M, M)):
        for Z in (X + Y, X @ Y):
            assert len(Z.args) == 2 and Z.args[0] is X and Z.args[1] is Y
    assert type(A + A) is pl.Sum and type(A @ B) is pl.Product and type(A - A) is pl.Sum
    assert (A - B).args[0] is A
    assert (A**3).args == (A, 3) and type(A**3) is pl.Power
    assert ((A * 3) / 3).args[0] is A and type((A * 3) / 3) is pl.Scaled
    assert (2 * (3 * A)).args == (A, 6)
    assert (2j * A).args[0] is A and (2j * A).args[1] == 2j
    assert things["D"].args == () and things["S"].args == () and M.args == ()
    a = np.ones((2, 2))
    assert len(pl.Dense(a).args) == 1 and pl.Dense(a).args[0] is a
    B = A + B  # nothing is flattened
    C = B + A
    assert C.args[0] is B and len(C.args) == 2


def test_structural_zeros_win(rng):
    a = np.array([[np.nan, 1.0], [np.inf, 2.0]])
    A = pl.Dense(a)
    x = np.ones(2)
    np.testing.assert_array_equal((pl.Zeros((2, 2)) @ A) @ x, np.zeros(2))
    np.testing.assert_array_equal((A @ pl.Zeros((2, 2))).toarray(), np.zeros((2, 2)))
