"""gpytorch's own examples with our mix-in on their kernels, from a checkout of its repository (its
wheel has the test cases of kernels alone):

    PYTHONPATH=tests python -m pytest -p frameworks.gpytorch_suite CHECKOUT/test/examples/...

A plugin of pytest: `ScaleKernel`, `MultitaskKernel` and `GridKernel`, outermost in exact models,
have the mix-in. What it has found is in docs/torch.md."""

import gpytorch

from pylinop.torch.gpytorch import ExactKernel

for name in ("ScaleKernel", "MultitaskKernel", "GridKernel"):
    theirs = getattr(gpytorch.kernels, name)
    setattr(gpytorch.kernels, name, type(name, (ExactKernel, theirs), {}))
