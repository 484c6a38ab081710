"""A factor model as a module of PyTorch: trained by Adam, then by LBFGS, on simulated returns.

Of 400 series a few factors that nobody sees move all; each day x is a draw from

    N(0, W @ W.T + diag(psi))

The module holds W and the logarithms of psi as ``nn.Parameter``; its covariance is
``pt.Diag(psi) + pt.LowRank(W)``, whose likelihood and gradient go by Woodbury's formula in one
plan, without a 400 x 400 matrix. Days come in mini-batches for Adam, all at once for LBFGS.

Checked: the loss and its gradient agree with torch's own on the dense covariance; the fit is as
likely as the truth, on days that it has not seen nearly so; a state dict brings the model back.

    python examples/torch_factor_model.py

The exit status is 1 when a check fails.
"""

import math
import sys

import _needs  # noqa: F401
import torch
from torch import nn

import pylinop.torch as pt

SERIES, FACTORS, DAYS = 400, 3, 2000
torch.set_default_dtype(torch.float64)


class FactorModel(nn.Module):
    """The negative log likelihood of a day, on average over those given."""

    def __init__(self, series, factors):
        super().__init__()
        self.W = nn.Parameter(0.1 * torch.randn(series, factors))
        self.log_psi = nn.Parameter(torch.zeros(series))

    def covariance(self):
        return pt.Diag(torch.exp(self.log_psi)) + pt.LowRank(self.W)

    def forward(self, x):
        """x: a column a day."""
        quad, logdet = pt.inv_quad_logdet(self.covariance(), x)
        return 0.5 * (quad.mean() + logdet + x.shape[0] * math.log(2 * math.pi))

    def dense(self, x):
        """The same by torch on the dense matrix: what it is checked against."""
        C = self.W @ self.W.T + torch.diag(torch.exp(self.log_psi))
        L = torch.linalg.cholesky(C)
        z = torch.linalg.solve_triangular(L, x, upper=False)
        logdet = 2 * torch.log(torch.diagonal(L)).sum()
        return 0.5 * ((z * z).sum(0).mean() + logdet + x.shape[0] * math.log(2 * math.pi))


def returns(days):
    """W, psi and draws, a column a day."""
    W = torch.randn(SERIES, FACTORS)
    psi = torch.rand(SERIES) + 0.5
    return W, psi, W @ torch.randn(FACTORS, days) + psi.sqrt()[:, None] * torch.randn(SERIES, days)


def trained(model, x, steps):
    """By Adam on mini-batches of 200 days, then by LBFGS on all."""
    adam = torch.optim.Adam(model.parameters(), lr=0.03)
    days = torch.utils.data.DataLoader(x.T, batch_size=200, shuffle=True)
    for _ in range(steps):
        for batch in days:
            adam.zero_grad()
            model(batch.T).backward()
            adam.step()
    print(f"after Adam   {model(x).item():.4f}")
    lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        lbfgs.zero_grad()
        loss = model(x)
        loss.backward()
        return loss

    lbfgs.step(closure)
    print(f"after LBFGS  {model(x).item():.4f}")


def main():
    torch.manual_seed(1)
    W, psi, x = returns(DAYS + 500)
    x, unseen = x[:, :DAYS], x[:, DAYS:]
    model, truth = FactorModel(SERIES, FACTORS), FactorModel(SERIES, FACTORS)
    trained(model, x, 10)
    with torch.no_grad():
        truth.W.copy_(W)
        truth.log_psi.copy_(torch.log(psi))
    again = FactorModel(SERIES, FACTORS)
    again.load_state_dict(model.state_dict())

    parameters = tuple(model.parameters())
    ours = torch.autograd.grad(model(x), parameters)
    torchs = torch.autograd.grad(model.dense(x), parameters)
    checks = {
        "loss against torch, dense": abs(model(x).item() - model.dense(x).item()) < 1e-9,
        "gradient against torch, dense": all(
            torch.allclose(g, h, rtol=0, atol=1e-9) for g, h in zip(ours, torchs, strict=True)
        ),
        "as likely as the truth": model(x).item() < truth(x).item(),
        "nearly so of unseen days": model(unseen).item() < truth(unseen).item() + 1.0,
        "the state dict brings it back": again(x).item() == model(x).item(),
    }
    for name, passed in checks.items():
        print(f"  check  {name}: {'ok' if passed else 'FAILED'}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
