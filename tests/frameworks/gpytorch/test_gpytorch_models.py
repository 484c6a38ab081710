"""ExactGP with kernels that have the mix-in: losses, gradients and predictions are those of
gpytorch's Cholesky, on both sides of the size from which gpytorch goes over to estimates."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
gpytorch = pytest.importorskip("gpytorch")

from pylinop.torch.gpytorch import ExactKernel, PylinopLinearOperator

kernels = gpytorch.kernels


class Scale(ExactKernel, kernels.ScaleKernel):
    pass


class Grid(ExactKernel, kernels.GridKernel):
    pass


class Multitask(ExactKernel, kernels.MultitaskKernel):
    pass


def gp(kernel, X, y):
    class GP(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = kernel

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    return GP().double()


def loss(model, y):
    model.train()
    model.zero_grad()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    value = -mll(model(*model.train_inputs), y)
    value.backward()
    return value.item(), torch.cat([p.grad.reshape(-1) for p in model.parameters()])


def predicted(model, x):
    model.eval()
    with torch.no_grad():
        found = model.likelihood(model(x))
        return found.mean, found.variance


def exact():
    return gpytorch.settings.max_cholesky_size(10**6)


def drawn(n):
    X = torch.rand(n, 2, dtype=torch.float64)
    return X, torch.sin(6 * X[:, 0]) + 0.1 * torch.randn(n, dtype=torch.float64)


@pytest.mark.parametrize("n", [7, 850])
def test_exact_gp(n):
    X, y = drawn(n)
    ours = gp(Scale(kernels.RBFKernel(ard_num_dims=2)), X, y)
    own = gp(kernels.ScaleKernel(kernels.RBFKernel(ard_num_dims=2)), X, y)
    assert ours.state_dict().keys() == own.state_dict().keys()
    assert isinstance(ours.covar_module(X).evaluate_kernel(), PylinopLinearOperator)
    (value, gradient), x = loss(ours, y), torch.rand(5, 2, dtype=torch.float64)
    with exact():
        due, due_gradient = loss(own, y)
        means, variances = predicted(own, x)
    assert abs(value - due) <= 1e-10 * abs(due)
    assert torch.allclose(gradient, due_gradient, rtol=1e-8, atol=1e-10)
    mean, variance = predicted(ours, x)
    assert torch.allclose(mean, means, rtol=1e-8) and torch.allclose(variance, variances, rtol=1e-8)


def test_training_goes_down_and_is_what_gpytorch_does():
    X, y = drawn(60)
    losses = []
    for kernel in (
        Scale(kernels.MaternKernel(nu=2.5)),
        kernels.ScaleKernel(kernels.MaternKernel()),
    ):
        model = gp(kernel, X, y)
        adam = torch.optim.Adam(model.parameters(), lr=0.1)
        run = []
        for _ in range(20):
            run.append(loss(model, y)[0])
            adam.step()
        losses.append(run)
    assert losses[0][-1] < losses[0][0] - 0.1
    assert torch.allclose(*map(torch.tensor, losses), rtol=1e-8)


def test_structure_of_grids():
    """A Kronecker product of Toeplitz matrices and the noise: nothing n x n is made."""
    sizes = (9, 11)
    grid = [torch.linspace(0, 1, k, dtype=torch.float64) for k in sizes]
    X = gpytorch.utils.grid.create_data_from_grid(grid)
    y = torch.randn(len(X), dtype=torch.float64)
    ours, own = (gp(k(kernels.RBFKernel(), grid), X, y) for k in (Grid, kernels.GridKernel))
    found = ours.covar_module(X).evaluate_kernel().operator._node
    assert found.name == "Kron"
    value, gradient = loss(ours, y)
    with exact():
        due, due_gradient = loss(own, y)
    assert abs(value - due) <= 1e-9 * abs(due)
    assert torch.allclose(gradient, due_gradient, rtol=1e-6, atol=1e-9)


def test_multitask_covariance():
    X, _ = drawn(6)
    kernel = Multitask(kernels.RBFKernel(), num_tasks=2, rank=1).double()
    K = kernel(X).evaluate_kernel()
    assert K.operator._node.name == "Kron"
    own = kernels.MultitaskKernel(kernels.RBFKernel(), num_tasks=2, rank=1).double()
    own.load_state_dict(kernel.state_dict())
    assert torch.allclose(K.to_dense(), own(X).to_dense(), rtol=1e-12)


def test_batches_of_models():
    X, y = drawn(8)
    Y = torch.stack([y, -y, 2 * y])
    X = X.expand(3, 8, 2)
    values = []
    for kernel in (Scale, kernels.ScaleKernel):
        batch = torch.Size([3])
        model = gp(kernel(kernels.RBFKernel(batch_shape=batch), batch_shape=batch), X, Y)
        model.mean_module = gpytorch.means.ConstantMean(batch_shape=batch).double()
        model.train()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        value = -mll(model(X), Y).sum()
        value.backward()
        values.append(
            torch.cat([value.reshape(1), *(p.grad.reshape(-1) for p in model.parameters())])
        )
    assert torch.allclose(*values, rtol=1e-8, atol=1e-10)


def test_the_page_runs():
    page = (Path(__file__).parents[3] / "docs" / "torch.md").read_text(encoding="utf-8")
    (block,) = re.findall(
        r"^<!-- session with gpytorch -->\n```python\n(.*?)^```$", page, re.M | re.S
    )
    names = {}
    exec(block, names)
    assert isinstance(names["covar_module"], ExactKernel)


def test_other_covariances_are_left():
    X, _ = drawn(6)
    kernel = Scale(kernels.RBFKernel()).double()
    Z, _ = drawn(6)
    assert not isinstance(kernel(X, Z).evaluate_kernel(), PylinopLinearOperator)
    assert kernel(X, diag=True).shape == (6,)
