"""A layer of a network and its adjoint on a photograph, and the photograph as a sum of products,
each equation written as on paper.

The layer is a convolution with step 2 of the photograph "astronaut" with 3 x 3 filters, as an index
equation on the image itself: no windows are copied. Its adjoint is the equation read the other way.
The sum of products (CP decomposition) of the colour image is fitted by alternating least squares:
Kolda and Bader, Tensor Decompositions and Applications, SIAM Review 51 (2009), section 3.4.

Run ``python examples/contractions.py``; ``--quick`` takes a quarter of the photograph. The exit
status is 1 when a check fails.
"""

import argparse
import sys

import _needs  # noqa: F401
import numpy as np
from _meter import Checks, Meter
from scipy import signal
from skimage import data

import pylinop as pl

RANK = 24
ROUNDS = 15
SEED = 3


def filters():
    """Differences along both axes and the Laplacian, of each colour: (3, 3, colours, outputs)."""
    along = np.outer([1, 2, 1], [-1, 0, 1]) / 8
    around = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]]) / 4
    return np.stack([np.stack([f] * 3, axis=-1) / 3 for f in (along, along.T, around)], axis=-1)


def layer(image, w):
    return pl.einsum("(2*y + i) (2*x + j) c, i j c d -> y x d", image, w)


def adjoint(made, w, shape):
    """Of the layer: each pixel gathers what it was used for. The step puts zeros between."""
    spread = np.zeros((2 * made.shape[0] - 1, 2 * made.shape[1] - 1, made.shape[2]))
    spread[::2, ::2] = made
    return pl.einsum(
        "(p - i) (q - j) d, i j c d -> p q c",
        spread,
        w,
        outside=0,
        sizes={"p": shape[0], "q": shape[1]},
    )


def products(image, rank, rounds):
    """Factors a, b, c of sum_r a[i, r] b[j, r] c[k, r], and the relative error of each round."""
    rng = np.random.default_rng(SEED)
    a, b, c = (rng.random((n, rank)) for n in image.shape)
    errors = []
    for _ in range(rounds):
        for factor, spec, one, two in (
            (a, "ijk,jr,kr->ir", b, c),
            (b, "ijk,ir,kr->jr", a, c),
            (c, "ijk,ir,jr->kr", a, b),
        ):
            gram = pl.einsum("ir,is,jr,js->rs", one, one, two, two)
            ridge = 1e-10 * np.trace(gram) * np.eye(rank)
            right = pl.einsum(spec, image, one, two)
            factor[:] = pl.solve(pl.Dense(gram + ridge, assume_a="pos"), right.T).T
        rest = image - pl.einsum("ir,jr,kr->ijk", a, b, c)
        errors.append(np.linalg.norm(rest) / np.linalg.norm(image))
    return (a, b, c), errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    step = 4 if parser.parse_args().quick else 1
    checks = Checks()
    image = data.astronaut()[::step, ::step] / 255.0
    w = filters()
    print(f"photograph {image.shape}, filters {w.shape}")
    with Meter() as ours:
        made = layer(image, w)
    with Meter() as theirs:
        whole = [
            sum(signal.correlate2d(image[:, :, c], w[:, :, c, d], "valid") for c in range(3))
            for d in range(3)
        ]
        want = np.stack(whole, axis=-1)[::2, ::2]
    print(f"  the layer      {ours}   {made.shape}")
    print(f"  scipy.signal   {theirs}")
    checks.at_most("the layer against scipy.signal", abs(made - want).max(), 1e-12)
    y = np.random.default_rng(SEED).normal(size=made.shape)
    back = adjoint(y, w, image.shape)
    off = abs(np.vdot(made, y) - np.vdot(image, back)) / (
        np.linalg.norm(image) * np.linalg.norm(back)
    )
    checks.at_most("<A x, y> against <x, A^T y>", off, 1e-13)
    with Meter() as fit:
        factors, errors = products(image, RANK, ROUNDS)
    print(f"  {RANK} products   {fit}   errors {errors[0]:.3f} .. {errors[-1]:.3f}")
    rises = max(b - a for a, b in zip(errors, errors[1:]))
    checks.at_most("the error never rises", rises, 1e-6)
    checks.at_most("relative error of the sum of products", errors[-1], 0.35)
    dense = np.einsum("ir,jr,kr->ijk", *factors)
    same = abs(pl.einsum("ir,jr,kr->ijk", *factors) - dense).max() / abs(dense).max()
    checks.at_most("the sum against numpy.einsum", same, 1e-13)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
