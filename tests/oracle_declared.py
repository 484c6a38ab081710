"""oracle.py's enumeration with operands that are declared: positive definite, symmetric, lower
triangular or diagonal; so also with the kernels that these allow (trmm, trsm, potrf and potrs,
sytrf, potri, rows scaled, grams by a half solve or with weights). symm takes gemm's flops and is
not among them, nor is Woodbury's formula, whose checks have no price here."""

import functools
import math
import re

import numpy as np
import oracle
from oracle import SIZE, factor, gemm, gram, longer, onepass, solve, turned

import pylinop as pl

WORDS = {
    "pos": "pos",
    "sym": "sym",
    "low": "lower triangular",
    "dia": "diagonal",
}


def word_of(name):
    return name[:3] if name[3:4] == " " else ""


def half_gemm(n, k):
    """One triangle of n rows times k columns, which are copied first."""
    return gemm(n, k, n) / 2 + n * k * SIZE / oracle.C["bandwidth"]


def triangle_gram(n):
    """The other triangle, of zeros, is neither read nor multiplied."""
    work = longer(0.45 * n * (n + 1) * n * oracle.gemm_second(n, n, n), 0.9 * n * n * SIZE)
    return work + n * n * SIZE / oracle.C["bandwidth"] + onepass(n * n, 1)


def solved(name, n, k):
    """The factor apart."""
    return {"dia": onepass(n * k, 1), "low": half_gemm(n, k)}.get(word_of(name)) or solve(n, k)


def factored(name, n):
    word = word_of(name)
    if word in ("low", "dia"):
        return 0.0
    return factor(n, 1 / 3) if word in ("pos", "sym") else factor(n)


def inverted(name, n):
    third = gemm(n, n, n) / 3
    return {"pos": third, "low": half_gemm(n, n), "dia": onepass(n * n, 1)}.get(
        word_of(name), 2 * third
    )


class Forms(oracle.Forms):
    """Words of one letter act as their declared kernels."""

    def scaled(self, word):
        return all(word_of(name) == "dia" for name, _, _ in word)

    def acts(self, letter, n, k):
        """A letter times k columns; None where it is a matrix like any."""
        name, _, inverse = letter
        if inverse:
            return solved(name, n, k)
        if word_of(name) == "dia":
            return onepass(n * k, 1)
        return half_gemm(n, k) if word_of(name) == "low" else None

    def joined(self, u, v, cost_u, cost_v, m, k, n):
        if any(w and len(w) > 1 and (self.scaled(w) or self.alone(w)) for w in (u, v)):
            return math.inf  # diagonals act one after the other, right to left, as written
        best = math.inf
        for w, cost, many in ((u, cost_v, n), (v, cost_u, m)):
            if w and len(w) == 1 and (found := self.acts(w[0], self.shape(w)[0], many)):
                best = min(best, cost + found)
        if u and v and u == turned(v):
            triangle = len(v) == 1 and word_of(v[0][0]) == "low"
            best = min(best, cost_v + (triangle_gram(n) if triangle else gram(n, k)))
        return min(best, cost_u + cost_v + gemm(m, n, k))

    def inside(self, poly):
        return not any(self.alone(w) for w, _ in poly)

    def alone(self, word):
        """An inverse that is to be formed, which none is on the way to other results."""
        free = all(inverse or word_of(name) == "dia" for name, _, inverse in word)
        return free and not self.scaled(word)

    def word(self, word, shared):
        if len(word) == 1 and word[0][2] and word_of(word[0][0]) == "dia":
            return 0.0
        return super().word(word, shared)

    @functools.cache  # noqa: B019  # as long as the expression
    def _word(self, word, shared):
        (m, n), best = self.shape(word), math.inf
        if self.scaled(word):
            return (len(word) - 1) * onepass(n, 2)
        if self.alone(word):
            return self.formed(word, n)
        for i in range(1, len(word)):
            u, v = word[:i], word[i:]
            k = self.shape(u)[1]
            best = min(best, self.joined(u, v, self.word(u, shared), self.word(v, shared), m, k, n))
        if len(word) % 2 and len(word) > 2 and word == turned(word):
            best = min(best, self.palindrome(word, shared))
        return best

    def formed(self, word, n):
        """An inverse, and its factors one after the other."""
        names = [name for name, _, _ in word]
        whole = [a for a in names if word_of(a) != "dia"]
        first = min(inverted(a, n) - solved(a, n, n) for a in whole)
        return sum(solved(a, n, n) for a in names) + first

    def palindrome(self, word, shared):
        """V' M V of a declared M: by half a solve, or weights."""
        half = word[len(word) // 2 + 1 :]
        name, _, inverse = word[len(word) // 2]
        k, n = self.shape(half)
        made = self.word(half, shared) + gram(n, k)
        if word_of(name) == "dia":
            return made + onepass(k * n, 1)
        if word_of(name) == "pos" and inverse:
            return made + half_gemm(k, n)
        return math.inf

    def result(self, poly, shared):
        alone = frozenset((w, c) for w, c in poly if self.alone(w))
        rest, n = poly - alone, self.shape(min(poly)[0])
        cost = sum(self._word(w, shared) for w, _ in alone)
        cost += self.sum(rest, shared) if rest else 0.0
        return cost + onepass(n[0] * n[1], 2) * (len(alone) - (not rest))


def least(e, sizes):
    return oracle.least(e, sizes, Forms, factored)


def assumed(name):
    return WORDS.get(word_of(name))


def lazily(sizes):
    return {k: pl.lazy(np.zeros(s), assume_a=assumed(k)) for k, s in sizes.items()}


def array(rng, name, shape):
    """As declared, but for what is not read."""
    a = rng.standard_normal(shape) / np.sqrt(shape[0]) + 3 * (shape[0] == shape[1]) * np.eye(*shape)
    return a @ a.T if word_of(name) == "pos" else a + a.T if word_of(name) == "sym" else a


def read(name, a):
    return {"low": np.tril(a), "dia": a * np.eye(*a.shape)}.get(word_of(name), a)


FREE = ("swap", "scale", "copy", "eye", "start", "array_diagonal", "triangle", "set-diag", "named")


def price_of_plan(explanation):
    """By the same prices, of the steps that run where no Cholesky fails."""
    total = 0.0
    for s in explanation.steps:
        m, n = [int(v) for v in re.search(r"\((\d+), (\d+)\)", s["writes"] + "(1, 1)").groups()]
        name, flops = s["name"], s["flops"]
        if s["conditional"] or s["late"] is not None or name in FREE:
            continue
        if name in ("gemm", "gemm-add", "rank-one"):
            total += gemm(m, n, round(flops / (2 * m * n)))
            total += onepass(m * n, 2) if name != "gemm" else 0
        elif name in ("symv", "half-gemm"):
            total += gemm(m, n, m)
        elif name in ("syrk", "herk"):
            total += gram(n, round(flops / (n * (n + 1))))
        elif name in ("weighted-gram", "scaled-gram"):
            k = round(flops / (n * (n + 3)))
            total += gram(n, k) + onepass(k * n, 1)
        elif name == "trsm-syrk":
            k = round((math.sqrt(n**2 + 4 * flops / n) - n) / 2)
            total += half_gemm(k, n) + gram(n, k)
        elif name == "gemm-half":
            total += gemm(m, n, round(flops / (m * n))) / 2
        elif name == "triangle-gram":
            total += triangle_gram(n)
        elif name in ("trmm", "trsm"):
            k = round(flops / m**2) if round(flops / m**2) == n else m
            total += half_gemm(m, n) if k == n else half_gemm(n, m)
        elif name in ("rowscale", "colscale", "div", "recip"):
            total += onepass(m * n, 1)
        elif name == "add" and len(set(s["reads"])) == 1:
            continue  # a scaling
        elif name in ("add", "sub", "mul", "add-halves"):
            total += onepass(m * n, 2)
        elif name in ("getrf", "potrf", "sytrf"):
            rate = 1.5 if name == "getrf" else 3
            total += factor(round((rate * flops) ** (1 / 3)), 1 / rate)
        elif name in ("getrs", "potrs", "sytrs"):
            total += solve(m, n)
        elif name in ("lu-inverse", "sytri", "potri"):
            total += gemm(n, n, n) / 3 * (1 if name == "potri" else 2)
        else:
            raise ValueError(f"a step without a price here: {name}")
    return total


def drawn(rng):
    def name_of(rng, letter, m, n):
        word = ["", "", *WORDS][rng.integers(6)] if m == n > 1 else ""
        return f"{word} {letter}".strip()

    return oracle.drawn(rng, name_of)


def ratio(seed):
    """A random expression, and the price of its plan over the least one."""
    e, sizes = drawn(np.random.default_rng(seed))
    low = least(e, sizes)
    high = price_of_plan(pl.explain(oracle.lazily(e, lazily(sizes))))
    shapes = ", ".join(f"{k} {m}x{n}" for k, (m, n) in sorted(sizes.items()))
    return f"{oracle.text(e)}: {shapes}", high / low if low else 1.0 + high


def exceptions(seeds):
    """As those of the oracle without declarations."""
    return oracle.exceptions(seeds, ratio)


if __name__ == "__main__":
    import sys

    for row in exceptions(range(int(sys.argv[1]))):
        print(f"    {row!r},  # noqa: E501")
