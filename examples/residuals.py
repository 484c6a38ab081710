"""How preconditioners bend the curve: residuals of conjugate gradients on three matrices.

A Laplacian on a grid, a Gaussian kernel matrix with noise, a Kronecker product plus a diagonal;
each without and with what ``pl.preconditioner`` makes of it. Checked: every solution has the
residual that was asked for, and every preconditioner saves iterations.

Run ``python examples/residuals.py [--out residuals.svg]``. The exit status is 1 when a check fails.
"""

import argparse
import sys

import _needs  # noqa: F401
import numpy as np
import scipy.sparse as sp
from _meter import Checks
from scipy.sparse.linalg import cg

import pylinop as pl

RTOL = 1e-8


def problems(rng):
    """(title, operator, names of preconditioners)."""
    n = 80
    one = sp.diags_array([np.full(n, 2.0), *2 * [np.full(n - 1, -1.0)]], offsets=[0, -1, 1])
    grid = sp.kron(one, sp.eye_array(n)) + sp.kron(sp.eye_array(n), one)
    yield "Laplacian, 80 x 80 grid", pl.Sparse(grid.tocsr()), ("ssor", "ic", "ict")
    x = rng.uniform(0, 1, (500, 2))
    k = np.exp(-((x[:, None] - x) ** 2).sum(-1) / (2 * 0.2**2))
    noisy = pl.Dense(k) + 1e-3 * pl.Identity(500)
    yield "Gaussian kernel + 0.001 I", noisy, ("nystrom", "pivoted_cholesky")
    a, b = (f @ f.T + np.eye(40) for f in rng.standard_normal((2, 40, 40)))
    mixed = pl.Kron(a, b) + pl.Diag(rng.uniform(1, 400, 1600))
    yield "Kron + Diag, 1,600 rows", mixed, ("jacobi", "kronecker")


def curve(A, b, M):
    """Relative residuals, recomputed after each iteration, and the solution."""
    found = [1.0]
    x, info = cg(
        A,
        b,
        rtol=RTOL,
        maxiter=5000,
        M=M,
        callback=lambda x: found.append(np.linalg.norm(b - A @ x) / np.linalg.norm(b)),
    )
    return found, x, info


def picture(curves, path):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "pylinop"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(curves), figsize=(11, 3.4), sharey=True)
    for ax, (title, lines) in zip(axes, curves):
        for name, found in lines:
            ax.semilogy(np.arange(len(found)), found, label=name)
        ax.set(title=title, xlabel="iterations", ylim=(RTOL / 3, 3))
        ax.legend(fontsize=8)
    axes[0].set_ylabel("|b - A x| / |b|")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", help="where to put the picture (needs matplotlib)")
    out = parser.parse_args().out
    rng, checks, curves = np.random.default_rng(7), Checks(), []
    for title, A, names in problems(rng):
        b, lines = rng.standard_normal(A.shape[0]), []
        print(title)
        for name in ("none", *names):
            options = {"rng": 0} if name == "nystrom" else {}
            M = None if name == "none" else pl.preconditioner(A, name, **options)
            found, x, info = curve(A, b, M)
            lines.append((name, found))
            print(f"  {name:17} {len(found) - 1:5} iterations  {M.proposal if M else ''}")
            checks.at_most(f"{title}, {name}: residual", found[-1], 2 * RTOL)
            if M is not None:
                checks.at_most(f"{title}, {name}: iterations", len(found), len(lines[0][1]) - 1)
        curves.append((title, lines))
    if out:
        picture(curves, out)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
