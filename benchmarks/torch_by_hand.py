"""What `torch_callers.py` and `gpu.py` share: a likelihood of low rank + diagonal as one program of
`pylinop.torch`, and by hand in torch."""

import functools

import torch

import pylinop as pl
import pylinop.torch as pt


def _program(d, U, y):
    quad, logdet = pl.inv_quad_logdet(pl.Diag(d) + pl.LowRank(U), y)
    return quad + logdet


def _hand(d, U, y, factor=torch.linalg.cholesky):
    W = U / d[:, None]
    L = factor(torch.eye(U.shape[1], dtype=U.dtype, device=U.device) + U.T @ W)
    z = torch.linalg.solve_triangular(L, (W.T @ y)[:, None], upper=False)
    log = torch.log(d).sum() + 2 * torch.log(torch.diagonal(L)).sum()
    return y @ (y / d) - (z * z).sum() + log


def low_rank_by_program_and_hand(factor=None):
    """{name: of (d, U, y)}; the program anew; by hand with another factor too, if one is given."""
    found = {"pylinop, one program": pt.program(_program), "torch by hand": _hand}
    if factor is not None:
        found["torch by hand, unlooked"] = functools.partial(_hand, factor=factor)
    return found
