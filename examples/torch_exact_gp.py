"""gpytorch's ExactGP, exact at any size: a kernel with pylinop's mix-in, beside gpytorch's own.

1000 noisy points of a surface, a scaled RBF kernel with two length scales. From 801 points on
gpytorch's likelihood is an estimate; with the mix-in it is computed.

Checked: loss and gradient agree with gpytorch's own Cholesky factor to rounding; how far off the
default is, is printed; twenty steps of Adam lower the loss; predictions agree; points on a grid
go by the Kronecker product of two Toeplitz matrices.

    python examples/torch_exact_gp.py

The exit status is 1 when a check fails.
"""

import sys
import warnings

import gpytorch
import torch

from pylinop.torch.gpytorch import ExactKernel

POINTS, STEPS = 1000, 20
torch.set_default_dtype(torch.float64)


class Scale(ExactKernel, gpytorch.kernels.ScaleKernel):
    """The mix-in goes before the outermost kernel."""


class Grid(ExactKernel, gpytorch.kernels.GridKernel):
    """Of points on a grid."""


class Model(gpytorch.models.ExactGP):
    """As in gpytorch's tutorials."""

    def __init__(self, kernel, X, y):
        super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def loss(model, y):
    """The loss, and its gradient by all parameters."""
    model.train()
    model.zero_grad()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    value = -mll(model(*model.train_inputs), y)
    value.backward()
    return value.item(), torch.cat([p.grad.reshape(-1) for p in model.parameters()])


def off(a, b):
    """The largest relative difference."""
    return float((abs(a - b) / abs(b)).max())


def main():
    torch.manual_seed(0)
    warnings.filterwarnings("ignore", category=gpytorch.utils.warnings.NumericalWarning)
    X = torch.rand(POINTS, 2)
    y = torch.sin(6 * X[:, 0]) * torch.cos(4 * X[:, 1]) + 0.1 * torch.randn(POINTS)
    kernels = gpytorch.kernels
    ours = Model(Scale(kernels.RBFKernel(ard_num_dims=2)), X, y)
    own = Model(kernels.ScaleKernel(kernels.RBFKernel(ard_num_dims=2)), X, y)
    value, gradient = loss(ours, y)
    with gpytorch.settings.max_cholesky_size(POINTS):
        due, due_gradient = loss(own, y)
    estimate, estimated = loss(own, y)
    for name, one, g in (("pylinop", value, gradient), ("default", estimate, estimated)):
        print(f"{name}: loss off by {abs(one / due - 1):.1e}, gradient {off(g, due_gradient):.1e}")
    good = abs(value / due - 1) < 1e-10 and off(gradient, due_gradient) < 1e-7

    adam = torch.optim.Adam(ours.parameters(), lr=0.1)
    for _ in range(STEPS):
        last = loss(ours, y)[0]
        adam.step()
    print(f"loss {value:.4f}, after {STEPS} steps {last:.4f}")
    own.load_state_dict(ours.state_dict())
    at = torch.rand(50, 2)
    for model in (ours, own):
        model.eval()
    with torch.no_grad(), gpytorch.settings.max_cholesky_size(POINTS):
        one, two = (model.likelihood(model(at)) for model in (ours, own))
    pairs = (one.mean, two.mean), (one.variance, two.variance)
    apart = max(float(abs(a - b).max()) for a, b in pairs)
    print(f"predictions are {apart:.1e} apart")
    good = good and last < value and apart < 1e-8

    axes = [torch.linspace(0, 1, 30), torch.linspace(0, 1, 40)]
    grid = Grid(kernels.RBFKernel(), axes)
    points = gpytorch.utils.grid.create_data_from_grid(axes)
    print(f"{len(points)} points on a grid: {grid(points).evaluate_kernel().operator!r}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
