"""Values with gradients: likelihoods by their parameters, by `pl.value_and_grad` of a function and
of a `pl.program`, and by hand in NumPy and LAPACK. Parameters change between calls, so that nothing
is kept."""

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl


def flat(value, grads):
    return np.concatenate([np.ravel(value), *map(np.ravel, grads)])


def case_of(f, parameters, hand, name, rtol=1e-8):
    """`parameters()` gives a tuple of arrays, new ones each time."""
    every = tuple(range(len(parameters())))
    both = pl.value_and_grad(f, every)
    case = Case("", "", flat(*both(*parameters())), rtol=rtol)
    case.add(
        "pylinop", "pylinop value and gradient", "flat(*g(*p()))", g=both, p=parameters, flat=flat
    )
    program = pl.value_and_grad(pl.program(f), every)
    case.add(
        "program", "pylinop's of a pl.program", "flat(*g(*p()))", g=program, p=parameters, flat=flat
    )
    case.add("hand", name, "h(*p())", h=hand, p=parameters)
    return case


def dense():
    linalg = peer("scipy.linalg")
    if not linalg:
        return

    def build():
        g = rng()
        X, y = g.standard_normal((1000, 3)), g.standard_normal(1000)
        theta = np.array([1.2, 0.9, 0.3])

        def parameters():
            theta[0] += 1e-13
            return (theta,)

        def nll(p):
            K = pl.Kernel("rbf", X, variance=p[0], length_scale=p[1]) + p[2] * pl.Identity(1000)
            quad, log = pl.inv_quad_logdet(K, y)
            return 0.5 * (quad + log)

        S = ((X[:, None] - X[None]) ** 2).sum(-1)

        def hand(p):
            F = p[0] * np.exp(-0.5 * S / p[1] ** 2)
            K = F + p[2] * np.eye(1000)
            L = linalg.lapack.dpotrf(K, lower=1)[0]
            a = linalg.cho_solve((L, True), y)
            P = linalg.lapack.dpotri(L, lower=1)[0]
            G = 0.5 * (P + np.tril(P, -1).T - np.outer(a, a))
            value = 0.5 * y @ a + np.log(L.diagonal()).sum()
            GF = G * F
            return np.r_[value, GF.sum() / p[0], (GF * S).sum() / p[1] ** 3, np.trace(G)]

        return case_of(nll, parameters, hand, "numpy, potrf, potri")

    yield "gradients/gp-1000x3", build


def low_rank(n, k):
    def build():
        g = rng()
        d, U, y = g.uniform(1, 2, n), g.standard_normal((n, k)), g.standard_normal(n)

        def parameters():
            d[0] += 1e-13
            return d, U

        def nll(d, U):
            quad, log = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), y)
            return 0.5 * (quad + log)

        def hand(d, U):
            W = U / d[:, None]
            S = np.eye(k) + U.T @ W
            L = np.linalg.cholesky(S)
            P = np.linalg.inv(S)
            a = y / d - W @ (P @ (W.T @ y))
            B = W @ P
            value = 0.5 * (y @ a + np.log(d).sum()) + np.log(L.diagonal()).sum()
            by_d, by_U = 0.5 * (1 / d - (B * W).sum(1) - a * a), B - np.outer(a, a @ U)
            return np.r_[value, by_d, by_U.ravel()]

        return case_of(nll, parameters, hand, "numpy by Woodbury")

    return build


def structured():
    for n, k in ((100, 10), (10_000, 10), (100_000, 50)):
        yield f"gradients/lowrank-{n}x{k}", low_rank(n, k)

    def toeplitz():
        g = rng()
        t, y, w = np.exp(-np.arange(2000) / 3.0), g.standard_normal(2000), g.standard_normal(2000)
        t[0] += 0.5

        def parameters():
            t[0] += 1e-13
            return (t,)

        def f(t):
            return pl.solve(pl.Toeplitz(t), y) @ w

        linalg, fft = peer("scipy.linalg"), peer("scipy.fft")

        def hand(t):
            x, z = linalg.solve_toeplitz(t, np.c_[y, w]).T
            fx, fz = (fft.rfft(v, 4096) for v in (x, z))
            c = -fft.irfft(fz * fx.conj() + fz.conj() * fx, 4096)[:2000]
            c[0] /= 2
            return np.r_[x @ w, c]

        return case_of(f, parameters, hand, "scipy Levinson, FFT")

    yield "gradients/toeplitz-2000", toeplitz


def kron():
    def build():
        g, n = rng(), 200
        roots = g.standard_normal((2, n, n))
        A, B = (R @ R.T / n + np.eye(n) for R in roots)
        y, s = g.standard_normal(n * n), np.array(0.3)

        def parameters():
            s[...] += 1e-13
            A[0, 0] += 1e-13
            return A, B, s

        def nll(A, B, s):
            K = pl.Kron(pl.Dense(A, "pos"), pl.Dense(B, "pos")) + s * pl.Identity(n * n)
            quad, log = pl.inv_quad_logdet(K, y)
            return 0.5 * (quad + log)

        def hand(A, B, s):
            (a, P), (b, Q) = np.linalg.eigh(A), np.linalg.eigh(B)
            w = np.multiply.outer(a, b) + s
            Y = P.T @ y.reshape(n, n) @ Q
            X = Y / w
            value = 0.5 * (np.vdot(Y, X) + np.log(w).sum())
            by_A = P @ (np.diag(((1 / w) * b).sum(1)) - (X * b) @ X.T) @ P.T / 2
            by_B = Q @ (np.diag(((1 / w).T * a).sum(1)) - (X.T * a) @ X) @ Q.T / 2
            by_s = 0.5 * ((1 / w).sum() - np.vdot(X, X))
            return flat(value, (by_A, by_B, by_s))

        return case_of(nll, parameters, hand, "numpy, eigenvectors")

    yield "gradients/kron-200x200", build


def scalar():
    def build():
        g, n = rng(), 100
        U, s = g.standard_normal((n, 10)), np.array(1.3)

        def parameters():
            s[...] += 1e-9
            return (s,)

        def f(s):
            return pl.logdet(s * pl.Identity(n) + pl.LowRank(U))

        def hand(s):
            S = s * np.eye(10) + U.T @ U
            L = np.linalg.cholesky(S)
            value = 2 * np.log(L.diagonal()).sum() + (n - 10) * np.log(s)
            return np.r_[value, np.trace(np.linalg.inv(S)) + (n - 10) / s]

        return case_of(f, parameters, hand, "numpy by Woodbury", rtol=1e-6)

    yield "gradients/new-scalar-100", build


def markov():
    """A Matern-3/2 process at 100,000 times; by hand: central differences of the value, which is
    one sweep that keeps nothing."""

    def build():
        g, n = rng(), 100_000
        t = np.sort(g.random(n)) * n / 10
        y, theta = np.sin(t / 10) + 0.1 * g.standard_normal(n), np.array([1.3, 3.0, 0.2])

        def parameters():
            theta[0] += 1e-13
            return (theta,)

        def nll(p):
            K = pl.quasiseparable("matern32", t, variance=p[0], length_scale=p[1])
            quad, log = pl.inv_quad_logdet(K + p[2] * pl.Identity(n), y)
            return 0.5 * (quad + log)

        def hand(p):
            step = 1e-5 * np.eye(3)
            return np.r_[nll(p), [(nll(p + h) - nll(p - h)) / 2e-5 for h in step]]

        return case_of(nll, parameters, hand, "by seven values", rtol=1e-5)

    yield "gradients/markov-100000", build


def multiple():
    """Matern-3/2 at 3,000 times, by the number of a multiple of the matrix; by hand: by its
    variance, a parameter of the process itself."""

    def build():
        g, n = rng(), 3000
        t = np.sort(g.random(n)) * n / 10
        y, theta = np.sin(t / 10) + 0.1 * g.standard_normal(n), np.array([1.3, 0.2])

        def parameters():
            theta[0] += 1e-13
            return (theta,)

        def nll(K, p):
            quad, log = pl.inv_quad_logdet(K + p[1] * pl.Identity(n), y)
            return 0.5 * (quad + log)

        def scaled(p):
            return nll(p[0] * pl.quasiseparable("matern32", t, length_scale=3.0), p)

        def own(p):
            return nll(pl.quasiseparable("matern32", t, variance=p[0], length_scale=3.0), p)

        both = pl.value_and_grad(own)
        return case_of(scaled, parameters, lambda p: flat(*both(p)), "by the variance")

    yield "gradients/multiple-of-markov-3000", build


MAKERS = [dense, structured, kron, scalar, markov, multiple]
