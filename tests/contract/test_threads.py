"""Many threads build and evaluate the same expressions, and different ones, at once."""

import threading

import numpy as np
import pytest
import ref
from samples import leaf, values

import pylinop as pl


def at_once(work, n=8):
    """Run work(i) in n threads started together; re-raise what failed."""
    barrier, failed, out = threading.Barrier(n), [], [None] * n

    def run(i):
        try:
            barrier.wait(60)
            out[i] = work(i)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive()
    if failed:
        raise failed[0]
    return out


@pytest.mark.no_verify("six verified answers, 120 times for each kind, take minutes")
@pytest.mark.parametrize("kind", ref.KINDS)
def test_shared_operators(kind, rng):
    d = leaf(kind, rng, 300, 300, "float64")
    A = ref.build(d)
    x = values(rng, (300,), "float64")
    E = (A.H @ A + 2 * A).T
    B = ref.build(d)  # one B: the plan depends on which factors are the same
    want = B @ x, (B.H @ B + 2 * B).T @ x

    def work(i):
        for _ in range(15):
            np.testing.assert_array_equal(A @ x, want[0])
            np.testing.assert_array_equal(E @ x, want[1])
            np.testing.assert_array_equal((A.H @ A + 2 * A).T @ x, want[1])
            A.diagonal(), A.trace(), repr(E), A.T.T, A[0, 0]
        return True

    assert all(at_once(work))


def test_first_use_in_many_threads(rng):
    """Spectrum and factors are derived once or more, published safely, and are right."""
    for turn in range(10):
        c = values(rng, (2000,), "float64")
        a = values(rng, (60, 60), "float64") + 30 * np.eye(60)
        T, B = pl.Toeplitz(c), pl.inv(pl.Dense(a))
        x, y = values(rng, (2000,), "float64"), values(rng, (60,), "float64")
        got = at_once(lambda i: (T @ x, B @ y))
        for p, q in got:
            np.testing.assert_array_equal(p, got[0][0])
            np.testing.assert_array_equal(q, got[0][1])
        np.testing.assert_allclose(got[0][1], np.linalg.solve(a, y), rtol=1e-9)


def test_different_expressions(rng):
    data = values(rng, (8, 50, 50), "float64")

    def work(i):
        x = np.ones(50)
        for k in range(30):
            A = pl.Dense(data[i]) + (k + 1) * pl.Identity(50)
            np.testing.assert_allclose(
                (A @ A) @ x,
                data[i] @ (data[i] @ x + (k + 1)) + (k + 1) * (data[i] @ x + k + 1),
                rtol=1e-9,
                atol=1e-9,
            )
        return True

    assert all(at_once(work))


def test_callables_in_threads(rng):
    a = values(rng, (50, 50), "float64")
    A = pl.MatVec((50, 50), lambda x: a @ x, lambda x: a.T @ x, dtype=float) + pl.Toeplitz(
        np.arange(50.0)
    )
    x = np.ones(50)
    want = A @ x
    assert all(np.array_equal(r, want) for r in at_once(lambda i: [A @ x for _ in range(100)][-1]))


@pytest.mark.no_verify("the arrays change between the result and the comparison")
def test_writing_while_reading_never_crashes(rng):
    """Values may mix; nothing else may happen."""
    index, c = np.arange(1000), values(rng, (1000,), "float64")
    ops = [pl.Selection(index, 1000), pl.Toeplitz(c), pl.Diag(c)]
    E = ops[0] @ ops[1] + ops[2]
    x = np.ones(1000)
    stop = threading.Event()

    def work(i):
        if i == 0:
            for k in range(3000):
                index[k % 1000] = (10**9, -5000, k % 1000)[k % 3]
                c[k % 1000] = k
            stop.set()
        while not stop.is_set():
            try:
                for A in ops + [E]:
                    A @ x
            except (IndexError, ValueError):
                pass

    at_once(work, 4)


def test_config_in_a_with_block_is_the_threads_own():
    A, inside, done = pl.Identity(40), threading.Event(), threading.Event()

    def work(i):
        if i == 0:
            with pl.config(memory_limit=1):
                inside.set()
                done.wait(30)
                with pytest.raises(pl.MaterializationError):
                    np.asarray(A)
        else:
            inside.wait(30)
            np.asarray(A)
            done.set()

    at_once(work, 2)
    np.asarray(A)
