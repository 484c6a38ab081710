"""Check the house rules that no compiler checks, of the C and the Python sources.

Layers: a folder is a layer; a file includes or imports only from its own folder or a lower one
(C_LAYERS, PYTHON_LAYERS, lowest first). What still imports upward is listed in UPWARD, which may
only shrink.
Python.h only in py/, NumPy's headers only in one file there, cblas and lapacke nowhere: their
functions come by the table of kernels/dense/blas_table.h. The library lopcore needs no symbol of
Python or BLAS and calls nothing that prints or ends the process; dlsym is for one file. Sizes:
files of at most 600 lines, C functions of at most 80, lines of at most 100 columns.

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

# Lowest first. A folder is a layer; a file includes and imports from its own folder or a lower one.
C_LAYERS = "base kernels expr ops solvers rewrite planner rules plan exec py".split()
PYTHON_LAYERS = (
    "_base _fallback _operators _sparse _structured _lazy _precondition _iterative _stochastic "
    "_eigen _api _verify dask"
).split()

# Imports that still point up, each to be moved: file -> what it imports.
UPWARD = {
    "_base/explanation.py": {"_lazy.array", "_operators.repr"},
    "_base/scipy_bridge.py": {"_precondition.terms", "_sparse.factor", "_sparse.matmul_api"},
    "_eigen/eigsh.py": {"_api.basic", "_api.spectra"},
    "_eigen/scipy_api.py": {"_api.basic", "_api.spectra"},
    "_fallback/interpreter.py": {"_lazy.array", "_operators.convert", "_operators.indexing"},
    "_iterative/solve.py": {"_api.solve_det_norm"},
    "_lazy/evaluate.py": {"_api.lazy_iterative"},
    "_lazy/numpy_functions.py": {"_api.solve_det_norm"},
    "_operators/linear_operator.py": {"_api.numpy_functions", "_sparse.tosparse"},
    "_operators/parameters.py": {"_api.basic"},
    "_operators/quasiseparable.py": {"_structured.dispatch"},
    "_operators/repr.py": {
        "_eigen.choose_method",
        "_iterative.explain",
        "_stochastic.choose_method",
    },
    "_precondition/incomplete.py": {"_api.basic"},
    "_precondition/structured.py": {"_api.basic"},
    "_sparse/tosparse.py": {"_precondition.terms"},
    "_structured/norms.py": {"_api.basic"},
    "_structured/pinv.py": {"_api.basic"},
    "_structured/singular_values.py": {"_api.solve_det_norm"},
    "_structured/square_roots.py": {"_api.basic"},
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


def imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(line, "folder.module") of each import from this package, relative or not."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        base = package[: len(package) - node.level + 1] if node.level else ()
        base += tuple((node.module or "").split(".")) if node.module else ()
        if base[:1] != ("pylinop",):
            continue
        for alias in node.names:
            yield node.lineno, ".".join((*base, alias.name)[1:3])


def check_imports(root: Path) -> Iterator[Breach]:
    package = root / "src" / "pylinop"
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        rank, found = layer_of(name, PYTHON_LAYERS), set()
        if "/" not in name:
            continue
        where = path.relative_to(root).as_posix()
        if rank is None:
            yield Breach(where, 1, f"{name} has no layer: its folder is not in PYTHON_LAYERS")
            continue
        parts = ("pylinop", *name.split("/")[:-1])
        for line, target in imported(ast.parse(path.read_text(encoding="utf-8")), parts):
            there = layer_of(target.replace(".", "/"), PYTHON_LAYERS)
            if there is None or there <= rank:
                continue
            found.add(target)
            if target not in UPWARD.get(name, ()):
                text = f"layer {PYTHON_LAYERS[rank]} imports {target}, which lies above it"
                yield Breach(where, line, text)
        for target in sorted(UPWARD.get(name, set()) - found):
            text = f"{target} is not imported any more: strike it from UPWARD in tools/"
            yield Breach(where, 1, text)


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
    if args.lib:
        breaches += check_library(args.lib)
    for breach in breaches:
        print(breach)
    if breaches:
        print(f"{len(breaches)} breaches", file=sys.stderr)
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
