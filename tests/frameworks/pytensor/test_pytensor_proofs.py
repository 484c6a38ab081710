"""The proof that a matrix is positive definite is written twice: for Python (`definite`) and for
tapes (exec/tape_proof.c). Both say the same of random trees."""

import numpy as np
import pytest

pytest.importorskip("pytensor")

from pylinop import _core
from pylinop.pytensor import definite, program, proofs

SIZES = (1, 2, 15, 16, 17, 40)


class Drawn:
    """A tree over arrays of n rows, definite or nearly, or not."""

    def __init__(self, rng, n):
        self.rng, self.n, self.arrays = rng, n, []

    def held(self, a):
        self.arrays.append(np.asarray(a, float))
        return len(self.arrays) - 1

    def symmetric(self, n):
        a = self.rng.standard_normal((n, n))
        a = a @ a.T / n + self.rng.choice([1.0, -0.3]) * np.eye(n)
        if self.rng.random() < 0.1:
            a[-1, 0] += 0.1
        return a

    def leaf(self, n):
        rng = self.rng
        name = rng.choice(["dense", "symmetric", "root", "weighted", "congruence", "toeplitz"])
        if name in ("dense", "symmetric"):
            return (name, self.held(self.symmetric(n)))
        W = self.held(rng.standard_normal((n, 3)))
        if name == "root":
            return ("root", W)
        if name == "weighted":
            return ("weighted", W, self.held(rng.random(3) - rng.choice([0, 0.5])))
        if name == "congruence":
            return ("congruence", W, self.held(self.symmetric(3)))
        column = np.exp(-rng.uniform(0.1, 2) * np.arange(n)) * rng.choice([1, -1], n)
        column[0] = 1 + rng.choice([0, 0.5, -0.9])
        return ("toeplitz", self.held(column))

    def kron(self):
        return ("kron", *(("symmetric", self.held(self.symmetric(k))) for k in (self.n, 2)))

    def diagonal(self, n):
        if self.rng.random() < 0.5:
            return ("identity", self.held(self.rng.choice([0.01, 1.0, 4.0, -0.5])))
        return ("diagonal", self.held(self.rng.random(n) + self.rng.choice([0.3, 2.0, -0.2])))

    def sum(self):
        if self.rng.random() < 0.2:
            return ("sum", self.kron(), self.diagonal(2 * self.n))
        terms = [self.diagonal(self.n) for _ in range(self.rng.integers(0, 3))]
        terms += [self.leaf(self.n) for _ in range(self.rng.integers(1, 3))]
        if self.rng.random() < 0.2:
            terms.append(("constant", self.held(self.rng.choice([0.4, -0.1]))))
        if self.rng.random() < 0.3:
            factor = self.held(self.rng.choice([0.5, 2.0, 0.0]))
            terms.append(("scaled", factor, self.leaf(self.n)))
        return ("sum", *(terms[k] for k in self.rng.permutation(len(terms))))

    def band(self):
        n = self.n + 2
        off = self.rng.random(n - 1)
        other = off if self.rng.random() < 0.7 else off + 1e-3
        terms = [("diagonal", self.held(2 + self.rng.random(n))), ("identity", self.held(0.5))]
        terms += [("off", "1", self.held(off)), ("off", "-1", self.held(other))]
        if self.rng.random() < 0.3:
            terms.append(("off", "2", self.held(np.ones(n - 2))))
        return ("sum", *terms)

    def said(self, *tree):
        return ("general", tree) if self.rng.random() < 0.5 else tree

    def tree(self):
        kind = self.rng.integers(8)
        if kind == 0:
            return ("blocks", self.leaf(self.n), self.diagonal(3), self.leaf(2))
        if kind == 1:
            return ("inverse", self.band())
        if kind == 2:
            u = (self.rng.random(self.n) + 0.1) * self.rng.choice([1.0, -1.0, 0.0])
            return self.said("framed", self.held(u), self.leaf(self.n))
        if kind == 3:
            V = self.held(self.symmetric(self.n))
            return self.said("rotated", V, self.held(self.rng.random(self.n) - 0.1))
        return (self.sum, self.kron, self.band, lambda: self.leaf(self.n))[kind - 4]()


def from_c(tree, arrays):
    """What a tape of nothing but that proof says."""
    proof = proofs.rows(("values", tree, (), len(arrays)))
    sizes = tuple(a.nbytes for a in arrays)
    tape = _core._tape_new(len(arrays), sizes, (), (), False, proof)
    return _core._tape_run(tape, tuple(arrays), ())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", SIZES)
def test_both_say_the_same(n, dtype, rng):
    said = []
    for _ in range(200):
        drawn = Drawn(rng, n)
        tree = drawn.tree()
        arrays = [a.astype(dtype) for a in drawn.arrays]
        own = definite.proved(("values", tree, (), len(arrays)), arrays)
        assert from_c(tree, arrays) == own, (tree, arrays)
        said.append(own)
    assert 20 < sum(said) < 180


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_proved_from_c(bad, rng):
    """Python may say that it is as written; the answer then has NaN."""
    for _ in range(300):
        drawn = Drawn(rng, 9)
        tree = drawn.tree()
        at = rng.integers(len(drawn.arrays))
        a = drawn.arrays[at] = drawn.arrays[at].copy()
        place = np.unravel_index(rng.integers(a.size), a.shape)
        a[place] = bad
        if a.ndim == 2 and a.shape[0] == a.shape[1] and rng.random() < 0.5:
            a[place[::-1]] = bad  # as symmetric as it was
        own = definite.proved(("values", tree, (), len(drawn.arrays)), drawn.arrays)
        assert own or not from_c(tree, drawn.arrays), (tree, drawn.arrays)
        divided = tree[0] in ("framed", "rotated", "general")
        assert not (own and divided and at in program.divisors(tree))
