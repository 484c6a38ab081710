"""Faults measured in other libraries, each as a test of what is right here: structure, memory,
shapes, NumPy and SciPy. What concerns numbers is in test_peers_faults.py.

The comment names the library and its fault; a peer's own version may have mended it since."""

import copy
import pickle

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import pylinop as pl

# -- structure -------------------------------------------------------------------------------------


def test_structure_is_kept_by_products_and_sums():
    # CoLA: Diag @ Diag is a Product; linear_operator, linox: Kron @ Kron, sums of Toeplitz and
    # BlockDiag are not merged
    d, k = pl.Diag([1.0, 2.0]), pl.Kron(np.ones((2, 2)), np.ones((3, 3)))
    t, b = pl.Toeplitz([2.0, 1.0]), pl.BlockDiag(np.eye(2), np.eye(3))
    for E, kind in (
        (d @ d, pl.Diag),
        (d + d, pl.Diag),
        (pl.inv(d), pl.Diag),
        (k @ k, pl.Kron),
        (k.T, pl.Kron),
        (pl.inv(k), pl.Kron),
        (t + t, pl.Toeplitz),
        (b + b, pl.BlockDiag),
        (b @ b, pl.BlockDiag),
        (pl.Circulant([1.0, 2.0]) @ pl.Circulant([1.0, 2.0]), pl.Circulant),
        (pl.Permutation([1, 0]) @ pl.Permutation([1, 0]), pl.Permutation),
        (pl.LowRank(np.ones((2, 1))) + pl.LowRank(np.ones((2, 1))), pl.LowRank),
        (pl.LowRank(np.ones((2, 1))) + d, pl.LowRankUpdate),
        (pl.Kron(d, d), pl.Kron),
    ):
        assert type(E) is kind, f"{type(E).__name__}, not {kind.__name__}"


def test_identities_and_zeros_vanish_from_products(rng):
    # linear_operator: K @ I and K @ 0 are not simplified; SciPy: they stay lazy composites
    K = pl.Kron(rng.standard_normal((5, 5)), rng.standard_normal((5, 5)))
    x = rng.standard_normal(25)

    def steps(A):
        return A.explain().split("steps")[1].splitlines()[0]

    for E in (K @ pl.Identity(25), pl.Identity(25) @ K, K @ pl.Identity(25) @ pl.Identity(25)):
        assert steps(E) == steps(K)
        np.testing.assert_array_equal(E @ x, K @ x)
    np.testing.assert_array_equal((K @ pl.Zeros((25, 25))) @ np.full(25, np.nan), np.zeros(25))


def test_every_pair_of_kinds_adds_and_multiplies():
    # CoLA: `+` and kron raise AmbiguousLookupError for every pair
    kinds = [
        pl.Dense(np.full((4, 4), 0.5)),
        pl.Identity(4),
        pl.Zeros((4, 4)),
        pl.Diag(np.arange(4.0)),
        pl.Kron(np.eye(2), np.ones((2, 2))),
        pl.Toeplitz(np.arange(4.0)),
        pl.Circulant(np.arange(4.0)),
        pl.LowRank(np.ones((4, 1))),
        pl.BlockDiag(np.eye(1), np.ones((3, 3))),
        pl.Sparse(sp.eye_array(4, k=1)),
        pl.Permutation([3, 1, 0, 2]),
        pl.MatVec((4, 4), lambda x: 2 * x, rmatvec=lambda x: 2 * x, dtype=float),
        sla.aslinearoperator(np.eye(4)),
    ]
    for A in kinds:
        for B in kinds:
            if isinstance(A, pl.LinearOperator):
                a, b = (o @ np.eye(4) for o in (A, B))
                np.testing.assert_allclose((A + B) @ np.eye(4), a + b, atol=1e-12)
                np.testing.assert_allclose((A @ B) @ np.eye(4), a @ b, atol=1e-12)


def test_kron_of_sparse_factors_stays_sparse():
    # TensorFlow: Kronecker products of sparse factors make them dense
    n = 10_000
    s = sp.eye_array(n, k=1, format="csr")
    K = pl.Kron(pl.Sparse(s), pl.Sparse(s[:50, :50]))
    with pl.config(memory_limit=10**8):
        x = np.arange(50.0 * n)
        np.testing.assert_array_equal(K @ x, sp.kron(s, s[:50, :50], format="csr") @ x)
        assert K.nbytes < 10**6


# -- memory ----------------------------------------------------------------------------------------


def big_ones():
    n = 100_000
    d, u = np.arange(1.0, n + 1), np.ones((n, 2))
    c = np.zeros(n)
    c[:2] = 4.0, 1.0
    band = np.ones((3, n))
    band[1] = 4
    yield "Diag", pl.Diag(d), True
    yield "product of diagonals", pl.Diag(d) @ pl.Diag(d), True
    yield "Kron", pl.Kron(np.eye(100) + 0.1, np.eye(1000) + 0.1), True
    yield "Diag + LowRank", pl.Diag(d) + pl.LowRank(u), True
    yield "Toeplitz", pl.Toeplitz(c), False
    yield "Circulant", pl.Circulant(c), True
    yield "Banded", pl.Banded((1, 1), band), True
    yield "BlockDiag", pl.BlockDiag(*[np.eye(100) + 0.1] * 1000), True
    yield "KronSum", pl.KronSum(np.eye(100), np.eye(1000)), False
    yield "selected Toeplitz", pl.Toeplitz(c)[::2, ::2] + pl.Identity(n // 2), False


@pytest.mark.parametrize(("what", "A", "solves"), [*big_ones()], ids=lambda v: str(v)[:20])
def test_no_hidden_square_array(what, A, solves):
    # CoLA: diag(D @ D) builds the product, a log-determinant wanted 80 GB; linear_operator: Kron
    # solves ran out of memory unless told
    n = A.shape[1]
    x = np.arange(n) % 3.0
    with pl.config(memory_limit=10**8):
        y = A @ x
        assert np.isfinite(y).all() and np.isfinite(A.T @ x).all()
        if solves:
            np.testing.assert_allclose(pl.solve(A, y), x, atol=1e-6)
        if "selected" not in what:
            assert np.isfinite(A.trace()) and A.diagonal().shape == (n,)
        with pytest.raises(pl.MaterializationError):
            np.sin(A)


def test_diagonal_of_a_product_of_diagonals_is_linear():
    # CoLA: 0.9 s at n = 10,000, by forming the product
    d = np.arange(1.0, 10**6)
    D = pl.Diag(d)
    with pl.config(memory_limit=10**8):
        np.testing.assert_array_equal((D @ D).diagonal(), d * d)
        assert (D @ D).trace() == pytest.approx((d * d).sum())


def test_trace_of_a_product_with_a_diagonal_is_linear(rng):
    # CoLA: a trace that forms the product
    n = 100_000
    d = rng.standard_normal(n)
    D, S = pl.Diag(d), pl.Sparse(sp.diags_array([d, d[1:]], offsets=[0, 1], format="csr"))
    p = rng.permutation(n)
    with pl.config(memory_limit=10**8):
        for A, want in (
            (D @ S, d @ d),
            (S @ D, d @ d),
            (pl.Permutation(p) @ D, d[p == np.arange(n)].sum()),
            (D @ pl.Toeplitz(np.append(2.0, np.zeros(n - 1))), 2 * d.sum()),
        ):
            np.testing.assert_allclose(A.trace(), want, rtol=1e-10, atol=1e-10)


def test_diagonal_of_a_product_of_sparse_factors_is_linear():
    # linear_operator, CoLA: likewise
    n = 100_000
    S = pl.Sparse(sp.eye_array(n, k=1, format="csr"))
    with pl.config(memory_limit=10**8):
        np.testing.assert_array_equal((S.T @ S).diagonal(), np.append(0.0, np.ones(n - 1)))


def test_an_unasked_dense_form_says_so():
    # linear_operator, SciPy: dense forms are made without a word
    with pytest.warns(pl.MaterializationWarning):
        np.sin(pl.Toeplitz(np.ones(2000)))


# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [0, 1, 3, 5])
def test_vectors_of_a_wrong_length_are_refused(m):
    # pylops, KeOps, d * x by hand: a vector of one element is broadcast without an error
    for A in (
        pl.Diag(np.ones(4)),
        pl.Identity(4),
        pl.Zeros((4, 4)),
        pl.Toeplitz(np.ones(4)),
        pl.Kron(np.eye(2), np.eye(2)),
        pl.LowRank(np.ones((4, 1))),
        pl.Diag(np.ones(4)) + pl.Identity(4),
        pl.MatVec((4, 4), lambda x: x, dtype=float),
    ):
        for use in (
            lambda: A @ np.ones(m),
            lambda: A @ np.ones((m, 2)),
            lambda: A.matvec(np.ones(m)),
            lambda: np.ones(m) @ A,
            lambda: pl.solve(A, np.ones(m)),
        ):
            with pytest.raises(ValueError):
                use()


def test_joined_blocks_need_the_other_axis_to_agree():
    # CoLA: Concatenated compares the axis that is joined, and products along axis 1 fail
    a, b = np.ones((2, 3)), np.full((2, 2), 2.0)
    np.testing.assert_array_equal(pl.hstack([a, b]) @ np.arange(5.0), np.hstack([a, b]) @ range(5))
    np.testing.assert_array_equal(pl.vstack([a.T, b]) @ [1, 2], np.vstack([a.T, b]) @ [1, 2])
    for join in (pl.vstack, np.vstack):
        with pytest.raises(ValueError):
            join([pl.Dense(a), pl.Dense(b)])
    for join in (pl.hstack, np.hstack):
        with pytest.raises(ValueError):
            join([pl.Dense(a), pl.Dense(b.repeat(2, 0))])


def test_rows_columns_and_elements_of_matrices_that_are_not_square(rng):
    # CoLA: A[i] of a non-square operator raises; gpytorch: block sizes taken for block counts
    a, b = rng.standard_normal((2, 3)), rng.standard_normal((3, 5))
    for A in (
        pl.Kron(a, b),
        pl.BlockDiag(a, b, a),
        pl.Dense(a) @ pl.Dense(b),
        pl.LowRank(a, b.T),
    ):
        dense = A.toarray()
        for i in (0, 1, -1, len(dense) - 1):
            np.testing.assert_allclose(A[i], dense[i], atol=1e-14)
            np.testing.assert_allclose(A[i, 2], dense[i, 2], atol=1e-14)
            np.testing.assert_allclose(A[:, i % dense.shape[1]], dense[:, i % dense.shape[1]])
        np.testing.assert_allclose(A[[1, 0, 1]].toarray(), dense[[1, 0, 1]], atol=1e-14)
        np.testing.assert_allclose(A[1:, ::-2].toarray(), dense[1:, ::-2], atol=1e-14)
        with pytest.raises(IndexError):
            A[len(dense)]


def test_batches_are_taken(rng):
    # CoLA: data of shape (3, 2, 2) are refused; linear_operator: batches are expanded
    a, b = rng.standard_normal((3, 2, 2)), rng.standard_normal((2, 2))
    K = pl.Kron(a, b)
    np.testing.assert_allclose(K.toarray(), [np.kron(s, b) for s in a])
    np.testing.assert_allclose(pl.det(pl.Dense(a)), np.linalg.det(a))
    np.testing.assert_allclose(pl.solve(K, np.ones(4)), np.linalg.solve(K.toarray(), np.ones(4)))
    assert (pl.Diag(np.ones((0, 4))) @ np.ones(4)).shape == (0, 4)


# -- freshness -------------------------------------------------------------------------------------


def test_writes_in_place_are_seen(rng):
    # linear_operator, pylops: cached factors and spectra outlive a write into the operand
    n = 300
    a = np.eye(n) * 4 + rng.standard_normal((n, n)) / n
    c = np.exp(-np.arange(n) / 3.0)
    x = rng.standard_normal(n)
    A, T, P = pl.Dense(a), pl.Toeplitz(c), pl.Dense(a @ a.T, "pos")
    E = A @ A + 2 * pl.Identity(n)
    for _ in range(2):
        np.testing.assert_allclose(pl.solve(A, x), np.linalg.solve(a, x), rtol=1e-10)
        np.testing.assert_allclose(T @ x, sl.toeplitz(c) @ x, atol=1e-12)
        np.testing.assert_allclose(pl.logdet(A), np.linalg.slogdet(a)[1], rtol=1e-12)
        np.testing.assert_allclose(E @ x, a @ (a @ x) + 2 * x, rtol=1e-10)
        np.testing.assert_allclose(P @ pl.solve(P, x), x, atol=1e-9)
        a[0, 1] += 3
        c[1] *= 0.5
        P.a[0, 0] += 100


# -- NumPy and SciPy -------------------------------------------------------------------------------


def test_asarray_is_the_matrix():
    # SciPy, pylops, lazylinop, CoLA, linox, linear_operator: a 0-d object array
    for A in (pl.Diag([1.0, 2.0]), pl.Identity(2) + pl.Diag([0.0, 1.0])):
        got = np.asarray(A)
        assert got.dtype == float and got.shape == (2, 2)
        np.testing.assert_array_equal(got, np.diag([1.0, 2.0]))


@pytest.mark.parametrize(
    "name",
    "inv det slogdet trace norm cond matrix_rank pinv eigvalsh eigvals qr svd lstsq solve "
    "cholesky matrix_power".split(),
)
def test_numpy_linalg_takes_operators(name):
    # SciPy and all others: np.linalg.inv(op) raises; linear_operator: most of torch.linalg missing
    f = getattr(np.linalg, name)
    K = pl.Kron(np.array([[3.0, 1.0], [1.0, 2.0]]), np.diag([1.0, 4.0]))
    more = {"lstsq": (np.ones(4),), "solve": (np.ones(4),), "matrix_power": (3,)}.get(name, ())
    got, want = f(K, *more), f(K.toarray(), *more)
    if name == "eigvals":
        got, want = np.sort(got), np.sort(want)  # they have no order
    if name == "svd":  # signs are free
        got, want = (got.S, (got.U.toarray() * got.S) @ got.Vh.toarray()), (want.S, K.toarray())
    for g, w in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
        np.testing.assert_allclose(np.asarray(g), w, atol=1e-12)


def test_array_on_the_left(rng):
    # pylops, linear_operator: ndarray @ op and ndarray + op fail; SciPy: np.matmul(a, op) raises
    a, d = rng.standard_normal((3, 3)), rng.standard_normal(3)
    D = pl.Diag(d)
    np.testing.assert_allclose(a @ D, a * d)
    np.testing.assert_allclose(np.matmul(a, D), a * d)
    np.testing.assert_allclose((a + D).toarray(), a + np.diag(d))
    np.testing.assert_allclose((a - D).toarray(), a - np.diag(d))
    np.testing.assert_allclose((D - a).toarray(), np.diag(d) - a)
    np.testing.assert_allclose((-D).diagonal(), -d)
    np.testing.assert_allclose((D**2).diagonal(), d * d)


def test_sparse_on_either_side_is_no_object_array():
    # SciPy: op @ sparse is an object array without an error
    s = sp.csr_array(np.array([[0.0, 2.0], [1.0, 0.0]]))
    D = pl.Diag([1.0, 3.0])
    for got, want in (
        (D @ s, [[0, 2], [3, 0]]),
        (s @ D, [[0, 6], [1, 0]]),
        (D + s, [[1, 2], [1, 3]]),
        (s + D, [[1, 2], [1, 3]]),
        (pl.Sparse(s) @ s, [[2, 0], [0, 2]]),
    ):
        dense = got.toarray()
        assert dense.dtype == float
        np.testing.assert_array_equal(dense, want)


def test_block_diag_of_scipy_is_no_object_array():
    # scipy.linalg.block_diag: an object array of operators without an error
    got = sl.block_diag(pl.Diag([1.0, 2.0]), pl.Diag([3.0]))
    assert got.dtype == float
    np.testing.assert_array_equal(got, np.diag([1.0, 2.0, 3.0]))


def test_matmat_of_wrapped_objects_is_used():
    # SciPy: aslinearoperator ignores an object's matmat and goes column by column
    class Thing:
        shape, dtype = (3, 3), np.dtype(float)
        calls = 0

        def matvec(self, x):
            raise AssertionError("column by column")

        def matmat(self, X):
            Thing.calls += 1
            return 2 * X

    np.testing.assert_array_equal(pl.aslinearoperator(Thing()) @ np.eye(3), 2 * np.eye(3))
    assert Thing.calls == 1


def test_scipy_takes_our_operators_as_its_own():
    # linear_operator, CoLA: "type not understood"; pylops: isinstance is False, expm_multiply fails
    A = pl.Diag([-1.0, -2.0]) @ pl.Identity(2)
    assert sla.aslinearoperator(A) is A and isinstance(A, sla.LinearOperator)
    got = sla.expm_multiply(A, np.ones(2), traceA=A.trace())
    np.testing.assert_allclose(got, np.exp([-1.0, -2.0]))
    assert sla.cg(-A, np.ones(2))[1] == 0


class Slotted(pl.LinearOperator):
    """A subclass that keeps a number in a slot."""

    __slots__ = ("c",)

    def __init__(self, c):
        super().__init__(float, (2, 2))
        self.c = c

    def _matvec(self, x):
        return self.c * x


def test_slots_of_subclasses_are_pickled():
    # SciPy 1.18: __getstate__ drops the slots of subclasses
    for A in (pickle.loads(pickle.dumps(Slotted(3.0))), copy.deepcopy(Slotted(3.0))):
        assert A.c == 3
        np.testing.assert_array_equal(A @ np.ones(2), [3, 3])


def test_operators_of_operators_are_pickled():
    # CoLA: parametric classes cannot be pickled; lazylinop: closures cannot
    A = pl.Kron(pl.Diag([1.0, 2.0]), pl.Toeplitz([2.0, 1.0]))
    A = pl.BlockDiag(A, pl.inv(A)) + pl.LowRank(np.ones((8, 1)))
    B = pickle.loads(pickle.dumps(A))
    assert type(B) is type(A)
    np.testing.assert_array_equal(B.toarray(), A.toarray())


def test_long_sums_are_no_problem():
    # SciPy, CoLA, pylops: RecursionError in long expressions
    A = E = pl.Diag([1.0, 2.0]) @ pl.Sparse(sp.eye_array(2))
    for _ in range(3000):
        E = E + A
    np.testing.assert_array_equal(E @ np.ones(2), [3001, 6002])
