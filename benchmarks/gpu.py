"""`pylinop.torch` on tensors of a GPU, beside the same by hand in torch and linear_operator there.

    python benchmarks/gpu.py [--rounds 20] [--only lowrank,kron,...] [--dtype float64]

Interleaved in one process. A call is timed by the host's clock from one `torch.cuda.synchronize` to
the next; minimum and median over the rounds. Beside them, of one call: how often the host waits for
the device (torch's sync_debug_mode), kernels and copies that the device runs (torch.profiler), and
the most memory that torch takes beyond what the arguments have. Each answer is checked against that
by hand before anything is timed."""

import argparse
import functools
import os
import statistics
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch
from torch_by_hand import low_rank_by_program_and_hand

import pylinop as pl
import pylinop.torch as pt

try:
    import linear_operator as lo
except ImportError:
    lo = None

try:
    import gpytorch

    from pylinop.torch.gpytorch import ExactKernel
except ImportError:
    gpytorch = None

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def normal(*shape):
    return torch.randn(*shape, device=DEVICE)


def likelihood(K, y):
    """Ours: the quadratic form and the logarithm of the determinant, added."""
    quad, logdet = pt.inv_quad_logdet(K, y)
    return quad + logdet


def definite(f):
    """The same, where what is symmetric is factored by Cholesky: NaN where it is not definite."""

    def called(*tensors):
        with pl.config(not_definite="nan"):
            return f(*tensors)

    return called


def by_cholesky(K, y, factor=torch.linalg.cholesky):
    """The same by hand, of a dense matrix."""
    L = factor(K)
    z = torch.linalg.solve_triangular(L, y[:, None], upper=False)
    return (z * z).sum() + 2 * torch.log(torch.diagonal(L)).sum()


def unlooked(K):
    """A Cholesky factor that nobody looks at, which would wait: what a CUDA graph can hold."""
    return torch.linalg.cholesky_ex(K)[0]


def by_theirs(C, y):
    """The same of an operator of linear_operator, exactly, whatever its size."""
    with lo.settings.max_cholesky_size(len(y)):
        quad, log = C.inv_quad_logdet(y[:, None], logdet=True)
    return quad + log


def lowrank(n, k=50):
    d, U, y = 2 + torch.rand(n, device=DEVICE), normal(n, k) / k**0.5, normal(n)

    def theirs(d, U, y):
        return by_theirs(lo.operators.LowRankRootLinearOperator(U).add_diagonal(d), y)

    def ours(d, U, y):
        return likelihood(pt.Diag(d) + pt.LowRank(U), y)

    found = {"pylinop": ours} | low_rank_by_program_and_hand(unlooked)
    return f"LowRank + Diag, n = {n}, k = {k}", (d, U, y), found, theirs


def kron(m):
    a, b = (x @ x.T / m + torch.eye(m, device=DEVICE) for x in (normal(m, m), normal(m, m)))
    s, y = torch.tensor(0.7, device=DEVICE), normal(m * m)

    def ours(a, b, s, y):
        K = pt.Kron(pt.Dense(a, assume_a="sym"), pt.Dense(b, assume_a="sym"))
        return likelihood(K + s * pt.Identity(m * m), y)

    def hand(a, b, s, y):
        (wa, Qa), (wb, Qb) = torch.linalg.eigh(a), torch.linalg.eigh(b)
        D = wa[:, None] * wb[None] + s
        z = Qa.T @ y.reshape(m, m) @ Qb
        return (z * z / D).sum() + torch.log(D).sum()

    def theirs(a, b, s, y):
        K = lo.operators.KroneckerProductLinearOperator(*map(lo.to_linear_operator, (a, b)))
        quad, log = K.add_diagonal(s).inv_quad_logdet(y[:, None], logdet=True)
        return quad + log

    found = {"pylinop": ours, "torch by hand": hand}
    return f"Kron {m} x {m} + s I", (a, b, s, y), found, theirs


def toeplitz_product(n):
    c = torch.exp(-torch.arange(n, device=DEVICE, dtype=torch.float64) / 50).to(normal(1).dtype)
    x = normal(n)

    def ours(c, x):
        return (pt.Toeplitz(c) @ x).square().sum()

    def hand(c, x):
        t = torch.cat([c, c[1:].flip(0)])
        y = torch.fft.irfft(torch.fft.rfft(t) * torch.fft.rfft(x, 2 * n - 1), 2 * n - 1)[:n]
        return y.square().sum()

    def theirs(c, x):
        return (lo.operators.ToeplitzLinearOperator(c) @ x).square().sum()

    found = {"pylinop": ours, "torch by hand": hand}
    return f"Toeplitz @ x, squared and summed, n = {n}", (c, x), found, theirs


def toeplitz(n):
    at = torch.arange(n, device=DEVICE)
    c = torch.exp(-at / 50) + (at == 0)
    y = normal(n)

    def ours(c, y):
        return likelihood(pt.Toeplitz(c), y)

    def hand(c, y):
        return by_cholesky(c[abs(at[:, None] - at)], y)

    def theirs(c, y):
        return by_theirs(lo.operators.ToeplitzLinearOperator(c), y)

    found = {"pylinop": ours, "pylinop, Cholesky": definite(ours), "torch by hand": hand}
    return f"Toeplitz likelihood, n = {n}", (c.to(y.dtype), y), found, theirs


def dense(n):
    X = normal(n, 4)
    K = torch.exp(-(torch.cdist(X, X) ** 2) / 2) + torch.eye(n, device=DEVICE)

    def ours(K, y):
        return likelihood(pt.Dense(K, assume_a="pos"), y)

    def theirs(K, y):
        return by_theirs(lo.to_linear_operator(K), y)

    found = {"pylinop": ours, "torch by hand": by_cholesky}
    found["torch by hand, unlooked"] = functools.partial(by_cholesky, factor=unlooked)
    return f"Dense positive definite, n = {n}", (K, normal(n)), found, theirs


def kernel(n):
    X, y = normal(n, 4), normal(n)
    log_scale, s = torch.tensor(0.1, device=DEVICE), torch.tensor(0.9, device=DEVICE)

    def ours(log_scale, s, y):
        K = pt.Kernel("rbf", X, length_scale=torch.exp(log_scale))
        return likelihood(K + s * pt.Identity(n), y)

    def hand(log_scale, s, y):
        Z = X / torch.exp(log_scale)
        square = (Z * Z).sum(-1)
        distances = square[:, None] + square - 2 * Z @ Z.T
        K = torch.exp(-distances.clamp_min(0) / 2) + s * torch.eye(n, device=DEVICE)
        return by_cholesky(K, y)

    found = {"pylinop": ours, "pylinop, Cholesky": definite(ours), "torch by hand": hand}
    return f"GP with an RBF kernel, n = {n}", (log_scale, s, y), found, None


def value_and_grad(f, tensors):
    """(value, gradients by all but the last tensor)."""
    for t in tensors[:-1]:
        t.grad = None
    value = f(*tensors)
    value.backward()
    return value.detach(), [t.grad for t in tensors[:-1]]


# -- what a call does --


def waits(call):
    """How often the host waits in a call."""
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(w.message) for w in seen)


def launches(call):
    """Kernels and copies of a call on the device."""
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as seen:
        call()
        torch.cuda.synchronize()
    on = torch.autograd.DeviceType.CUDA
    return sum(e.device_type == on and "sync" not in e.name.lower() for e in seen.events())


def memory(call):
    """MiB that a call takes at most."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def measured(calls, rounds):
    """{name: (minimum, median)} in microseconds, by turns."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, f in calls.items():
            wait()
            start = time.perf_counter()
            f()
            wait()
            times[name].append(1e6 * (time.perf_counter() - start))
    return {name: (min(t), statistics.median(t)) for name, t in times.items()}


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


HEAD = (
    "| work | dtype | | contender | min us | median us | to torch by hand "
    "| waits | kernels | MiB |\n|---|---|---|---|---|---|---|---|---|---|"
)


def print_rows(title, what, calls, rounds, peer="torch by hand"):
    dtype = str(torch.get_default_dtype()).rpartition(".")[2]
    found = measured(calls, rounds)
    for name, (low, middle) in found.items():
        beside = "| | "
        if DEVICE == "cuda":
            f = calls[name]
            beside = f"{waits(f)} | {launches(f)} | {memory(f):.0f}"
        ratio = middle / found[peer][1]
        print(
            f"| {title} | {dtype} | {what} | {name} | {low:.0f} | {middle:.0f} | {ratio:.2f} | "
            f"{beside} |",
            flush=True,
        )


def off(x, due):
    return float(abs(x - due).max() / abs(due).max().clamp_min(1e-30))


def symmetric(g):
    square = g.ndim == 2 and g.shape[0] == g.shape[1]
    return (g + g.T) / 2 if square else g


def checked(title, contenders, way):
    """Those that answer as torch by hand does; what others do is said."""
    value, grads = way(contenders["torch by hand"])
    most = 1e-6 if value.dtype == torch.float64 else 3e-2
    good = {}
    for name, f in contenders.items():
        try:
            v, gs = way(f)
            far = max(
                [off(v, value), *(off(symmetric(g), symmetric(h)) for g, h in zip(gs, grads))]
            )
        except Exception as error:
            print(f"# {title}, {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        if far <= most:
            good[name] = f
        else:
            print(f"# {title}, {name}: off by {far:.1e}", flush=True)
    return good


def graphed(title, contenders, tensors):
    """Those that `torch.cuda.make_graphed_callables` takes, called as one launch."""
    found = {}
    for name in ("pylinop", "torch by hand, unlooked"):
        if DEVICE == "cuda" and name in contenders:
            try:
                f = contenders[name]
                for _ in range(3):  # of three calls on there is a record
                    f(*tensors)
                found[f"{name}, CUDA graph"] = torch.cuda.make_graphed_callables(f, tuple(tensors))
            except RuntimeError as error:
                torch.cuda.synchronize()
                print(f"# {title}, {name}, no CUDA graph: {str(error)[:200]}", flush=True)
    return found


def report(work, rounds):
    """One work, its value and its value with the gradient."""
    title, arrays, contenders, theirs = work
    if lo is not None and theirs is not None:
        contenders = contenders | {"linear_operator": theirs}
    tensors = [t.detach().clone().requires_grad_() for t in arrays]
    tensors[-1].requires_grad_(False)
    plain = [t.detach() for t in tensors]
    ways = {
        "value": lambda f: (f(*plain), []),
        "value + grad": lambda f: value_and_grad(f, tensors),
    }
    for (what, way), given in zip(ways.items(), (plain, tensors), strict=True):
        whole = contenders | graphed(f"{title}, {what}", contenders, given)
        good = checked(f"{title}, {what}", whole, way)
        print_rows(title, what, {k: functools.partial(way, f) for k, f in good.items()}, rounds)


# -- gpytorch --


def exact_gp(n, rounds):
    """An epoch's loss and gradient, with the mix-in and without."""
    kernels = gpytorch.kernels

    class Scale(ExactKernel, kernels.ScaleKernel):
        pass

    class Model(gpytorch.models.ExactGP):
        def __init__(self, kernel, X, y):
            super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel

        def forward(self, x):
            one = gpytorch.distributions.MultivariateNormal
            return one(self.mean_module(x), self.covar_module(x))

    X = torch.rand(n, 2, device=DEVICE)
    y = torch.sin(6 * X[:, 0]) + 0.1 * normal(n)

    def epoch(kernel, cholesky):
        model = Model(kernel, X, y).to(DEVICE)
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

        def call():
            model.zero_grad()
            with gpytorch.settings.max_cholesky_size(cholesky):
                value = -mll(model(X), y)
                value.backward()
            return value.detach(), [p.grad for p in model.parameters()]

        return call

    made = lambda scale: scale(kernels.RBFKernel(ard_num_dims=2))
    calls = {
        "pylinop": epoch(made(Scale), n),
        "gpytorch, Cholesky": epoch(made(kernels.ScaleKernel), n),
        "gpytorch, default": epoch(made(kernels.ScaleKernel), 800),
    }
    due, grads = calls["gpytorch, Cholesky"]()
    for name, call in calls.items():
        v, gs = call()
        far = off(v, due), max(off(g, h) for g, h in zip(gs, grads))
        print(f"# ExactGP, {name}: loss off by {far[0]:.1e}, gradient by {far[1]:.1e}")
    print_rows(f"ExactGP, RBF, n = {n}", "epoch", calls, rounds, "gpytorch, Cholesky")


WORKS = {
    "lowrank": lambda: [lowrank(100, 10), lowrank(10_000), lowrank(100_000)],
    "kron": lambda: [kron(200)],
    "product": lambda: [toeplitz_product(4000), toeplitz_product(100_000)],
    "toeplitz": lambda: [toeplitz(4000)],
    "dense": lambda: [dense(4000)],
    "kernel": lambda: [kernel(4000)],
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default=",".join([*WORKS, "gp"]))
    parser.add_argument("--dtype", default="float64,float32")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of linear_operator's own, and what is made dense
    torch.manual_seed(0)
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU"
    print(f"# {name}, torch {torch.__version__}\n{HEAD}", flush=True)
    for dtype in given.dtype.split(","):
        torch.set_default_dtype(getattr(torch, dtype))
        for part in given.only.split(","):
            if part == "gp":
                if gpytorch is not None:
                    exact_gp(2000, given.rounds)
                continue
            for one in WORKS[part]():
                report(one, given.rounds)
