"""The pictures of docs/pictures that README and pages show: python docs/pictures.py."""

from pathlib import Path

import matplotlib
import numpy as np

import pylinop as pl

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

FOLDER = Path(__file__).resolve().parent / "pictures"
INK, PALE = "#30618c", "#c9d9e8"


def save(figure, name):
    figure.savefig(FOLDER / f"{name}.png", dpi=110, facecolor="white")
    plt.close(figure)


def formula():
    """A = S K S^T + D as matrices, and what is stored of each."""
    n, rng = 60, np.random.default_rng(5)
    seen = np.sort(rng.choice(n, 42, replace=False))
    K, S = pl.Toeplitz(np.exp(-((np.arange(n) / 6) ** 2))), pl.Selection(seen, n)
    D = pl.Diag(0.4 + 0.4 * rng.random(seen.size))
    A = S @ K @ S.T + D
    parts = [("A", A), ("=", None), ("S", S), ("K", K), ("S.T", S.T), ("+", None), ("D", D)]
    stored = {
        "A": "a Sum:\nnothing computed",
        "S": "Selection:\n42 indices",
        "K": "Toeplitz:\n60 numbers",
        "S.T": "a view",
        "D": "Diag:\n42 numbers",
    }
    widths = [op.shape[1] if op is not None else 9 for _, op in parts]
    figure, axes = plt.subplots(1, len(parts), figsize=(9.6, 2.6), width_ratios=widths)
    for ax, (name, op) in zip(axes, parts):
        ax.set_axis_off()
        if op is None:
            ax.text(0.5, 0.5, name, ha="center", va="center", fontsize=20)
            continue
        ax.imshow(np.abs(op.toarray()), cmap="Blues", vmin=-0.08, interpolation="nearest")
        ax.set_title(name, family="monospace", fontsize=13)
        ax.text(0.5, -0.05, stored[name], ha="center", va="top", transform=ax.transAxes, fontsize=9)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.86, bottom=0.2, wspace=0.08)
    save(figure, "formula")


def gaps():
    """The recipe of a series with gaps, and two deviations about it."""
    rng, n = np.random.default_rng(0), 160
    seen = np.flatnonzero((rng.random(n) < 0.9) & ((np.arange(n) < 70) | (np.arange(n) > 95)))
    y = np.sin(seen / 12) + 0.2 * rng.standard_normal(seen.size)
    K, S = pl.Toeplitz(np.exp(-0.5 * (np.arange(n) / 9) ** 2)), pl.Selection(seen, n)
    A = S @ K @ S.T + 0.04 * pl.Identity(seen.size)
    mean = K @ (S.T @ pl.solve(A, y))
    spread = 2 * np.sqrt(1 - (K @ S.T @ pl.inv(A) @ S @ K).diagonal())
    figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.fill_between(np.arange(n), mean - spread, mean + spread, color=PALE, label="two deviations")
    ax.plot(mean, color=INK, label="filled")
    ax.plot(seen, y, "k.", ms=3, label="measured")
    ax.legend(frameon=False, ncol=3, loc="lower left")
    ax.spines[["top", "right"]].set_visible(False)
    save(figure, "gaps")


def track():
    """The recipe of a track: position, measured with gaps, smoothed as one system."""
    rng, n = np.random.default_rng(2), 200
    F, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    Qi = np.linalg.inv(np.array([[1 / 3, 0.5], [0.5, 1.0]]) * 0.01)
    truth = np.cumsum(np.cumsum(0.1 * rng.standard_normal(n)))
    seen = np.flatnonzero((rng.random(n) < 0.8) & ((np.arange(n) < 90) | (np.arange(n) > 120)))
    z = truth[seen] + 2 * rng.standard_normal(seen.size)
    D = pl.Kron(pl.Selection(np.arange(1, n), n), np.eye(2))
    D = D - pl.Kron(pl.Selection(np.arange(n - 1), n), F)
    C = pl.Kron(pl.Selection(seen, n), H)
    A = D.T @ pl.Kron(pl.Identity(n - 1), Qi) @ D + 0.25 * C.T @ C
    found = pl.solve(A, 0.25 * (C.T @ z))[::2]
    figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.plot(truth, color="0.6", lw=4, alpha=0.5, label="true")
    ax.plot(seen, z, "k.", ms=3, label="measured")
    ax.plot(found, color=INK, label="smoothed")
    ax.legend(frameon=False, ncol=3, loc="best")
    ax.spines[["top", "right"]].set_visible(False)
    save(figure, "track")


def sharp():
    """The recipe of a blurred picture."""
    n = 128
    i, j = np.mgrid[:n, :n]
    truth = 1.0 * ((i // 16 + j // 16) % 2) + (np.hypot(i - 64, j - 64) < 30)
    w = np.exp(-0.5 * (np.arange(n) / 2.5) ** 2)
    T = pl.Toeplitz(w / (2 * w.sum() - w[0]))
    K = pl.Kron(T, T)
    b = K @ truth.ravel() + 1e-3 * np.random.default_rng(3).standard_normal(n * n)
    found = pl.solve(K.T @ K + 1e-5 * pl.Identity(n * n), K.T @ b)
    figure, axes = plt.subplots(1, 3, figsize=(7, 2.5), layout="constrained")
    for ax, title, shown in zip(axes, ("true", "blurred", "found"), (truth, b, found)):
        ax.imshow(shown.reshape(n, n), cmap="gray", vmin=0, vmax=2)
        ax.set_title(title, fontsize=10)
        ax.set_axis_off()
    save(figure, "sharp")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draw in (formula, gaps, track, sharp):
        draw()
