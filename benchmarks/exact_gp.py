"""An epoch of gpytorch's ExactGP, loss and gradient, with pylinop's mix-in and without.

    python benchmarks/exact_gp.py [--rounds 5]

Points of a surface with an RBF kernel, and a grid of points, whose covariance is a Kronecker
product of Toeplitz matrices. "Cholesky" is gpytorch's own, exact at every size; "default" goes over
to conjugate gradients and random probes above 800 points. Interleaved in one process, wall time of
a call; loss and gradient are checked against Cholesky's before anything is timed, and what the
default is off by is printed. One thread of OpenBLAS and of torch."""

import argparse
import os
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import callers
import gpytorch
import torch

from pylinop.torch.gpytorch import ExactKernel

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
kernels = gpytorch.kernels


class Scale(ExactKernel, kernels.ScaleKernel):
    """The mix-in on an RBF kernel."""


class Grid(ExactKernel, kernels.GridKernel):
    """The mix-in on a grid."""


class Model(gpytorch.models.ExactGP):
    """As in gpytorch's tutorials."""

    def __init__(self, kernel, X, y):
        super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def epoch(kernel, X, y, cholesky=0):
    """A function that gives the loss and its gradient; Cholesky up to so many points."""
    model = Model(kernel, X, y)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

    def call():
        model.zero_grad()
        with gpytorch.settings.max_cholesky_size(cholesky or 800):
            value = -mll(model(X), y)
            value.backward()
        return value.item(), torch.cat([p.grad.reshape(-1) for p in model.parameters()])

    return call


def surface(n):
    """n points anywhere."""
    X = torch.rand(n, 2)
    y = torch.sin(6 * X[:, 0]) * torch.cos(4 * X[:, 1]) + 0.1 * torch.randn(n)
    made = lambda scale: scale(kernels.RBFKernel(ard_num_dims=2))
    return X, y, made(Scale), made(kernels.ScaleKernel)


def grid(m):
    """m x m points of a grid."""
    lines = [torch.linspace(0, 1, m)] * 2
    X = gpytorch.utils.grid.create_data_from_grid(lines)
    y = torch.sin(6 * X[:, 0]) * torch.cos(4 * X[:, 1]) + 0.1 * torch.randn(m * m)
    made = lambda kind: kind(kernels.RBFKernel(), grid=lines)
    return X, y, made(Grid), made(kernels.GridKernel)


def report(title, X, y, ours, own, rounds):
    """One work."""
    n = len(y)
    calls = {
        "pylinop": epoch(ours, X, y),
        "gpytorch, Cholesky": epoch(own, X, y, n),
        "gpytorch, default": epoch(own, X, y),
    }
    due, gradient = calls["gpytorch, Cholesky"]()
    for name, call in calls.items():
        value, g = call()
        off = abs(value / due - 1), float((abs(g - gradient) / abs(gradient)).max())
        print(f"# {title}, {name}: loss off by {off[0]:.1e}, gradient by {off[1]:.1e}")
        assert name == "gpytorch, default" or (off[0] < 1e-9 and off[1] < 1e-6)
    callers.print_rows(title, "epoch", callers.measured(calls, rounds), "gpytorch, Cholesky")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.manual_seed(0)
    warnings.simplefilter("ignore")  # of gpytorch's own
    print(callers.HEAD.format("Cholesky"))
    for n in (300, 1000, 2000):
        report(f"RBF, n = {n}", *surface(n), given.rounds)
    report("grid, 30 x 30", *grid(30), given.rounds)
