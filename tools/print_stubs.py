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

# What a constructor's argument may be, by the role its table gives it.
ROLES = {
    "array": "ArrayLike",
    "operator": "_OperatorLike",
    "operators": "_OperatorLike",
    "index": "ArrayLike",
    "int": "SupportsIndex",
    "shape": "_ShapeLike",
    "dtype": "DTypeLike | None",
    "assume": "str | None",
    "number": "complex",
    "text": "str",
    "bool": "bool",
    "callable": "Callable[[Any], Any]",
    "foreign": "Any",
}


def annotation(role: str, default: Any) -> str:
    kind = ROLES.get(role, "Any")
    optional = default is None and kind != "Any" and "None" not in kind
    return f"{kind} | None" if optional else kind


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
    if arguments.vararg:
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
    roles = {p["name"]: p.get("role", "") for p in kind.get("params") or ()}
    pieces = [first]
    for mark, name, default in parameters(kind["signature"]):
        if not name:
            pieces.append(mark)
            continue
        piece = f"{mark}{name}: {annotation(roles.get(name, ''), default)}"
        if default is not inspect.Parameter.empty:
            piece += f" = {default!r}"
        pieces.append(piece)
    line = f"    def {method}({', '.join(pieces)}) -> {result}: ...\n"
    if len(line) <= 100:
        return line
    inner = "".join(f"        {piece},\n" for piece in pieces)
    return f"    def {method}(\n{inner}    ) -> {result}: ...\n"


def class_of(kind: dict[str, Any]) -> str:
    """The class; of __new__ and __init__ those that the type itself defines."""
    cls = getattr(_core, kind["name"])
    head = f"class {kind['name']}({cls.__base__.__name__}):"
    if not kind.get("signature"):
        return f"{head} ...\n"
    body = ""
    if "__new__" in vars(cls):
        body += constructor(kind, "__new__", "cls", "Self")
    if "__init__" in vars(cls) or not body:
        body += constructor(kind, "__init__", "self", "None")
    return f"{head}\n{body}"


def main() -> None:
    template = TEMPLATE.read_text(encoding="utf-8")
    if template.count(MARK) != 1:
        sys.exit(f"{TEMPLATE.name} must hold the line {MARK.strip()!r} once")
    kinds = [kind for kind in _core.kinds() if hasattr(_core, kind["name"])]
    print(template.replace(MARK, "\n".join(map(class_of, kinds))), end="")


if __name__ == "__main__":
    main()
