"""A radar track smoothed: Kalman's model as one linear system, written as on paper.

An aircraft is seen once a second, if it is seen at all. The state x_k holds position and velocity
on two axes; x is all states, one below the other:

    x_1 ~ N(m, P)     x_k+1 = F x_k + N(0, Q)     y_k = H x_k + N(0, R), k among those seen

What all measurements say together of all states is the x that minimises the weighted squares of
everything the model calls noise, so it solves A x = b with

    D = Kron(later, I) - Kron(now, F)           x_k+1 - F x_k for all k
    C = Kron(Selection(seen, n), H)             what is measured
    A = D.T @ Kron(I, Q^-1) @ D + C.T @ Kron(I, R^-1) @ C + Kron(Diag(first), P^-1)
    b = C.T @ Kron(I, R^-1) @ y + (P^-1 m, 0, ...)

and its covariance is A^-1. The loop that everyone writes for this, Kalman's filter forwards and
Rauch, Tung and Striebel's smoother back (1965, AIAA Journal 3), is here too, in plain NumPy; both
must give the same positions, velocities, deviations, and the same likelihood.

The model: nearly constant velocity (Bar-Shalom, Li and Kirubarajan, "Estimation with Applications
to Tracking and Navigation", 2001, section 6.2.2): white noise of density 0.5 m^2/s^3 accelerates
either axis. Measured positions scatter by 30 and 50 m, correlated 0.4. One scan in five is missed,
and each hour the first 90 seconds altogether. Seeds are fixed.

What pylinop sees of the structure: products with A cost O(n), and nothing of its n x n blocks is
ever stored. That A has a band is seen from how it is written: ``pl.solve(A, b)`` as it stands
multiplies the formula out sparsely, factors it within the band, in O(n), and keeps the factor, as
``pl.logdet(A)`` does. Multiplied out, small differences of large positions have lost digits
(velocities come out to 1e-8); one step of refinement, whose residual b - A x is computed by the
formula, brings them back. Here the band is also taken out by hand, with ``A.tosparse()`` and
``pl.Banded``, assumed positive definite: that is Cholesky's factor in place of LU, and both ways
must agree.

Run ``python examples/kalman.py``; ``--quick`` takes a tenth. The exit status is 1 when a check
fails.
"""

import argparse
import sys
from typing import NamedTuple

import _needs  # noqa: F401
import numpy as np
from _meter import Checks, Meter, size

import pylinop as pl

DT = 1.0  # seconds
DENSITY = 0.5  # m^2/s^3
F = np.kron(np.eye(2), [[1, DT], [0, 1]])
Q = DENSITY * np.kron(np.eye(2), [[DT**3 / 3, DT**2 / 2], [DT**2 / 2, DT]])
H = np.kron(np.eye(2), [[1.0, 0.0]])
R = np.array([[30.0**2, 0.4 * 30 * 50], [0.4 * 30 * 50, 50.0**2]])
M = np.array([0.0, 150.0, 0.0, 80.0])  # where it is thought to begin: m, m/s, m, m/s
P = np.diag([1000.0, 50.0, 1000.0, 50.0]) ** 2
MISSED, HOUR, OUTAGE = 0.2, 3600, 90
SEED = 1965


class Track(NamedTuple):
    """True states, when they were seen, and what was measured then."""

    truth: np.ndarray  # (n, 4)
    seen: np.ndarray
    y: np.ndarray  # (len(seen), 2)


class Smoothed(NamedTuple):
    """States and their covariances given all measurements, and the measurements' likelihood."""

    x: np.ndarray
    cov: np.ndarray
    loglik: float


def simulate(n):
    """A track of the model."""
    rng = np.random.default_rng(SEED)
    noise = rng.standard_normal((n, 4)) @ np.linalg.cholesky(Q).T
    truth = np.empty((n, 4))
    truth[0] = M + np.sqrt(np.diag(P)) * rng.standard_normal(4)
    for k in range(n - 1):
        truth[k + 1] = F @ truth[k] + noise[k]
    dark = np.arange(n) % HOUR < OUTAGE
    dark[:OUTAGE] = False
    seen = np.flatnonzero((rng.random(n) > MISSED) & ~dark)
    y = truth[seen] @ H.T + rng.standard_normal((len(seen), 2)) @ np.linalg.cholesky(R).T
    return Track(truth, seen, y)


def by_loop(track):
    """The filter forwards, the smoother back, step by step in NumPy."""
    n = len(track.truth)
    ahead, ahead_cov = np.empty((n, 4)), np.empty((n, 4, 4))
    x, cov = np.empty((n, 4)), np.empty((n, 4, 4))
    place, loglik = dict(zip(track.seen.tolist(), track.y)), 0.0
    for k in range(n):
        if k == 0:
            m, p = M, P
        else:
            m, p = F @ x[k - 1], F @ cov[k - 1] @ F.T + Q
        ahead[k], ahead_cov[k] = m, p
        if k in place:
            s = H @ p @ H.T + R
            gain = np.linalg.solve(s, H @ p).T
            off = place[k] - H @ m
            loglik -= 0.5 * (off @ np.linalg.solve(s, off) + np.linalg.slogdet(2 * np.pi * s)[1])
            rest = np.eye(4) - gain @ H
            m, p = m + gain @ off, rest @ p @ rest.T + gain @ R @ gain.T
        x[k], cov[k] = m, p
    for k in range(n - 2, -1, -1):
        back = np.linalg.solve(ahead_cov[k + 1], F @ cov[k]).T
        x[k] += back @ (x[k + 1] - ahead[k + 1])
        cov[k] += back @ (cov[k + 1] - ahead_cov[k + 1]) @ back.T
    return Smoothed(x, cov, loglik)


def system(track):
    """A and b of the docstring."""
    n, seen = len(track.truth), track.seen
    later = pl.Diag(np.ones(n - 1), k=1, shape=(n - 1, n))
    now = pl.Diag(np.ones(n - 1), k=0, shape=(n - 1, n))
    first = np.zeros(n)
    first[0] = 1
    D = pl.Kron(later, np.eye(4)) - pl.Kron(now, F)
    C = pl.Kron(pl.Selection(seen, n), H)
    noise = pl.Kron(pl.Identity(n - 1), np.linalg.inv(Q))
    errors = pl.Kron(pl.Identity(len(seen)), np.linalg.inv(R))
    A = D.T @ noise @ D + C.T @ errors @ C + pl.Kron(pl.Diag(first), np.linalg.inv(P))
    b = C.T @ (errors @ track.y.ravel())
    b[:4] += np.linalg.solve(P, M)
    return A, b


def band_of(A):
    """The same matrix as a `pl.Banded`, positive definite as an inverse covariance is."""
    S = A.tosparse("dia")
    up, low = max(S.offsets.max(), 0), max(-S.offsets.min(), 0)
    ab = np.zeros((low + up + 1, A.shape[1]))
    for k, diagonal in zip(S.offsets, S.data):
        ab[up - k] = diagonal  # both keep an element in its column
    return pl.Banded((low, up), ab, "pos")


def refined(A, b, B):
    """x of A x = b by the band and one step of refinement with the formula."""
    x = pl.solve(B, b)
    return x + pl.solve(B, b - A @ x)


def squares(track, x):
    """The weighted squares that x minimises."""
    steps = x[1:] - x[:-1] @ F.T
    errors = track.y - x[track.seen] @ H.T
    start = x[0] - M
    return sum(
        np.einsum("ki,ij,kj->", r, np.linalg.inv(w), r)
        for r, w in ((steps, Q), (errors, R), (start[None], P))
    )


def as_written(A, b, memory):
    """What pl.solve makes of the formula itself, within so much memory; says how long it takes."""
    with pl.config(memory_limit=memory), Meter() as meter:
        x = pl.solve(A, b)
    print(f"  {'pl.solve(A, b) as it stands':28}{meter}")
    return x


def likelihood(track, B, x):
    """log p(y) by determinants."""
    n, m, log = len(track.truth), len(track.seen), pl.logdet(B)
    for w, count in ((Q, n - 1), (R, m), (P, 1), (2 * np.pi * np.eye(2), m)):
        log += count * np.linalg.slogdet(w)[1]
    return -0.5 * (squares(track, x) + log)


def check_deviations(checks, B, loop, n):
    """Columns of A^-1 at some times beside the smoother's covariances."""
    times = np.linspace(0, n - 1, 9).astype(int)
    columns = np.zeros((4 * n, 4 * len(times)))
    for i, k in enumerate(times):
        columns[4 * k : 4 * k + 4, 4 * i : 4 * i + 4] = np.eye(4)
    columns = pl.solve(B, columns)
    off = 0.0
    for i, k in enumerate(times):
        found, want = columns[4 * k : 4 * k + 4, 4 * i : 4 * i + 4], loop.cov[k]
        scale = np.sqrt(np.outer(np.diag(want), np.diag(want)))
        off = max(off, (np.abs(found - want) / scale).max())
    checks.at_most(f"covariances at {len(times)} times, relative", off, 1e-10)


def save(path, track, loop, x):
    """The track about an outage, and the errors beside two deviations."""
    try:
        import matplotlib
    except ImportError:
        print("  no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n = len(x)
    middle = HOUR if n > HOUR + 2 * OUTAGE else n // 2
    window = slice(middle - OUTAGE, middle + 2 * OUTAGE)
    inside = (track.seen >= window.start) & (track.seen < window.stop)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
    left.plot(*track.truth[window, ::2].T / 1e3, "k-", lw=1, label="true")
    left.plot(*track.y[inside].T / 1e3, "r.", ms=3, label="measured")
    left.plot(*x[window, ::2].T / 1e3, "b-", lw=1, label="smoothed")
    left.set(xlabel="km", ylabel="km", title="about an outage")
    left.legend()
    seconds = np.arange(n)[window]
    deviation = np.sqrt(loop.cov[window, 0, 0])
    right.fill_between(seconds, -2 * deviation, 2 * deviation, alpha=0.2, label="two deviations")
    right.plot(seconds, (x - track.truth)[window, 0], "b-", lw=1, label="error")
    right.set(xlabel="s", ylabel="m", title="first axis")
    right.legend()
    figure.savefig(path, dpi=120)
    print(f"  saved {path}")


def solved(track):
    """The band and x by pylinop, with time and memory of each part."""
    with Meter() as building:
        A, b = system(track)
    print(f"A is {A!r}: {size(A.nbytes)}; dense it would take {size(8 * A.size)}")
    with Meter() as product:
        Ab = A @ b
    with Meter() as sparse:
        B = band_of(A)
    with Meter() as solving:
        x = refined(A, b, B)
    for what, meter in (
        ("building A and b", building),
        ("A @ b", product),
        ("its band", sparse),
        ("solving, once refined", solving),
    ):
        print(f"  {what:28}{meter}")
    return A, b, Ab, B, x


def main(argv=None):
    """Simulate, smooth both ways, compare, save; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the track")
    parser.add_argument("--out", default="kalman.png", help="where the picture goes")
    options = parser.parse_args(argv)
    n = 4000 if options.quick else 40_000
    track, checks = simulate(n), Checks()
    print(f"{n} seconds, seen at {len(track.seen)} of them (seed {SEED})")

    A, b, Ab, B, flat = solved(track)
    with Meter() as looping:
        loop = by_loop(track)
    print(f"  {'filter and smoother, a loop':28}{looping}")
    direct = as_written(A, b, 20 * B.nbytes)

    x = flat.reshape(n, 4)
    for what, part in (("positions", slice(0, 4, 2)), ("velocities", slice(1, 4, 2))):
        off = np.abs(x[:, part] - loop.x[:, part]).max() / np.abs(loop.x[:, part]).max()
        checks.at_most(f"{what} and the loop's, relative", off, 1e-10)
    checks.at_most("the dot test of A", pl.check_adjoint(A), 1e-12)
    off = np.abs(Ab - B @ b).max() / np.abs(Ab).max()
    checks.at_most("A @ b and the band's product, relative", off, 1e-12)
    off = np.abs(direct - flat).max() / np.abs(flat).max()
    checks.at_most("pl.solve of the formula itself, relative", off, 1e-8)
    check_deviations(checks, B, loop, n)
    off = abs(likelihood(track, B, x) / loop.loglik - 1)
    checks.at_most("log likelihood, relative", off, 1e-10)
    error = x - track.truth
    spread = np.einsum("ki,kij,kj->k", error, np.linalg.inv(loop.cov), error).mean() / 4
    checks.between("mean of (error / deviation)^2", spread, 0.8, 1.2)
    save(options.out, track, loop, x)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
