"""np.einsum's patterns that are linear algebra: products, transposes, diagonals, traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def parse(subscripts: str, operands: Sequence[Any]) -> tuple[list[str], str] | None:
    """([labels of each operand], labels of the result); None where NumPy is to handle it."""
    text = subscripts.replace(" ", "")
    if "." in text:
        return None
    left, arrow, out = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands) or any(len(t) != np.ndim(a) for t, a in zip(terms, operands)):
        return None
    if any(len(t) not in (1, 2) for t in terms) or len(out) > 2:
        return None
    if not arrow:  # NumPy's rule: the labels that occur once, in alphabetical order
        joined = "".join(terms)
        out = "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    if any(c not in left for c in out) or len(set(out)) < len(out):
        return None
    sizes: dict[str, int] = {}
    for term, a in zip(terms, operands):
        for label, n in zip(term, np.shape(a)):
            if sizes.setdefault(label, n) != n:
                return None  # NumPy says what is wrong
    return terms, out


def one(term: str, a: Any, out: str) -> Any:
    """A single operand: transposed, its diagonal, its trace, its sums."""
    if len(term) == 2 and term[0] == term[1]:
        if out == "":
            return np.trace(a)
        return np.diagonal(a).copy() if out == term[0] else NotImplemented
    if out == term:
        return a
    if out == term[::-1]:
        return a.T
    axes = tuple(i for i, c in enumerate(term) if c not in out)
    return np.sum(a, axis=axes)


def product(p: str, a: Any, q: str, b: Any, free: str) -> Any:
    """(labels, value) of the contraction over what p and q share and `free` does not keep."""
    shared = [c for c in p if c in q]
    gone = [c for c in shared if c not in free]
    if len(shared) == 2 and len(p) == len(q) == 2 and p[0] != p[1] and q[0] != q[1]:
        right = b if p[1] == q[0] else b.T
        if len(gone) == 2:
            return "", np.trace(a @ right)
        if len(gone) == 1:  # the other label stays: a diagonal
            x = a if gone[0] == p[1] else a.T
            y = right if gone[0] == p[1] else right.T
            return shared[1 - shared.index(gone[0])], np.diagonal(x @ y).copy()
        return None
    if len(shared) != 1 or len(gone) != 1 or len(set(p)) < len(p) or len(set(q)) < len(q):
        return None
    c = gone[0]
    x = a if p[-1] == c else a.T
    y = b if q[0] == c else b.T
    return p.replace(c, "") + q.replace(c, ""), x @ y


def next_pair(terms: Any) -> tuple[int, int] | None:
    """The two operands to contract first: with a vector if there is one, else the last ones."""
    found = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            if set(terms[i]) & set(terms[j]):
                if len(terms[i]) + len(terms[j]) < 4:
                    return i, j
                found = (i, j)
    return found


def run(subscripts: str, operands: Sequence[Any]) -> Any:
    """The result, or NotImplemented where the pattern is not one of linear algebra."""
    parsed = parse(subscripts, operands)
    if parsed is None:
        return NotImplemented
    terms, out = parsed
    operands = list(operands)
    while len(operands) > 1:
        pair = next_pair(terms)
        if pair is None:
            return NotImplemented
        i, j = pair
        rest = [t for k, t in enumerate(terms) if k not in pair]
        made = product(terms[i], operands[i], terms[j], operands[j], out + "".join(rest))
        if made is None:
            return NotImplemented
        for k in (j, i):
            del terms[k], operands[k]
        terms.insert(i, made[0])
        operands.insert(i, made[1])
        if not set(made[0]) and len(operands) > 1:
            return NotImplemented
    return one(terms[0], operands[0], out) if terms[0] or out else operands[0]
