"""`pylinop.pytensor`: value and all gradients of models, with and without it, under numba.

    python benchmarks/pytensor_models.py [--rounds 9] [--only kron] [--alone]

Interleaved in one process: minimum and median of the processor's milliseconds a call, one thread of
OpenBLAS (where the environment does not say otherwise). Answers are compared before anything is
timed. Compile times are wall seconds of a cold or warm numba cache, as it is found. `--alone` has
no side without pylinop, and tells how the programs ran; the last row is a sampler's."""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

import pylinop.pytensor as pp

R = np.random.default_rng(0)


def distances(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def likelihood(K, y):
    """As `pm.MvNormal` writes it."""
    L = pt.linalg.cholesky(K)
    z = pt.linalg.solve_triangular(L, y, lower=True, b_ndim=1)
    return -0.5 * pt.sum(z**2) - pt.shape(y)[0] * pt.sum(pt.log(pt.diag(L)))


def dense(n=1000):
    a, s, v = pt.dscalar("a"), pt.dscalar("s"), pt.dscalar("v")
    x = np.sort(R.random(n))
    K = v * pt.exp(-a * np.subtract.outer(x, x) ** 2) + s * pt.eye(n)
    return [a, s, v], K, [np.array(9.0), np.array(0.1), np.array(1.3)], R.standard_normal((1, n))


def kron(n=40):
    a, b, s = pt.dscalar("a"), pt.dscalar("b"), pt.dscalar("s")
    K = pt.linalg.kron(pt.exp(-a * distances(n)), pt.exp(-b * distances(n))) + s * pt.eye(n * n)
    return (
        [a, b, s],
        K,
        [np.array(0.3), np.array(0.5), np.array(0.1)],
        R.standard_normal((1, n * n)),
    )


def fitc(n=1500, k=40):
    W, d = pt.dmatrix("W"), pt.dvector("d")
    y = R.standard_normal((1, n))
    return [W, d], W @ W.T + pt.diag(d), [R.standard_normal((n, k)), 0.5 + R.random(n)], y


def toeplitz(n=1500):
    a, s = pt.dscalar("a"), pt.dscalar("s")
    K = pt.exp(-a * distances(n)) + s * pt.eye(n)
    return [a, s], K, [np.array(0.3), np.array(0.1)], R.standard_normal((1, n))


def grid(n=1500):
    """A Matern 3/2 kernel on a regular grid, as PyMC writes it."""
    a, length, s = pt.dscalar("a"), pt.dscalar("length"), pt.dscalar("s")
    x = np.linspace(0.0, 30.0, n)[:, None]
    K = a**2 * pm.gp.cov.Matern32(1, ls=length)(x) + s**2 * pt.eye(n)
    values = [np.array(1.2), np.array(0.7), np.array(0.4)]
    return [a, length, s], K, values, R.standard_normal((1, n))


def autoregression(n=1500):
    rho, s = pt.dscalar("rho"), pt.dscalar("s")
    ends = np.r_[1.0, np.zeros(n - 2), 1.0]
    off = pt.diag(-rho * np.ones(n - 1), 1)
    Q = (pt.diag(ends + (1 + rho**2) * (1 - ends)) + off + off.T) / s
    return [rho, s], pt.linalg.inv(Q), [np.array(0.6), np.array(0.4)], R.standard_normal((1, n))


def factors(n=600, k=5):
    W, d = pt.dmatrix("W"), pt.dvector("d")
    y = R.standard_normal((40, n))
    return [W, d], W @ W.T + pt.diag(d), [R.standard_normal((n, k)), 0.5 + R.random(n)], y


def blocks(n=40, count=20):
    parts = [pt.dmatrix(f"A{k}") for k in range(count)]
    values = [(lambda a: a @ a.T / n + np.eye(n))(R.standard_normal((n, n))) for _ in parts]
    return parts, pt.linalg.block_diag(*parts), values, R.standard_normal((1, n * count))


MODELS = {
    "dense GP, n = 1000": dense,
    "dense GP, n = 2000": lambda: dense(2000),
    "Kron 40 x 40 + noise": kron,
    "W W' + D, 1500 x 40": fitc,
    "Toeplitz, n = 1500": toeplitz,
    "pm.gp.cov.Matern32 on a grid, n = 1500": grid,
    "AR(1) by its precision, n = 1500": autoregression,
    "MvNormal, W W' + D, 600 x 5, 40 rows": factors,
    "block diagonal, 20 of 40": blocks,
}


def compiled(inputs, K, y):
    start = time.perf_counter()
    f = pp.rewrite(likelihood(K, pt.constant(y)))
    found = pytensor.function(inputs, [f, *pytensor.grad(f, inputs)], mode="NUMBA")
    return found, start


def timed(f, values, rounds):
    """The processor's milliseconds of each call, new values each time, as of a sampler."""
    found = []
    for k in range(rounds):
        given = [v * (1 + 1e-6 * k) for v in values]
        start = time.process_time()
        f(*given)
        found.append(1e3 * (time.process_time() - start))
    return found


def alone(model, rounds):
    """Milliseconds a call with pylinop, from its tapes, and the roads of the programs."""
    inputs, K, values, y = model()
    f, _ = compiled(inputs, K, y)
    timed(f, values, 4)
    found = timed(f, values, rounds)
    return found, ", ".join(sorted({r.road for r in pp.explain(f)}))


def drawn():
    """The processor's seconds of nutpie: two chains of 200 + 200 draws of a model of 200 rows."""
    import nutpie

    r = np.random.default_rng(0)
    W, y = r.standard_normal((200, 2)), r.standard_normal((20, 200))
    with pm.Model() as model:
        ls, s = pm.HalfNormal("ls", 1), pm.HalfNormal("s", 1)
        L = ls * W
        pm.MvNormal("y", np.zeros(200), cov=L @ L.T + s**2 * pt.eye(200), observed=y)
    settings = {"draws": 200, "tune": 200, "chains": 2, "cores": 2, "progress_bar": False}
    compiled = nutpie.compile_pymc_model(model, backend="numba")
    found = []
    for seed in (1, 2, 3):
        start = time.process_time()
        nutpie.sample(compiled, seed=seed, **settings)
        found.append(time.process_time() - start)
    return found


def measured(model, rounds):
    inputs, K, values, y = model()
    on, start = compiled(inputs, K, y)
    found = on(*values)
    compile_on = time.perf_counter() - start
    with pp.off():
        off, start = compiled(inputs, K, y)
        due = off(*values)
        compile_off = time.perf_counter() - start
    worst = 0.0
    for a, b in zip(found[:1] if model is blocks else found, due, strict=False):
        worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max()))
    assert worst < 1e-8, worst
    times = {"on": [], "off": []}
    for k in range(rounds):
        given = [v * (1 + 1e-6 * k) for v in values]
        for name, f in (("on", on), ("off", off)):
            times[name] += timed(f, given, 1)
    return times, worst, compile_on, compile_off


def compare(name, model, rounds):
    """A row with pylinop and without."""
    times, worst, on, off = measured(model, rounds)
    best = {k: min(v) for k, v in times.items()}
    mid = {k: float(np.median(v)) for k, v in times.items()}
    print(
        f"| {name} | {best['on']:.2f} ({mid['on']:.2f}) | {best['off']:.2f} ({mid['off']:.2f}) "
        f"| {best['on'] / best['off']:.3f} | {on:.1f}, {off:.1f} | {worst:.0e} |",
        flush=True,
    )


def tell(name, found, unit, road=""):
    """A row of pylinop's side."""
    print(f"| {name} | {min(found):.3f} ({np.median(found):.3f}) {unit} | {road} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    chosen = {name: model for name, model in MODELS.items() if given.only in name}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    if given.alone:
        print("| model | pylinop, CPU | runs |\n|---|---|---|")
        for name, model in chosen.items():
            found, road = alone(model, given.rounds)
            tell(name, found, "ms", road)
    else:
        print("| model | pylinop, ms | PyTensor, ms | ratio | compile, s | difference |")
        print("|---|---|---|---|---|---|")
        for name, model in chosen.items():
            compare(name, model, given.rounds)
    if given.only in (name := "nutpie, 800 draws, 200 rows"):
        tell(name, drawn(), "s")


if __name__ == "__main__":
    main()
