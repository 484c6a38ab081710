"""Quasi-separable covariances (1-D Gaussian processes) beside celerite2 and a plain compiled loop.

The loop is the Kalman filter of a Matern 3/2 process as one writes it in C, compiled here where
there is a compiler. A likelihood begins with the times and ends with a number; celerite2's Matern
3/2 is approximate by its design, so its answer is compared loosely."""

import ctypes
import os
import subprocess
import tempfile

import numpy as np
from harness import Case, peer
from overhead import rng

import pylinop as pl

SIZES = (100, 1000, 10_000, 100_000)
VARIANCE, LENGTH, NOISE = 2.0, 1.5, 0.1

LOOP = """
#include <math.h>
double loop(long n, const double *t, const double *y, double v, double f, double noise) {
    double m0 = 0, m1 = 0, p00 = v, p01 = 0, p11 = f * f * v, sum = 0, product = 1;
    for (long i = 0; i < n; i++) {
        if (i > 0) {
            double h = t[i] - t[i - 1], e = exp(-f * h);
            double a = e * (1 + f * h), b = e * h, c = -e * f * f * h, d = e * (1 - f * h);
            double q00 = p00 - v, q01 = p01, q11 = p11 - f * f * v, m = a * m0 + b * m1;
            double r0 = a * q00 + b * q01, r1 = a * q01 + b * q11;
            double s0 = c * q00 + d * q01, s1 = c * q01 + d * q11;
            p00 = r0 * a + r1 * b + v;
            p01 = r0 * c + r1 * d;
            p11 = s0 * c + s1 * d + f * f * v;
            m1 = c * m0 + d * m1;
            m0 = m;
        }
        double s = p00 + noise, r = y[i] - m0, k0 = p00 / s, k1 = p01 / s;
        sum += r * r / s;
        product *= s;
        if (product > 1e200 || product < 1e-200) sum += log(product), product = 1;
        m0 += k0 * r;
        m1 += k1 * r;
        p11 -= k1 * p01;
        p01 -= k0 * p01;
        p00 -= k0 * p00;
    }
    return -0.5 * (sum + log(product) + n * log(2 * 3.14159265358979323846));
}
"""


def compiled():
    """The loop as a function of (t, y), None where nothing compiles it."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, library = os.path.join(folder, "loop.c"), os.path.join(folder, "loop.so")
            with open(source, "w") as f:
                f.write(LOOP)
            flags = ["-O3", "-march=native", "-shared", "-fPIC", "-o", library, source, "-lm"]
            subprocess.run([os.environ.get("CC", "cc"), *flags], check=True, capture_output=True)
            function = ctypes.CDLL(library).loop
    except (OSError, subprocess.CalledProcessError):
        return None
    function.restype = ctypes.c_double
    rate = np.sqrt(3) / LENGTH
    numbers = [ctypes.c_double(x) for x in (VARIANCE, rate, NOISE)]

    def loop(t, y):
        return function(
            ctypes.c_long(len(t)), t.ctypes.data_as(ctypes.c_void_p),
            y.ctypes.data_as(ctypes.c_void_p), *numbers,
        )  # fmt: skip

    return loop


def series(n):
    g = rng()
    t = np.cumsum(g.exponential(0.1, n))
    return t, g.standard_normal(n), np.full(n, NOISE)


def ours(kernel, parameters, t, y, noise):
    A = pl.quasiseparable(kernel, t, **parameters) + pl.Diag(noise)
    quad, logdet = pl.inv_quad_logdet(A, y)
    return -0.5 * (quad + logdet + len(y) * np.log(2 * np.pi))


def theirs(term, t, y, noise):
    gp = peer("celerite2").GaussianProcess(term)
    gp.compute(t, diag=noise)
    return gp.log_likelihood(y)


def likelihoods():
    loop, celerite = compiled(), peer("celerite2")
    for n in SIZES:

        def matern(n=n):
            t, y, noise = series(n)
            p = {"variance": VARIANCE, "length_scale": LENGTH}
            case = Case("", "", ours("matern32", p, t, y, noise), rtol=1e-4)
            case.add(
                "pylinop", "pylinop", "f('matern32', p, t, y, d)", f=ours, p=p, t=t, y=y, d=noise
            )
            case.add("floor", "compiled loop", "f(t, y)", f=loop, t=t, y=y)
            term = celerite and celerite.terms.Matern32Term(sigma=VARIANCE**0.5, rho=LENGTH)
            case.add("peer", "celerite2", "f(k, t, y, d)", f=theirs, k=term, t=t, y=y, d=noise)
            if n == SIZES[-1]:
                line = "1-D Matern GP, n = 1e5"
                case.goal("pylinop", "compiled loop", 1.0, line, "the compiled loop's speed")
            return case

        def real(n=n):
            t, y, noise = series(n)
            p = {"a": VARIANCE, "c": 1 / LENGTH}
            case = Case("", "", ours("celerite", p, t, y, noise), rtol=1e-9)
            case.add(
                "pylinop", "pylinop", "f('celerite', p, t, y, d)", f=ours, p=p, t=t, y=y, d=noise
            )
            term = celerite and celerite.terms.RealTerm(**p)
            case.add("peer", "celerite2", "f(k, t, y, d)", f=theirs, k=term, t=t, y=y, d=noise)
            return case

        yield f"quasi/likelihood-matern32-{n}", matern
        yield f"quasi/likelihood-exponential-{n}", real


def solves():
    celerite = peer("celerite2")
    for n in SIZES:

        def build(n=n):
            t, y, noise = series(n)
            A = pl.quasiseparable("oscillator", t, quality=3.0) + pl.Diag(noise)
            case = Case("", "", pl.solve(A, y), rtol=1e-7)
            case.add("pylinop", "pylinop, factor kept", "s(A, y)", s=pl.solve, A=A, y=y)
            gp = None
            if celerite:
                gp = celerite.GaussianProcess(celerite.terms.SHOTerm(sigma=1.0, w0=1.0, Q=3.0))
                gp.compute(t, diag=noise)
            case.add("peer", "celerite2, factor kept", "gp.apply_inverse(y)", gp=gp, y=y)
            return case

        yield f"quasi/solve-oscillator-{n}", build


MAKERS = [likelihoods, solves]
