"""``kinds`` and ``rules``: lists of dicts, as the core gives them, that print as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _core
from .._base.lazy_import import Standard
from .._structured import rows as _rows

__all__ = ["Table", "kinds", "rules"]
_html = Standard("html")
_SHOWN, _WIDE = 40, 60  # rows of text, characters of a cell


def _cell(x: Any) -> str:
    return "" if x is None else " ".join(str(x).split())


def _short(text: str) -> str:
    """A cell that fits: where it is too long, whole words and an ellipsis."""
    if len(text) <= _WIDE:
        return text
    cut = text[: _WIDE - 3]
    return f"{(cut.rpartition(' ')[0] or cut).rstrip(',;:')}..."


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
        rows = [[_short(_cell(row.get(c))) for c in self.columns] for row in self[:_SHOWN]]
        widths = [max(map(len, column)) for column in zip(self.columns, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [list(self.columns), *rows]
        ]
        return "\n".join([*lines, *filter(None, [self._left(_SHOWN)])])

    def _repr_html_(self) -> str:
        left = "style='text-align:left'"

        def line(tag: str, cells: Iterable[str]) -> str:
            inner = "".join(f"<{tag} {left}>{_html.escape(c)}</{tag}>" for c in cells)
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
    """The rules by which expressions are rewritten and functions answered, a table: the library's
    and those of users.

    Returns
    -------
    Table
        A list of dicts that prints as a table: ``name``; ``phase``: 'close' (when an expression is
        built), 'first' and 'push' (when a plan is made), 'both' ('close' and 'push'), 'explore'
        (users' rules that are priced), or 'structure' (a function of an operator, such as eigh or
        cholesky, answered by its kind);
        ``tier``: which rows of a root are asked first, 'veto', 'whole', 'kind', 'inferred',
        'generic', 'dense', and in a tier those that name more;
        ``left`` and ``right``, both sides as text (None: the right side is computed); ``guard``:
        the condition, by name, or None; ``cost``: 'always', or 'cheaper' where the price decides;
        ``source``; ``origin``: 'table' or 'user'; ``fired``: how often in this process; ``price``:
        of a structure rule its cost, what it asks of the parts included, else None.

    Notes
    -----
    ``pl.config(disable_rules=[name])`` switches a rule off: a structure rule's operators then go by
    the dense form. docs/rules.md and docs/factorisations.md print the tables.

    Examples
    --------
    >>> import pylinop as pl
    >>> next(row["left"] for row in pl.rules() if row["name"] == "eigh-kron")
    '(eigh (kron))'
    """
    made = [row | {"price": None} for row in _core.rules()]
    table = [row for row in made if row["origin"] == "table"]
    users = [row for row in made if row["origin"] != "table"]
    rows = [*table, *_rows.rules(), *users]
    return Table(rows, ("name", "phase", "left", "source", "fired"))
