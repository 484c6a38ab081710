"""Attention, a matrix product state and a sum of products with holes: equations on a photograph.

Attention between all patches of a block, as a layer of a transformer has it, takes the noise out of
the photograph "camera" (non-local means: Buades, Coll and Morel 2005). The photograph as a chain of
small arrays, one for each bit of its coordinates, has its norm by one equation of all of them twice
(Oseledets, Tensor-Train Decomposition, SIAM J. Sci. Comput. 33, 2011). Of the colour photograph
"astronaut" two pixels in five are left out; each factor of a sum of products is fitted to the
others by LSMR, whose operator is the equation with that factor missing: `pylinop.Contraction`.

Run ``python examples/tensor_networks.py``; ``--quick`` takes smaller photographs. The exit
status is 1 when a check fails.
"""

import argparse
import sys

import _needs  # noqa: F401
import numpy as np
from _meter import Checks, Meter
from skimage import data

import pylinop as pl

SEED = 5
NOISE = 0.08  # of a range of 1
PATCH = 5
BLOCK = 24  # patches along each side of a block
RANK = 12
ROUNDS = 6


def decibels(image, true):
    return -10 * np.log10(np.mean((image - true) ** 2))


def blocks_of(image):
    """Patches of each block (block, patch, pixel), and the pixel in the middle of each."""
    n = (image.shape[0] - PATCH + 1) // BLOCK * BLOCK
    patches = pl.view(image, "(y + i) (x + j) -> y x i j", sizes={"i": PATCH, "j": PATCH})
    how = {"sizes": {"p": BLOCK, "q": BLOCK}}
    whole = pl.einsum("(a p) (b q) i j -> (a b) (p q) (i j)", patches[:n, :n], **how)
    half = PATCH // 2
    middle = image[half : half + n, half : half + n]
    return whole, pl.einsum("(a p) (b q) -> (a b) (p q)", middle, **how)


def attention(q, k, v, width):
    """Softmax attention within each block: q and k (block, patch, pixel), v (block, patch)."""
    score = pl.einsum("b q d, b k d -> b q k", q, k) / width
    score -= pl.einsum("b k d, b k d -> b k", k, k)[:, None, :] / (2 * width)
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    return pl.einsum("b q k, b k -> b q", weight, v) / pl.einsum("b q k -> b q", weight)


def state_of(vector, rank):
    """A vector of 2^n numbers as n arrays (bond, bit, bond), by successive SVDs."""
    arrays, rest, bond = [], vector.reshape(1, -1), 1
    while rest.shape[1] > 1:
        u, s, vt = np.linalg.svd(rest.reshape(2 * bond, -1), full_matrices=False)
        kept = min(rank, len(s))
        arrays.append(u[:, :kept].reshape(bond, 2, kept))
        rest, bond = s[:kept, None] * vt[:kept], kept
    arrays[-1] = arrays[-1] * rest.reshape(1, 1, -1) if bond == 1 else arrays[-1] @ rest
    return arrays


def chained(arrays, tag):
    """The arrays with their labels, as lists: bonds of `tag`, and bits that all chains share."""
    n = len(arrays)
    return [x for i, a in enumerate(arrays) for x in (a, [tag + i, 2 * n + 2 + i, tag + i + 1])]


def fitted(image, there, rank, rounds):
    """Factors a, b, c of sum_r a[i, r] b[j, r] c[k, r] on the pixels that are there."""
    rng = np.random.default_rng(SEED)
    factors = [rng.random((n, rank)) for n in image.shape]
    right = (image * there).ravel()
    errors = []
    for _ in range(rounds):
        for k, axis in enumerate("ijk"):
            others = [x for x in "ijk" if x != axis]
            equation = "ijk," + ",".join(f"{x}r" for x in others) + "->ijkr"
            held = [f for f, x in zip(factors, "ijk") if x != axis]
            A = pl.Contraction(equation, there, *held, rows="ijk", cols=f"{axis}r")
            x0 = factors[k].ravel()
            rest = right - A @ x0
            factors[k] = (x0 + pl.lsmr(A, rest, maxiter=15, atol=1e-8)[0]).reshape(-1, rank)
        rest = (image - pl.einsum("ir,jr,kr->ijk", *factors)) * there
        errors.append(np.linalg.norm(rest) / np.linalg.norm(right))
    return factors, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    checks = Checks()
    rng = np.random.default_rng(SEED)

    true = data.camera()[100:228, 160:288] / 255.0
    true = true[:64, :64] if quick else true
    noisy = true + NOISE * rng.normal(size=true.shape)
    patches, middle = blocks_of(noisy)
    with Meter() as took:
        clean = attention(patches, patches, middle, 2.0 * NOISE**2 * PATCH)
    _, wanted = blocks_of(true)
    gain = decibels(clean, wanted) - decibels(middle, wanted)
    print(f"attention over {patches.shape[:2]} patches   {took}   {gain:.1f} dB nearer")
    checks.between("decibels that attention wins", gain, 3.0, 30.0)
    q = patches[0]
    distance = ((q[:, None, :] - q[None, :, :]) ** 2).sum(axis=-1)
    weight = np.exp(-distance / (4.0 * NOISE**2 * PATCH))
    by_hand = weight @ middle[0] / weight.sum(axis=1)
    checks.at_most("a block against the formula by hand", abs(clean[0] - by_hand).max(), 1e-12)

    side = 64 if quick else 256
    picture = data.camera()[:side, :side] / 255.0
    bits = side.bit_length() - 1
    both = picture.reshape((2,) * (2 * bits))  # rows' and columns' bits side by side
    order = [k for pair in zip(range(bits), range(bits, 2 * bits)) for k in pair]
    state = state_of(both.transpose(order).ravel(), 32)
    n = len(state)
    args = [*chained(state, 0), *chained(state, n + 1)]
    text = pl.einsum_path(*args, [])[1]
    with Meter() as took:
        norm = float(np.sqrt(pl.einsum(*args, [])))
    whole = state[0]
    for a in state[1:]:
        whole = np.tensordot(whole, a, axes=1)
    work = text.splitlines()[-2].split(",")[0].strip()
    print(f"norm of a chain of {n}, {2 * n} operands   {took}   {work}")
    exact = np.linalg.norm(whole)
    checks.at_most("the norm against the whole chain's", abs(norm - exact) / exact, 1e-12)
    checks.at_most("what the chain leaves out", 1 - norm / np.linalg.norm(picture), 0.01)

    step = 8 if quick else 4
    colour = data.astronaut()[::step, ::step] / 255.0
    there = (rng.random(colour.shape) < 0.6) * 1.0
    with Meter() as took:
        factors, errors = fitted(colour, there, RANK, ROUNDS)
    print(f"{RANK} products by LSMR   {took}   errors {errors[0]:.3f} .. {errors[-1]:.3f}")
    checks.at_most("an error rises by", max(b - a for a, b in zip(errors, errors[1:])), 1e-3)
    seen = pl.einsum("ir,jr,kr->ijk", *factors)
    hidden = (1 - there) / np.linalg.norm((1 - there) * colour)
    checks.at_most("relative error at the holes", np.linalg.norm((seen - colour) * hidden), 0.45)
    return checks.exit_status()


if __name__ == "__main__":
    sys.exit(main())
