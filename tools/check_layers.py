"""Check the house rules of the C sources that a compiler does not check.

Layers: a file includes only headers of its own layer or a lower one (LAYERS, lowest first).
Python.h only in py/, NumPy's headers only in one file there, cblas and lapacke nowhere: their
functions come by the table of kernels/blas_table.h. The library lopcore needs no symbol of Python
or BLAS and calls nothing that prints or ends the process; dlsym is for one file. Sizes:
files of at most 600 lines, C functions of at most 80, lines of at most 100 columns.

    python tools/check_layers.py [--root DIR] [--lib liblopcore.a]

Prints one line a breach, "file:line: what is wrong", and exits with 1 if there is any.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAX_LINES, MAX_FUNCTION, MAX_COLUMNS = 600, 80, 100

# Lowest first. A file of core/ is named by its stem, or in full where the header lies lower than
# the source behind it: kinds see emit.h, never plan.h. A new file of core/ needs a place here.
LAYERS: list[tuple[str, list[str]]] = [
    ("base", ["core/base", "core/status", "core/dtype"]),
    ("buf", ["core/buf"]),
    ("kernels", ["kernels/*"]),
    (
        "node",
        ["core/node", "core/map", "core/op.h", "core/emit.h", "core/kinds.def", "core/rand.h"],
    ),
    ("ops", ["ops/*"]),
    ("solvers", ["core/krylov*"]),
    ("kinds", ["core/kinds", "core/rand.c"]),
    ("text", ["core/text"]),
    ("costs", ["core/costs"]),
    (
        "rewrite",
        [
            *(
                "core/rules",
                "core/rules_close.def",
                "core/rules_solve.def",
                "core/rules_cast.def",
                "core/ruleset",
                "core/guards",
                "core/rewrite",
                "core/builds*",
            ),
            "core/chain*",
            "core/infer",
            "core/declared",
        ],
    ),
    (
        "plan",
        [
            *("core/plan", "core/explore", "core/plans", "core/keep", "core/fuse"),
            *("core/plan_check", "core/plan_check_flow", "core/plan_check_memory", "core/dump"),
            "core/emit.c",
            "core/emit_impl",
        ],
    ),
    ("exec", ["core/exec", "core/store", "core/trial"]),
    ("py", ["py/*"]),
]

NUMPY_FILES = {"py/py_array.c", "py/py_numpy.h"}
LOADER = "kernels/blas_load.c"
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


def layer_of(name: str) -> int | None:
    """The layer of a file named relative to src/c, or None when it has no place."""
    folder, _, file = name.partition("/")
    stem = f"{folder}/{file.split('.')[0]}"
    for keys in ((name,), (stem, stem.split("_")[0] + "*", f"{folder}/*")):
        for rank, (_, members) in enumerate(LAYERS):
            if any(key in members for key in keys):
                return rank
    return None


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
    rank = layer_of(name)
    if rank is None:
        yield 1, f"{name} has no layer: give it a place in LAYERS of tools/check_layers.py"
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
                yield number, f"{target}: BLAS and LAPACK come by the table of kernels/blas_table.h"
            elif base in {"dlfcn.h", "link.h"} and name != LOADER:
                yield number, f"{target}: the dynamic linker is for {LOADER}"
            continue
        found = [p for p in ((csrc / name).parent / target, csrc / target) if p.is_file()]
        if not found:
            yield number, f'"{target}" lies neither beside {name} nor under src/c'
            continue
        header = found[0].resolve().relative_to(csrc.resolve()).as_posix()
        there = layer_of(header)
        if there is not None and there > rank:
            yield (
                number,
                f"{name} (layer {LAYERS[rank][0]}) includes {header} (layer {LAYERS[there][0]}), "
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
    breaches = list(check_sources(args.root))
    if args.lib:
        breaches += check_library(args.lib)
    for breach in breaches:
        print(breach)
    if breaches:
        print(f"{len(breaches)} breaches", file=sys.stderr)
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
