"""Sizes: integer expressions in symbols.

A size is a sum of integer multiples of products of atoms; an atom is a `Symbol`, the quotient
(rounded down) of a size by a number, or the least of two sizes. What is a number is an int: all
functions here take and give both."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["Least", "Quotient", "Size", "Symbol", "least", "symbols"]

_session = os.urandom(8).hex()
_count = itertools.count()


class Symbol:
    """An unknown integer of at least `least`. Two symbols of one name are two; a pickled one is
    the same again."""

    __slots__ = ("least", "name", "uid")

    def __init__(self, name: str, least: int = 1, uid: str | None = None) -> None:
        self.name, self.least = name, least
        self.uid = f"{_session}-{next(_count)}" if uid is None else uid

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and other.uid == self.uid

    def __hash__(self) -> int:
        return hash(self.uid)

    def __reduce__(self) -> Any:
        return Symbol, (self.name, self.least, self.uid)

    def __repr__(self) -> str:
        return self.name

    @property
    def key(self) -> tuple[str, str]:
        return (self.name, self.uid)


class Quotient(NamedTuple):
    """A size by a number, rounded down."""

    of: Size
    by: int

    def __repr__(self) -> str:
        inner = self.of
        bare = len(inner.terms) == 1 and all(len(m) == 1 for m in inner.terms)
        simple = bare and 1 in inner.terms.values()
        return f"{inner} // {self.by}" if simple else f"({inner}) // {self.by}"

    @property
    def key(self) -> tuple[str, str]:
        return (f"~{self!r}", "")


class Least(NamedTuple):
    """The smaller one of two sizes."""

    of: tuple[Any, Any]

    def __repr__(self) -> str:
        return f"min({self.of[0]}, {self.of[1]})"

    @property
    def key(self) -> tuple[str, str]:
        return (f"~{self!r}", "")


Atom = Symbol | Quotient | Least
Monomial = tuple[Atom, ...]  # sorted by their keys; () of the constant


def _whole(x: Any) -> int | None:
    """An integer that x is, or None."""
    if isinstance(x, bool) or not hasattr(x, "__index__") or isinstance(x, Size):
        return None
    return int(x.__index__())


class Size:
    """An integer expression in symbols: a size that is not known yet.

    ``+``, ``-`` and ``*`` with integers and sizes, ``//`` by an integer. ``==`` asks whether two
    are the same expression. There is no number in it: `unify` finds one."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {m: c for m, c in terms.items() if c}
        self._hash = hash(frozenset(self.terms.items()))

    def __reduce__(self) -> Any:
        return Size, (self.terms,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and other.terms == self.terms

    def __hash__(self) -> int:
        return self._hash

    @property
    def constant(self) -> int:
        return self.terms.get((), 0)

    def __add__(self, other: Any) -> Any:
        terms = _terms(other)
        if terms is None:
            return NotImplemented
        return made({m: self.terms.get(m, 0) + terms.get(m, 0) for m in {**self.terms, **terms}})

    __radd__ = __add__

    def __neg__(self) -> Any:
        return made({m: -c for m, c in self.terms.items()})

    def __pos__(self) -> Any:
        return self

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if _terms(other) is None else self + times(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return NotImplemented if _terms(other) is None else other + times(self, -1)

    def __mul__(self, other: Any) -> Any:
        return NotImplemented if _terms(other) is None else times(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        by = _whole(other)
        if by is None:
            return NotImplemented
        if by < 1:
            raise ValueError(f"a size is divided by positive integers, not by {by}")
        return quotient(self, by)

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(
            f"the size {self} is not a number yet: pl.unify finds it from sizes that are known"
        )

    __int__ = __index__ = __float__ = __bool__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __mod__ = __truediv__ = __pow__ = _refuse

    def __repr__(self) -> str:
        return _shown(self.terms)


def _shown(terms: Mapping[Monomial, int]) -> str:
    text = ""
    ordered = sorted(terms.items(), key=lambda t: (t[1] < 0, not t[0]))
    for m, c in ordered:
        factor = len(m) > 1 or abs(c) != 1
        names = "*".join(f"({a!r})" if isinstance(a, Quotient) and factor else repr(a) for a in m)
        part = str(abs(c)) if not m else names if abs(c) == 1 else f"{abs(c)}*{names}"
        text += (" - " if c < 0 else " + ") + part if text else ("-" if c < 0 else "") + part
    return text


def _terms(x: Any) -> Mapping[Monomial, int] | None:
    if isinstance(x, Size):
        return x.terms
    whole = _whole(x)
    return None if whole is None else {(): whole}


def made(terms: Mapping[Monomial, int]) -> Any:
    """The size of these terms, or the number that it is."""
    left = {m: c for m, c in terms.items() if c}
    return left.get((), 0) if left.keys() <= {()} else Size(left)


def times(a: Any, b: Any) -> Any:
    """The product of two sizes."""
    one, other = _terms(a), _terms(b)
    assert one is not None and other is not None
    terms: dict[Monomial, int] = {}
    for (m, c), (n, d) in itertools.product(one.items(), other.items()):
        both = tuple(sorted(m + n, key=lambda atom: atom.key))
        terms[both] = terms.get(both, 0) + c * d
    return made(terms)


def product(sizes: Any) -> Any:
    """The product of several sizes."""
    total: Any = 1
    for n in sizes:
        total = times(total, n)
    return total


def quotient(a: Any, by: int) -> Any:
    """``a // by``; what divides without a rest is divided."""
    if not isinstance(a, Size):
        return a // by
    whole = {m: c // by for m, c in a.terms.items() if c % by == 0}
    rest = {m: c for m, c in a.terms.items() if c % by}
    if rest.get((), 0):
        whole[()] = whole.get((), 0) + rest[()] // by
        rest[()] = rest[()] % by
    inner = made(rest)
    if not isinstance(inner, Size):
        return made({**whole, (): whole.get((), 0) + inner // by})
    return Size({(Quotient(inner, by),): 1}) + made(whole)


def atoms(a: Any) -> Iterator[Symbol]:
    """The symbols in a size."""
    for m in a.terms if isinstance(a, Size) else ():
        for atom in m:
            if isinstance(atom, Symbol):
                yield atom
                continue
            for part in atom.of if isinstance(atom, Least) else (atom.of,):
                yield from atoms(part)


def value(a: Any, known: Mapping[Symbol, int]) -> int:
    """The number that a size is, given those of its symbols."""
    if not isinstance(a, Size):
        return int(a)
    total = 0
    for m, c in a.terms.items():
        for atom in m:
            if isinstance(atom, Symbol):
                c *= known[atom]
            elif isinstance(atom, Least):
                c *= min(value(part, known) for part in atom.of)
            else:
                c *= value(atom.of, known) // atom.by
        total += c
    return total


def smallest(a: Any) -> float:
    """A bound from below: that of sums of symbols with positive coefficients."""
    if not isinstance(a, Size):
        return int(a)
    total = 0
    for m, c in a.terms.items():
        if c < 0 and m or not all(isinstance(atom, Symbol) for atom in m):
            return float("-inf")
        for atom in m:
            c *= atom.least  # type: ignore[union-attr]
        total += c
    return total


def least(a: Any, b: Any) -> Any:
    """The smaller one, where that is known by the expressions; else an expression of both."""
    if smallest(a - b) >= 0:
        return b
    if smallest(b - a) >= 0:
        return a
    first, second = sorted((a, b), key=lambda n: (not isinstance(n, Size), repr(n)))
    return Size({(Least((first, second)),): 1})


def replaced(x: Any, of: Callable[[Any], Any]) -> Any:
    """Arguments with `of` in place of each size: through tuples, lists, dicts and slices."""
    if isinstance(x, Size):
        return of(x)
    if type(x) in (tuple, list):
        return type(x)(replaced(y, of) for y in x)
    if type(x) is dict:
        return {k: replaced(v, of) for k, v in x.items()}
    if type(x) is slice:
        return slice(*(replaced(y, of) for y in (x.start, x.stop, x.step)))
    return x


def symbols(names: str, least: int = 1) -> Any:
    """Sizes that are not known yet, one for each name.

    Parameters
    ----------
    names : str
        Names between blanks or commas: ``N, K = pl.symbols("N K")``.
    least : int
        The least size that they stand for. 0 allows empty arrays.

    Returns
    -------
    Size or tuple of Size
        One for one name. ``+``, ``-`` and ``*`` make sizes of them, ``//`` by integers too.

    Raises
    ------
    ValueError
        No name, or a negative `least`.

    Cost
    ----
    Microseconds.

    Examples
    --------
    >>> import pylinop as pl
    >>> N, K = pl.symbols("N K")
    >>> 2 * N + 1, (N - K) // 2 + 1
    (2*N + 1, (N - K) // 2 + 1)
    """
    found = names.replace(",", " ").split()
    if not found or not all(name.isidentifier() for name in found):
        raise ValueError(f"names of symbols are wanted, as in 'N K', not {names!r}")
    if least < 0:
        raise ValueError(f"least = {least}: a size is not negative")
    sizes = tuple(Size({(Symbol(name, int(least)),): 1}) for name in found)
    return sizes[0] if len(sizes) == 1 else sizes
