"""Chains of many terms are built, applied, printed, pickled and freed without recursion."""

import os

import pytest

# The stack is 1 MiB: already 15,000 nested calls through the interpreter or the core need more.
STACK = 2**20
LONG = ("sum", "product", "diagonals that close")

HEAD = """
import copy, gc, pickle, resource, sys
import numpy as np, pylinop as pl
assert resource.getrlimit(resource.RLIMIT_STACK)[0] == 2**20
N = int(sys.argv[1])
x = np.ones(3)
a = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])  # products stay bounded

def use(A, want, turn=None):
    assert A.shape == (3, 3) and A.dtype == float
    np.testing.assert_allclose(A @ x, want, rtol=1e-9)
    np.testing.assert_allclose(A @ np.ones((3, 2)), np.outer(want, [1, 1]), rtol=1e-9)
    assert repr(A) == f"<3x3 {type(A).__name__} with dtype=float64>"
    assert len(A._repr_html_()) < 10**6 and A.nbytes >= 0
    B = pickle.loads(pickle.dumps(A))
    assert type(B) is type(A)
    np.testing.assert_allclose(B @ x, want, rtol=1e-9)
    small = pickle.dumps(turn) if turn is not None else None
    if small:
        assert len(pickle.dumps(A)) < 3 * len(small)  # linear: `turn` has half the terms
    for T in (A.T, A.H, A.conj(), 2 * A, -A):
        assert T.shape == (3, 3)
    C = copy.copy(A)
    del B, C, T
    gc.collect()
"""

CASES = {
    "sum": """
A, D = pl.Dense(a), pl.Dense(a.T.copy())
S, half = A, None
for k in range(N):
    S = S + (D if k % 2 else A)
    if k == N // 2: half = S
np.testing.assert_allclose(S.toarray(), (N // 2 + 1) * a + N // 2 * a.T)
np.testing.assert_allclose(S.T @ x, np.full(3, N + 1.0))
assert S.trace() == 0 and S[0, 1] == N // 2 + 1
use(S, np.full(3, N + 1.0), half)
""",
    "sum to the right": """
S = pl.Dense(a)
for k in range(N):
    S = pl.Dense(a) + S
use(S, np.full(3, N + 1.0))
""",
    "product": """
S, half = pl.Dense(a), None
P = S
for k in range(N):
    S = S @ P
    if k == N // 2: half = S
np.testing.assert_array_equal(S.toarray(), np.linalg.matrix_power(a, (N + 1) % 3))
v = np.arange(3.0)
np.testing.assert_array_equal(S.H @ v, np.linalg.matrix_power(a, (N + 1) % 3).T @ v)
use(S, np.ones(3), half)
""",
    "product to the right": """
S = pl.Dense(a)
for k in range(N):
    S = pl.Dense(a) @ S
    if k % 1000 == 0: S = pl.Toeplitz(np.zeros(3)) + S
use(S, np.ones(3))
""",
    "both": """
S, A, I = pl.Dense(a), pl.Dense(a), pl.Identity(3)
for k in range(N):
    S = S + I if k % 100 == 0 else A @ S
y = x
w = np.ones(3)
for k in range(N):
    w = w + x if k % 100 == 0 else a @ w
use(S, w)
""",
    "differences and scales": """
A = pl.Dense(a)
S = A
for k in range(N):
    S = S - A if k % 2 else 1.0 * (S + A)
use(S, np.ones(3))
""",
    "callables": """
A = pl.MatVec((3, 3), np.copy, np.copy, dtype=float, matmat=np.copy)
S = A
for k in range(N):
    S = S + A if k % 2 else S @ A
use(S, np.full(3, N // 2 + 1.0))
""",
    "diagonals that close": """
D = pl.Diag(np.full(3, 1 + 1e-5))
S = D
for k in range(N):
    S = S @ D
assert type(S) is pl.Diag
np.testing.assert_allclose(S.diagonal(), (1 + 1e-5) ** (N + 1), rtol=1e-9)
use(S, np.full(3, (1 + 1e-5) ** (N + 1)))
S = D
for k in range(N):
    S = S + D
assert type(S) is pl.Diag
use(S, np.full(3, (N + 1) * (1 + 1e-5)))
""",
    "turns": """
A = S = pl.Dense(a) + pl.Dense(a)
for k in range(N):
    S = S.T if k % 2 else S.H
for k in range(N):
    S = (S + A).T
use(S, np.full(3, 2.0 * (N + 1)))
""",
    "shared": """
S = pl.Dense(a)
for k in range(60):  # 2^60 terms if written out
    S = S + S
assert (S.args[0] is S.args[1])
np.testing.assert_array_equal(S @ x, np.full(3, 2.0**60))
np.testing.assert_array_equal(pickle.loads(pickle.dumps(S)) @ x, np.full(3, 2.0**60))
assert len(pickle.dumps(S)) < 20_000
assert repr(S) and copy.copy(S) and S.T.shape == (3, 3)
np.testing.assert_array_equal(S.toarray(), 2.0**60 * a)
""",
    "inside a kind": """
S = pl.Dense(a)
for k in range(N // 10):
    S = S + pl.Dense(a)
K = pl.Kron(S, np.eye(2)) + pl.Kron(np.eye(2), S)
np.testing.assert_allclose(K @ np.ones(6), np.full(6, 2 * (N // 10 + 1.0)))
for k in range(N // 10):
    S = pl.Kron(S, np.ones((1, 1)))
np.testing.assert_allclose(S @ x, np.full(3, N // 10 + 1.0))
pickle.loads(pickle.dumps(S)); repr(S)
""",
}


@pytest.mark.slow
@pytest.mark.no_asan
@pytest.mark.parametrize("name", CASES)
def test_chain(python, name):
    n = 100_000 if os.environ.get("PYLINOP_FULL") else 30_000 if name in LONG else 15_000
    code = HEAD + CASES[name] + "\ndel S\ngc.collect()\nprint('done')"
    assert python(code, n, stack=STACK).strip() == "done"


@pytest.mark.slow
@pytest.mark.no_asan
def test_chain_in_a_thread_with_a_small_stack(python):
    code = """
import threading, pickle
import numpy as np, pylinop as pl
threading.stack_size(256 * 1024)
failed = []

def work():
    try:
        A = S = pl.Dense(np.eye(3))
        for k in range(30_000):
            S = S + A if k % 3 else A @ S
        S @ np.ones(3), repr(S), pickle.loads(pickle.dumps(S)), S.T
        del S
    except BaseException as error:
        failed.append(error)

t = threading.Thread(target=work)
t.start(); t.join()
assert not failed, failed
print("done")
"""
    assert python(code).strip() == "done"


@pytest.mark.slow
@pytest.mark.no_asan
def test_deep_chains_deepcopy(python):
    code = (
        HEAD
        + """
A = S = pl.Dense(a)
for k in range(20_000):
    S = S + A
B = copy.deepcopy(S)
a[:] = 0
np.testing.assert_allclose(B @ x, np.full(3, 20_001.0))
np.testing.assert_allclose(S @ x, np.zeros(3))
print("done")
"""
    )
    assert python(code, 0, stack=STACK).strip() == "done"
