"""An operator of one's own with all its hooks: the mean over a sliding window.

A user's class needs ``shape``, ``dtype`` and one product; all else is optional, and is used where
it is there. ``Smoother`` replaces each of n numbers by the mean of itself and its neighbours and
leaves a share of what was there,

    A x = (1 - w) x + w mean(x_k-1, x_k, x_k+1)        ends: round again

    _matvec, _matmat     A x and A X, O(n): needed (one of the two)
    _rmatvec             A^H y; ``_adjoint`` (an operator) would do as well
    _solve               what ``pl.solve`` and ``pl.inv(A) @ b`` call
    _logdet              what ``pl.logdet`` calls
    _diagonal            what ``diagonal`` and ``trace`` call

A is a circulant, so pylinop has it ready made (``pl.Circulant``), and every hook is checked against
that. ``pl.check_adjoint`` is the dot test, <A x, y> = <x, A^H y>: it finds the adjoint that someone
forgot to conjugate or to turn round, and the script makes that mistake once to show it.

Run ``python examples/own_operator.py``. The exit status is 1 when a check fails.
"""

import sys

import numpy as np
from _meter import Checks

import pylinop as pl


class Smoother(pl.LinearOperator):
    """A share w of a running mean over three neighbours, round again at the ends."""

    def __init__(self, n, w=0.5, dtype=float):
        super().__init__(dtype, (n, n))
        self.w = w

    def _matvec(self, x):
        return (1 - self.w) * x + self.w / 3 * (np.roll(x, 1) + x + np.roll(x, -1))

    def _matmat(self, X):
        around = np.roll(X, 1, axis=-2) + X + np.roll(X, -1, axis=-2)
        return (1 - self.w) * X + self.w / 3 * around

    def _rmatvec(self, y):
        return self._matvec(y)  # real and symmetric

    def _eigenvalues(self):
        angle = 2 * np.pi * np.arange(self.shape[0]) / self.shape[0]
        return 1 - self.w + self.w / 3 * (1 + 2 * np.cos(angle))

    def _solve(self, b):
        axis = -1 if b.ndim == 1 else -2  # b is a vector, or columns
        s = self._eigenvalues()
        s = s if b.ndim == 1 else s[:, None]
        x = np.fft.ifft(np.fft.fft(b, axis=axis) / s, axis=axis)
        return x if np.iscomplexobj(b) else x.real

    def _logdet(self):
        return np.log(self._eigenvalues()).sum()

    def _diagonal(self, k=0):
        m = self.shape[0]
        inside = {0: 1 - self.w + self.w / 3, 1: self.w / 3, -1: self.w / 3}
        wraps = m - abs(k) == 1  # the corners
        return np.full(max(0, m - abs(k)), inside.get(k, 0.0) + (self.w / 3 if wraps else 0.0))


class Careless(Smoother):
    """The same with the adjoint one step out."""

    def _rmatvec(self, y):
        return np.roll(self._matvec(y), 1)


def ready_made(n, w):
    """The same matrix as pylinop knows it."""
    c = np.zeros(n)
    c[[0, 1, -1]] = 1 - w + w / 3, w / 3, w / 3
    return pl.Circulant(c)


def main():
    """Use every hook, compare, and return the exit status."""
    n, w, checks = 2000, 0.5, Checks()
    rng = np.random.default_rng(0)
    A, C = Smoother(n, w), ready_made(n, w)
    x, X = rng.standard_normal(n), rng.standard_normal((n, 3))
    print(f"A is {A!r}, C is {C!r}")

    def same(what, got, want):
        off = np.abs(np.asarray(got) - want).max() / np.abs(want).max()
        checks.at_most(what, float(off), 1e-12)

    same("A @ x", A @ x, C @ x)
    same("A @ X", A @ X, C @ X)
    same("x @ A", x @ A, x @ C)
    same("A.H @ x", A.H @ x, C.H @ x)
    checks.at_most("the dot test", pl.check_adjoint(A), 1e-12)
    same("diagonal", A.diagonal(), C.diagonal())
    same("diagonal above the main one", A.diagonal(1), C.diagonal(1))
    same("trace", A.trace(), C.trace())
    same("solve", pl.solve(A, x), pl.solve(C, x))
    same("solve, three columns", pl.inv(A) @ X, pl.solve(C, X))
    same("logdet", pl.logdet(A), pl.logdet(C))

    D = pl.Diag(rng.random(n))
    E = D @ A @ A + 2 * pl.Identity(n)  # mixes with all others, and runs as written
    same("in a formula", E @ x, (D @ C @ C + 2 * pl.Identity(n)) @ x)

    try:
        pl.check_adjoint(Careless(n, w))
    except ValueError as error:
        print(f"  the careless one: {str(error).splitlines()[0]}")
    else:
        checks.at_most("mistakes that the dot test missed", 1, 0)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
