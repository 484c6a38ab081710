"""Print kinds.md, rules.md, numpy.md and factorisations.md in docs from the library's tables.

    python tools/print_docs.py            write them
    python tools/print_docs.py --check    exit 1 when a file is not what would be written

--folder DIR names another place than docs. Run it after a change of a kind or a rule; a test fails
when the files are stale.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from blank_cells import FORMS, blank_cells
from scipy import sparse

import pylinop as pl
from pylinop import _core
from pylinop._api import numpy_functions as _numpy_functions
from pylinop._structured import dispatch

MADE = "<!-- Printed by tools/print_docs.py from the library's tables: do not edit. -->"

KINDS = f"""\
# Kinds

{MADE}

What `pl.kinds()` lists, in its own words; `help(pl.Toeplitz)` says the same. Arrays are
borrowed: later writes to them are seen; with `copy=True` they are copied. An array with more
dimensions than its parameter names is a batch. Where an operator is due, an array will do.
`MatVec`, the operator of callables, and subclasses of your own are in
[the tutorial](tutorial/03-your-own.md).
"""

COMPOSITES = """\
## Composites

They appear by themselves and have no constructor; `.args` holds what they were made of.

"""

RULES = f"""\
# Rules

{MADE}

What `pl.rules()` lists, but for its *structure* rows, by which functions of operators (`eigh`,
`cholesky`, `expm`, ...) are answered: [factorisations.md](factorisations.md) has those.
*Close* rows act when an expression is built and compute nothing; *first*
rows act on the operator of an action before the action is taken apart, *push* rows move actions
(`apply`, `solve`, `todense`, `diagonal`, `trace`, `element`) down to the kinds, *both* is
*close* and *push*. Within a root the
first row that fits wins: by tier (`pl.rules()` has it), in a tier the row that names more, and as
they stand here only among rows of one left side. `?a` is any node, `@k` the attributes of a head;
`view:1` is the transpose, `view:2` the conjugate, `view:3` the adjoint; the operands of
`(sum* a b)` stand either way round, `(identity@c)` is a multiple of the identity, or the identity;
on the right `?*` is each operand of the first head that stands alone on the left, `?+` the one
beside it of the second. *Computed* right sides are made by a function; a row acts only where its
guard holds ([how to add one](add-rule.md)).
`pl.config(disable_rules=[...])` switches rows off, `pl.register_rule(...)` adds one of your own
([tutorial](tutorial/06-explain.md)).
"""

GUARDS = """
## Guards

What `pl.register_rule(..., guard=...)` takes:

| guard | asks |
|---|---|
"""

NUMPY = f"""\
# NumPy's functions on operators

{MADE}

`np.f(...)` with an operator in it. *structured*: a number or an array, computed from the structure.
*lazy*: an operator, nothing computed. *operators*: computed, on the dense form where the note says
nothing else, the matrices handed out as operators. Every other function of NumPy that lets others
in, and a call with keywords that a row does not take, makes the dense form, with a
`MaterializationWarning` above a size, and runs on it. The note says which part is structured where
not all is; kind by kind that is in the table of
[kinds](kinds.md) and in [solves, determinants, norms](linalg.md).

Products (`@`, `np.matmul`, `np.matvec`, `np.vecmat`), sums and multiples are in
[structure](tutorial/01-structure.md). Element-wise functions (`np.exp`, `np.abs`, ...) are
element-wise, never functions of the operator, and say that they make the dense form.

| function | route | note |
|---|---|---|
"""

FACTORISATIONS = f"""\
# Factorisations and functions of matrices

{MADE}

What each function does of each kind, and what it costs. A dot: by structure, in the way that one of
the lines below says. A blank: by LAPACK on the dense form, under the memory rule (large ones warn,
those beyond the memory limit raise). A kind that does not find in an operand what its line needs
goes by the dense form too; the line says what that is. Products, solves and determinants are in the
table of [kinds](kinds.md). `matrix_rank` is from `svdvals`. Costs are flops: an operator is m x n,
its Kronecker factors or blocks n_i, its rank k.

"""

FUNCTION = """
## {name}

| kind | algorithm | cost |
|---|---|---|
"""

# Of the rules that answer for an inverse without it: kinds, algorithm, cost.
ONTO = (None, "", "")  # of another row: what it leads to stands there
PARTS = {
    "diagonal-inverse-deficient": (
        "what is of less rank than rows as it is written",
        "LinAlgError, also beside something",
        "none",
    ),
    "trace-beside-deficient": ONTO,
    "diagonal-inverse-opened": (
        "views, `Kron`, products with what is solved at once, `inv(A)`",
        "by diagonals of the inverses of the parts",
        "theirs",
    ),
    "diagonal-inverse-similar": (
        "`P @ X @ P.T` of a `Permutation` P",
        "that of `inv(X)`, permuted",
        "its own",
    ),
    "diagonal-inverse-householder-tau": ONTO,
    "diagonal-inverse-expanded": (
        "sums of products, powers and inverses of what is a structure and a low rank",
        "multiplied out, by Woodbury's formula; checked against what is written",
        "as of a `LowRankUpdate`",
    ),
    "diagonal-inverse-expanded-product": ONTO,
    "diagonal-inverse-expanded-slice": ONTO,
    "diagonal-inverse-scaled": ("multiples", "over the number", "O(n) more"),
    "diagonal-inverse-blockdiag": ("`BlockDiag` of square blocks", "block by block", "theirs"),
    "diagonal-inverse-of-blocks": (
        "sums of a `BlockDiag` and diagonals, blocks of 8 rows on",
        "block by block",
        "theirs",
    ),
    "diagonal-inverse-block": (
        "a triangle of square blocks in a `Block`",
        "those of the inverses of its diagonal blocks",
        "theirs",
    ),
    "diagonal-inverse-bordered": (
        "a `Block` of 2 x 2 with a diagonal block A that is cheap to solve for, q rows beside it",
        "the diagonals of A^-1 + W S^-1 C A^-1 and of S^-1, by the Schur complement S; checked",
        "A's, 2 q solves with it and O(n q^2)",
    ),
    "diagonal-inverse-of-parallel": (
        "`P inv(P + Q) Q` of definite P and Q",
        "`inv(P) + inv(Q)`",
        "theirs",
    ),
    "diagonal-inverse-of-parallel-sum": (
        "`P - P inv(P + Q) P` of definite P and Q",
        "`inv(P) + inv(Q)`",
        "theirs",
    ),
    "diagonal-inverse-spelled": (
        "the inverse of an update spelled out by Woodbury's formula",
        "the diagonal of the update",
        "O(n k)",
    ),
    "diagonal-inverse-parallel": (
        "`a inv(P) + b inv(Q)` of definite P and Q (or Q the identity)",
        "`P inv(a Q + b P) Q`",
        "a factor of one sum",
    ),
    "diagonal-inverse-weighted": (
        "`c I + a K D` or `c I + a D K`, K semidefinite, D a diagonal, c and a positive",
        "by the diagonal of `inv(a K + c inv(D))`, where D is positive; else dense",
        "one Cholesky inverse",
    ),
    "diagonal-inverse-resolvent": (
        "`d I + a inv(K + c I)`, K definite and a < 0, or what is inverted solved with at once",
        "`(I - q inv(G)) / d`, or `K inv(G) / d`, of `G = K + (c + q) I`, `q = a / d`",
        "the diagonal of one inverse",
    ),
    "diagonal-inverse-corner": (
        "inverses of diagonal blocks of the inverse of a `Block` of 2 x 2",
        "the diagonal of the Schur complement",
        "its own",
    ),
    "diagonal-inverse-spelled-product": (
        "`inv(B) @ inv(c I + M @ inv(B))` and Woodbury's formula with `inv(B)` taken out",
        "the diagonal of `c B + M`",
        "its own",
    ),
    "diagonal-inverse-difference": (
        "`inv(X) - inv(X + s I)`",
        "the diagonal of `(X + s I) X / s`",
        "that of a product",
    ),
    "diagonal-inverse-shifted-product": (
        "diagonals and traces of `inv(X) @ inv(X + s I)`, `inv(X @ (X + s I))`, `inv(X @ X + s X)`",
        "`(diag(inv(X)) - diag(inv(X + s I))) / s` where that does not cancel, else as a product",
        "the diagonals of two inverses",
    ),
    "diagonal-inverse-quadratic": ("", "", ""),
    "trace-inverses-shifted-kron": ("", "", ""),
    "diagonal-inverse-sparse-update": (
        "`D + U @ inv(M) @ V.H`, D diagonal, U, M and V sparse",
        "selected inverse of `M + V.H @ inv(D) @ U`, where rows of U and V meet",
        "two sparse factors, by their fill",
    ),
    "diagonal-inverse-beside-band": (
        "`G + c L inv(M) R` of bands M, G, L and R, one of L and R the identity or a multiple of G",
        "of `inv(H) M` and kin, `H = M G + c R`, where `diag(inv(M))` has no 0, else dense",
        "as of bands",
    ),
    "diagonal-inverse-power": (
        "powers",
        "of one kind where they close, else of a product",
        "its own",
    ),
    "trace-smoother": (
        "diagonals and traces of `K inv(a K + c I)` and of `(K + s I) inv(K)`, either way round",
        "`(1 - c diag(inv(a K + c I))) / a` where 10 a K_ii is at least c, `1 + s diag(inv(K))` "
        "where no element of `s diag(inv(K))` is below -1/2, else as a product",
        "the diagonal of one inverse",
    ),
    "diagonal-inverse-line-sum": (
        "Matern `Kernel`s of points on a line, sums of them and of diagonals, the main diagonal",
        "as of the `QuasiSeparable` of the sorted points",
        "O(n J^3), J states",
    ),
    "diagonal-inverse-circular": (
        "circular `Convolution`",
        "all entries are one: that of `inv(C) e`",
        "O(n log n)",
    ),
    "diagonal-inverse-line": ("", "", ""),
    "diagonal-inverse-line-update": ("", "", ""),
    "diagonal-inverse-settled": ("", "", ""),
    "diagonal-inverse-sum-kinds": ("", "", ""),
    "diagonal-inverse-quasi": (
        "`QuasiSeparable`, Hermitian, the main diagonal",
        "sums of squares of the rows of D^-1/2 L^-1; indefinite: a window of the inverse, moved up "
        "a band's LU",
        "O(n J^2)",
    ),
    "diagonal-inverse-blocktri": (
        "`BlockTridiagonal`, the main diagonal",
        "blocks of the inverse from the last one back (Takahashi)",
        "O(n b^2), b rows a block",
    ),
    "diagonal-inverse-update": (
        "`LowRankUpdate` and sums with a thin term, as solves",
        "Woodbury's formula, checked, else the dense form",
        "O(n k^2), k the columns of U, and the diagonal of the base's inverse",
    ),
    "diagonal-inverse-update-settled": ONTO,
    "diagonal-inverse-sum-lowrank": ONTO,
    "diagonal-inverse-thin-sum": ONTO,
    "diagonal-inverse-circulant": ("`Circulant`", "one number", "O(n log n)"),
    "diagonal-inverse-toeplitz": (
        "`Toeplitz`",
        "from the first and last columns of the inverse (Gohberg and Semencul), checked",
        "three solves and O(n)",
    ),
    "diagonal-inverse-hankel": (
        "`Hankel`",
        "likewise, each element a sum along an antidiagonal, checked",
        "three solves and n^2 flops",
    ),
    "diagonal-inverse-kron-runs": (
        "`Kron + Diag`, the diagonal constant in runs or repeating itself; main diagonal",
        "as of `Kron + Kron(Diag, I)`; the diagonal is looked at when it runs",
        "9 n_i^3 a factor, N sum n_i",
    ),
    "diagonal-inverse-spectral-sum": (
        "sums of `Kron`s that one basis makes diagonal, `Kron + c I`, `KronSum`; main diagonal",
        "squares of the eigenvectors of the factors, as a Kron, times the reciprocals; checked",
        "9 n_i^3 a factor, N sum n_i",
    ),
    "diagonal-inverse-kronsum": ONTO,
    "diagonal-inverse-band": (
        "`Tridiagonal`, `Banded`, narrow bands by how they are written; diagonals on the band",
        "on the band of L D U, from the last row back (Takahashi), checked, else as below",
        "O(n l u)",
    ),
    "trace-inverse-band": (
        "`trace(inv(A) @ B)` and `trace(B @ inv(A))` of bands, B's no wider than A's",
        "diagonals of the inverse within the band with those of B",
        "O(n l u) for each of B's diagonals",
    ),
    "diagonal-inverse-sparse": (
        "`Sparse`, `Laplacian`, sums, products, ... of 400 rows or more",
        "entries of the inverse on the pattern of the factor (Takahashi)",
        r"4 sum of \|J\|^2, J the rows of a column of L; O(n w^2) of a band of w diagonals",
    ),
    "trace-inverse-blocktri": (
        "trace(inv(A) @ B), either order, of `BlockTridiagonal` matrices of like blocks",
        "likewise, with the blocks of B",
        "O(n b^2)",
    ),
    "trace-inverse-sparse": (
        "trace(inv(A) @ B), either order, of such A and a sparse B",
        "likewise, on a pattern that has B's too",
        "likewise; a solve a column where that pattern grows beyond 4 times the factor's",
    ),
}

TABLE = """
## {phase}

| name | left | right | guard | source |
|---|---|---|---|---|
"""


def sections(doc: str) -> dict[str, str]:
    """The parts of a docstring: '' is what stands before the first heading."""
    found, name, lines = {}, "", doc.splitlines()
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and lines[i + 1] and set(lines[i + 1]) == {"-"} and line.strip():
            name = line
        elif not (line and set(line) == {"-"}):
            found.setdefault(name, []).append(line)
    return {name: "\n".join(text).strip() for name, text in found.items()}


def code(text: str) -> str:
    """reStructuredText's double backquotes as Markdown's single ones."""
    return text.replace("``", "`")


def kind(row: dict) -> str:
    part = sections(getattr(pl, row["name"]).__doc__)
    text = f"## {row['name']}\n\n`pl.{row['name']}{row['signature']}`\n\n{code(part[''])}\n\n"
    for p in row["params"]:
        text += f"- `{p['name']}`: {code(p['doc'])}\n"
    for name in ("Cost", "Limits", "Notes"):
        if name in part:
            text += f"\n*{name}.* {code(part[name])}\n"
    if "Examples" in part:
        text += f"\n```python\n{part['Examples']}\n\n```\n"
    return text


def kinds() -> str:
    rows = pl.kinds()
    leaves = [kind(row) for row in rows if row["signature"]]
    briefs = {row["name"]: row["doc"] for row in rows if not row["signature"]}
    for name in ("Transpose", "Adjoint", "Conj"):
        briefs[name] = getattr(pl, name).__doc__
    made = [f"- `{name}`: {code(doc.splitlines()[0])}\n" for name, doc in briefs.items()]
    return "\n".join([KINDS, operations(), *leaves, COMPOSITES + "".join(made)])


OPERATIONS = {
    "apply": "product",
    "solve": "solve",
    "todense": "dense form",
    "diagonal": "diagonal",
    "element": "element",
    "trace": "trace",
    "scaledet": "determinant",
    "sliced": "slice",
    "view": "transpose",
    "inverse": "inverse",
    "sum": "+",
    "prod": "@",
}
GENERIC = {
    "todense": "columns",
    "diagonal": "dense",
    "element": "column",
    "trace": "diagonal",
}

# slices.c: what a slice of it is again.
SLICED = ("Dense", "Zeros", "Toeplitz", "LowRank", "Kron", "Identity", "Selection", "Diag")

OPERATION_TABLE = """\
## Kinds and operations

**own**: a method of the kind. **rule**: rows of [the table](rules.md) take it apart. **closes**: at
once the same or another kind, nothing computed. Else the generic way: *dense* by the dense form,
*columns* by products with unit vectors, *column* by one of them, *diagonal* from the diagonal,
*lazy* an expression. *sparse*: by a factor of the entries (SuperLU, CHOLMOD, or within a band) from
400 rows on, fewer by the dense form. *band*, *singular*: what the formula shows it to be.

"""

# Rules for any operator that look at how it is written decide more than the tables of heads say. So
# where these say `dense`, one operator of the kind, of more than 400 rows, is asked.
ASKED = {
    "Zeros": lambda n: pl.Zeros((n, n)),
    "Selection": lambda n: pl.Selection(np.arange(n)[::-1], n),
    "Sparse": lambda n: pl.Sparse(sparse.diags_array([4.0, 1.0], offsets=[0, 40], shape=(n, n))),
    "Full": lambda n: pl.Full((n, n), 2.0),
    "FiniteDifference": lambda n: pl.FiniteDifference(n, boundary="zero"),
    "Laplacian": lambda n: pl.Laplacian((n // 20, 20), "dirichlet"),
    "MultilevelToeplitz": lambda n: pl.MultilevelToeplitz(np.ones((2 * n // 20 - 1, 39))),
    "Convolution": lambda n: pl.Convolution(np.array([1.0, 4.0, 1.0]), n, mode="same"),
    "KhatriRao": lambda n: pl.KhatriRao(np.ones((1, n)), np.eye(n)),
    "Kernel": lambda n: pl.Kernel("rbf", np.linspace(0, 1, n)[:, None]),
}
WORDS = {
    "dense": "dense",
    "hermitian": "dense",
    "sparse": "sparse",
    "deficient": "singular",
    "inferred": "band",
}


def asked(name: str, operation: str) -> str:
    """The way that a solve or a determinant of a large operator of the kind goes."""
    if name not in ASKED:
        return "dense"
    op, action = ASKED[name](440), {"solve": "solve", "scaledet": "det"}[operation]
    args = (np.ones(op.shape[-1]),) if action == "solve" else ()
    fired = [row["name"] for row in op.explain(action, *args).rules if row["outcome"] == "fired"]
    rule = next(name for name in fired if name.startswith(f"{operation}-"))
    return WORDS[rule.partition("-")[2]]


def operations() -> str:
    """Which way each operation goes for each kind."""
    rows, text = pl.kinds(), OPERATION_TABLE
    found: dict[tuple[str, str], set[str]] = {}
    rewritten = set()
    for rule in written_rules():
        if rule["phase"] == "first":
            rewritten.add(rule["left"][1:].split("@")[0].split(" ")[0].rstrip("*)"))
        outer, *inner = re.findall(r"\((\w+)", rule["left"])[:3]
        for head in inner[:1] if inner[:1] == ["inverse"] else inner:
            phases = ("close", "push") if rule["phase"] == "both" else (rule["phase"],)
            found.setdefault((outer, head), set()).update(phases)
    text += (
        f"| kind | {' | '.join(OPERATIONS.values())} |\n" + "|---" * (len(OPERATIONS) + 1) + "|\n"
    )
    for row in rows:
        if not row["signature"]:
            continue
        line = []
        for op in OPERATIONS:
            phases = found.get((op, row["head"]), set())
            if op == "sliced":
                line.append("closes" if row["name"] in SLICED else "lazy")
            elif "close" in phases:
                line.append("closes")
            elif phases:
                line.append("rule")
            elif row["own"].get(op):
                line.append("own")
            elif row["head"] in rewritten and op in ("apply", "solve", "scaledet", *GENERIC):
                line.append("rule")
            elif op in ("solve", "scaledet"):
                line.append(asked(row["name"], op))
            else:
                line.append(GENERIC.get(op, "lazy"))
        text += f"| `{row['name']}` | {' | '.join(line)} |\n"
    return text


def cell(text: str | None) -> str:
    return f"`{text}`" if text else "computed"


def written_rules() -> list[dict[str, Any]]:
    """The rules of plans; those on functions of operators are in factorisations.md."""
    return [row for row in pl.rules() if row["phase"] != "structure"]


def rules() -> str:
    rows = written_rules()
    text = RULES
    for phase in dict.fromkeys(row["phase"] for row in rows):
        text += TABLE.format(phase=phase.capitalize())
        for row in rows:
            if row["phase"] == phase:
                sides = f"{cell(row['left'])} | {cell(row['right'])}"
                sides += f" | `{row['guard']}`" if row["guard"] else " | "
                text += f"| `{row['name']}` | {sides} | {row['source'].replace('|', '/')} |\n"
    return text + GUARDS + "".join(f"| `{k}` | {v} |\n" for k, v in _core._guards().items())


def numpy_functions() -> str:
    rows = _numpy_functions.table()
    return NUMPY + "".join(f"| `np.{name}` | {route} | {note} |\n" for name, route, note in rows)


# Heads that are no kinds of their own.
def factorisations() -> str:
    """An overview, then a table a function: what is not in it goes by the dense form."""
    names = {row["head"]: f"`{row['name']}`" for row in pl.kinds() if row["signature"]}
    questions = dispatch.QUESTIONS
    text = FACTORISATIONS + f"| kind | {' | '.join(questions)} |\n"
    text += "|---" * (len(questions) + 1) + "|\n"
    for head, name in {**names, **FORMS}.items():
        line = ("•" if head in q.texts else "" for q in questions.values())
        text += f"| {name} | {' | '.join(line)} |\n"
    for name, question in questions.items():
        text += FUNCTION.format(name=name)
        by_text: dict[tuple[str, str], list[str]] = {}
        for head, said in question.texts.items():
            by_text.setdefault(said, []).append({**names, **FORMS}.get(head, f"`{head}`"))
        for said, kinds_ in by_text.items():
            how, cost = (part.replace("|", r"\|") for part in said)
            text += f"| {', '.join(kinds_)} | {how} | {cost} |\n"
        how, cost = question.text
        text += f"| all others | **dense**: {how} | {cost} |\n"
    return text + blank_cells()[0] + parts_of_inverses()


def parts_of_inverses() -> str:
    """A line for each rule of diagonals and traces of inverses; one that is not in PARTS, or is no
    rule any more, is a KeyError."""
    starts = ("(diagonal@k (inverse ", "(trace@k (prod* (inverse ")
    rules_of = {row["name"] for row in written_rules() if (row["left"] or "").startswith(starts)}
    if rules_of != PARTS.keys():
        raise KeyError(f"PARTS and the rules of inverses differ: {rules_of ^ PARTS.keys()}")
    text = FUNCTION.format(name="diagonal(inv(A)), trace(inv(A))")
    for kinds_, how, cost in PARTS.values():
        text += f"| {kinds_} | {how} | {cost} |\n" if kinds_ else ""
    return (
        text
        + "| all others | solves with the unit vectors; `Diag` and `Kron` as such | n solves |\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    docs = Path(__file__).resolve().parent.parent / "docs"
    parser.add_argument("--folder", type=Path, default=docs)
    args = parser.parse_args()
    stale = []
    pages = {"kinds.md": kinds(), "rules.md": rules(), "numpy.md": numpy_functions()}
    pages["factorisations.md"] = factorisations()
    for name, text in pages.items():
        path = args.folder / name
        if args.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"docs/{name} is stale: run python tools/print_docs.py")
    untold = blank_cells()[1] if args.check else []
    if untold:
        print(f"tools/blank_cells.py does not say why these cells are blank: {untold}")
    return bool(stale or untold)


if __name__ == "__main__":
    sys.exit(main())
