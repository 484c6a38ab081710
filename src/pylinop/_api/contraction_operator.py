"""A contraction with a missing operand as a linear operator: `Contraction`; views by equation:
`view`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import _core
from .._base import dlpack
from .._base.checks import is_symbolic
from .._contractions import equations, grammar, toeplitz, views
from .._contractions.equations import Task
from .._contractions.grammar import Axis, Equation, Group, Index, fail
from .._contractions.sizes import given
from .._lazy.contraction_operators import applied, dtype_among
from .._operators.linear_operator import LinearOperator

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Contraction", "view"]

_COLUMN = "_columns"  # the label of the vectors that are multiplied side by side


def _labels(e: Equation, text: str) -> tuple[str, ...]:
    found = grammar.parse(f"{text}->{text}").operands[0] if e.letters else _named(text)
    if not all(isinstance(x, str) for x in found) or len(set(found)) < len(found):
        raise fail(e.text, f"rows and cols are labels, each once, not {text!r}")
    return found  # type: ignore[return-value]


def _named(text: str) -> tuple[Axis, ...]:
    return tuple(text.split())


def _sides(e: Equation, rows: str, cols: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    left, right = _labels(e, rows), _labels(e, cols)
    if e.result is not None and set(e.result) != {*left, *right}:
        raise fail(e.text, f"the result's axes are not those of rows={rows!r} and cols={cols!r}")
    return left, right


def _kind(e: Equation, arrays: list[Any], rows: tuple[str, ...], cols: tuple[str, ...]) -> Any:
    """The kind of operator that it is, or None."""
    terms = e.operands
    if any(a.dtype.char not in "fdFD" for a in arrays):
        return None
    operators = any(isinstance(a, _core.Operator) for a in arrays)
    if all(len(t) == 2 for t in terms) and not set(rows) & set(cols):
        pairs = list(zip(rows, cols)) if len(rows) == len(cols) == len(terms) else []
        at = {frozenset(t): i for i, t in enumerate(terms)}
        if pairs and all(frozenset(p) in at for p in pairs) and len(at) == len(terms):
            own = [at[frozenset(p)] for p in pairs]
            parts = [arrays[i] if terms[i][0] == p[0] else arrays[i].T for i, p in zip(own, pairs)]
            return _core.Kron(*parts) if len(parts) > 1 else _operator(parts[0])
    if operators:
        return None
    if rows == cols and len(rows) == 1 and terms == (rows,):
        return _core.Diag(arrays[0])
    if len(terms) == 2 and all(len(t) == 2 for t in terms) and len(cols) == 1:
        a, b = terms
        if len(rows) == 1 and {a[0], b[0]} == {*rows, *cols} and a[1] == b[1] not in (*rows, *cols):
            u, v = arrays if a[0] == rows[0] else arrays[::-1]
            return _core.LowRank(u, v) if v.dtype.kind == "f" else None
        if a[1] == b[1] == cols[0] and {a[0], b[0]} == set(rows) and len(rows) == 2:
            return _core.KhatriRao(*(arrays if a[0] == rows[0] else arrays[::-1]))
    return None


def _operator(a: Any) -> Any:
    return a if isinstance(a, _core.Operator) else _core.Dense(a)


def _taken(operands: tuple[Any, ...]) -> list[Any]:
    return [a if isinstance(a, _core.Operator) else dlpack.as_array(a) for a in operands]


class Contraction(LinearOperator):
    """A contraction with a missing operand: the linear operator that takes it to the result.

    Parameters
    ----------
    equation : str
        As of `einsum`, of the operands that are there; behind the arrow the axes of rows and
        columns together, in any order, or nothing.
    *operands : array_like or operators
        The arrays. They are borrowed: the operator follows later writes to them. An operator is
        applied by its own kernel where `einsum` would.
    rows, cols : str
        The axes of the operator's rows and columns, in C order, the last one fastest. An axis in
        both is the same index on both sides: the operator is block diagonal in it.
    sizes, outside : optional
        As of `einsum`: of index equations.

    Returns
    -------
    LinearOperator
        Of shape (product of the rows' sizes, product of the columns'); a `Kron`, `Dense`, `Diag`,
        `LowRank` or `KhatriRao` where it is one; of a vector read at i - j a `Toeplitz` or
        `Circulant`, at i + j a `Hankel`.

    Raises
    ------
    ValueError
        An equation that cannot be read, sizes that do not fit, axes of no operand.

    Cost
    ----
    Built in O(1). A product is one contraction of the operands and the vectors, in the cheapest
    order, nothing of the operator's own size is made; diagonal and trace likewise.

    Examples
    --------
    A matrix of five factors (pydata/sparse issue 431), 36 x 36 here, by its products alone:

    >>> import numpy as np, pylinop as pl
    >>> A, B = np.ones((2, 2)), np.eye(6, 2) + 0.1
    >>> M = pl.Contraction("nm,in,jm,pn,qm->ijpq", A, B, B, B, B, rows="ij", cols="pq")
    >>> M.shape, round(float(M.trace()), 3)
    ((36, 36), 6.35)
    >>> pl.Contraction("ip,jq->ijpq", A, A, rows="ij", cols="pq")
    <4x4 Kron with dtype=float64>
    >>> x = np.arange(7.0)
    >>> pl.Contraction("(i - j + 3)", x, rows="i", cols="j", sizes={"i": 4, "j": 4})
    <4x4 Toeplitz with dtype=float64>
    """

    def __init__(
        self,
        equation: str,
        *operands: Any,
        rows: str,
        cols: str,
        sizes: Mapping[str, int] | None = None,
        outside: Any = None,
    ) -> None:
        e, sizes = grammar.read(equation, sizes)
        left, right = _sides(e, rows, cols)
        arrays = _taken(operands)
        every = {*left, *right}
        s = equations.resolved(
            e._replace(result=tuple(sorted(every))), tuple(a.shape for a in arrays), given(e, sizes)
        )
        for i, a in enumerate(arrays if outside is None else ()):
            if not isinstance(a, _core.Operator):
                views.view(e, s, i, a, None)  # raises where an index lies beyond its axis
        self._outside = outside
        self._equation, self._held, self._sizes = e, tuple(arrays), s.sizes
        self._rows, self._cols, self._words = left, right, (rows, cols)
        m, n = (math.prod(s.sizes[x] for x in side) for side in (left, right))
        LinearOperator.__init__(self, dtype_among(arrays), (m, n))

    def __new__(
        cls,
        equation: str = "",
        *operands: Any,
        rows: str = "",
        cols: str = "",
        sizes: Mapping[str, int] | None = None,
        outside: Any = None,
    ) -> Self:
        if equation and cls is Contraction:
            e, sizes = grammar.read(equation, sizes)
            left, right = _sides(e, rows, cols)
            arrays = _taken(operands)
            if len(arrays) == len(e.operands):
                s = equations.resolved(
                    e._replace(result=(*left, *(x for x in right if x not in left))),
                    tuple(a.shape for a in arrays),
                    given(e, sizes),
                )
                found = _kind(e, arrays, left, right)
                if found is None:
                    found = toeplitz.operator(e, s, arrays, left, right, outside)
                if found is not None:
                    return found  # type: ignore[no-any-return]
        return _core.Operator.__new__(cls)

    def __reduce__(self) -> Any:
        return _again, (
            self._equation.text,
            self._held,
            *self._words,
            self._sizes,
            self._outside,
        )

    @property
    def args(self) -> tuple[Any, ...]:
        """The arrays."""
        return self._held

    def _run(self, terms: Any, arrays: Any, result: tuple[str, ...]) -> Any:
        e = Equation((*self._equation.operands, *terms), result, False, self._equation.text)
        return self._computed(e, self._sizes, [*self._held, *arrays])

    def _computed(self, e: Equation, sizes: Mapping[str, int], arrays: Sequence[Any]) -> Any:
        task = Task(e, tuple(sorted(sizes.items())), self._outside)
        if any(isinstance(a, _core.Operator) for a in arrays):
            task, arrays = applied(task, arrays)
        return np.asarray(equations.run(task, [np.asarray(a) for a in arrays]))

    def _product(self, X: Any, take: tuple[str, ...], give: tuple[str, ...]) -> Any:
        x = np.asarray(X).reshape(*(self._sizes[label] for label in take), X.shape[-1])
        made = self._run([(*take, _COLUMN)], [x], (*give, _COLUMN))
        return made.reshape(math.prod(self._sizes[label] for label in give), X.shape[-1])

    def _matmat(self, X: Any) -> Any:
        return self._product(X, self._cols, self._rows)

    def _rmatmat(self, X: Any) -> Any:
        return np.conj(self._product(np.conj(X), self._rows, self._cols))

    def _diagonal(self, k: int) -> Any:
        sizes = [[self._sizes[x] for x in side] for side in (self._rows, self._cols)]
        if k or sizes[0] != sizes[1]:
            return np.diagonal(self.toarray(), k).copy()
        same = dict(zip(self._cols, self._rows))
        terms = tuple(tuple(_renamed(x, same) for x in t) for t in self._equation.operands)
        e = Equation(terms, self._rows, False, self._equation.text)
        left = {x: n for x, n in self._sizes.items() if x not in same or x in self._rows}
        return self._computed(e, left, self._held).reshape(-1)

    def toarray(self, out: NDArray[Any] | None = None) -> Any:
        """The dense form."""
        if set(self._rows) & set(self._cols):
            made = self._matmat(np.eye(self.shape[1], dtype=self.dtype))
        else:
            made = self._run([], [], (*self._rows, *self._cols)).reshape(self.shape)
        if out is None:
            return made
        np.copyto(out, made)
        return out


Contraction.__module__ = "pylinop"


def _again(text: str, arrays: Any, rows: str, cols: str, sizes: Any, outside: Any) -> Any:
    return Contraction(text, *arrays, rows=rows, cols=cols, sizes=sizes, outside=outside)


def _renamed(axis: Axis, same: Mapping[str, str]) -> Axis:
    """An axis with the columns' labels as those of the rows."""
    if isinstance(axis, str):
        return same.get(axis, axis)
    if isinstance(axis, Group):
        return Group(tuple(same.get(x, x) for x in axis.labels))
    if not isinstance(axis, Index):
        return axis
    terms: dict[str, int] = {}
    for label, c in axis.terms:
        terms[same.get(label, label)] = terms.get(same.get(label, label), 0) + c
    return Index(tuple(terms.items()), axis.constant, axis.text)


def view(x: NDArray[Any], equation: str, *, sizes: Mapping[str, int] | None = None) -> NDArray[Any]:
    """The view of an array that an equation of one operand says: nothing is copied.

    Parameters
    ----------
    x : ndarray
        The array.
    equation : str
        As of `einsum`, of one operand, each of its labels once in the result:
        ``"b (2*o + w) c -> b o w c"`` are windows of step 2, ``"(h w) -> w h"`` a reshaped
        transpose, ``"i i -> i"`` the diagonal.
    sizes : mapping of str to int, optional
        Sizes of labels that x does not say; each window's, as a rule.

    Returns
    -------
    ndarray
        Read-only, on x's memory.

    Raises
    ------
    ValueError
        As of `einsum`; a label that is not in the result (`einsum` sums over it); a group whose
        axes do not lie behind each other in memory.

    Cost
    ----
    Microseconds, whatever the size.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> pl.view(np.arange(7), "(2*o + w) -> o w", sizes={"w": 3})
    array([[0, 1, 2],
           [2, 3, 4],
           [4, 5, 6]])
    """
    if is_symbolic(x):
        seen: Any = x
        return seen._of(view, (x, equation), {"sizes": sizes}, None)  # type: ignore[no-any-return]
    a = np.asarray(x)
    try:
        key = None if sizes is None else (*sizes.items(), *map(type, sizes.values()))
        made = _seen(equation, a.shape, key)(a)
    except (AttributeError, TypeError):  # said below
        made = NotImplemented
    return _view(a, equation, sizes) if made is NotImplemented else made


@functools.lru_cache(maxsize=1024)
def _seen(equation: str, shape: tuple[int, ...], key: Any) -> Any:
    """The view of arrays of this shape, or NotImplemented: what has to be looked at each time."""
    e, sizes = grammar.read(equation, None if key is None else dict(key[: len(key) // 2]))
    known = given(e, sizes)
    s = equations.resolved(e, (shape,), known)
    labels = {x for axis in s.operands[0] for x in grammar.labels_of(axis)}
    plain = set(views.result_labels(s)) == labels and all(isinstance(x, str) for x in s.result)
    found = equations.direct(e, (shape,), known, None, None) if plain else None
    return (lambda a: NotImplemented) if found is None else found.equation.view


def _view(a: NDArray[Any], equation: str, sizes: Any) -> NDArray[Any]:
    e, sizes = grammar.read(equation, sizes)
    s = equations.resolved(e, (a.shape,), given(e, sizes))
    made, labels = views.view(e, s, 0, a, None)
    out = views.result_labels(s)
    missing = sorted(set(labels) - set(out))
    if missing:
        raise fail(e.text, f"axis {missing[0]!r} is not in the result: einsum sums over it")
    shape, strides = [], []
    for label in out:
        shape.append(s.sizes[label])
        own = [k for k in range(made.ndim) if labels[k] == label and made.shape[k] != 1]
        strides.append(sum(made.strides[k] for k in own))
    seen = np.lib.stride_tricks.as_strided(made, shape, strides, writeable=False)
    merged = views.merged(s, seen)
    if merged.size and not np.may_share_memory(merged, a):
        raise fail(e.text, "a group's axes do not lie behind each other: einsum copies them")
    merged.flags.writeable = False
    return merged  # type: ignore[no-any-return]
