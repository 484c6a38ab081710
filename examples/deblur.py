"""A photograph made sharp again: a separable blur as Kron(Toeplitz, Toeplitz), undone by lsqr.

The picture is scikit-image's "camera" (512 x 512 pixels). A Gaussian blur takes weighted means down
the columns and along the rows; each is a Toeplitz matrix, so the blur of the picture as one vector,
row after row, is the Kronecker product of the two,

    K = Kron(T, T)        T[i, j] = w(i - j), pixels beyond the edge count as black

a matrix of 262,144 rows that would take 550 GB. To what the camera gives, b = K x + noise, SciPy's
own ``lsqr`` finds the x that minimises |K x - b|^2 + damp^2 |x|^2, from products with K and K^T.

Checked: products agree with ``scipy.ndimage``'s separable filter; the dot test holds; the picture
found is closer to the true one than the blurred one by at least 3 dB; what ``lsqr`` says of its
residual is true; on a cut-out of 48 x 48 pixels lsqr's answer is the dense least-squares solution.

Run ``python examples/deblur.py``; ``--quick`` takes a cut-out of 128 x 128. The exit status is 1
when a check fails.
"""

import argparse
import sys

import _needs  # noqa: F401
import numpy as np
from _meter import Checks, Meter, size
from scipy import ndimage
from scipy.sparse.linalg import lsqr
from skimage import data

import pylinop as pl

WIDTH = 2.0  # pixels, standard deviation of the blur
REACH = 8  # pixels beyond which it is nothing
NOISE = 0.005  # standard deviation; white is 1
DAMP = 0.06
SEED = 512


def weights():
    """The blur's weights at distances 0 to REACH, adding up to 1 over both sides."""
    w = np.exp(-0.5 * (np.arange(REACH + 1) / WIDTH) ** 2)
    return w / (w[0] + 2 * w[1:].sum())


def blur(n):
    """The blur of n x n pictures as one operator."""
    column = np.zeros(n)
    column[: REACH + 1] = weights()
    T = pl.Toeplitz(column)
    return pl.Kron(T, T)


def decibels(picture, truth):
    """Peak signal to noise ratio."""
    return -10 * np.log10(np.mean((picture - truth) ** 2))


def by_ndimage(picture):
    """The same blur by SciPy's filter."""
    w = weights()
    both = np.concatenate([w[:0:-1], w])
    down = ndimage.convolve1d(picture, both, axis=0, mode="constant")
    return ndimage.convolve1d(down, both, axis=1, mode="constant")


def against_dense(checks, picture, rng):
    """lsqr's answer on a small cut-out beside that of dense least squares."""
    n = 48
    K, x = blur(n), picture[:n, :n].ravel()
    b = K @ x + NOISE * rng.standard_normal(n * n)
    found = lsqr(K, b, damp=DAMP, atol=1e-12, btol=1e-12, iter_lim=5000)[0]
    wide = np.vstack([K.toarray(), DAMP * np.eye(n * n)])
    exact = np.linalg.lstsq(wide, np.concatenate([b, np.zeros(n * n)]), rcond=None)[0]
    checks.at_most("lsqr and dense least squares, 48 x 48", np.abs(found - exact).max(), 1e-8)


def save(path, truth, blurred, found):
    """The three pictures side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
    titles = (
        "as it was",
        f"blurred, noise {NOISE:g}: {decibels(blurred, truth):.1f} dB",
        f"lsqr: {decibels(found, truth):.1f} dB",
    )
    for ax, title, picture in zip(axes, titles, (truth, blurred, found)):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set_title(title)
        ax.axis("off")
    figure.savefig(path, dpi=120)
    print(f"  saved {path}")


def main(argv=None):
    """Blur, deblur, check, save; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a cut-out of 128 x 128 pixels")
    parser.add_argument("--out", default="deblur.png", help="where the picture goes")
    options = parser.parse_args(argv)
    rng, checks = np.random.default_rng(SEED), Checks()
    truth = data.camera().astype(float) / 255
    if options.quick:
        truth = truth[64:192, 160:288]
    n = truth.shape[0]

    K = blur(n)
    print(f"K is {K!r}: {size(K.nbytes)}; dense it would take {size(8 * K.size)}")
    with Meter() as product:
        sharp = (K @ truth.ravel()).reshape(n, n)
    with Meter() as filtering:
        filtered = by_ndimage(truth)
    print(f"  K @ x {1e3 * product.seconds:.1f} ms; ndimage {1e3 * filtering.seconds:.1f} ms")
    checks.at_most("K @ x and scipy.ndimage", np.abs(sharp - filtered).max(), 1e-12)
    checks.at_most("the dot test", pl.check_adjoint(K), 1e-12)

    b = K @ truth.ravel() + NOISE * rng.standard_normal(n * n)
    with Meter() as solving:
        x, stop, steps, r1norm, r2norm = lsqr(K, b, damp=DAMP, atol=1e-6, btol=1e-6)[:5]
    print(f"  lsqr: {steps} steps, {solving.seconds:.2f} s, peak {size(solving.peak)}")
    residual = np.hypot(np.linalg.norm(K @ x - b), DAMP * np.linalg.norm(x))
    checks.at_most("lsqr's residual beside the true one", abs(r2norm / residual - 1), 1e-6)
    blurred, found = b.reshape(n, n), x.reshape(n, n)
    gained = decibels(found, truth) - decibels(blurred, truth)
    print(f"  {decibels(blurred, truth):.2f} dB blurred, {decibels(found, truth):.2f} dB found")
    checks.at_most("3 dB gained: short of it by", max(0.0, 3 - gained), 0)
    against_dense(checks, truth, rng)
    save(options.out, truth, blurred, found)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
