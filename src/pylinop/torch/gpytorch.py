"""Exact Gaussian processes of gpytorch, computed by pylinop.

    class Kernel(ExactKernel, gpytorch.kernels.ScaleKernel): pass
    ...
    self.covar_module = Kernel(gpytorch.kernels.RBFKernel())

Likelihood and gradient are exact at any size, and by structure where the kernel has some."""

from __future__ import annotations

from typing import Any

import gpytorch.lazy
import linear_operator
import torch

import pylinop.torch

from .linear_operator import (
    PylinopLinearOperator,
    as_linear_operator,
    from_linear_operator,
)

__all__ = [
    "ExactKernel",
    "PylinopLinearOperator",
    "as_linear_operator",
    "from_linear_operator",
]


pt: Any = pylinop.torch


def _covariance(found: Any) -> Any:
    """A covariance as pylinop's. What has no kind, or is dense, is a Dense that is known to be
    positive definite with the noise that is added: Cholesky, of one triangle."""
    if isinstance(found, PylinopLinearOperator):
        return found
    if not isinstance(found, linear_operator.operators.DenseLinearOperator):
        try:
            return as_linear_operator(from_linear_operator(found))
        except NotImplementedError:
            pass
    return as_linear_operator(pt.Dense(found.to_dense(), "pos"))


def _is_one_set(x1: Any, x2: Any) -> bool:
    return x2 is x1 or (x1.shape == x2.shape and torch.equal(x1, x2))


_Lazy: Any = gpytorch.lazy.LazyEvaluatedKernelTensor


class _Covariance(_Lazy):  # type: ignore[misc]
    """A covariance that is not evaluated yet. It is when something is added: what gpytorch makes
    of the sum would else be solved in its own way."""

    def __add__(self, other: Any) -> Any:
        if not _is_one_set(self.x1, self.x2):
            return super().__add__(other)
        return self.evaluate_kernel() + other

    def add_diagonal(self, diag: Any) -> Any:
        """The sum with a diagonal."""
        if not _is_one_set(self.x1, self.x2):
            return super().add_diagonal(diag)
        return self.evaluate_kernel().add_diagonal(diag)


class ExactKernel:
    """A mix-in for kernels of gpytorch, named before them: covariance matrices are pylinop's.

    Notes
    -----
    It goes on the outermost kernel, whose parameters, constraints and state dict stay what they
    are. With it `gpytorch.ExactMarginalLogLikelihood` is exact at any size, where gpytorch's own
    goes over to conjugate gradients and random probes above `max_cholesky_size`; predictions,
    samples and gradients are exact too. Kernels that give Toeplitz or Kronecker operators
    (`GridKernel`, `MultitaskKernel`, sums and multiples of them) are solved by their structure,
    all others by Cholesky. Covariances between two sets of points are left as they are.

    Examples
    --------
    >>> import gpytorch, torch
    >>> from pylinop.torch.gpytorch import ExactKernel
    >>> class RBF(ExactKernel, gpytorch.kernels.RBFKernel): pass
    >>> K = RBF()(torch.linspace(0, 1, 4)).evaluate_kernel()
    >>> type(K).__name__, tuple(K.shape)
    ('PylinopLinearOperator', (4, 4))
    """

    def __call__(self, x1: Any, x2: Any = None, diag: bool = False, **kwargs: Any) -> Any:
        """The covariance of x1, or of x1 and x2; not evaluated unless gpytorch asks for it."""
        found = super().__call__(x1, x2, diag=diag, **kwargs)  # type: ignore[misc]
        if diag:
            return found
        if isinstance(found, _Lazy):
            more = {"last_dim_is_batch": found.last_dim_is_batch, **found.params}
            return _Covariance(found.x1, found.x2, kernel=found.kernel, **more)
        return _covariance(found) if x2 is None or _is_one_set(x1, x2) else found
