"""Is the answer of a function of an operator right? By what it has to satisfy beside the dense
form, with NumPy and SciPy: `wrong(name, ...)` says what is not, or nothing."""

import functools

import numpy as np
import scipy.linalg

import pylinop as pl
from pylinop._structured import square_roots

TINY = 1e-300


def array(x):
    return x.toarray() if isinstance(x, pl.LinearOperator) else np.asarray(x)


def adj(a):
    return np.swapaxes(a, -1, -2).conj()


def each(f, a):
    """Of each matrix of a batch."""
    found = [f(a[i]) for i in np.ndindex(a.shape[:-2])]
    return np.stack(found).reshape(*a.shape[:-2], *found[0].shape)


def far(got, want, size, allowed):
    """How ``got`` is further from ``want`` than ``allowed`` times size; "" if it is not."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"of shape {got.shape}, not {want.shape}"
    if not np.isfinite(want).all():
        return "" if not np.isfinite(got).all() else "finite"
    off = np.abs(got - want).max(initial=0) / max(size, TINY)
    return "" if off <= allowed else f"off by {off:.2g}"


def frame(q, allowed):
    """Orthonormal columns?"""
    k = q.shape[-1]
    return far(adj(q) @ q, np.broadcast_to(np.eye(k), (*q.shape[:-2], k, k)), 1, allowed)


def read(a):
    """What functions of Hermitian matrices read: the lower triangle and its mirror."""
    low = np.tril(a, -1)
    return low + adj(low) + np.diagonal(a, 0, -2, -1).real[..., None] * np.eye(a.shape[-1])


def other_spectrum(a, w, size):
    """Are these the eigenvalues, each with the same multiplicity?"""
    for i in np.ndindex(a.shape[:-2]):
        left = list(np.linalg.eigvals(a[i]))
        for value in w[i]:
            at = int(np.argmin(np.abs(np.array(left) - value)))
            if abs(left.pop(at) - value) > 1e-5 * size:
                return f"no eigenvalue {value}"
    return ""


class Checks:
    """One matrix, or a batch, with its singular values; a method a function."""

    def __init__(self, a, args):
        self.a = a = a.astype(float) if a.dtype.kind in "biu" else a
        self.m, self.n = a.shape[-2:]
        self.args, self.least = args, min(self.m, self.n)
        self.allowed = 1e-9 * max(self.n, 1)

    @functools.cached_property
    def s(self):
        return np.linalg.svd(self.a, compute_uv=False) if self.a.size else np.zeros((0,))

    @functools.cached_property
    def size(self):
        return max(np.abs(self.a).max(initial=0) if self.n > 300 else self.s.max(initial=0), TINY)

    @functools.cached_property
    def counts(self):
        return self.s > 1e-12 * self.size

    @property
    def rank(self):
        return self.counts.sum(-1).max(initial=0)

    @property
    def clear(self):
        """Is it clear which singular values count?"""
        return not (self.counts ^ (self.s > 1e-15 * self.size)).any()

    @property
    def smallest(self):
        return self.s[self.counts].min(initial=self.size)

    @property
    def cond(self):
        return min(self.size / self.smallest, 1e6)

    @property
    def regular(self):
        return self.counts.all()

    def svdvals(self, s):
        return far(s, self.s, self.size, 1e-9)

    def matrix_norm(self, found):
        want = np.linalg.norm(self.a, *(self.args or ("fro",)), axis=(-2, -1))
        return far(found, want, max(np.max(want), self.size), 1e-9)

    def cond_(self, found):
        p = self.args[0] if self.args else None
        if not self.s.any():
            return "" if np.isinf(found).all() else f"{found} of zeros"
        if p == -2:
            return far(found * self.s[..., 0], self.s[..., -1], self.size, 1e-9)
        if not self.regular:
            return "" if np.max(found) > 1e10 else f"{found} of a singular matrix"
        want = np.linalg.cond(self.a, p)
        return far(found, want, np.max(want), 1e-9 * self.cond)

    def matrix_rank(self, found):
        return far(found, np.linalg.matrix_rank(self.a), 1, 0) if self.clear else ""

    def eigvalsh(self, w):
        return far(w, np.linalg.eigvalsh(self.a), self.size, 1e-9)

    def eigh(self, found):
        w, q = map(array, found)
        whole = far((q * w[..., None, :]) @ adj(q), read(self.a), self.size, self.allowed)
        return self.eigvalsh(w) or whole or frame(q, self.allowed)

    def eig(self, found):
        w, v = map(array, found)
        off = far(self.a @ v, v * w[..., None, :], self.size, 1e-7)
        lengths = far(np.linalg.norm(v, axis=-2), np.ones(w.shape), 1, 1e-8)
        return off or lengths or other_spectrum(self.a, w, self.size)

    def eigvals(self, w):
        return other_spectrum(self.a, array(w), self.size)

    def svd(self, found):
        u, s, vh = map(array, found)
        k = self.least
        whole = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
        off = self.svdvals(s) or far(whole, self.a, self.size, self.allowed)
        return off or frame(u, self.allowed + 1e-8) or frame(adj(vh), self.allowed)

    def pinv(self, found):
        want = np.linalg.pinv(self.a)
        near = far(array(found), want, np.abs(want).max(initial=0), 1e-9 * self.cond)
        return near if self.clear else ""

    def lstsq(self, found):
        b = self.args[0]
        size = np.linalg.norm(b) / self.smallest
        near = far(array(found[0]), np.linalg.pinv(self.a) @ b, size, 1e-9 * self.cond)
        return near if self.clear else ""

    def qr(self, found):
        q, r = map(array, found)
        off = far(q @ r, self.a, self.size, self.allowed) or frame(q, self.allowed)
        return off or "R is no triangle" * bool(np.tril(r, -1).any())

    def lu(self, found):
        p, low, up = map(array, found)
        off = far(p @ low @ up, self.a, self.size, self.allowed)
        return off or "no triangles" * bool(np.tril(up, -1).any() or np.triu(low, 1).any())

    def ldl(self, found):
        low, d, order = map(array, found)
        off = far(low @ d @ adj(low), read(self.a), self.size, 10 * self.allowed)
        rows = np.take_along_axis(low, order[..., :, None], -2)
        return off or "L is no triangle" * bool(np.triu(rows, 1).any())

    def cholesky(self, found):
        low = array(found)
        off = far(low @ adj(low), read(self.a), self.size, self.allowed)
        return off or "L is no triangle" * bool(np.triu(low, 1).any())

    def null_space(self, found):
        q = array(found)
        if not self.clear:
            return ""
        zeros = np.zeros((*self.a.shape[:-1], self.n - self.rank))
        return far(self.a @ q, zeros, self.size, self.allowed) or frame(q, self.allowed)

    def orth(self, found):
        q = array(found)
        if not self.clear:
            return ""
        whole = far(q @ (adj(q) @ self.a), self.a, self.size, self.allowed)
        count = "" if q.shape[-1] == self.rank else f"{q.shape[-1]} columns of rank {self.rank}"
        return whole or frame(q, self.allowed) or count

    def expm(self, found):
        if self.size > 300:
            return ""
        want = each(scipy.linalg.expm, self.a)
        return far(array(found), want, np.abs(want).max(initial=0), 1e-7)

    def funm(self, found):
        want = each(scipy.linalg.cosm, self.a)
        return far(array(found), want, np.abs(want).max(initial=1), 1e-6)

    def sqrtm(self, found):
        x = array(found)
        w = each(np.linalg.eigvals, x)
        left = (w.real < -1e-5 * np.abs(w).max(initial=0)).any()
        off = far(x @ x, self.a, self.size, 1e-8 * min(self.cond, 1e5))
        return off or "not the principal root" * bool(left)

    def fractional_matrix_power(self, found):
        """Of 0.3: its tenth power is A^3."""
        x = array(found).astype(complex)
        w = each(np.linalg.eigvals, x)
        large = np.abs(w) > 1e-4 * np.abs(w).max(initial=0)
        far_off = (np.abs(np.angle(w[large])) > 0.3 * np.pi + 1e-6).any()
        ten, three = np.linalg.matrix_power(x, 10), np.linalg.matrix_power(self.a, 3)
        allowed = 1e-8 * min(self.cond, 1e5) if self.regular else 1e-4
        return far(ten, three, self.size**3, allowed) or "not principal" * bool(far_off)

    def logm(self, found):
        x = array(found).astype(complex)
        off = far(each(scipy.linalg.expm, x), self.a, self.size, 1e-8 * min(self.cond, 1e5))
        turned = np.abs(each(np.linalg.eigvals, x).imag).max(initial=0) > np.pi + 1e-6
        return off or "not principal" * bool(turned)

    def sqrt_inv_matmul(self, found):
        if not self.regular:
            return "the root of the inverse of a singular matrix"
        w, q = np.linalg.eigh(self.a)
        want = (q / np.sqrt(w)[..., None, :]) @ adj(q) @ self.args[0]
        return far(found, want, np.abs(want).max(initial=0), 1e-8 * self.cond)


def wrong(name, op, a, found, args):
    """What is wrong with the answer of a function, beside the dense form of its operator."""
    checks = Checks(a, args)
    if name == "sample":  # the root that draws are made with
        r = array(square_roots.root(op))
        return far(r @ adj(r), checks.a, checks.size, 10 * checks.allowed)
    return getattr(checks, "cond_" if name == "cond" else name)(found)
