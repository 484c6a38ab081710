"""Print how the sources are laid out: cycles and upward edges of imports, files by the size limit,
and how a call walks through them.

    python tools/measure_house.py

For docs/decisions.md, before and after something moves. The walk counts calls of Python functions
of the package, as sys.setprofile sees them, in `cholesky(Kron)` of a 2 x 2 and a Toeplitz matrix.
"""

import ast
import re
import statistics
import sys
from pathlib import Path

import check_layers

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pylinop"


def imports() -> None:
    known = check_layers.modules(PACKAGE)
    found = list(check_layers.all_imports(PACKAGE, known))
    up = sum(e.above and not e.what.late for e in found)
    late = sum(e.what.late for e in found)
    inside = sum(e.what.inside and not e.what.late and bool(e.what.target) for e in found)
    cycles = sum(len(group) for group in check_layers.cycles(check_layers.edges_of(found, known)))
    print(f"Python: {len(known)} modules in {len(check_layers.PYTHON_LAYERS)} layers")
    print(f"  in a cycle of imports {cycles}, upward {up}, in functions {inside}, by Later {late}")


def sizes() -> None:
    files = [p for d in ("src/c", "src/pylinop") for p in (ROOT / d).rglob("*")]
    files = [p for p in files if p.suffix in (".c", ".h", ".py", ".def")]
    lines = {p: len(p.read_text().splitlines()) for p in files}
    near = sorted(str(p.relative_to(ROOT)) for p, n in lines.items() if 590 <= n <= 600)
    print(f"files: {len(files)}, of 590 to 600 lines {len(near)}: {', '.join(near) or 'none'}")
    lengths = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body[0]
                doc = isinstance(body, ast.Expr) and isinstance(body.value, ast.Constant)
                taken = (body.end_lineno or 0) - body.lineno + 1 if doc else 0
                lengths.append((node.end_lineno or 0) - node.lineno + 1 - taken)
    print(f"Python functions: {len(lengths)}, lines without docstrings: median "
          f"{statistics.median(lengths):g}, longest {max(lengths)}")  # fmt: skip
    positions = sum(len(re.findall(r"\._init\[", p.read_text())) for p in PACKAGE.rglob("*.py"))
    print(f"parameters read by position (op._init[i]): {positions}")


def walk() -> None:
    import numpy as np

    import pylinop as pl

    K = pl.Kron(np.array([[2.0, 1.0], [1.0, 2.0]]), pl.Toeplitz([4.0, 1.0, 0.0, 0.0]))
    home, calls = str(Path(pl.__file__).parent), []

    def seen(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(home):
            calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    pl.cholesky(pl.Kron(np.eye(2), pl.Toeplitz([4.0, 1.0])))  # what is imported later is there
    sys.setprofile(seen)
    try:
        pl.cholesky(K)
    finally:
        sys.setprofile(None)
    moves = sum(a[0] != b[0] for a, b in zip(calls, calls[1:], strict=False))
    print(f"cholesky(Kron): {len(calls)} calls, {len(set(calls))} functions, "
          f"{len({c[0] for c in calls})} files, {moves} moves between files")  # fmt: skip


if __name__ == "__main__":
    imports()
    sizes()
    walk()
