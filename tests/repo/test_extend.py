"""docs/add-operator.md and docs/add-rule.md are true: done literally on a copy of the tree.

The pages that need no C are in test_extend_python.py; how pages mark what goes where, in
marked_pages.py. Sessions run against the build."""

import difflib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from marked_pages import SESSION, blocks, follow, run, session, tool

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / name for name in ("add-operator.md", "add-rule.md")]
COPIED = ["CMakeLists.txt", "src", "tests/c", "tools"]
BATTERIES = ["battery_kinds", "battery_rules"]

pytestmark = [pytest.mark.slow, pytest.mark.no_asan]


class Tree:
    def __init__(self, root):
        self.root, self.build, self.site = root, root / "build", root / "build" / "site"

    def python(self, *args, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONMALLOC")}
        env |= {"PYTHONPATH": str(self.site)}
        return run(sys.executable, *args, env=env, cwd=self.root, **more)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree with the pages' kind and rule in it, built without optimisation."""
    cmake = tool("cmake")
    if not cmake or not (tool("cc") or tool("gcc")):
        pytest.skip("needs cmake and a C compiler")
    root = tmp_path_factory.mktemp("extend") / "pylinop"
    for name in COPIED:
        if (ROOT / name).is_dir():
            leave = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, root / name, ignore=leave)
        else:
            root.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    made = Tree(root)
    made.touched = [follow(root, *block) for block in blocks(PAGES)]
    blas = "wheel" if importlib.util.find_spec("scipy_openblas64") else "system"
    options = {
        "CMAKE_BUILD_TYPE": "Debug",
        "CMAKE_C_FLAGS_DEBUG": "-O0",
        "PYLINOP_BUILD_TESTS": "ON",
        "PYLINOP_BLAS": blas,
        "Python_EXECUTABLE": sys.executable,
    }
    ninja = ["-G", "Ninja"] if tool("ninja") else []
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    given = [f"-D{k}={v}" for k, v in options.items()]
    run(cmake, "-S", root, "-B", made.build, *ninja, *given, env=env)
    wanted = ["--target", "_core", *BATTERIES]
    said = run(cmake, "--build", made.build, "-j", os.cpu_count(), *wanted, env=env)
    assert "op_reversal.c:" not in said, said  # no warning
    return made


def test_only_the_listed_places_changed(tree):
    changed = {}
    for path in sorted(tree.root.rglob("*")):
        name = path.relative_to(tree.root).as_posix()
        if not path.is_file() or path.is_relative_to(tree.build) or "__pycache__" in name:
            continue
        before = ROOT / name
        old = before.read_text(encoding="utf-8") if before.exists() else ""
        new = path.read_text(encoding="utf-8")
        if old != new:
            diff = list(difflib.ndiff(old.splitlines(), new.splitlines()))
            assert not [line for line in diff if line.startswith("- ")], name
            changed[name] = sum(line.startswith("+ ") for line in diff)
    assert set(changed) == set(tree.touched) - {None}
    library = {name: n for name, n in changed.items() if name.startswith("src/")}
    assert set(library) == {
        "src/c/ops/kinds/op_reversal.c",
        "src/c/expr/kinds.def",
        "src/c/rules/traces.def",
        "src/pylinop/_structured/kinds/reversal.py",
        "src/pylinop/_structured/table.py",
    }
    assert library["src/pylinop/_structured/table.py"] == 1  # the line
    assert library["src/c/expr/kinds.def"] == 1  # the line
    assert library["src/c/rules/traces.def"] == 2  # the row, on two lines


def test_house_rules(tree):
    done = subprocess.run(
        [sys.executable, tree.root / "tools" / "check_layers.py", "--root", tree.root],
        capture_output=True,
        text=True,
    )
    assert "op_reversal" not in done.stdout, done.stdout


def test_sessions_of_the_pages(tree):
    for page in PAGES:
        tree.python("-c", SESSION, input=session(page))


CHECKS = r"""
import copy, doctest, inspect, pickle
import numpy as np, scipy.sparse as sp
import pylinop as pl

rng = np.random.default_rng(3)
J, F = pl.Reversal(4), np.eye(4)[::-1]
A = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))

def same(got, want, tol=1e-13):
    got = got.toarray() if isinstance(got, pl.LinearOperator) else np.asarray(got)
    assert got.shape == np.shape(want) and got.dtype == np.asarray(want).dtype, (got, want)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)

# the class, from its table
assert "Reversal" in pl.__all__ and issubclass(pl.Reversal, pl.LinearOperator)
assert str(inspect.signature(pl.Reversal)) == "(n, dtype=None)"
doc = pl.Reversal.__doc__
assert doc.startswith("The order of the rows turned round: ``J @ x`` is ``x[::-1]``.")
for part in ("Parameters\n----------\nn : int\n", "Cost\n----\n", "Notes\n-----\n", "Examples\n"):
    assert part in doc, part
found = doctest.DocTestFinder(recurse=False).find(pl.Reversal, "Reversal", globs={})
assert [doctest.DocTestRunner().run(t) for t in found] == [(0, 2)]
assert repr(J) == "<4x4 Reversal with dtype=float64>" and "Reversal" in J._repr_html_()
assert (J.n, J.shape, J.dtype, J.ndim, J.args, J.nbytes) == (4, (4, 4), np.float64, 2, (), 0)
row, = (row for row in pl.kinds() if row["name"] == "Reversal")
assert [p["name"] for p in row["params"]] == ["n", "dtype"]
for again in (pickle.loads(pickle.dumps(J)), copy.copy(J), copy.deepcopy(J), J.copy()):
    assert type(again) is pl.Reversal
    same(again, F)
for error, *cases in (
    (TypeError, lambda: pl.Reversal(), lambda: pl.Reversal(3, k=1)),
    (ValueError, lambda: pl.Reversal(-1), lambda: pl.Reversal((2, 3))),
    (ValueError, lambda: pl.Reversal((2, 3, 3)), lambda: J @ pl.Reversal(3)),
    (ValueError, lambda: J @ np.ones(5), lambda: pl.inv(J) @ np.ones(5)),
    (IndexError, lambda: J[4, 0]),
):
    for case in cases:
        try:
            case()
        except error:
            continue
        raise AssertionError(case)

# products in every dtype, layout, batch; out=; both sides
for dtype in "f4 f8 c8 c16 i1 i8 u1 u8 ?".split():
    x = rng.integers(0, 100, (2, 4, 3)).astype(dtype)
    swapped = x.astype(x.dtype.newbyteorder())
    for y in (x, swapped, np.asfortranarray(x), x[:, ::-1], x[::-1, :, ::2]):
        same(J @ y, y[:, ::-1].astype(dtype))
        same(y.mT @ J, y.mT[..., ::-1].astype(dtype))
    same(J.matvec(x[0, :, 0]), x[0, ::-1, 0])
    same(J.rmatvec(x[0, :, 0]), x[0, ::-1, 0])
    same(pl.Reversal(4, dtype) @ x, x[:, ::-1])
    same(J.astype(dtype), F.astype(dtype))
out = np.empty((2, 4, 3))
assert np.matmul(J, np.ones((2, 4, 3)), out=out) is out
x = np.arange(4.0)
same(J.matvec(x, out=x), np.arange(4.0)[::-1])  # in place
for n in (0, 1):
    same(pl.Reversal(n) @ np.ones(n), np.ones(n))
    same(pl.Reversal(n), np.eye(n))

# views, dense form, diagonals, trace, elements
for view in (J, J.T, J.H, J.conj(), J.mT, J.T.H, J.real, pl.inv(J), J**3):
    same(view @ A, F @ A)
    same(view, F)
for k in range(-5, 6):
    same(J.diagonal(k), np.diagonal(F, k) if abs(k) < 5 else np.zeros(0))
same(J.trace(), 0.0 * F[0, 0] + np.trace(F))
assert [[J[i, j] for j in range(4)] for i in range(-4, 0)] == F.tolist()
same(np.asarray(J), F)
same(J.tosparse().toarray(), F)

# with every other kind
batch = rng.standard_normal((2, 4))
B = rng.standard_normal((4, 1)), rng.standard_normal((4, 1))
others = [
    pl.Dense(A), pl.Dense(A.real), pl.Identity(4), pl.Zeros(4), pl.Diag(batch[0]), pl.Diag(batch),
    pl.Toeplitz(A[0], A[1]), pl.Kron(A[:2, :2], A[2:, 2:]), pl.LowRank(*B),
    pl.Sparse(sp.csr_array(A.real)), pl.Selection([3, 3, 0, 1], 4), pl.inv(pl.Diag(batch[1])),
    pl.MatVec((4, 4), lambda v: v @ A.T, lambda v: v @ A.conj(), dtype=complex), J, 2j * J,
]
for other in others:
    D = other.toarray()
    pairs = [
        (J @ other, F @ D), (other @ J, D @ F), (J + other, F + D), (other - 2 * J, D - 2 * F),
        (J @ other @ J, F @ D @ F), ((J @ other).H, (F @ D).conj().mT),
    ]
    if D.ndim == 2:
        pairs += [(pl.Kron(J, other), np.kron(F, D)), (pl.Kron(other, J).T, np.kron(D, F).T)]
    for got, want in pairs:
        x = np.cos(np.arange(2.0 * want.shape[-1])).reshape(-1, 2)
        same(got, want)
        same(got @ x, want @ x, 1e-12)
        same(x.T @ got, x.T @ want, 1e-12)
        same(got.diagonal(), np.diagonal(want, axis1=-2, axis2=-1))
        same(got.trace(), np.trace(want, axis1=-2, axis2=-1), 1e-12)
        if D.ndim == 2:
            same(got[1, 2], want[1, 2])
x = rng.standard_normal(4)
deep = J
for _ in range(20000):
    deep = deep @ J
same(deep @ x, x[::-1])
assert pickle.loads(pickle.dumps(deep)).shape == (4, 4)
huge = pl.Reversal(10**6)
assert (huge @ np.arange(10**6))[0] == 10**6 - 1

# functions by structure, and that they are
from pylinop._structured import dispatch

def never(op):
    raise AssertionError(f"the dense form of {op!r}")

plain, dispatch._made = dispatch._made, never
for n in (1, 2, 5, 8):
    for dtype in ("f4", "f8", "c16", "i4"):
        R = pl.Reversal(n, dtype)
        for K in (R, -2 * R, pl.Kron(R, J)):
            a = K.toarray()
            w, Q = pl.eigh(K)
            np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=1e-6)
            np.testing.assert_allclose(pl.eigvalsh(K), w, atol=1e-6)
            q = Q.toarray()
            assert w.dtype == np.linalg.eigvalsh(a).dtype and q.dtype == np.linalg.eigh(a)[1].dtype
            np.testing.assert_allclose(q * w @ q.conj().T, a, atol=1e-6)
            np.testing.assert_allclose(q.conj().T @ q, np.eye(len(q)), atol=1e-6)
            np.testing.assert_allclose(pl.svdvals(K), np.linalg.svdvals(a), atol=1e-6)
            np.testing.assert_allclose(pl.matrix_norm(K, 2), np.linalg.norm(a, 2), rtol=1e-6)
            np.testing.assert_allclose(pl.cond(K), np.linalg.cond(a), rtol=1e-6)
            if K._head == "scaled":
                continue
            try:
                L = pl.cholesky(K).toarray()
                np.testing.assert_allclose(L @ L.T, a, atol=1e-6)
            except np.linalg.LinAlgError:
                assert np.linalg.eigvalsh(a)[0] < 0.5
dispatch._made = plain
fired_by = J.explain("eigh")
assert fired_by.fired == ["eigh-reversal"] and J.explain("cholesky").fired == ["cholesky-reversal"]

# the rule, and where it must not act
def fired():
    row, = (row for row in pl.rules() if row["name"] == "trace-reversal")
    assert row["phase"] == "push" and row["source"] == "tr(J A J) = tr A"
    return row["fired"]
start = fired()
five = rng.standard_normal((5, 5))  # of no shape before: a plan that is kept fires no rule
same((pl.Reversal(5) @ pl.Dense(five) @ pl.Reversal(5)).trace(), np.trace(five), 1e-12)
assert fired() == start + 1
single = A.real.astype("f4")
for dtype in (np.int8, np.float32, complex):
    got = (pl.Reversal(4, dtype) @ pl.Dense(single) @ J).trace()
    same(got, np.trace(single.astype(np.result_type(dtype, "f4"))), 1e-6)
assert fired() == start + 4
R = rng.standard_normal((2, 3))
same((pl.Reversal(2) @ pl.Dense(R) @ pl.Reversal(3)).trace(), np.trace(R[::-1, ::-1]))
assert fired() == start + 4
print("all checks passed")
"""


def test_the_kind_and_the_rule_in_python(tree):
    assert tree.python("-c", "import pylinop; print(pylinop.__file__)").startswith(str(tree.site))
    script = tree.build / "checks.py"
    script.write_text(CHECKS)
    assert "all checks passed" in tree.python("-W", "error::RuntimeWarning", script)


def test_stub_and_docs_are_printed_from_the_table(tree):
    stub = tree.python("tools/print_stubs.py")
    assert "class Reversal(LinearOperator):" in stub
    assert "(cls, n: SupportsIndex, dtype: DTypeLike | None = None) -> Self" in stub
    tree.python("tools/print_docs.py", "--folder", tree.root)
    assert "## Reversal" in (tree.root / "kinds.md").read_text()
    assert "`trace-reversal`" in (tree.root / "rules.md").read_text()


def test_the_c_batteries_take_both_up(tree):
    """Of other kinds and rows they are not asked here."""
    kinds, rules = (tree.build / "tests" / name for name in BATTERIES)
    said = run(kinds, 20261121, 13, "reversal")
    line = re.search(r"^reversal +(\d+) checks +[\d.]+ s +ok$", said, re.MULTILINE)
    assert line and int(line[1]) > 1000, said
    said = run(rules, 3, "trace-reversal")
    line = re.search(r"^trace-reversal: (\d+) draws$", said, re.MULTILINE)
    assert line and int(line[1]) >= 50, said
