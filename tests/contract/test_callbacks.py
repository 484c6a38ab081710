"""Callables: exceptions and interrupts in them, what they may return, write, keep and call."""

import signal

import numpy as np
import pytest

import pylinop as pl


class Boom(Exception):
    pass


def composites(M):
    D, T = pl.Diag(np.arange(1.0, 4)), pl.Toeplitz(np.arange(3.0))
    return [
        M,
        M.T,
        2 * M,
        M + M,
        D @ M,
        M @ D,
        T + M @ T,
        (M + D).T,
        M**3,
        M.conj(),
        pl.inv(M + pl.Identity(3)),
        M.real,
    ]


@pytest.mark.parametrize(
    "exception",
    [Boom, KeyboardInterrupt, ZeroDivisionError, MemoryError, RecursionError, SystemExit],
)
def test_exceptions_in_callables_come_out_and_leave_everything_usable(exception):
    armed = [True]

    def matvec(x):
        if armed[0]:
            raise exception("from the callback")
        return 3 * x

    M = pl.MatVec((3, 3), matvec, matvec, dtype=float)
    x = np.ones(3)
    calls = [
        lambda A: A @ x,
        lambda A: A @ np.ones((3, 2)),
        lambda A: A.toarray(),
        lambda A: A.matvec(x, out=np.zeros(3)),
    ]
    for A in composites(M):
        for call in calls:
            armed[0] = True
            with pytest.raises(exception) as error:
                call(A)
            assert type(error.value) is exception and error.value.args == ("from the callback",)
            assert any(entry.name == "matvec" for entry in error.traceback)
            armed[0] = False
            call(A)
    armed[0] = False
    for A, B in zip(composites(M), composites(pl.Dense(3 * np.eye(3)))):
        np.testing.assert_allclose(A @ x, B @ x)


def test_callbacks_are_called_once_and_never_again_after_an_error():
    count = [0]

    def matvec(x):
        count[0] += 1
        raise Boom

    M = pl.MatVec((3, 3), matvec, dtype=float)
    for A in (M, M + M, 2 * M):
        count[0] = 0
        with pytest.raises(Boom):
            A @ np.ones(3)
        assert count[0] == 1


def test_what_callables_return_is_checked():
    for bad in (np.ones(4), np.ones((3, 3)), None, "abc", [1, 2], np.ones(2), object()):
        M = pl.MatVec((3, 3), lambda x: bad, lambda x: bad, dtype=float)
        for A in (M, M + pl.Identity(3), M.T):
            with pytest.raises((ValueError, TypeError)):
                A @ np.ones(3)
    M = pl.MatVec((3, 3), lambda x: x * 1j, dtype=float)  # says float, gives complex
    assert (M @ np.ones(3)).dtype == complex  # alone: SciPy gives what the callable gave
    try:  # a slot of another kind is refused, or the walk gives all of it
        got = (M + pl.Dense(np.eye(3))) @ np.ones(3)
    except TypeError as error:
        assert "complex" in str(error)
    else:
        np.testing.assert_array_equal(got, np.full(3, 1 + 1j))
    M = pl.MatVec((3, 3), lambda x: [1, 2, 3], dtype=float)
    np.testing.assert_array_equal(M @ np.ones(3), [1, 2, 3])


def test_callables_may_keep_and_return_their_argument():
    kept = []

    def matvec(x):
        kept.append((x, x.copy()))
        return x

    A = pl.MatVec((3, 3), matvec, matvec, dtype=float)
    D = pl.Diag([1.0, 2, 3])
    x = np.ones(3)
    for _ in range(3):
        for E, want in (
            (A + A, [2, 2, 2]),
            (A @ D, [1, 2, 3]),
            (D @ A + D, [2, 4, 6]),
            (2 * A, [2, 2, 2]),
        ):
            np.testing.assert_array_equal(E @ x, want)
            E @ np.full((3, 2), 7.0), E.T @ np.full(3, 5.0), pl.Toeplitz(np.ones(3)) @ x
    np.testing.assert_array_equal(x, np.ones(3))
    for seen, then in kept:
        np.testing.assert_array_equal(seen, then)  # what a callable was given is not used again


def test_callables_may_call_back_into_us():
    A = pl.Dense(2 * np.eye(3))
    B = pl.MatVec((3, 3), lambda x: (A + A) @ x, dtype=float)
    C = pl.MatVec((3, 3), lambda x: (B @ A + A) @ x, dtype=float)
    np.testing.assert_array_equal((C + B) @ np.ones(3), np.full(3, 8 + 2 + 4))

    depth = [0]

    def recursive(x):
        depth[0] += 1
        return x if depth[0] > 20 else (D + pl.Zeros((3, 3))) @ x

    D = pl.MatVec((3, 3), recursive, dtype=float)
    np.testing.assert_array_equal(D @ np.ones(3), np.ones(3))


def test_callables_may_change_the_operands_they_sit_among():
    d = np.ones(3)

    def matvec(x):
        d[:] = np.arange(3)
        return x

    E = pl.Diag(d) @ pl.MatVec((3, 3), matvec, dtype=float)
    got = E @ np.ones(3)
    assert set(got.tolist()) <= {0.0, 1.0, 2.0}
    np.testing.assert_array_equal(E @ np.ones(3), np.arange(3.0))


@pytest.fixture
def interruptible():
    """Also where the tests run in the background, which ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupts_leave_everything_usable(interruptible):
    a = np.eye(200)

    def matvec(x):
        signal.raise_signal(signal.SIGINT)
        return x

    E = pl.Dense(a) + pl.MatVec((200, 200), matvec, dtype=float) @ pl.Dense(a)
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            E @ np.ones(200)
    np.testing.assert_array_equal((pl.Dense(a) + pl.Dense(a)) @ np.ones(200), np.full(200, 2.0))
