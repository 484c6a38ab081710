"""A field by its sparse precision, seen through noise, as it is written in papers, beside the same
by hand with SciPy's sparse LU, interleaved in one process.

    OPENBLAS_NUM_THREADS=1 python benchmarks/sparse_fields.py [rounds] [rows of the grid ...]

V = A Q^-1 A^T + s I, Q = t (L + k I) or its square on a grid, A bilinear weights of random points.
By hand: Q and Q + A^T A / s are factored, their determinants are taken from the pivots, and the
solve goes by Woodbury's formula; its derivatives would need selected inverses, which SciPy has not.
The dense formula stands beside them where 3,000 rows or fewer are seen. Before each call all three
change. Each line: least and median time, and the least over that of the value by hand."""

import statistics
import sys
import time

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import pylinop as pl


def grid(k):
    d = sp.diags_array([-np.ones(k - 1), 2 * np.ones(k), -np.ones(k - 1)], offsets=[-1, 0, 1])
    return (sp.kron(d, sp.eye_array(k)) + sp.kron(sp.eye_array(k), d)).tocsr()


def seen(r, m, k):
    x, y = r.uniform(0, k - 1.001, (2, m))
    i, j = x.astype(int), y.astype(int)
    a, c = x - i, y - j
    at = np.r_[i * k + j, (i + 1) * k + j, i * k + j + 1, (i + 1) * k + j + 1]
    w = np.r_[(1 - a) * (1 - c), a * (1 - c), (1 - a) * c, a * c]
    return sp.csr_array((w, (np.tile(np.arange(m), 4), at)), shape=(m, k * k))


def precision(L, t, shift, power):
    Q = L + shift * sp.eye_array(L.shape[0])
    return (t * (Q @ Q if power == 2 else Q)).tocsc()


def by_hand(L, A, y, power, t, shift, s):
    Q = precision(L, t, shift, power)
    own, inner = sla.splu(Q), sla.splu((Q + A.T @ A / s).tocsc())
    logs = [np.log(np.abs(f.U.diagonal())).sum() for f in (own, inner)]
    z = A.T @ y / s
    return len(y) * np.log(s) + logs[1] - logs[0] + y @ y / s - z @ inner.solve(z)


def densely(L, A, y, power, t, shift, s):
    V = A @ sla.splu(precision(L, t, shift, power)).solve(A.T.toarray()) + s * np.eye(len(y))
    c = np.linalg.cholesky(V)
    return 2 * np.log(c.diagonal()).sum() + y @ np.linalg.solve(V, y)


def ours(L, A, y, power):
    S, B, n, m = pl.Sparse(L), pl.Sparse(A), L.shape[0], len(y)
    eye, noise = pl.Identity(n), pl.Identity(m)

    def value(p):
        t, shift, s = p
        Q = S + shift * eye
        V = B @ pl.inv(t * (Q @ Q if power == 2 else Q)) @ B.T + s * noise
        return y @ pl.solve(V, y) + pl.logdet(V)

    return value


def least(calls, rounds):
    took = {name: [] for name in calls}
    for k in range(rounds):
        for i, (name, call) in list(enumerate(calls.items()))[:: 1 - 2 * (k % 2)]:
            p = np.array([1.1, 0.05, 0.1]) * (1 + 1e-3 * (k + 1) + 1e-4 * i)  # nothing kept helps
            start = time.process_time()
            call(p)
            took[name].append(time.process_time() - start)
    return {name: (min(t), statistics.median(t)) for name, t in took.items()}


def compare(k, power, rounds):
    r = np.random.default_rng(k)
    m = k * k // 4
    L, A, y = grid(k), seen(r, m, k), r.standard_normal(m)
    f = ours(L, A, y, power)
    both = pl.value_and_grad(f)
    calls = {
        "value": lambda p: float(f([pl.lazy(x) for x in p])),
        "value by hand": lambda p: by_hand(L, A, y, power, *p),
        "value and gradient": both,
    }
    if m <= 3000:
        calls["value, dense V"] = lambda p: densely(L, A, y, power, *p)
    p = np.array([1.1, 0.05, 0.1])
    want = calls["value by hand"](p)
    assert abs(calls["value"](p) - want) < 1e-8 * abs(want)
    assert abs(both(p)[0] - want) < 1e-8 * abs(want)
    found = least(calls, rounds)
    hand = found["value by hand"][0]
    print(f"{k} x {k}, {m} seen, power {power}")
    for name, (low, mid) in found.items():
        print(f"    {name:20s} {low * 1e3:9.1f} {mid * 1e3:9.1f} ms  {low / hand:6.2f}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for k in [int(a) for a in sys.argv[2:]] or [40, 100, 200]:
        for power in (1, 2):
            compare(k, power, rounds)


if __name__ == "__main__":
    main()
