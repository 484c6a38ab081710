"""``kinds`` and ``rules``: lists of dicts, as the core gives them, that print as tables."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

from .. import _core

__all__ = ["Table", "kinds", "rules"]
_SHOWN, _WIDE = 40, 60  # rows of text, characters of a cell


def _cell(x: Any) -> str:
    return "" if x is None else " ".join(str(x).split())


class Table(list[dict[str, Any]]):
    """A list of dicts that prints as a table: some columns of it, and where it is long some rows.

    Parameters
    ----------
    rows : iterable of dict
    columns : iterable of str
        The keys that are shown. All others are there.
    """

    def __init__(self, rows: Iterable[dict[str, Any]], columns: Iterable[str]) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)

    def _left(self, shown: int) -> str:
        more = len(self) - shown
        return f"{more} more rows; each is a dict: {', '.join(self[0])}" if more > 0 else ""

    def __repr__(self) -> str:
        rows = [[_cell(row.get(c))[:_WIDE] for c in self.columns] for row in self[:_SHOWN]]
        widths = [max(map(len, column)) for column in zip(self.columns, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [list(self.columns), *rows]
        ]
        return "\n".join([*lines, *filter(None, [self._left(_SHOWN)])])

    def _repr_html_(self) -> str:
        left = "style='text-align:left'"

        def line(tag: str, cells: Iterable[str]) -> str:
            inner = "".join(f"<{tag} {left}>{html.escape(c)}</{tag}>" for c in cells)
            return f"<tr>{inner}</tr>"

        rows = "".join(line("td", [_cell(row.get(c)) for c in self.columns]) for row in self)
        return (
            "<div style='max-height:30em;overflow:auto'><table>"
            f"{line('th', self.columns)}{rows}</table></div>"
        )

    def __reduce__(self) -> Any:
        return Table, (list(self), self.columns)


def kinds() -> Table:
    """The kinds of operators, a table: name, what it is, signature.

    Returns
    -------
    Table
        A list of dicts, with parameters and docstrings too, that prints as a table.

    Examples
    --------
    >>> import pylinop as pl
    >>> print(pl.kinds())  # doctest: +ELLIPSIS
    name ... what ... signature
    ...
    """
    rows = []
    for row in _core.kinds():
        lines = [line for line in row["doc"].splitlines() if line and line != "--"]
        signed = bool(lines) and lines[0].startswith(row["name"] + "(")
        rows.append({**row, "what": lines[signed] if len(lines) > signed else ""})
    return Table(rows, ("name", "what", "signature"))


def rules() -> Table:
    """The rules by which expressions are rewritten, a table: the core's and those of users.

    Returns
    -------
    Table
        A list of dicts that prints as a table: ``name``, ``phase``, both sides as text (``right``
        is None where it is computed), ``guard``, ``cost``, ``source``, ``origin``, and how often it
        has ``fired``.

    Examples
    --------
    >>> import pylinop as pl
    >>> [row["source"] for row in pl.rules() if row["name"] == "close-diag-diag"]
    ['D1 D2 = diag(d1 d2)']
    """
    return Table(_core.rules(), ("name", "phase", "left", "source", "fired"))
