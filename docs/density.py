"""Draws docs/density.svg: an estimated density of eigenvalues over a histogram of them."""

from pathlib import Path

import numpy as np

import pylinop as pl


def draw(path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    n = 2000
    A = pl.Toeplitz(0.5 ** np.arange(float(n))) + pl.Diag(np.linspace(0.1, 1, n))
    e = pl.spectral_density(A, rng=0)
    plt.rcParams["svg.hashsalt"] = "pylinop"
    figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    ax.hist(np.linalg.eigvalsh(A.toarray()), 80, density=True, color="0.85", label="all of them")
    ax.fill_between(e.points, e.value - e.error, e.value + e.error, alpha=0.4)
    ax.plot(e.points, e.value, label=f"estimate, {e.samples} probes, at 95 %")
    ax.set_xlabel("eigenvalue")
    ax.legend()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).with_name("density.svg"))
