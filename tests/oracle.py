"""Every equivalent form of a small expression, priced: what test_oracle.py holds plans against.

An expression is a sum of terms, a term a word of factors (name, transposed, inverse); sums that
stand within products are multiplied out or kept as factors of their own. Tried are all orders of
products, a factor taken out on either side, products of sums, P = Q + Q', spans shared (two of them
at most, up to transposition), solves from either side. Scalings cost nothing here. Prices are those
of src/c/rewrite/costs.c, by the table that is shipped.
"""

import functools
import itertools
import math
import re

import numpy as np

import pylinop as pl

C = pl._core._costs()
SIZE = 8

# -- prices ----------------------------------------------------------------------------------------


def longer(work, nbytes):
    return max(work, nbytes / C["bandwidth"]) + C["overhead"]


def gemm_second(*sizes):
    return (1 + 8 / max(min(sizes), 1)) / C["gemm_rate"]


def gemm(m, n, k):
    return longer(2 * m * n * k * gemm_second(m, n, k), (m * k + k * n + m * n) * SIZE)


def gram(n, k):
    work = longer(n * (n + 1) * k * gemm_second(n, n, k), (n * k + n * n) * SIZE)
    return work + n * n * SIZE / C["bandwidth"]


def onepass(count, reads):
    return longer(count / C["flop_rate"], count * SIZE * (reads + 1))


def factor(n, flops=2 / 3):
    return longer(flops * n**3 * gemm_second(n, n, 64), n * n * SIZE)


def solve(n, k):
    return gemm(n, k, n) + onepass(n * k, 1)


def inverted(n):
    return longer(4 / 3 * n**3 * gemm_second(n, n, n), 2 * n * n * SIZE)


# -- words and sums --------------------------------------------------------------------------------


def symmetric(name):
    """Is it declared so (oracle_declared.py)?"""
    return name.startswith(("pos ", "sym ", "dia "))


def turned(word):
    return tuple((a, not t and not symmetric(a), inverse) for a, t, inverse in reversed(word))


def canonical(word):
    return min(word, turned(word))


def turned_sum(poly):
    return frozenset((turned(w), c) for w, c in poly)


def add(*polys):
    out = {}
    for word, c in itertools.chain(*polys):
        out[word] = out.get(word, 0) + c
    return frozenset((w, c) for w, c in out.items() if c)


def times(a, b):
    out = {}
    for (u, c), (v, d) in itertools.product(a, b):
        out[u + v] = out.get(u + v, 0) + c * d
    return frozenset((w, c) for w, c in out.items() if c)


class Forms:
    """The forms of one expression. sizes: name to (rows, columns)."""

    def __init__(self, sizes):
        self.sizes = dict(sizes)

    def shape(self, word):
        rows, cols = self.sizes[word[0][0]], self.sizes[word[-1][0]]
        return rows[word[0][1]], cols[not word[-1][1]]

    def joined(self, u, v, cost_u, cost_v, m, k, n):
        """Of two parts m x k, k x n; u and v words, or None for sums."""
        if u and len(u) == 1 and u[0][2]:
            return cost_v + solve(m, n)
        if v and len(v) == 1 and v[0][2]:
            return cost_u + solve(n, m)
        if u and v and u == turned(v):
            return min(cost_v + gram(n, k), cost_u + cost_v + gemm(m, n, k))
        return cost_u + cost_v + gemm(m, n, k)

    def word(self, word, shared):
        if len(word) == 1:
            return math.inf if word[0][2] else 0.0
        if canonical(word) in shared:
            return 0.0
        return self._word(word, shared)

    def inside(self, poly):
        """No inverse is formed that the result does not hold: solves are more accurate."""
        return not any(all(inverse for _, _, inverse in w) for w, _ in poly)

    @functools.cache  # noqa: B019  # as long as the expression
    def _word(self, word, shared):
        (m, n), best = self.shape(word), math.inf
        if all(inverse for _, _, inverse in word):
            return (len(word) - 1) * solve(n, n) + inverted(n)
        for i in range(1, len(word)):
            u, v = word[:i], word[i:]
            k = self.shape(u)[1]
            best = min(best, self.joined(u, v, self.word(u, shared), self.word(v, shared), m, k, n))
        return best

    @functools.cache  # noqa: B019
    def sum(self, poly, shared):
        words = sorted(poly)
        m, n = self.shape(words[0][0])
        if len(words) == 1:
            return self.word(words[0][0], shared)
        if not self.inside(poly):
            return math.inf
        best, plus = math.inf, onepass(m * n, 2)
        for many in range(1, len(words) // 2 + 1):
            for some in itertools.combinations(words, many):
                rest = poly - frozenset(some)
                best = min(best, self.sum(frozenset(some), shared) + self.sum(rest, shared) + plus)
        for front in (True, False):
            best = min(best, self.taken_out(poly, shared, front))
        best = min(best, self.of_sums(poly, shared))
        if turned_sum(poly) == poly:
            best = min(best, self.halves(poly, shared) + plus)
        return best

    def result(self, poly, shared):
        """A sum whose terms may be inverses as they stand."""
        alone = frozenset((w, c) for w, c in poly if not self.inside([(w, c)]))
        rest, n = poly - alone, self.shape(min(poly)[0])
        cost = sum(len(w) for w, _ in alone) * solve(n[0], n[0])
        cost += self.sum(rest, shared) if rest else 0.0
        return cost + onepass(n[0] * n[1], 2) * (len(alone) - (not rest))

    def taken_out(self, poly, shared, front):
        if not front:
            poly = turned_sum(poly)
        words, best = [w for w, _ in poly], math.inf
        for i in range(1, min(map(len, words))):
            first = words[0][:i]
            if any(w[:i] != first for w in words):
                break
            rest = frozenset((w[i:], c) for w, c in poly)
            (m, n), k = self.shape(words[0]), self.shape(first)[1]
            parts = (
                self.word(first, shared) if i > 1 or not first[0][2] else 0.0,
                self.sum(rest, shared),
            )
            best = min(best, self.joined(first, None, *parts, m, k, n))
        return best

    def of_sums(self, poly, shared):
        if any(c != 1 for _, c in poly):
            return math.inf
        words, best = {w for w, _ in poly}, math.inf
        one = min(words)
        for i in range(1, len(one)):
            u, v = one[:i], one[i:]
            left = {w[: -len(v)] for w in words if len(w) > len(v) and w[-len(v) :] == v}
            right = {w[i:] for w in words if len(w) > i and w[:i] == u}
            if len(left) < 2 or len(right) < 2 or {a + b for a in left for b in right} != words:
                continue
            (m, k), n = self.shape(u), self.shape(v)[1]
            cost = self.sum(frozenset((w, 1) for w in left), shared)
            cost += self.sum(frozenset((w, 1) for w in right), shared)
            best = min(best, cost + gemm(m, n, k))
        return best

    def halves(self, poly, shared):
        """P = Q + Q'."""
        own = [(w, c / 2) for w, c in poly if turned(w) == w]
        pairs = sorted({(canonical(w), c) for w, c in poly if turned(w) != w})
        best = math.inf
        for sides in itertools.product((False, True), repeat=max(len(pairs) - 1, 0)):
            sides = (*sides, False)
            chosen = [(turned(w) if s else w, c) for (w, c), s in zip(pairs, sides, strict=False)]
            if chosen:
                best = min(best, self.sum(frozenset(own + chosen), shared))
        return best

    # -- with shared spans

    def spans(self, polys):
        seen = {}
        for word, _ in itertools.chain(*polys):
            for i, j in itertools.combinations(range(len(word) + 1), 2):
                if j - i > 1:
                    span = canonical(word[i:j])
                    seen[span] = seen.get(span, 0) + 1
        return [span for span, count in seen.items() if count > 1]

    def least(self, polys):
        """All of `polys` computed, with what they share."""
        found, best = self.spans(polys), math.inf
        for many in range(3):
            for some in itertools.combinations(found, many):
                shared = frozenset(some)
                cost = self.result(polys[0], shared)
                cost += sum(self.sum(p, shared) for p in polys[1:])
                for s in some:
                    shorter = frozenset(t for t in some if len(t) < len(s))
                    cost += self._word(s, shorter)
                best = min(best, cost)
        return best


# -- expressions -----------------------------------------------------------------------------------
# ("leaf", name), ("t", e), ("inv", e of a leaf), ("mul", e, e), ("add", e, e)


def polynomials(e, kept, groups, inside=False, mode=False):
    """e as a sum of words; sums within products multiplied out, but for those in `kept`."""
    if e[0] == "leaf":
        return frozenset([(((e[1], mode and not symmetric(e[1]), False),), 1)])
    if e[0] == "inv":
        a = e[1][1]
        return frozenset([(((a, mode and not symmetric(a), True),), 1)])
    if e[0] == "t":
        return polynomials(e[1], kept, groups, inside, not mode)
    if e[0] == "mul":
        a, b = (polynomials(x, kept, groups, True, mode) for x in (e[1], e[2]))
        return times(b, a) if mode else times(a, b)
    if inside and repr(e) in kept:
        groups.setdefault(repr(e), polynomials(e, kept, groups, False, False))
        return frozenset([(((repr(e), mode, False),), 1)])
    return add(*(polynomials(x, kept, groups, inside, mode) for x in (e[1], e[2])))


def inner_sums(e, inside=False):
    if e[0] in ("leaf", "inv"):
        return set()
    below = set().union(*(inner_sums(x, inside or e[0] == "mul") for x in e[1:]))
    return below | ({repr(e)} if e[0] == "add" and inside else set())


def inverses(e):
    if e[0] == "leaf":
        return set()
    return {e[1][1]} if e[0] == "inv" else set().union(*map(inverses, e[1:]))


def least(e, sizes, forms_of=Forms, factor_of=lambda name, n: factor(n)):
    """The least price of all forms of e."""
    best, sums = math.inf, sorted(inner_sums(e))
    for many in range(len(sums) + 1):
        for kept in itertools.combinations(sums, many):
            groups = {}
            poly = polynomials(e, kept, groups)
            if not poly:
                return 0.0
            forms = forms_of(sizes)
            for name, value in groups.items():
                forms.sizes[name] = forms.shape(next(iter(value))[0])
            best = min(best, forms.least([poly, *groups.values()]))
    factors = (factor_of(name, sizes[name][0]) for name in inverses(e))
    return best + sum(factors)


def lazily(e, arrays):
    if e[0] == "leaf":
        return arrays[e[1]]
    if e[0] == "inv":
        return pl.inv(arrays[e[1][1]])
    if e[0] == "t":
        return lazily(e[1], arrays).T
    a, b = (lazily(x, arrays) for x in e[1:])
    return a @ b if e[0] == "mul" else a + b


def plainly(e, arrays):
    if e[0] == "inv":
        return np.linalg.inv(arrays[e[1][1]])
    if e[0] == "leaf":
        return arrays[e[1]]
    if e[0] == "t":
        return plainly(e[1], arrays).T
    a, b = (plainly(x, arrays) for x in e[1:])
    return a @ b if e[0] == "mul" else a + b


def text(e):
    if e[0] == "leaf":
        return e[1]
    if e[0] == "inv":
        return f"inv({e[1][1]})"
    if e[0] == "t":
        return f"{text(e[1])}.T" if e[1][0] in ("leaf", "inv") else f"({text(e[1])}).T"
    a, b = (f"({text(x)})" if x[0] == "add" else text(x) for x in e[1:])
    return f"{a} @ {b}" if e[0] == "mul" else f"{text(e[1])} + {text(e[2])}"


def drawn(rng, name_of=lambda rng, letter, m, n: letter):
    """A random expression, and the sizes of its leaves."""
    pool = [int(v) for v in rng.choice([1, 4, 30, 120, 500, 500], 3, replace=False)]
    sizes = {}

    def leaf(m, n):
        fits = [("leaf", k) for k, s in sizes.items() if s == (m, n)]
        fits += [("t", ("leaf", k)) for k, s in sizes.items() if s == (n, m)]
        if fits and (len(sizes) >= 5 or rng.random() < 0.5):
            return fits[rng.integers(len(fits))]
        name = name_of(rng, "ABCDEFGH"[len(sizes)], m, n)
        sizes[name] = (m, n)
        return "leaf", name

    def expression(m, n, room, inside):
        """One of at most `room` factors."""
        if room == 1:
            e = leaf(m, n)
            plain = e[0] == "leaf"
            return ("inv", e) if m == n >= 30 and plain and inside and rng.random() < 0.2 else e
        first = int(rng.integers(1, room))
        if rng.random() < (0.2 if inside else 0.4):
            return (
                "add",
                expression(m, n, first, inside),
                expression(m, n, room - first, inside),
            )
        k = pool[rng.integers(len(pool))]
        e = ("mul", expression(m, k, first, True), expression(k, n, room - first, True))
        return ("t", e) if m == n and rng.random() < 0.2 else e

    m, n = (pool[rng.integers(len(pool))] for _ in range(2))
    while True:
        sizes.clear()
        e = expression(m, n, int(rng.integers(2, 7)), False)
        if len(sizes) <= 8:
            return e, dict(sizes)


# -- plans -----------------------------------------------------------------------------------------


def price_of_plan(explanation):
    """By the same prices, of the steps of an explanation; scalings and views left out."""
    total = 0.0
    for s in explanation.steps:
        m, n = [int(v) for v in re.search(r"\((\d+), (\d+)\)", s["writes"] + "(1, 1)").groups()]
        if s["name"] in ("swap", "scale", "copy", "eye", "start"):
            continue
        if s["name"] in ("gemm", "gemm-add", "rank-one"):
            total += gemm(m, n, round(s["flops"] / (2 * m * n)))
            total += onepass(m * n, 2) if s["name"] != "gemm" else 0
        elif s["name"] in ("syrk", "herk"):
            total += gram(n, round(s["flops"] / (n * (n + 1))))
        elif s["name"] in ("add", "sub"):
            total += onepass(m * n, 2)
        elif s["name"] == "getrf":
            total += factor(round((1.5 * s["flops"]) ** (1 / 3)))
        elif s["name"] == "getrs":
            total += solve(m, n)
        elif s["name"] == "lu-inverse":
            total += inverted(n)
        else:
            raise ValueError(f"a step without a price here: {s['name']}")
    return total


def ratio(seed):
    """A random expression, and the price of its plan over the least one."""
    e, sizes = drawn(np.random.default_rng(seed))
    low = least(e, sizes)
    arrays = {k: pl.lazy(np.zeros(s)) for k, s in sizes.items()}
    high = price_of_plan(pl.explain(lazily(e, arrays)))
    shapes = ", ".join(f"{k} {m}x{n}" for k, (m, n) in sorted(sizes.items()))
    return f"{text(e)}: {shapes}", high / low if low else 1.0 + high


def exceptions(seeds, ratio=ratio):
    """Those that are above 1.001, worst first: (ratio, seed, what)."""
    found = [(ratio(seed), seed) for seed in seeds]
    rows = [(round(r, 3), seed, what) for (what, r), seed in found if not r <= 1.001]
    return sorted(rows, reverse=True)


if __name__ == "__main__":
    import sys

    for row in exceptions(range(int(sys.argv[1]))):
        print(f"    {row!r},  # noqa: E501")
