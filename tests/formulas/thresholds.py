"""The sizes at which the library changes its way, collected from its sources and its prices.

`constants()` reads every named integer of src/c (enumerations, static constants, macros) and of
src/pylinop (module-level capitals), every number that something is compared with, and every
multiple and part of a named one (`n >= LEAST / 4`); `sizes()` are the numbers of rows that lie at
them: the number itself, and where it may count entries, bytes or products, its roots.
`crossovers()` are sizes where the plan of a formula changes, found by planning it at growing sizes.
So a threshold that is added is drawn by itself."""

import functools
import math
import re
from collections import namedtuple
from pathlib import Path

import numpy as np

import pylinop as pl

ROOT = Path(__file__).resolve().parents[2] / "src"
MOST = 600  # rows that are affordable
Constant = namedtuple("Constant", "name value file line")

NUMBER = r"(?:0x[0-9a-fA-F]*\.?[0-9a-fA-F]*p[+-]?\d+|0x[0-9a-fA-F]+|\d+)"
VALUE = rf"(?:\(\w+\))?\(?\s*{NUMBER}(?:\s*(?:<<|\*|\+)\s*{NUMBER})*\s*\)?"
NAMED = re.compile(rf"\b([A-Z][A-Z0-9_]+)\s*=\s*({VALUE})")
MACRO = re.compile(rf"^#define\s+([A-Z][A-Z0-9_]+)\s+({VALUE})\s*(?:/\*.*)?$")
COMPARED = re.compile(rf"([\w.\]\)>-]+)\s*(?:<=?|>=?)\s*((?:\(int64_t\))?{NUMBER}(?:\s*<<\s*\d+)?)")
SCALED = re.compile(r"[<>]=?\s*(?:(\d+)\s*\*\s*)?(_?[A-Z][A-Z0-9_]{2,})(?:\s*([*/])\s*(\d+))?\b")
MODULE = re.compile(r"^(_?[A-Z][A-Z0-9_]*)(?:\s*:\s*\w+)?\s*=\s*([\d_]+(?:\s*<<\s*\d+)?)\b(?!\.)")


def number(text):
    """The value of an integer expression of the sources; None where it is none."""
    text = re.sub(r"\((?:int|int64_t|uint64_t|size_t)\)", "", text).strip()
    text = re.sub(r"0x[0-9a-fA-F.]*p[+-]?\d+", lambda m: repr(float.fromhex(m[0])), text)
    text = text.strip("() ") if text.count("(") != text.count(")") else text
    try:
        value = eval(text, {"__builtins__": {}})
    except (SyntaxError, NameError, TypeError):
        return None
    return int(value) if math.isfinite(value) and value == int(value) else None


def of_c(path):
    for i, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        code = re.sub(r"/\*.*?(\*/|$)", "", line)
        found = [*NAMED.findall(code), *MACRO.findall(code)]
        if not re.search(r"\bfor \(|>>|<< \d+;", code) and not code.startswith("#if"):
            found += COMPARED.findall(code)
        for name, text in found:
            yield name, number(text), i


def of_python(path):
    for i, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        code = line.split("  #")[0]
        found = MODULE.findall(code)
        if not re.search(r"np\.finfo|version_info|EPS|print\(", code):
            found += re.findall(
                r"([\w.\])]+)\s*(?:<=?|>=?)\s*(\d[\d_]*(?:\s*<<\s*\d+)?)\b(?!\.)", code
            )
        for name, text in found:
            yield name, number(text), i


def scaled(path, where, named):
    """Multiples and parts of constants that something is compared with. `named`: of a name and
    a file, and of a name and None where it is the same everywhere."""
    for i, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        for times, name, sign, by in SCALED.findall(re.sub(r"/\*.*?(\*/|$)", "", line)):
            value = named.get((name, where)) or named.get((name, None))
            if not value or not (times or by):
                continue
            value *= int(times or 1)
            if by:
                value = value // int(by) if sign == "/" else value * int(by)
            yield f"{times}{name}{sign}{by}", value, i


@functools.cache
def constants():
    """All of them, in the order of the files."""
    out, paths = [], []
    for folder, ends, read in (("c", (".c", ".h", ".def"), of_c), ("pylinop", (".py",), of_python)):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in ends:
                where = str(path.relative_to(ROOT))
                out += [Constant(n, v, where, i) for n, v, i in read(path) if v and v >= 2]
                paths.append(path)
    named, everywhere = {}, {}
    for c in out:
        named[c.name, c.file] = c.value
        everywhere.setdefault(c.name, set()).add(c.value)
    named |= {(name, None): min(v) for name, v in everywhere.items() if len(v) == 1}
    for path in paths:
        where = str(path.relative_to(ROOT))
        out += [Constant(n, v, where, i) for n, v, i in scaled(path, where, named) if v >= 2]
    return out


def rows_at(value):
    """Numbers of rows that lie at a constant: it counts rows, entries, bytes or products."""
    roots = [value, math.sqrt(value), math.sqrt(value / 8), value ** (1 / 3)]
    return {math.ceil(r - 1e-9) for r in roots if r <= MOST}


@functools.cache
def sizes():
    """Sorted; those that plans change at too."""
    found = set(crossovers())
    for constant in constants():
        found |= rows_at(constant.value)
    return tuple(sorted(n for n in found if 2 <= n <= MOST))


def templates(n):
    """Formulas whose way is chosen by price, at n rows: (operator, what is asked of it)."""
    d, v, few = np.ones(n), np.ones((n, 1)), np.ones((n, 3))
    full = pl.Dense(np.zeros((n, n)))
    diag, low, toep = pl.Diag(d), pl.LowRank(few), pl.Toeplitz(d)
    half = max(n // 2, 1)
    for op in (full, diag + low, toep, toep + diag, pl.Circulant(d) + diag, toep @ toep):
        yield op, v
        yield op, few
        yield op, np.ones((n, n))
    yield pl.Hankel(d, d), few
    yield pl.Convolution(np.ones(half), n), v
    yield pl.Convolution(np.ones(half), n), few
    yield pl.Kron(np.ones((4, 4)), np.ones((half, half))), np.ones((4 * half, 3))
    yield full @ (full + diag) + full, few
    yield full @ full.H + full, np.ones((n, n))


@functools.cache
def crossovers():
    """Sizes n where the plan at n is another than at n - 1, up to MOST (grown by tenths)."""

    def plans(n):
        return [tuple(s["name"] for s in op.explain("apply", x).steps) for op, x in templates(n)]

    memo = {}

    def plan(n):
        if n not in memo:
            memo[n] = plans(n)
        return memo[n]

    grid = sorted({round(4 * 1.25**i) for i in range(40)})
    grid = [n for n in grid if n <= MOST]
    found = set()
    for low, high in zip(grid, grid[1:], strict=False):
        for i, (a, b) in enumerate(zip(plan(low), plan(high), strict=True)):
            if a == b:
                continue
            lo, hi = low, high
            while hi - lo > 1:
                mid = (lo + hi) // 2
                lo, hi = (mid, hi) if plan(mid)[i] == a else (lo, mid)
            found.add(hi)
    return sorted(found)


if __name__ == "__main__":
    for c in constants():
        print(f"{c.value:12} {c.name:24} {c.file}:{c.line}")
    print("plans change at", crossovers())
    print("rows:", sizes())
