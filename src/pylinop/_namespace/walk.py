"""The canonical expression of an operator's action, node by node, on arrays of a namespace.

Nodes come in the order in which they are computed. Those that the result does not need are left
out: of a fast way with a check and a safe one, the fast way and what its check reads (`ARMS`)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _core
from .._base import config
from . import checks, closing, fused, heads, kinds, projections, solves
from .arrays import Namespace
from .told import Told

__all__ = ["ARMS", "Row", "Shared", "Walk", "canonical", "missing", "rows_of", "run"]


class Row(NamedTuple):
    """A node, as `_canonical` gives it."""

    head: str
    children: tuple[int, ...]
    i: tuple[int, ...]
    c: complex
    dtype: str
    shape: tuple[int, ...]
    core: int
    serial: int
    num: int


# Which child is taken where C looks at values first. `checked` holds a solution that has been
# refined once, which is NaN where C would not accept it (checks.py); `checked_update` one that has
# not, and the checked one as its last child.
ARMS = {
    "checked": 0,
    "checked_value": 0,
    "checked_det": 0,
    "checked_difference": 0,
    "checked_beside": 0,
    "checked_parallel": 0,
    "checked_update": -1,
    "checked_update_det": -1,
    "checked_quotient_det": -1,
    "checked_share": -1,
    "where_runs": -1,
    "block_tridiagonal_solve": -1,
    "block_det": -1,
    "blockinvblocks": -1,
    "blockinvdiag": -1,
    "blockinvtrace": -1,
    "bandinvdiag": -1,
    "bandinvband": -1,
    "triinvdiag": -1,
    "bandbetween": -1,
    "toeplitz_inverse_diagonal": -1,
    "toeplitz_inverse": -1,
    "toeplitz_inverse_sums": -1,
    "toeplitz_between_sums": -1,
    "toeplitz_weighted_sums": -1,
    "displaced_checked": -1,
    "quasi_between_diagonal": -1,
    "quasi_between_sums": -1,
    "quasi_inverse_sums": -1,
    "mixed_precision_solve": -1,
    "quasiseparable_solve": -1,
    "quasiseparable_det": -1,
    "quasiinvdiag": -1,
    "sparse_solve": -1,
    "sparse_det": -1,
    "sparsediag": -1,
    "sparseentries": -1,
    "sparsetrace": -1,
    "sparserows": -1,
    "toeplitz_solve": -1,
    "toeplitz_det": -1,
    "assume": 0,
    "check_isometry": 0,
    "assume_band": 0,
}


def missing(what: str, row: Row) -> NotImplementedError:
    """What to raise for a node without a form."""
    return NotImplementedError(
        f"{what} ({row.dtype}, shape {row.shape}) has no form on the arrays of other libraries "
        "yet: compute it on the CPU, or take the dense form"
    )


HEADS: dict[str, Callable[..., Any]] = {
    **heads.HEADS,
    **solves.HEADS,
    **projections.HEADS,
    **closing.HEADS,
    "probe": checks.probe,
}


@functools.cache
def _by_order() -> tuple[str, ...]:
    """The rules that sort points on a line, and sweep along them."""
    names = [str(row["name"]) for row in _core.rules()]
    return tuple([name for name in names if "line" in name.split("-")])


def canonical(op: Any, *asked: Any) -> Any:
    """The canonical expression of an operator's action. A sweep along an order has no form on
    arrays of a device: what would sort its points takes its dense form."""
    found = op._canonical(*asked)
    if all(row[0] != "line_order" for row in found[0]):
        return found
    with config.config(disable_rules=(*config.get("disable_rules"), *_by_order())):
        return op._canonical(*asked)


def rows_of(found: Any) -> list[Row]:
    """The nodes of a canonical expression."""
    return [Row(*r) for r in found]


def _real(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def _entries(entries: Any, sources: Any, used: set[int]) -> list[Any]:
    """The coefficients as rules compute them, of those that the formula was written with; None
    where nothing needs it."""
    needed = set(used)
    for n, (how, a, b, _) in reversed(list(enumerate(entries))):
        if n in needed and how in "*+/":
            needed |= {a, b}
    found: list[Any] = []
    for n, (how, a, b, value) in enumerate(entries):
        if n not in needed:
            found.append(None)
        elif how == "s":
            found.append(sources[value]())
        elif how in "*+/":
            x, y = found[a], found[b]
            found.append(x * y if how == "*" else x + y if how == "+" else x / y)
        else:
            found.append(value)
    return found


_SPECTRA = ("eigval", "eigvec", "eigmetric", "schur_solve", "schur_det")


def _by_spectrum(rows: list[Row], at: int) -> bool:
    """Is what a node is made of diagonal in the eigenvectors of matrices known to be Hermitian?
    Others are looked at before, and pencils go two ways."""
    stack, seen = [at], {at}
    while stack:
        row = rows[stack.pop()]
        if row.head in _SPECTRA and (
            len(row.children) > 1 or not row.i[0] & 1 or not row.head.startswith("eigv")
        ):
            return False
        below = [k for k in row.children if k not in seen]
        seen.update(below)
        stack += below
    return True


def _arms(rows: list[Row]) -> list[int | None]:
    """Of each node the place of the child that is taken, where only one is. Of a spectrum that is
    looked at for its signs the child that fails where one is wrong; where a fast way, or what its
    check reads, has a node without a form, as Schur's, the safe one."""
    arms: list[int | None] = []
    formed: list[bool] = []
    for row in rows:
        arm = ARMS.get(row.head)
        if row.head == "spectral":
            arm = 0 if not row.i[1] and _by_spectrum(rows, row.children[0]) else -1
        if arm == 0 and (row.head == "spectral" or row.head in checks.HEADS):
            arm = arm if all(formed[k] for k in _below(rows, row, arm)) else -1
            other = rows[row.children[-1]]
            if other.head in checks.HEADS and other.children[0] == row.children[0]:
                arm = -1  # the same by a test that lets more pass
        known = row.head == "array" or row.head in HEADS or kinds.is_operator(row.head)
        below = _below(rows, row, arm)
        arms.append(arm)
        formed.append((known or arm is not None) and all(formed[k] for k in below))
    return arms


def _below(rows: list[Row], row: Row, arm: int | None) -> tuple[int, ...]:
    """The nodes that one is computed from."""
    if arm is None:
        return row.children
    if arm == 0 and row.head in checks.HEADS and checks.is_on():
        return checks.reads(rows, row)
    return (row.children[arm],)


def _reads(rows: list[Row], arms: list[int | None]) -> list[int]:
    """How often each node is read: 0 where it is not needed."""
    reads = [0] * len(rows)
    reads[-1] = 1
    for at in range(len(rows) - 1, -1, -1):
        row = rows[at]
        if not reads[at]:
            continue
        for k in _below(rows, row, arms[at]):
            # the squares below a weighted Gram matrix are for C
            reads[k] += 1 if (row.head, rows[k].head) != ("top_square", "weighted_gram") else 0
            if not reads[k]:
                for j in rows[k].children:
                    reads[j] += 1
    return reads


class Shared:
    """What the walks of one program have in common: factors, and values that are dear, by a number
    for what they are of. Arrays go by marks of whoever holds them."""

    def __init__(self) -> None:
        self.found: dict[Any, Any] = {}
        self.told: Told | None = None
        self._numbers: dict[Any, int] = {}

    def number(self, what: Any) -> int:
        """The same for the same."""
        return self._numbers.setdefault(what, len(self._numbers))


# Values that other walks take over: reading their operands is most of a Woodbury, and a dense form
# is announced once.
_KEPT = ("gram", "weighted_gram", "todense", "probe")


class Walk:
    """One expression and the values of its nodes."""

    def __init__(
        self,
        ns: Namespace,
        rows: list[Row],
        leaves: dict[int, Any],
        asked: bool = False,
        shared: Shared | None = None,
        marks: dict[int, Any] | None = None,
    ) -> None:
        self.ns, self.rows, self.leaves = ns, rows, leaves
        self.asked = asked  # is the dense form what was asked for?
        self.shared, self.marks = shared or Shared(), marks or {}
        self.values: dict[int, Any] = {}
        self.keys: list[int] = []
        self.numbers: list[Any] = []  # coefficients that are arrays, by the entries that rows name
        self.entries: Any = ()
        self.sums: fused.Sums | None = None
        self.sound: list[Any] = []  # truth values without which the result is none

    def key(self, at: int) -> int:
        """A number for what a node is, in all walks of the program."""
        for row in self.rows[len(self.keys) : at + 1]:  # children come first
            below = tuple(self.keys[k] for k in row.children)
            leaf = not below and row.head != "probe"  # which is the same for the same shape
            mark = self.marks.get(row.serial, (id(self), row.serial)) if leaf else None
            number = self._entry_key(row.num) if row.num else 0
            what = (row.head, below, row.i, row.c, row.dtype, row.shape, row.core, mark, number)
            self.keys.append(self.shared.number(what))
        return self.keys[at]

    def _entry_key(self, at: int) -> int:
        how, a, b, value = self.entries[at]
        below = (self._entry_key(a), self._entry_key(b)) if how in "*+/" else ()
        return self.shared.number(("entry", how, below, value))

    def once(self, what: Any, at: int, make: Callable[[], Any]) -> Any:
        """What is made of a node, once in all walks of the program."""
        key = what, self.key(at)
        if key not in self.shared.found:
            self.shared.found[key] = make()
        return self.shared.found[key]

    def once_of(self, what: Any, row: Row, make: Callable[[], Any]) -> Any:
        """What is made of a node's operands in its dtype, whatever the node."""
        key = what, row.dtype, tuple(map(self.key, row.children))
        if key not in self.shared.found:
            self.shared.found[key] = make()
        return self.shared.found[key]

    def value(self, at: int) -> Any:
        """Of an array's node."""
        return self.values[at]

    def child(self, row: Row, k: int, dtype: str | None = None) -> Any:
        """The value of a child, in the dtype of the node or another; real ones stay real."""
        x, due = self.values[row.children[k]], dtype or row.dtype
        have = self.rows[row.children[k]].dtype
        if due.startswith("complex") and not have.startswith("complex"):
            due = {"complex64": "float32", "complex128": "float64"}[due]
        return self.ns.cast(x, due)

    def whole(self, row: Row, k: int) -> Any:
        """The value of a child in the node's dtype."""
        return self.ns.cast(self.values[row.children[k]], row.dtype)

    def each_once(self, at: int, index: Any) -> None:
        """The result is one only if the vector of a node, wrapped, holds every index once."""
        if self.rows[at].head != "inverse_permutation":  # which is one, or has been looked at
            self.sound.append(self.once("each once", at, lambda: self.ns.each_once(index)))

    def _unless_unsound(self, x: Any) -> Any:
        """NaN where the result is none: nobody waits for the truth value. Integers have no NaN:
        there it is looked at, which what is traced does not allow."""
        if not self.sound or x is None:
            return x
        if isinstance(x, (tuple, list)):
            return type(x)([self._unless_unsound(y) for y in x])
        name = self.ns.name_of(x)
        if not name.startswith(("float", "complex")):
            with contextlib.suppress(TypeError, RuntimeError):
                if not all(map(bool, self.sound)):
                    raise ValueError("a permutation holds each index once")
            return x
        for sound in self.sound:
            x = checks.nan_unless(self.ns, sound, x, 0)
        return x

    def coefficient(self, row: Row) -> Any:
        """A Python number, or an array of no dimensions."""
        if row.num:
            return self.ns.cast(self.numbers[row.num], _real(row.dtype))
        if row.dtype.startswith("complex"):
            return row.c
        return row.c.real if row.dtype.startswith("float") else row.i[0]

    def run(self) -> Any:
        """The value of the last node."""
        arms = _arms(self.rows)
        reads = _reads(self.rows, arms)
        self.sums = fused.sums_of(self, reads) if self.ns.fuses else None
        for at, row in enumerate(self.rows):
            if not reads[at] or (self.sums is not None and at in self.sums.within):
                continue
            if row.head == "array":
                self.values[at] = self.leaves[row.serial]
            elif (arm := arms[at]) is not None:
                self.values[at] = self._taken(at, row, arm)
                if self.shared.told is not None:
                    tested = not arm and row.head in checks.HEADS and checks.is_on()
                    self.shared.told.ways[row.head] = tested
            elif self.sums is not None and at in self.sums.terms:
                self.tell(row, row.shape)
                self.values[at] = self.sums.value(self, at)
            elif row.head in HEADS:
                self.values[at] = self._made(at, row)
            elif not kinds.is_operator(row.head):
                raise missing(f"{row.head!r}", row)
        return self._unless_unsound(self.values[len(self.rows) - 1])

    def _taken(self, at: int, row: Row, arm: int) -> Any:
        x = self.values.get(row.children[arm])
        if arm or row.head not in checks.HEADS or not checks.is_on():
            return x
        sound = self.once("sound", at, lambda: checks.HEADS[row.head](self, row))
        return checks.nan_unless(self.ns, sound, x, row.core)

    def _made(self, at: int, row: Row) -> Any:
        def make() -> Any:
            self.tell(row, row.shape)
            return self._shaped(HEADS[row.head](self, row), row)

        return self.once("value", at, make) if row.head in _KEPT else make()

    def tell(self, row: Row, shape: Any) -> None:
        """That a node is computed, to who asks."""
        if self.shared.told is not None:
            reads = [f"{self.rows[k].head}{self.rows[k].shape}" for k in row.children]
            self.shared.told.step(row.head, shape, reads)

    def _shaped(self, x: Any, row: Row) -> Any:
        if isinstance(x, (tuple, list)) or x is None:  # a determinant, several results, a shape
            return x
        x = self.ns.cast(x, row.dtype)
        return self.ns.expand(x, row.shape)


def run(
    ns: Namespace,
    canonical: Any,
    leaves: dict[int, Any],
    sources: dict[float, Callable[[], Any]] | None = None,
    **how: Any,
) -> Any:
    """The value of a canonical expression, of the arrays of its leaves by their numbers, and of
    those that stand for coefficients, by the placeholders' values. `how` is Walk's."""
    rows, _, _, entries = canonical
    walk = Walk(ns, rows_of(rows), leaves, **how)
    walk.entries = entries or ()
    if sources:
        if entries is None:
            raise NotImplementedError(
                "the form of this expression depends on the value of a coefficient that is an "
                "array: give it as a Python number"
            )
        found = _entries(entries, sources, {row.num for row in walk.rows})
        dtypes = [ns.name_of(x) for x in found if hasattr(x, "ndim")]
        dtype = next((d for d in dtypes if d.startswith("float")), "float64")  # none of integers
        walk.numbers = [
            x if x is None or hasattr(x, "ndim") else ns.constant(x, dtype) for x in found
        ]
    return walk.run()
