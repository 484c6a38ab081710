"""Programs as text: a matrix as a tree over arrays, what is asked of it, and derivatives of that.

    ("values", tree, asked, count)         the tree's results, of `count` arrays
    ("pullback", program, by, values)      cotangents of the arrays `by`; takes those of the values
    ("joined", program, by, values)        the program's results, and after them its pullback's

A tree is a tuple, its leaves numbers of arrays:

    ("dense", i)            a symmetric matrix that is positive definite if its factor exists
    ("symmetric", i)        a symmetric matrix, a factor of others;  ("unit", i)   I as one, given
    ("diagonal", i)         ("identity", i)   c I     ("constant", i)   c 1 1'
    ("root", i)             W W'              ("weighted", i, j)   W diag(c) W'
    ("congruence", i, j)    W C W'            ("toeplitz", i)      symmetric, of its first column
    ("off", "k", i)         a vector on the k-th diagonal
    ("sparse", "pattern", i)  symmetric, its entries row by row (patterns.py)
    ("kron", t, ...)  ("blocks", t, ...)  ("scaled", i, t)  ("sum", t, ...)  ("inverse", t)
    ("framed", i, t)        diag(u) t diag(u)
    ("rotated", i, j)       V diag(d) V' of an orthogonal V
    ("written", t)          t as a dense matrix, by its lower triangle
    ("general", t)          t, of which it is not said that it is symmetric or positive definite

What is asked: ("solve", j), ("inverse", j) where array j is the identity, ("squares", j) for
b' inv(K) b of each vector along the last axis, ("logdet",), which is NaN where the determinant is
negative, ("logabsdet",)."""

from __future__ import annotations

import ast
import functools
import math
import operator
from typing import Any

import numpy as np

from .. import _core
from .._api.basic import inv
from .._api.determinants import logdet, slogdet
from .._api.solve import solve
from .._lazy.leaves import lazy
from .._programs.programs import Joined, Program, Pullback, Written
from .patterns import unpacked

__all__ = [
    "arrays_of",
    "dense",
    "divisors",
    "innermost",
    "is_open",
    "like",
    "operator_of",
    "parsed",
    "program",
]

Tree = tuple[Any, ...]


@functools.lru_cache(maxsize=1024)
def parsed(text: str) -> Tree:
    """A program's text as tuples."""
    found: Tree = ast.literal_eval(text)
    return found


def arrays_of(spec: Tree) -> int:
    """How many arrays a program takes."""
    if spec[0] == "values":
        return int(spec[3])
    return arrays_of(spec[1]) + int(spec[3])


def innermost(spec: Tree) -> tuple[Tree, int]:
    """The values that a program is derived from, and by how many derivatives."""
    ups = 0
    while spec[0] != "values":
        spec, ups = spec[1], ups + 1
    return spec, ups


def like(spec: Tree) -> list[tuple[str, int]]:
    """What the results look like: ("same", j) as array j, ("rows", j) without its last axis,
    ("number", 0), ("matrix", j) the square of the rows of array j."""
    if spec[0] == "pullback":
        return [("same", j) for j in spec[2]]
    if spec[0] == "joined":
        return like(spec[1]) + [("same", j) for j in spec[2]]
    found = []
    for what, *rest in spec[2]:
        if what in ("solve", "inverse"):
            found.append(("same", rest[0]))
        elif what == "squares":
            found.append(("rows", rest[0]))
        else:
            found.append(("number", 0))
    return found


def dense(spec: Tree) -> Tree:
    """The same program of the matrix as written, without its structure."""
    if spec[0] != "values":
        return (spec[0], dense(spec[1]), *spec[2:])
    _, tree, *rest = spec
    if tree[0] == "general":
        whole = tree if tree[1][0] == "written" else ("general", ("written", tree[1]))
        return ("values", whole, *rest)
    return spec if tree[0] == "written" else ("values", ("written", tree), *rest)


# -- operators -------------------------------------------------------------------------------------


class _General(list[Any]):
    """Leaves of matrices of which nothing is promised."""


class _Plain(_General):
    """Likewise, of what is to be multiplied out: infinite numbers are not divided by."""


def _promised(leaves: Any, word: str) -> str | None:
    return None if isinstance(leaves, _General) else word


def _of_triangle(K: Any) -> Any:
    made: Any = _core.Dense(np.tril(K) + np.tril(K, -1).mT, "pos")
    return made


def is_open(spec: Tree) -> bool:
    """May the matrix be definite where a part is not, of which an inverse is taken?"""
    tree = innermost(spec)[0][1]
    return any(_has_inverse(t) for t in tree[1:] if isinstance(t, tuple) and tree[0] != "general")


def _has_inverse(tree: Tree) -> bool:
    return tree[0] == "inverse" or any(_has_inverse(t) for t in tree[1:] if isinstance(t, tuple))


BAND = ("off", "diagonal", "identity")
_DIVIDES = {"framed": 1, "rotated": 2}


def offset_of(term: Tree) -> int:
    """The diagonal that a term of a band stands on."""
    return int(term[1]) if term[0] == "off" else 0


def _band(leaves: Any, terms: list[Tree], by: Any = None) -> Any:
    """The terms on diagonals, as one band; `by`: 1 + by times them, a vector from the left."""
    n = next(leaves[t[2]].shape[-1] + abs(offset_of(t)) for t in terms if t[0] == "off")
    width = max(abs(offset_of(t)) for t in terms)
    rows = {k: lazy(np.zeros(n - abs(k))) for k in range(-width, width + 1)}
    for term in terms:
        k = offset_of(term)
        v = leaves[term[-1]]
        rows[k] = rows[k] + (v * np.ones(n) if term[0] == "identity" else v)
    pos = _promised(leaves, "pos")
    if by is not None:
        number = not np.ndim(by)
        scaled = {
            k: (by if number else by[max(-k, 0) : n - max(k, 0)]) * v for k, v in rows.items()
        }
        rows = {k: 1.0 + v if k == 0 else v for k, v in scaled.items()}
        pos = pos if number else None
    kind: Any = _core.Tridiagonal if width <= 1 else _core.Banded
    if width <= 1:
        return kind(rows[-1], rows[0], rows[1], pos)
    padded = [np.concatenate([np.zeros(max(k, 0)), rows[k], np.zeros(max(-k, 0))]) for k in rows]
    return kind((width, width), np.stack(padded[::-1]), pos)


def _sum(leaves: Any, *terms: Tree) -> Any:
    banded = any(t[0] == "off" for t in terms)
    own = [t for t in terms if banded and t[0] in BAND]
    terms = tuple(t for t in terms if t not in own)
    rest = [_band(leaves, own)] if own else []
    rest += [operator_of(leaves, t) for t in terms if t[0] not in ("identity", "constant")]
    n = rest[0].shape[-1]
    for kind, i in (t for t in terms if t[0] in ("identity", "constant")):
        if kind == "identity":
            rest.append(leaves[i] * _core.Identity(n))
        else:
            ones: Any = _core.Root(np.ones((n, 1)))
            rest.append(leaves[i] * ones)
    total = rest[0]
    for term in rest[1:]:
        total = total + term
    return total


def _scaled(leaves: Any, i: int, tree: Tree) -> Any:
    return leaves[i] * operator_of(leaves, tree)


def _weighted(leaves: Any, i: int, j: int) -> Any:
    W, c = leaves[i], leaves[j]
    D: Any = _core.Diag(c)
    return _core.LowRank(W, W @ D)


def _congruence(leaves: Any, i: int, j: int) -> Any:
    W, C = leaves[i], leaves[j]
    return _core.LowRank(W, W @ C.T)


def divisors(tree: Tree) -> list[int]:
    """The arrays by whose numbers what is asked is divided."""
    inner = [i for t in tree[1:] if isinstance(t, tuple) for i in divisors(t)]
    return inner if tree[0] not in _DIVIDES else [tree[_DIVIDES[tree[0]]], *inner]


def _framed(leaves: Any, i: int, tree: Tree) -> Any:
    u, K = leaves[i], operator_of(leaves, tree)
    if isinstance(leaves, _Plain):
        made: Any = _core.Dense(u[:, None] * lazy(K) * u)
        return made
    D: Any = _core.Diag(u)
    return D @ K @ D


def _rotated(leaves: Any, i: int, j: int) -> Any:
    if isinstance(leaves, _Plain):
        made: Any = _core.Dense((leaves[i] * leaves[j]) @ leaves[i].T)
        return made
    return _weighted(leaves, i, j)


def _written(leaves: Any, tree: Tree) -> Any:
    """Its parts, such as a band whose inverse it has, need not be definite."""
    K = lazy(operator_of(_Plain(leaves), tree))
    if isinstance(leaves, _General):
        made: Any = _core.Dense(K)
        return made
    return _of_triangle(K)


def _parts(kind: Any) -> Any:
    return lambda leaves, *trees: kind(*(operator_of(leaves, t) for t in trees))


_KINDS: dict[str, Any] = {
    "dense": lambda leaves, i: _core.Dense(leaves[i], _promised(leaves, "pos")),
    "symmetric": lambda leaves, i: _core.Dense(leaves[i], _promised(leaves, "sym")),
    "unit": lambda leaves, i: _core.Identity(leaves[i].shape[-1]),
    "general": lambda leaves, tree: operator_of(_General(leaves), tree),
    "diagonal": lambda leaves, i: _core.Diag(leaves[i]),
    "root": lambda leaves, i: _core.Root(leaves[i]),
    "weighted": _weighted,
    "congruence": _congruence,
    "sparse": lambda leaves, pattern, i: _core.Sparse(unpacked(pattern), leaves[i]),
    "off": lambda leaves, k, i: _band(leaves, [("off", k, i)]),
    "inverse": lambda leaves, tree: inv(operator_of(leaves, tree)),
    "toeplitz": lambda leaves, i: _core.Toeplitz(leaves[i]),
    "kron": _parts(_core.Kron),
    "blocks": _parts(lambda *parts: _core.BlockDiag(list(parts))),
    "scaled": _scaled,
    "framed": _framed,
    "rotated": _rotated,
    "sum": _sum,
    "written": _written,
}


def operator_of(leaves: Any, tree: Tree) -> Any:
    """The matrix of a tree."""
    return _KINDS[tree[0]](leaves, *tree[1:])


# -- results ---------------------------------------------------------------------------------------


class _Inverse:
    """inv(Q) by Q: solves are products."""

    def __init__(self, Q: Any) -> None:
        self.Q = Q

    def solve(self, b: Any) -> Any:
        return self.Q @ b

    def inverse(self) -> Any:
        return lazy(self.Q)

    def logdet(self) -> Any:
        return -logdet(self.Q)

    def logabsdet(self) -> Any:
        return -slogdet(self.Q)[1]


class _Noisy(_Inverse):
    """inv(Q) + c I by the bands Q and S = 1 + c Q, or inv(Q) + diag(c) by S = 1 + diag(c) Q: its
    inverse is Q inv(S), its determinant that of S over that of Q. What is subtracted nowhere loses
    no digits, and nothing is divided by c, which may be zero."""

    def __init__(self, Q: Any, S: Any) -> None:
        super().__init__(Q)
        self.S = S

    def solve(self, b: Any) -> Any:
        return self.Q @ solve(self.S, b)

    def inverse(self) -> Any:
        return self.Q @ lazy(inv(self.S))

    def logdet(self) -> Any:
        return logdet(self.S) - logdet(self.Q)

    def logabsdet(self) -> Any:
        return slogdet(self.S)[1] - slogdet(self.Q)[1]


class _Matrix:
    """A matrix by its factors."""

    def __init__(self, K: Any) -> None:
        self.K = K

    def solve(self, b: Any) -> Any:
        return solve(self.K, b)

    def inverse(self) -> Any:
        return lazy(inv(self.K))

    def logdet(self) -> Any:
        return logdet(self.K)

    def logabsdet(self) -> Any:
        return slogdet(self.K)[1]


class _Framed:
    """diag(u) K diag(u) by K, of u that is positive or may be not."""

    def __init__(self, u: Any, K: Any, is_positive: bool) -> None:
        self.u, self.K, self.is_positive = u, K, is_positive

    def _log(self) -> Any:
        D: Any = _core.Diag(self.u)
        return logdet(D) if self.is_positive else slogdet(D)[1]

    def _by(self, b: Any) -> Any:
        return b / (self.u if b.ndim == 1 else self.u[:, None])

    def solve(self, b: Any) -> Any:
        return self._by(self.K.solve(self._by(b)))

    def inverse(self) -> Any:
        return self.K.inverse() / self.u[:, None] / self.u

    def squares(self, b: Any) -> Any:
        return _squares(self.K, b / self.u)

    def logdet(self) -> Any:
        return self.K.logdet() + 2 * self._log()

    def logabsdet(self) -> Any:
        return self.K.logabsdet() + 2 * self._log()


class _Rotated(_Matrix):
    """V diag(d) V' of an orthogonal V, by the diagonal."""

    def __init__(self, V: Any, d: Any) -> None:
        D: Any = _core.Diag(d)
        super().__init__(D)
        self.V = V

    def solve(self, b: Any) -> Any:
        return self.V @ solve(self.K, self.V.T @ b)

    def inverse(self) -> Any:
        return self.V @ lazy(inv(self.K)) @ self.V.T

    def squares(self, b: Any) -> Any:
        return _squares(_Matrix(self.K), b @ self.V)


class _Blocks:
    """A block diagonal positive definite matrix, block by block: what is asked of a block, and its
    gradient, has nothing to do with the others."""

    def __init__(self, blocks: list[Any], sizes: list[int]) -> None:
        self.blocks = blocks
        stops = np.cumsum(sizes)
        self.rows = [slice(int(e) - n, int(e)) for e, n in zip(stops, sizes, strict=True)]

    def solve(self, b: Any) -> Any:
        parts = zip(self.blocks, self.rows, strict=True)
        return np.concatenate([K.solve(b[rows]) for K, rows in parts])

    def logdet(self) -> Any:
        return functools.reduce(operator.add, (K.logdet() for K in self.blocks))

    def logabsdet(self) -> Any:
        return functools.reduce(operator.add, (K.logabsdet() for K in self.blocks))

    def squares(self, b: Any) -> Any:
        parts = zip(self.blocks, self.rows, strict=True)
        return functools.reduce(operator.add, (_squares(K, b[..., rows]) for K, rows in parts))


def _is_band(tree: Tree) -> bool:
    is_sum = tree[0] == "sum" and any(t[0] == "off" for t in tree[1:])
    return is_sum and all(t[0] in BAND for t in tree[1:])


def _noisy(leaves: Any, terms: tuple[Tree, ...]) -> Any:
    """The inverse of a band and diagonals; None of other sums."""
    inverses = [t[1] for t in terms if t[0] == "inverse"]
    noise = [t for t in terms if t[0] in ("identity", "diagonal")]
    if len(inverses) != 1 or len(noise) != len(terms) - 1 or not _is_band(inverses[0]):
        return None
    own = list(inverses[0][1:])
    by = functools.reduce(operator.add, (leaves[t[1]] for t in noise))
    return _Noisy(_band(leaves, own), _band(leaves, own, by))


def _asked(leaves: Any, tree: Tree, is_whole: bool = False) -> Any:
    """The matrix of a tree, to be asked of; `is_whole`: for its inverse too."""
    if tree[0] == "sum" and (noisy := _noisy(leaves, tree[1:])) is not None:
        return noisy
    if tree[0] == "inverse":
        return _Inverse(operator_of(leaves, tree[1]))
    if tree[0] == "framed":
        u, n = leaves[tree[1]], operator_of(leaves, tree[2]).shape[-1]
        if u.shape != (n,):
            raise ValueError(f"{n} rows and columns are multiplied by numbers of shape {u.shape}")
        return _Framed(u, _asked(leaves, tree[2], is_whole), not isinstance(leaves, _General))
    if tree[0] == "rotated":
        return _Rotated(leaves[tree[1]], leaves[tree[2]])
    if tree[0] == "blocks" and not (is_whole or isinstance(leaves, _General)):
        sizes = [operator_of(leaves, t).shape[-1] for t in tree[1:]]
        return _Blocks([_asked(leaves, t) for t in tree[1:]], sizes)
    return _Matrix(operator_of(leaves, tree))


def _squares(K: Any, b: Any) -> Any:
    """b' inv(K) b of each vector, as the diagonal of one product: by half of the factor where that
    will do, and of the gradient K is asked for one solve."""
    if isinstance(K, _Blocks | _Framed | _Rotated):
        return K.squares(b)
    B = np.reshape(b, (math.prod(b.shape[:-1]), b.shape[-1])).mT
    return np.reshape(np.diagonal(B.mT @ K.solve(B)), b.shape[:-1])


class _Values:
    """What is asked of the matrix of a tree; equal if the text is."""

    def __init__(self, tree: Tree, asked: Tree) -> None:
        self.tree, self.asked = tree, asked

    def __call__(self, leaves: Any) -> list[Any]:
        tree = self.tree
        if tree[0] == "general":
            leaves, tree = _General(leaves), tree[1]
        K = _asked(leaves, tree, any(what == "inverse" for what, *_ in self.asked))
        made = []
        for what, *rest in self.asked:
            if what == "solve":
                made.append(K.solve(leaves[rest[0]]))
            elif what == "inverse":
                made.append(K.inverse())
            elif what == "squares":
                made.append(_squares(K, leaves[rest[0]]))
            else:
                made.append(K.logdet() if what == "logdet" else K.logabsdet())
        return made


@functools.lru_cache(maxsize=1024)
def program(spec: Tree) -> Program:
    """The program of a text's tuples."""
    if spec[0] != "values":
        kind = Pullback if spec[0] == "pullback" else Joined
        return kind(program(spec[1]), spec[2], spec[3])
    _, tree, asked, count = spec
    return Written(_Values(tree, asked), (tree, asked), count)
