"""Check the house rules that no compiler checks, of the C and the Python sources.

Layers: a folder is a layer; a file includes or imports only from its own folder or a lower one
(C_LAYERS, PYTHON_LAYERS, lowest first). Python modules import at their head, and no module is in a
cycle of imports; what is `Later` than that is in LATE, or lies lower.
Python.h only in py/, NumPy's headers only in one file there, cblas and lapacke nowhere: their
functions come by the table of kernels/dense/blas_table.h. The library lopcore needs no symbol of
Python or BLAS and calls nothing that prints or ends the process; dlsym is for one file. Sizes:
files of at most 600 lines, C functions of at most 80, lines of at most 100 columns, calls of at
most 13 positional arguments. Python reads the parameters of an operator by name.

    python tools/check_layers.py [--root DIR] [--lib liblopcore.a]

Prints one line a breach, "file:line: what is wrong", and exits with 1 if there is any.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAX_LINES, MAX_FUNCTION, MAX_COLUMNS = 600, 80, 100
MAX_ARGUMENTS = 13  # of a call, by position; more are the fields of a struct or a dataclass
# Whose signatures are not ours: Python's, and LAPACK's, which are called by CALL.
LONG_CALLS = {"PyArg_ParseTuple", "PyArg_ParseTupleAndKeywords", "Py_BuildValue", "CALL"}

# Lowest first. A folder is a layer; a file includes and imports from its own folder or a lower one.
C_LAYERS = "base kernels contract expr ops solvers rewrite planner rules plan exec py".split()
PYTHON_LAYERS = (
    "_base _fallback _operators _contractions _sparse _structured _lazy _precondition _iterative "
    "_stochastic _eigen _api _gradients _verify _programs _symbols _namespace dask jax torch "
    "array_api pytensor"
).split()

# What may be reached from below, by `Later` alone: methods and protocols that are functions of a
# layer above, the choice of iteration by price, and the comparison of answers, which nothing needs
# before it is switched on.
LATE = {
    "_api.explain",
    "_api.numpy_functions",
    "_sparse.matmul_api",
    "_sparse.tosparse",
    "_iterative.by_price",
    "_programs.repeated",
    "_verify.compare",
    "_verify.contractions",
}
# What may be imported when a function first runs: it takes long, or need not be installed.
HEAVY = {
    *("scipy", "sksparse", "dask", "distributed", "mpi4py", "zarr", "matplotlib", "tqdm"),
    "statistics",
}

NUMPY_FILES = {"py/module/py_array.c", "py/module/py_numpy.h"}
LOADER = "kernels/dense/blas_load.c"
BLAS_HEADER = re.compile(r"(cblas|lapacke?|f77blas|openblas_config)\w*\.h$")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
FORBIDDEN = {
    *("exit", "_exit", "_Exit", "quick_exit", "abort", "system"),
    *("printf", "fprintf", "vprintf", "vfprintf", "puts", "fputs", "putchar", "perror"),
    *("gets", "strcpy", "strcat", "sprintf", "vsprintf"),
}
CALL = re.compile(r"\b(" + "|".join(sorted(FORBIDDEN)) + r")\s*\(")
COMMENT_OR_STRING = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)


class Breach(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def layer_of(name: str, layers: list[str]) -> int | None:
    """The layer of a file named relative to its root, or None when its folder is none."""
    folder = name.split("/")[0] if "/" in name else ""
    return layers.index(folder) if folder in layers else None


def blank(text: str) -> str:
    """The text with comments emptied and string and character literals made "" and ' '.

    Line numbers stay; the names in #include lines stay."""

    def replace(match: re.Match[str]) -> str:
        token = match.group()
        if token[0] == "/":
            return " " + "\n" * token.count("\n")
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        return token if re.match(r"\s*#\s*include\s*$", line) else token[0] * 2

    return COMMENT_OR_STRING.sub(replace, text)


def check_includes(name: str, lines: list[str], csrc: Path) -> Iterator[tuple[int, str]]:
    rank = layer_of(name, C_LAYERS)
    if rank is None:
        yield 1, f"{name} has no layer: its folder is not in C_LAYERS of tools/check_layers.py"
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        mark, target = match.groups()
        if mark == "<" or BLAS_HEADER.search(target):
            base = target.split("/")[-1]
            if base == "Python.h" and not name.startswith("py/"):
                yield number, "Python.h is included outside py/"
            elif target.startswith("numpy/") and name not in NUMPY_FILES:
                yield (
                    number,
                    f"{target}: NumPy's headers are for {' and '.join(sorted(NUMPY_FILES))}",
                )
            elif BLAS_HEADER.search(base):
                yield number, f"{target}: BLAS and LAPACK come by the table of blas_table.h"
            elif base in {"dlfcn.h", "link.h"} and name != LOADER:
                yield number, f"{target}: the dynamic linker is for {LOADER}"
            continue
        found = [p for p in ((csrc / name).parent / target, csrc / target) if p.is_file()]
        if not found:
            yield number, f'"{target}" lies neither beside {name} nor under src/c'
            continue
        header = found[0].resolve().relative_to(csrc.resolve()).as_posix()
        there = layer_of(header, C_LAYERS)
        if there is not None and there > rank:
            yield (
                number,
                f"{name} (layer {C_LAYERS[rank]}) includes {header} (layer {C_LAYERS[there]}), "
                "which lies above it",
            )


def functions(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, first line, number of lines) of each function body of blanked C text.

    Raises ValueError where the braces do not pair (as when an #if holds one half)."""
    code = re.sub(
        r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group().count("\n"), text, flags=re.M
    )
    depth, line, start, head, name, begin = 0, 1, 0, "", "", 0
    for char in code:
        if char == "\n":
            line += 1
        if depth == 0 and char not in "{}":
            if char in ";":
                head = ""
            else:
                if not head.strip():
                    head, begin = "", line
                head += char
        elif char == "{":
            if depth == 0:
                plain = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head, flags=re.DOTALL)
                match = re.search(r"(\w+)\s*\(", plain)
                is_function = match and "=" not in plain.split("(")[0]
                name, start = (match.group(1), begin) if match and is_function else ("", 0)
            depth += 1
        elif char == "}":
            depth -= 1
            if depth < 0:
                raise ValueError(f"line {line}: a closing brace without an opening one")
            if depth == 0:
                if name:
                    yield name, start, line - start + 1
                head = head if not name else ""
    if depth:
        raise ValueError("an opening brace without a closing one")


def long_calls(code: str) -> Iterator[tuple[int, str]]:
    """Calls in C with too many arguments, of `blank` code; a list of parameters counts as one."""
    for match in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", code):
        depth, commas = 0, 0
        for at in range(match.end() - 1, len(code)):
            depth += (code[at] in "([{") - (code[at] in ")]}")
            commas += depth == 1 and code[at] == ","
            if depth == 0:
                break
        if commas >= MAX_ARGUMENTS and match[1] not in LONG_CALLS:
            text = (
                f"{match[1]}() with {commas + 1} arguments, at most {MAX_ARGUMENTS}: use a struct"
            )
            yield code.count("\n", 0, match.start()) + 1, text


def check_file(path: Path, name: str, csrc: Path | None) -> Iterator[tuple[int, str]]:
    """Breaches of one C file; csrc is None for a test."""
    text = path.read_text(encoding="utf-8")
    raw = text.splitlines()
    if len(raw) > MAX_LINES:
        yield len(raw), f"{len(raw)} lines, at most {MAX_LINES} are allowed"
    for number, line in enumerate(raw, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns, at most {MAX_COLUMNS} are allowed"
    code = blank(text)
    lines = code.splitlines()
    if csrc is not None:
        yield from check_includes(name, lines, csrc)
        yield from long_calls(code)
        if not name.startswith("py/"):
            for number, line in enumerate(lines, 1):
                for match in CALL.finditer(line):
                    yield number, f"{match.group(1)}() has no place below py/"
    if path.suffix != ".def":
        try:
            for function, first, count in functions(code):
                if count > MAX_FUNCTION:
                    yield first, f"{function}: {count} lines, at most {MAX_FUNCTION} are allowed"
        except ValueError as error:
            yield 1, f"braces do not pair, so functions cannot be measured: {error}"


class Import(NamedTuple):
    line: int
    target: str  # "folder.module" of this package, "" of what is not
    name: str  # the head of what is not of this package
    inside: bool  # a function
    late: bool  # by Later


def modules(package: Path) -> dict[str, Path]:
    """The modules of the package by name: "_base.errors", "linalg"."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).with_suffix("").as_posix().replace("/", ".")
        found[name.removesuffix(".__init__")] = path
    return found


def imported(
    node: ast.AST, parts: tuple[str, ...], known: set[str], inside: bool
) -> Iterator[Import]:
    """The imports of a module of the package `parts`, but for those that only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(child.lineno, "", alias.name.split(".")[0], inside, False)
        elif isinstance(child, ast.ImportFrom):
            base = parts[: len(parts) - child.level + 1] if child.level else ()
            base += tuple((child.module or "").split(".")) if child.module else ()
            for alias in child.names:
                whole, module = ".".join((*base[1:], alias.name)), ".".join(base[1:])
                ours = base[:1] == ("pylinop",)
                target = whole if whole in known else module
                yield Import(child.lineno, target if ours else "", base[0], inside, False)
        elif isinstance(child, ast.Call) and ast.unparse(child.func).split(".")[-1] == "Later":
            yield Import(child.lineno, ast.literal_eval(child.args[0]), "pylinop", inside, True)
        function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from imported(child, parts, known, inside or function)


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(v: str) -> None:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(edges.get(v, ())):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            group = stack[stack.index(v) :]
            del stack[stack.index(v) :]
            if len(group) > 1:
                found.append(sorted(group))

    for v in sorted(edges):
        if v not in index:
            visit(v)
    return found


class Edge(NamedTuple):
    module: str
    path: Path
    rank: int | None  # of the module among PYTHON_LAYERS; None: of no layer
    what: Import
    above: bool  # it lies in a layer above the module's


def all_imports(package: Path, known: dict[str, Path]) -> Iterator[Edge]:
    """The imports of all modules of the package."""
    for module, path in known.items():
        name = path.relative_to(package).as_posix()
        rank, parts = layer_of(name, PYTHON_LAYERS), ("pylinop", *name.split("/")[:-1])
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for i in imported(tree, parts, set(known), False):
            there = layer_of(i.target.replace(".", "/"), PYTHON_LAYERS)
            above = rank is not None and there is not None and there > rank
            yield Edge(module, path, rank, i, above)


def edges_of(found: list[Edge], known: dict[str, Path]) -> dict[str, set[str]]:
    """Which modules each one imports, for `cycles`; what lies above arrives late."""
    edges: dict[str, set[str]] = {}
    for e in found:
        if e.module and e.what.target and e.what.target in known and not e.above:
            edges.setdefault(e.module, set()).add(e.what.target)
    return edges


def check_imports(root: Path) -> Iterator[Breach]:
    package = root / "src" / "pylinop"
    known = modules(package)
    for path in known.values():
        name = path.relative_to(package).as_posix()
        if layer_of(name, PYTHON_LAYERS) is None and "/" in name:
            where = path.relative_to(root).as_posix()
            yield Breach(where, 1, f"{name} has no layer: its folder is not in PYTHON_LAYERS")
    found = list(all_imports(package, known))
    for e in found:
        i, where = e.what, e.path.relative_to(root).as_posix()
        if i.late and i.target not in known:
            yield Breach(where, i.line, f"Later({i.target!r}): there is no such module")
        elif e.above and not (i.late and i.target in LATE):
            text = f"layer {PYTHON_LAYERS[e.rank or 0]} imports {i.target}, which lies above it"
            yield Breach(where, i.line, text)
        elif i.inside and not i.late and (i.target or i.name not in HEAVY):
            text = f"{i.target or i.name} is imported in a function: import it at the head"
            yield Breach(where, i.line, text)
    for group in cycles(edges_of(found, known)):
        yield Breach("src/pylinop", 1, f"modules that import each other: {', '.join(group)}")


def by_position(node: ast.AST) -> bool:
    """Does it reach into ``op._init``, the parameters of an operator, but for comparing or passing
    them on?"""
    if isinstance(node, ast.Attribute) and node.attr == "_init":
        return True
    if isinstance(node, (ast.Call, ast.Compare)):
        return False
    return any(map(by_position, ast.iter_child_nodes(node)))


def check_calls(root: Path) -> Iterator[Breach]:
    """Nobody counts to the fourteenth argument: what takes as many takes a dataclass, or names."""
    for path in sorted((root / "src" / "pylinop").rglob("*.py")):
        where = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) > MAX_ARGUMENTS:
                text = f"{len(node.args)} positional arguments, at most {MAX_ARGUMENTS} are allowed"
                yield Breach(where, node.lineno, text)


def check_parameters(root: Path) -> Iterator[Breach]:
    """What a constructor was given is read by name, ``op._given("ab")``: no item is taken from
    ``op._init``, which is not unpacked and gets no other name. What treats all parameters alike
    (pickling, casts, graphs, whatever looks for arrays or operands) loops over it, or passes it on;
    and it may be compared with None, which it is of the result of an expression."""
    for path in sorted((root / "src" / "pylinop").rglob("*.py")):
        where = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript):
                found = by_position(node.value)
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                named = isinstance(node.value, ast.Attribute) and node.value.attr == "_init"
                several = any(isinstance(t, (ast.Tuple, ast.List)) for t in targets)
                found = named or (several and by_position(node.value))
            else:
                continue
            if found:
                text = 'parameters are read by position: name them, as in op._given("ab")'
                yield Breach(where, node.lineno, text)


def check_sources(root: Path) -> Iterator[Breach]:
    csrc = root / "src" / "c"
    for folder in (csrc, root / "tests" / "c"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".c", ".h", ".def"}:
                inside = csrc if folder == csrc else None
                name = path.relative_to(folder).as_posix()
                for line, text in check_file(path, name, inside):
                    yield Breach(path.relative_to(root).as_posix(), line, text)
    for folder in ("src/pylinop", "tests", "benchmarks", "examples", "tools"):
        for path in sorted((root / folder).rglob("*.py")):
            count = len(path.read_text(encoding="utf-8").splitlines())
            if count > MAX_LINES:
                text = f"{count} lines, at most {MAX_LINES} are allowed"
                yield Breach(path.relative_to(root).as_posix(), count, text)


def check_library(lib: Path) -> Iterator[Breach]:
    """What nm says of lopcore: no Python, no printing, no BLAS linked, our prefixes."""
    if not lib.is_file():
        yield Breach(str(lib), 0, "there is no such library")
        return
    output = subprocess.run(["nm", str(lib)], check=True, capture_output=True, text=True).stdout
    member = ""
    for line in output.splitlines():
        if line.endswith(":"):
            member = line[:-1]
            continue
        fields = line.split()
        if len(fields) < 2:
            continue
        kind, symbol = fields[-2], fields[-1]
        if kind in "Uw":
            plain = symbol.removeprefix("scipy_")
            if symbol.startswith(("Py", "_Py")):
                yield Breach(lib.name, 0, f"{member} needs the Python symbol {symbol}")
            elif symbol in FORBIDDEN:
                yield Breach(lib.name, 0, f"{member} calls {symbol}()")
            elif plain.startswith(("cblas_", "LAPACKE_", "openblas_")):
                yield Breach(lib.name, 0, f"{member} calls {symbol} past the table lop_blas")
        elif kind in "TDBRVW" and not symbol.startswith(("lop_", "lopk_")):
            yield Breach(lib.name, 0, f"{member} exports {symbol}, without prefix lop_ or lopk_")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--lib", type=Path, help="a built liblopcore.a to look into")
    args = parser.parse_args()
    breaches = [*check_sources(args.root), *check_imports(args.root)]
    breaches += [*check_calls(args.root), *check_parameters(args.root)]
    if args.lib:
        breaches += check_library(args.lib)
    for breach in breaches:
        print(breach)
    if breaches:
        print(f"{len(breaches)} breaches", file=sys.stderr)
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
