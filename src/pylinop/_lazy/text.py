"""LazyArrays as text and as flat programs; neither computes or recurses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base import errors
from .._base.lazy_import import Standard

_html, _string = Standard("html"), Standard("string")
_LIMIT = 80  # characters of a formula shown
_SHOWN = 4  # elements of an index shown
_INFIX = {"add": " + ", "subtract": " - ", "multiply": " * ", "divide": " / "}


def postorder(root: Any, known: bool = True) -> list[Any]:
    """The nodes below root, arguments first, each once; without `known`, those that have no
    value yet."""
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        a, ready = stack.pop()
        if ready:
            order.append(a)
        elif id(a) not in seen and (known or a._value is None):
            seen.add(id(a))
            stack.append((a, True))
            stack += [(x, False) for x in reversed(a._args) if isinstance(x, _core.Lazy)]
    return order


def formula(root: Any) -> Any:
    """The expression in NumPy's notation, leaves numbered; capitals are matrices."""
    text: dict[int, str] = {}
    names: dict[int, int] = {}
    for a in postorder(root):
        shown = _one(a, text, names)
        text[id(a)] = shown if len(shown) <= 4 * _LIMIT else "(...)"
    shown = text[id(root)]
    shown = shown[1:-1] if _wrapped(shown) else shown
    return shown if len(shown) <= _LIMIT else shown[: _LIMIT - 3] + "..."


def _wrapped(text: str) -> bool:
    """Is the whole text in one pair of parentheses?"""
    if not text.startswith("("):
        return False
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def _bare(shown: Callable[[Any], str], head: str) -> Any:
    """``shown`` without outer parentheses round that head, which binds more tightly here."""

    def bare(x: Any) -> str:
        text = shown(x)
        return text[1:-1] if x._head == head and _wrapped(text) else text

    return bare


def _one(a: Any, text: dict[int, str], names: dict[int, int]) -> Any:
    def shown(x: Any) -> str:
        if isinstance(x, _core.Lazy):
            return text[id(x)]
        if isinstance(x, np.ndarray):
            return _name(x, x.ndim, names)
        return str(x)

    head, args = a._head, a._args
    if head == "leaf":
        return _name(args[0], a.ndim, names)
    if head == "operator":
        return f"{type(args[0]).__name__}{names.setdefault(id(args[0]), len(names))}"
    if head == "matmul":
        left, right = map(shown, args)
        left = left[1:-1] if _wrapped(left) and args[0]._head == "matmul" else left
        return f"({left} @ {right})"
    if head == "add":
        right = args[1]
        shown = _bare(shown, "matmul")
        if right._head == "scale" and isinstance(right._args[1], int) and right._args[1] == -1:
            return f"({shown(args[0])} - {shown(right._args[0])})"
        return f"({shown(args[0])} + {shown(right)})"
    if head == "scale":
        if isinstance(args[1], int) and args[1] == -1:
            return f"-{shown(args[0])}"
        return f"({shown(args[1])} * {shown(args[0])})"
    if head == "over":
        return f"({shown(args[0])} / {shown(args[1])})"
    if head == "view":
        return shown(args[0]) + ("", ".T", ".conj()", ".H")[a._more]
    if head == "inverse":
        inner = shown(args[0])
        return f"inv({inner[1:-1] if _wrapped(inner) else inner})"
    if head == "index":
        return f"{shown(args[0])}[{_key(a._more)}]"
    name = getattr(a._more[0], "__name__", "call").lstrip("_")
    if name in _INFIX and len(args) == 2:
        return f"({shown(args[0])}{_INFIX[name]}{shown(args[1])})"
    return f"{name}({', '.join(map(shown, args))})"


def _name(x: Any, ndim: int, names: dict[int, int]) -> str:
    letters = _string.ascii_uppercase if ndim >= 2 else _string.ascii_lowercase
    return f"{letters[0]}{names.setdefault(id(x), len(names))}"


def _key(key: Any) -> str:
    def part(k: Any) -> str:
        if isinstance(k, slice):
            ends = ["" if e is None else str(e) for e in (k.start, k.stop)]
            return ":".join(ends) + (f":{k.step}" if k.step not in (None, 1) else "")
        if isinstance(k, (np.ndarray, list)) and np.size(k) > _SHOWN:
            a = np.asarray(k)
            return f"{'mask' if a.dtype.kind == 'b' else 'array'} {a.shape}"
        return "..." if k is Ellipsis else str(k.tolist() if isinstance(k, np.ndarray) else k)

    return ", ".join(map(part, key)) if isinstance(key, tuple) else part(key)


def html(a: Any) -> str:
    """The notebook's view: what it is, from which line, and its value where that is known."""
    rows = [("expression", formula(a)), ("shape", str(a.shape)), ("dtype", str(a.dtype))]
    if line := errors.where(a):
        rows.append(("built at", line))
    known = a._value
    if known is None:
        rows.append(("value", "not computed yet"))
    else:
        with np.printoptions(precision=4, threshold=20, edgeitems=3):
            rows.append(("value", str(known)))
    left = "style='text-align:left'"
    return (
        "<table>"
        + "".join(
            f"<tr><th {left}>{k}</th><td {left}><code>{_html.escape(v)}</code></td></tr>"
            for k, v in rows
        )
        + "</table>"
    )


# -- programs: pickling, and copies for explain ----------------------------------------------------


def program(root: Any) -> Any:
    """Rows (head, arguments, shape, dtype, more, value); arguments ("#", i) are earlier rows. The
    head of an array that was added as it is (py_lazy_given.c) is "given"."""
    rows: list[Any] = []
    at: dict[int, int] = {}
    for a in postorder(root):
        args = tuple(("#", at[id(x)]) if isinstance(x, _core.Lazy) else x for x in a._args)
        at[id(a)] = len(rows)
        head = "given" if a._given else a._head
        rows.append((head, args, a.shape, a.dtype, a._more, a._value))
    return rows


def rebuild(rows: Any) -> Any:
    """The expression of a program."""
    made: list[Any] = []
    for head, args, shape, dtype, more, value in rows:
        known = tuple(made[x[1]] if type(x) is tuple and x[:1] == ("#",) else x for x in args)
        given = head == "given"
        a = _core._LazyArray("leaf" if given else head, known, shape, dtype, more)
        if given:
            a._given = True
        if value is not None:
            value.flags.writeable = False
            a._value = value
        if head == "leaf" and more is not None:
            a._form = _core.Dense(known[0], assume_a=more)
        made.append(a)
    return made[-1]
