"""What goes wrong says what, where, and with which numbers; and leaves everything usable."""

import inspect
import os
import pickle
import traceback
import warnings

import numpy as np
import pytest
import ref
import scipy.sparse as sp
from samples import leaf, values

import pylinop as pl


def text(error):
    return "\n".join([str(error.value)] + getattr(error.value, "__notes__", []))


def line():
    return inspect.currentframe().f_back.f_lineno


def here(number):
    return f"{os.path.basename(__file__)}:{number}"


# ---- both lines are named ----


def test_both_lines_are_named(rng):
    a = values(rng, (3, 3), "float64")
    built = line() + 1
    E = pl.Dense(a) @ (pl.Identity(3) + pl.inv(pl.Zeros((3, 3))))
    with pytest.raises(np.linalg.LinAlgError) as error:
        needed = line() + 1
        E @ np.ones(3)
    assert here(built) in text(error)
    assert "3" in text(error) and "singular" in text(error).lower()
    shown = "".join(traceback.format_exception(error.value))
    assert here(built) in shown and f'{os.path.basename(__file__)}", line {needed}' in shown


def test_the_offending_expression_is_named_not_the_whole():
    good = line() + 1
    A = pl.Dense(np.eye(3)) + pl.Identity(3)
    bad = line() + 1
    B = pl.inv(pl.Diag([1.0, 0.0, 2.0]))
    whole = line() + 1
    C = A @ B
    with pytest.raises(np.linalg.LinAlgError) as error:
        C @ np.ones(3)
    assert here(bad) in text(error)
    assert here(good) not in text(error) and whole > bad


def test_shape_errors_name_where_the_operator_came_from():
    built = line() + 1
    A = pl.Dense(np.ones((3, 4))) @ pl.Dense(np.ones((4, 5)))
    with pytest.raises(ValueError) as error:
        A @ np.ones(6)
    message = text(error)
    assert "3" in message and "5" in message and "6" in message and here(built) in message
    with pytest.raises(ValueError) as error:
        A + pl.Identity(4)
    assert "(3, 5)" in text(error) and "(4, 4)" in text(error)
    with pytest.raises(ValueError) as error:
        A @ A
    assert "(3, 5)" in text(error)


def test_lines_inside_pylinop_are_skipped():
    built = line() + 1
    B = pl.inv(pl.aslinearoperator(np.zeros((3, 3))))
    with pytest.raises(np.linalg.LinAlgError) as error:
        B.H.matmat(np.ones((3, 1)))
    assert here(built) in text(error)
    assert os.path.join("pylinop", "__init__") not in text(error)


def test_provenance_can_be_switched_off():
    with pl.config(provenance=False):
        built = line() + 1
        A = pl.inv(pl.Zeros((3, 3)))
        with pytest.raises(np.linalg.LinAlgError) as error:
            A @ np.ones(3)
    assert here(built) not in text(error)


def test_unpickled_operators_raise_without_a_line():
    A = pickle.loads(pickle.dumps(pl.inv(pl.Zeros((3, 3)))))
    with pytest.raises(np.linalg.LinAlgError):
        A @ np.ones(3)


# ---- classes, and numbers in the text ----


@pytest.mark.parametrize("kind", ref.KINDS)
def test_wrong_sizes(kind, rng):
    A = ref.build(leaf(kind, rng, 6, 6, "float64"))
    for x in (np.ones(5), np.ones(7), np.ones((5, 6)), np.ones(0), np.ones((2, 5, 6))):
        for call in (
            A.matvec,
            A.matmat,
            A.rmatvec,
            A.rmatmat,
            A.dot,
            lambda v: A @ v,
            lambda v: np.matmul(A, v),
        ):
            if x.shape == (5, 6) and call in (A.matvec, A.rmatvec):
                continue  # a batch of rows
            if x.shape == (2, 5, 6) and call in (A.matvec, A.rmatvec):
                continue
            with pytest.raises(ValueError) as error:
                call(x)
            assert "6" in text(error) or "2-d" in text(error)
    for x in (np.ones(5), np.ones((6, 5)), np.ones((2, 6, 5))):
        with pytest.raises(ValueError, match="Dimension mismatch: "):
            x @ A
    with pytest.raises(ValueError, match="Dimension mismatch: "):
        A.matvec(np.ones((6, 2)))
    with pytest.raises(ValueError, match="Expected at least 2-d"):
        A.matmat(np.ones(6))


CONSTRUCTORS = [
    (lambda: pl.Dense(3.0), (ValueError, TypeError)),
    (lambda: pl.Dense([[1, 2], [3]]), ValueError),
    (lambda: pl.Dense(), TypeError),
    (lambda: pl.Dense(np.eye(2), no_such=1), TypeError),
    (lambda: pl.Dense(np.eye(2), assume_a="unheard of"), ValueError),
    (lambda: pl.Dense(np.ones((2, 3)), assume_a="pos"), ValueError),
    (lambda: pl.Diag(1.0), ValueError),
    (lambda: pl.Diag("abc"), (TypeError, ValueError)),
    (lambda: pl.Identity(-1), ValueError),
    (lambda: pl.Identity(2.5), (TypeError, ValueError)),
    (lambda: pl.Identity("3"), (TypeError, ValueError)),
    (lambda: pl.Identity(3, "no dtype"), TypeError),
    (lambda: pl.Identity(3, object), TypeError),
    (lambda: pl.Identity(10**30), (OverflowError, ValueError)),
    (lambda: pl.Zeros((3, -1)), ValueError),
    (lambda: pl.Zeros((3,)), ValueError),
    (lambda: pl.Zeros((2**40, 2**40, 2, 2)).toarray(), (ValueError, OverflowError, MemoryError)),
    (lambda: pl.Selection([0, 1.5], 3), TypeError),
    (lambda: pl.Selection([0, 1], -3), ValueError),
    (lambda: pl.Kron(), (TypeError, ValueError)),
    (lambda: pl.Kron("a"), TypeError),
    (lambda: pl.Kron(pl.Identity(2**40), pl.Identity(2**40)), (ValueError, OverflowError)),
    (lambda: pl.Toeplitz(1.0), ValueError),
    (lambda: pl.Toeplitz(np.ones((2, 3)), np.ones((4, 3))), ValueError),
    (lambda: pl.LowRank(np.ones((4, 2)), np.ones((4, 3))), ValueError),
    (lambda: pl.LowRank(np.ones((4, 2)), np.ones((4, 2)), np.ones((3, 3))), ValueError),
    (lambda: pl.Sparse(np.eye(3).tolist()), TypeError),
    (lambda: pl.Sparse("csr"), TypeError),
    (lambda: pl.MatVec((3, 3)), TypeError),
    (lambda: pl.MatVec((3, 3), 5), TypeError),
    (lambda: pl.MatVec((3,), np.copy), ValueError),
    (lambda: pl.MatVec((3, -3), np.copy), ValueError),
    (lambda: pl.MatVec((3, 3.5), np.copy), (TypeError, ValueError)),
    (lambda: pl.LinearOperator(), TypeError),
    (lambda: pl.inv(pl.Dense(np.ones((3, 4)))), (ValueError, np.linalg.LinAlgError)),
    (lambda: pl.inv("a"), TypeError),
    (lambda: pl.trace(3), TypeError),
    (lambda: pl.diagonal(pl.Identity(3), "x"), TypeError),
    (lambda: pl.Identity(3) ** -1, ValueError),
    (lambda: pl.Identity(3) ** 1.5, ValueError),
    (lambda: pl.Dense(np.ones((2, 3))) ** 2, ValueError),
    (lambda: pl.Identity(3).astype("no dtype"), TypeError),
    (lambda: pl.Identity(3)["a"], (TypeError, IndexError)),
    (lambda: pl.Identity(3)[0, 0, 0], IndexError),
    (lambda: pl.freeze("a"), TypeError),
]


@pytest.mark.parametrize("number", range(len(CONSTRUCTORS)))
def test_bad_arguments(number):
    call, classes = CONSTRUCTORS[number]
    with pytest.raises(classes) as error:
        call()
    assert len(text(error)) > 10


@pytest.mark.parametrize(
    "bad",
    [
        np.ones(3, object),
        np.ma.ones(3),
        np.zeros(3, [("a", float)]),
        np.array(["a", "b", "c"]),
        np.zeros(3, "datetime64[s]"),
        np.zeros(3, "V8"),
    ],
    ids=lambda b: str(b.dtype),
)
def test_arrays_that_are_not_numbers(bad, rng):
    A = pl.Dense(np.eye(3))
    for call in (
        lambda: A @ bad,
        lambda: A.matvec(bad),
        lambda: bad @ A,
        lambda: pl.Diag(bad),
        lambda: pl.Toeplitz(bad),
        lambda: pl.Dense(np.broadcast_to(bad, (3, 3), subok=True)),
        lambda: (A + A) @ bad,
        lambda: A.matmat(bad[:, None]),
    ):
        with pytest.raises(TypeError):
            call()
    np.testing.assert_array_equal(A @ np.ones(3), np.ones(3))


def test_objects_pass_to_callables():
    from fractions import Fraction

    A = pl.MatVec((2, 2), lambda x: x * 2, dtype=object)
    x = np.array([Fraction(1, 3), Fraction(2, 3)], object)
    assert list(A @ x) == [Fraction(2, 3), Fraction(4, 3)]
    assert list((A + A) @ x) == [Fraction(4, 3), Fraction(8, 3)]


def test_dtypes_outside_c_run_as_written():
    x = np.array([1, 2], np.longdouble) / 3
    A = pl.MatVec((2, 2), lambda v: v * np.longdouble(2), lambda v: v * np.longdouble(2))
    assert A.dtype == np.longdouble and (A @ x).dtype == np.longdouble
    np.testing.assert_array_equal((2 * A + A @ A) @ x, 8 * x)
    np.testing.assert_array_equal((A.H - A.T + A) @ x, 2 * x)
    np.testing.assert_array_equal((A + pl.Identity(2)) @ x, 3 * x)
    np.testing.assert_array_equal((pl.Dense(np.eye(2)) @ A) @ x, 2 * x)
    for half in (np.ones(2, "float16"), np.ones(2, np.longdouble), np.ones(2, np.clongdouble)):
        got = (
            pl.Dense(np.eye(2, dtype=half.dtype)) @ half
        )  # right, or refused; never cast in silence
        assert got.dtype == half.dtype


def test_what_is_missing_is_not_implemented():
    A = pl.MatVec((3, 3), lambda x: x, dtype=float)
    for call in (
        lambda: A.rmatvec(np.ones(3)),
        lambda: A.H @ np.ones(3),
        lambda: A.T @ np.ones(3),
        lambda: np.ones(3) @ A,
        lambda: A.rmatmat(np.ones((3, 2))),
        lambda: (A + A).H @ np.ones(3),
        lambda: (A @ pl.Identity(3)).T @ np.ones(3),
    ):
        with pytest.raises(NotImplementedError):
            call()
    assert A.H.shape == (3, 3) and (A + A).T.dtype == float
    np.testing.assert_array_equal(A.toarray(), np.eye(3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.Diag([1.0, 0, 2]),
        lambda: pl.Dense(np.ones((3, 3))),
        lambda: pl.Zeros((3, 3)),
        lambda: pl.Kron(np.zeros((1, 1)), np.eye(3)),
        lambda: pl.Toeplitz(np.zeros(3)),
        lambda: pl.Sparse(sp.csr_array((3, 3))),
        lambda: pl.LowRank(np.ones((3, 1))),
        lambda: pl.Dense(np.eye(3)) - pl.Dense(np.eye(3)),
    ],
)
def test_singular_inverses_raise_when_used(make):
    B = pl.inv(make())  # not here
    assert B.shape == (3, 3) and "3x3" in repr(B)
    for use in (
        lambda: B @ np.ones(3),
        lambda: B @ np.ones((3, 2)),
        lambda: np.ones(3) @ B,
        lambda: B.H @ np.ones(3),
        lambda: B.toarray(),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="(?i)singular"):
            use()


def test_out_is_checked(rng):
    A, x = pl.Dense(values(rng, (3, 3), "float64")), np.ones(3)
    locked = np.zeros(3)
    locked.flags.writeable = False
    for out, error in (
        (locked, ValueError),
        (np.zeros(4), ValueError),
        (np.zeros((3, 1)), ValueError),
        (np.zeros(3, int), TypeError),
        ([0.0] * 3, TypeError),
        ("abc", TypeError),
        (np.broadcast_to(0.0, 3), ValueError),
    ):
        for call in (
            lambda: A.matvec(x, out=out),
            lambda: np.matmul(A, x, out=out),
            lambda: (A + A).dot(x, out=out),
        ):
            with pytest.raises(error):
                call()
    assert not locked.any()


@pytest.mark.parametrize("kind", ref.KINDS)
def test_out_may_overlap(kind, rng):
    for turn in range(4):
        d = leaf(kind, rng, 6, 6, "float64")
        A, a = ref.build(d), ref.dense(d)
        for E, e in ((A, a), (A + 2 * A, 3 * a), (A @ A.T, a @ a.T)):
            room = values(rng, (20,), "float64")
            x, out = [
                (room[:6], room[:6]),
                (room[:6], room[3:9]),
                (room[::2][:6], room[1:7]),
                (room[5::-1], room[:6]),
            ][turn]
            want = e @ x.copy()
            assert E.matvec(x, out=out) is out
            np.testing.assert_allclose(out, want, rtol=1e-11, atol=1e-11)
            room = values(rng, (6, 6), "float64")
            want = e @ room.copy()
            E.matmat(room, out=room.T if turn % 2 else room)
            np.testing.assert_allclose(room.T if turn % 2 else room, want, rtol=1e-11, atol=1e-11)


def test_out_may_be_an_operands_memory():
    a = np.arange(9.0).reshape(3, 3)
    A, want = pl.Dense(a), np.arange(9.0).reshape(3, 3) @ np.ones((3, 3))
    A.matmat(np.ones((3, 3)), out=a)
    np.testing.assert_array_equal(a, want)
    d = np.arange(1.0, 4)
    pl.Diag(d).matvec(np.array([2.0, 3, 4]), out=d)
    np.testing.assert_array_equal(d, [2, 6, 12])
    c = np.arange(1.0, 4)
    want = pl.Toeplitz(c.copy()) @ np.ones(3)
    pl.Toeplitz(c).matvec(np.ones(3), out=c)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("kind", ref.KINDS)
def test_nan_and_inf_pass_through(kind, rng):
    d = leaf(kind, rng, 6, 6, "float64")
    A, a = ref.build(d), ref.dense(d)
    for bad in (np.nan, np.inf, -np.inf):
        x = values(rng, (6,), "float64")
        x[2] = bad
        with np.errstate(all="ignore"):
            got, want = A @ x, a @ x
            touched = a[:, 2] != 0
        assert not np.isfinite(got[touched]).any()
        if kind in ("Diag", "Sparse", "Selection", "Identity", "Dense"):
            assert np.array_equal(np.isnan(got[touched]), np.isnan(want[touched]))
        if kind == "Zeros":
            assert not got.any()  # structural zeros win
    b = values(rng, (6, 6), "float64")
    b[1, 2] = np.nan
    assert (
        np.isnan((pl.Dense(b) @ np.ones(6))[1])
        and np.isfinite((pl.Dense(b) @ np.ones(6))[[0, 2, 3, 4, 5]]).all()
    )
    assert np.isnan(pl.Toeplitz(b[:, 2]) @ np.ones(6)).all()


def test_huge_sizes_are_overflow_checked():
    big = 2**31
    for make in (
        lambda: pl.Kron(*[pl.Identity(big)] * 3),
        lambda: pl.Zeros((2**62, 2**62)),
        lambda: pl.Identity(2**63 - 1),
    ):
        try:
            A = make()
        except (ValueError, OverflowError):
            continue
        for use in (
            lambda: A.toarray(),
            lambda: A @ np.ones(3),
            lambda: A.tosparse(),
            lambda: np.asarray(A),
        ):
            with pytest.raises((ValueError, OverflowError, MemoryError)):
                use()
        assert A.nbytes >= 0 and repr(A)
    Z = pl.Zeros((2**40, 3))
    with pytest.raises((MemoryError, ValueError)):
        Z @ np.ones(3)
    np.testing.assert_array_equal(Z.T.diagonal(), np.zeros(3))
    assert Z[2**39, 2] == 0


def test_views_with_wild_strides():
    from numpy.lib.stride_tricks import as_strided

    base = np.arange(100.0)
    for shape, strides in (
        ((4, 4), (8, 8)),
        ((4, 4), (0, 8)),
        ((4, 4), (8, 0)),
        ((4, 4), (24, 16)),
        ((3, 4), (-8, 40)),
    ):
        a = as_strided(base[50:], shape, strides)
        np.testing.assert_allclose(pl.Dense(a) @ np.ones(4), a @ np.ones(4))
        np.testing.assert_allclose((pl.Dense(a).T @ pl.Dense(a)).toarray(), a.T @ a)
    with pytest.raises((ValueError, TypeError)):
        pl.Dense(np.ones((1,) * 40)) @ np.ones(3)


def test_assumptions_have_scipys_meaning(rng):
    a = values(rng, (5, 5), "float64")
    spd = a @ a.T + 5 * np.eye(5)
    x = np.ones(5)
    want = np.linalg.solve(spd, x)
    for word in (
        "pos",
        "positive definite",
        "sym",
        "symmetric",
        "her",
        "hermitian",
        "gen",
        "general",
    ):
        np.testing.assert_allclose(pl.inv(pl.Dense(spd, assume_a=word)) @ x, want, rtol=1e-10)
    np.testing.assert_allclose(
        pl.inv(pl.Dense(np.tril(spd), assume_a="lower triangular")) @ x,
        np.linalg.solve(np.tril(spd), x),
        rtol=1e-10,
    )
    false = pl.inv(pl.Dense(spd - 100 * np.eye(5), assume_a="pos"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            got = false @ x
        except np.linalg.LinAlgError as error:
            assert "definite" in str(error)
        else:  # a fallback, and it says so
            assert seen
            np.testing.assert_allclose(got, np.linalg.solve(spd - 100 * np.eye(5), x), rtol=1e-8)
