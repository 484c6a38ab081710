"""Print src/pylinop/_core.pyi: the fixed part from stub_base.pyi.in, the kinds from their tables.

    python tools/print_stubs.py > src/pylinop/_core.pyi

Run by `make stubs`; `make stubtest` fails when the committed file is not what this prints. A row
of `pylinop._core.kinds()` is a dict: name; signature ("(d, k=0, shape=None)", or None where there
is no constructor); params, each with name, default (Python text or None), doc and role; doc.
"""

import ast
import inspect
import sys
from pathlib import Path
from typing import Any

from pylinop import _core

TEMPLATE = Path(__file__).with_name("stub_base.pyi.in")
MARK = "# {kinds}\n"

# What a constructor's argument may be, by the role its table gives it, and what the property of
# that name gives back ("": it is the base's).
ROLES = {
    "array": ("ArrayLike", "_Array"),
    "operator": ("_OperatorLike", "LinearOperator"),
    "operators": ("_OperatorLike | Sequence[_OperatorLike]", "tuple[LinearOperator, ...]"),
    "index": ("ArrayLike", "_Array"),
    "int": ("SupportsIndex", "SupportsIndex"),
    "offset": ("SupportsIndex", "SupportsIndex"),
    "flag": ("bool", "bool"),
    "word": ("str", "str"),
    "bands": ("tuple[SupportsIndex, SupportsIndex]", "tuple[SupportsIndex, SupportsIndex]"),
    "scalar": ("_Number", "_Number"),
    "grid": ("_Shape", "_Shape"),
    "sizes": ("SupportsIndex | Sequence[SupportsIndex]", "int | tuple[int, ...]"),
    "levels": ("SupportsIndex", "int"),
    "shape": ("_Shape", ""),
    "dtype": ("DTypeLike", ""),
    "assume": ("str", "str"),
    "foreign": ("Any", "Any"),
    "blocks": ("Sequence[Sequence[_OperatorLike | None]]", "list[list[LinearOperator]]"),
}
# Where a table's role says less than the constructor takes.
SPECIAL = {
    ("Identity", "n"): ("_Shape", "_Shape"),
    ("Kernel", "function"): ("str | Callable[[Any, Any], Any]", "str"),
}


def types_of(kind: str, param: dict[str, Any]) -> tuple[str, str]:
    """(argument, property): the types of one parameter."""
    types = SPECIAL.get((kind, param["name"])) or ROLES[param["role"]]
    none = " | None" if param["default"] == "None" else ""
    return tuple(t + none if t != "Any" else t for t in types)  # type: ignore[return-value]


def parameters(signature: str) -> list[tuple[str, str, Any]]:
    """(kind of argument, name, default) of each argument in a signature's text.

    The default is inspect.Parameter.empty where there is none."""
    arguments = ast.parse(f"def f{signature}: ...").body[0].args  # type: ignore[attr-defined]
    found: list[tuple[str, str, Any]] = []
    plain = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
    for place, (argument, default) in enumerate(zip(plain, defaults, strict=True)):
        found.append(("", argument.arg, value(default)))
        if place + 1 == len(arguments.posonlyargs):
            found.append(("/", "", inspect.Parameter.empty))
    if arguments.vararg:  # keywords may follow it
        found.append(("*", arguments.vararg.arg, inspect.Parameter.empty))
    elif arguments.kwonlyargs:
        found.append(("*", "", inspect.Parameter.empty))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(("", argument.arg, value(default)))
    if arguments.kwarg:
        found.append(("**", arguments.kwarg.arg, inspect.Parameter.empty))
    return found


def value(node: ast.expr | None) -> Any:
    return inspect.Parameter.empty if node is None else ast.literal_eval(node)


def constructor(kind: dict[str, Any], method: str, first: str, result: str) -> str:
    types = {p["name"]: types_of(kind["name"], p)[0] for p in kind["params"]}
    types["copy"] = "bool"
    pieces = [first]
    for mark, name, default in parameters(kind["signature"]):
        if not name:
            pieces.append(mark)
            continue
        piece = f"{mark}{name}: {types[name]}"
        if default is not inspect.Parameter.empty:
            piece += f" = {default!r}"
        pieces.append(piece)
    line = f"    def {method}({', '.join(pieces)}) -> {result}: ...\n"
    if len(line) <= 100:
        return line
    inner = "".join(f"        {piece},\n" for piece in pieces)
    return f"    def {method}(\n{inner}    ) -> {result}: ...\n"


def class_of(kind: dict[str, Any]) -> str:
    """The class: its constructor, and a property a parameter."""
    own = vars(getattr(_core, kind["name"]))
    body = f"class {kind['name']}(LinearOperator):\n"
    if not kind["signature"]:  # made by expressions alone
        return body + "    def __new__(cls, *args: Never, **kwargs: Never) -> NoReturn: ...\n"
    body += constructor(kind, "__new__", "cls", "Self")
    body += constructor(kind, "__init__", "self", "None")
    for param in kind["params"]:
        if param["name"] in own:
            result = types_of(kind["name"], param)[1]
            method = callable(getattr(_core._LinearOperator, param["name"], None))
            mark = "  # type: ignore[override]  # no method here" if method else ""
            body += f"    @property\n    def {param['name']}(self) -> {result}: ...{mark}\n"
    return body


def all_kinds() -> list[dict[str, Any]]:
    """The rows of kinds(), then the classes without a row (Transpose and its kin).

    The module has Python's own classes too, under names that are not theirs (_LinearOperator)."""
    rows = _core.kinds()
    named = {row["name"] for row in rows} | {"Operator", "Lazy", "_Applied", "_Equation"}
    found = [name for name, value in vars(_core).items() if isinstance(value, type)]
    rest = [name for name in found if getattr(_core, name).__name__ == name]
    rows += [{"name": name, "signature": None} for name in rest if name not in named]
    return rows


def main() -> None:
    template = TEMPLATE.read_text(encoding="utf-8")
    if template.count(MARK) != 1:
        sys.exit(f"{TEMPLATE.name} must hold the line {MARK.strip()!r} once")
    print(template.replace(MARK, "\n".join(map(class_of, all_kinds()))), end="")


if __name__ == "__main__":
    main()
