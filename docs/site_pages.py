"""What the site shows that no one writes by hand, made before each build into docs/made.

`make_all` writes: a page a subject of the public names, for autosummary; pictures of the kinds;
the gallery of examples; what changed. `with_cost` puts the ways and prices of the library's own
tables into a function's docstring.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import pylinop as pl
from pylinop._operators.draw import picture
from pylinop._structured import dispatch

DOCS = Path(__file__).resolve().parent
MADE = DOCS / "made"
EXAMPLES = DOCS.parent / "examples"

# Subjects of the public names, in the order of the page, by the modules that define them.
SUBJECTS = {
    "Solve, invert, determinants": (
        "_api.solve",
        "_api.basic",
        "_api.determinants",
        "_api.factorized",
    ),
    "Gaussians: likelihoods and draws": (
        "_api.covariance",
        "_api.normal",
        "_operators.quasiseparable",
    ),
    "Factorisations and spectra": ("_api.factorizations", "_api.spectra", "_api.norms", "linalg"),
    "Iterative methods": ("_iterative", "_precondition", "_eigen"),
    "Estimates": ("_stochastic",),
    "Formulas and contractions": ("_lazy", "_api.contraction", "_api.products", "_symbols"),
    "Gradients": ("_gradients", "_programs.called"),
    "Make operators": ("_operators",),
    "Sparse products": ("_sparse",),
    "Explain, configure, extend": (
        "_api.explain",
        "_api.tables",
        "_api.user_rules",
        "_base",
        "_core",
    ),
}
CLASSES = "LinearOperator LazyArray MatVec Contraction CallableKernel"


def module_of(thing):
    return thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", "")


def by_subject():
    """{subject: [name, ...]} of all that is public: each name once."""
    kinds = {row["name"]: bool(row["signature"]) for row in pl.kinds()}
    found = {"Operators and formulas": CLASSES.split(), "Kinds": [], "Composites": []}
    found |= {subject: [] for subject in SUBJECTS} | {"Errors and warnings": []}
    for name in sorted(pl.__all__, key=str.lower):
        thing = getattr(pl, name)
        where = module_of(thing).removeprefix("pylinop.")
        if name in CLASSES.split() or inspect.ismodule(thing):
            continue
        if inspect.isclass(thing) and issubclass(thing, (Exception, Warning)):
            found["Errors and warnings"].append(name)
        elif name in kinds and kinds[name]:
            found["Kinds"].append(name)
        elif inspect.isclass(thing) and issubclass(thing, pl.LinearOperator):
            found["Composites"].append(name)
        elif inspect.isclass(thing) and where == "pylinop":
            found["Operators and formulas"].append(name)
        else:
            subject = next((s for s, places in SUBJECTS.items() if where.startswith(places)), None)
            if subject is None:
                raise KeyError(f"{name} of {where} has no subject in docs/site_pages.py")
            found[subject].append(name)
    return found


API = """\
# All functions and kinds

Each page says what a call costs: kinds in their own words, functions by the table that the library
chooses from. What a kind has for which operation is in [kinds](../kinds.md).
"""
KINDS = """\
# Kinds in pictures

The sizes of the entries of a small one; darker is larger. A card leads to the page of the kind.

::::{grid} 2 3 4 5
:gutter: 2
"""
GALLERY = """\
# Examples

Whole programs that check their own results. `pip install "pylinop[examples]"` brings what most of
them need.

::::{grid} 1 2 3 3
:gutter: 3
"""


def card(title, link, image, text):
    """A card of a grid."""
    head = [f":::{{grid-item-card}} {title}", f":link: {link}", ":link-type: doc"]
    return [*head, f":img-top: {image}", "", text, ":::", ""]


def api():
    """A page with a table a subject; autosummary makes a page for each name."""
    text = [API]
    for subject, names in by_subject().items():
        text += [f"## {subject}", "", "```{eval-rst}", ".. currentmodule:: pylinop", ""]
        text += [".. autosummary::", "   :toctree: api", "   :nosignatures:", ""]
        text += [f"   {name}" for name in names] + ["```", ""]
    return "\n".join(text)


# -- pictures of the kinds -------------------------------------------------------------------------


def shown():
    """An operator of each kind, small enough to be looked at entry by entry."""
    rng, n = np.random.default_rng(3), 24
    decay, points = np.exp(-np.arange(n) / 5.0), np.sort(rng.random((n, 1)), axis=0)
    small, thin = rng.random((4, 4)), rng.standard_normal((n, 2))
    square = rng.standard_normal((n, n))
    lower = np.tril(rng.random((n, n)) < 0.15) + np.eye(n)
    return {
        "Banded": pl.Banded((2, 1), rng.random((4, n)) + 0.3),
        "Block": pl.Block(
            [
                [pl.Diag(rng.random(12)), pl.Dense(rng.random((12, 12)))],
                [pl.Identity(12), pl.Diag(rng.random(12))],
            ]
        ),
        "BlockDiag": pl.BlockDiag(*(rng.random((k, k)) for k in (5, 9, 10))),
        "BlockTridiagonal": pl.block_tridiag(
            rng.random((5, 4, 4)), rng.random((6, 4, 4)), rng.random((5, 4, 4))
        ),
        "Circulant": pl.Circulant(decay),
        "Convolution": pl.Convolution(rng.random(6), n, "full"),
        "DCT": pl.DCT(n),
        "DFT": pl.DFT(n),
        "Dense": pl.Dense(square),
        "Diag": pl.Diag(rng.random(n) + 0.2),
        "FiniteDifference": pl.FiniteDifference(n),
        "Hadamard": pl.Hadamard(16),
        "Hankel": pl.Hankel(decay, decay[::-1]),
        "Householder": pl.Householder(rng.standard_normal(n)),
        "Identity": pl.Identity(n),
        "Kernel": pl.Kernel("rbf", points, length_scale=0.2),
        "KhatriRao": pl.KhatriRao(rng.random((4, n)), rng.random((6, n))),
        "Kron": pl.Kron(small, rng.random((6, 6))),
        "KronSum": pl.KronSum(small, rng.random((6, 6))),
        "Laplacian": pl.Laplacian((6, 4)),
        "LowRank": pl.LowRank(thin),
        "LowRankUpdate": pl.LowRank(thin) + pl.Diag(5 * rng.random(n) + 1),
        "MultilevelToeplitz": pl.MultilevelToeplitz(rng.random((11, 7))),
        "Permutation": pl.Permutation(rng.permutation(n)),
        "QuasiSeparable": pl.quasiseparable("matern32", points[:, 0], length_scale=0.2),
        "Selection": pl.Selection(np.sort(rng.choice(n, 14, replace=False)), n),
        "Toeplitz": pl.Toeplitz(decay, rng.random(n)),
        "Triangular": pl.Triangular(square, lower=True),
        "Tridiagonal": pl.Tridiagonal(rng.random(n - 1), rng.random(n) + 0.5, rng.random(n - 1)),
        "Zeros": pl.Zeros((n, n)),
    } | of_sparse(lower)


def of_sparse(lower):
    """The kinds that ask for SciPy."""
    from scipy import sparse

    both = sparse.csr_array(lower + lower.T)
    return {
        "Sparse": pl.Sparse(both),
        "SparseTriangular": pl.SparseTriangular(sparse.csr_array(lower)),
    }


def pictures():
    """made/kinds/NAME.png for each: the sizes of the entries, as one sees them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder = MADE / "kinds"
    folder.mkdir(parents=True, exist_ok=True)
    for name, op in shown().items():
        figure = plt.figure(figsize=(1.6, 1.6), dpi=120)
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
        axes.imshow(np.abs(op.toarray()), cmap="Blues", vmin=0, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        figure.savefig(folder / f"{name}.png")
        plt.close(figure)


def kinds_page():
    """Cards of the kinds: picture and first sentence."""
    text = [KINDS]
    for name in shown():
        brief = " ".join(getattr(pl, name).__doc__.split("\n\n")[0].split())
        brief = brief.replace("``", "`").partition(". ")[0].rstrip(".")
        text += card(name, f"api/pylinop.{name}", f"kinds/{name}.png", brief)
    return "\n".join([*text, "::::", ""])


# -- the gallery of examples -----------------------------------------------------------------------


def _plain():
    return pl.LowRank(np.ones((9, 2))) + pl.Diag(np.ones(9))


# Where an example has no picture of its own, that of what it is about.
ABOUT = {
    "diag_square.py": lambda: pl.Diag(np.ones(9)),
    "factor_model.py": lambda: pl.LowRank(np.ones((9, 2))),
    "torch_factor_model.py": lambda: pl.LowRank(np.ones((9, 2))),
    "contractions.py": lambda: pl.Convolution(np.ones(3), 9),
    "tensor_networks.py": lambda: pl.KhatriRao(np.ones((3, 3)), np.ones((3, 3))),
    "blind_deblur.py": lambda: pl.Toeplitz(np.ones(9)) @ pl.Toeplitz(np.ones(9)),
    "jax_kron_gp.py": lambda: pl.Kron(np.eye(3), np.eye(3)) + pl.Identity(9),
    "pymc_co2.py": lambda: pl.Toeplitz(np.ones(9)) + pl.Identity(9),
    "deblur.py": lambda: pl.Kron(pl.Toeplitz(np.ones(3)), pl.Toeplitz(np.ones(3))),
    "kalman.py": lambda: pl.Tridiagonal(np.ones(8), np.ones(9), np.ones(8)),
    "own_operator.py": lambda: pl.Circulant(np.ones(9)),
    "residuals.py": lambda: pl.Tridiagonal(np.ones(8), np.ones(9), np.ones(8)),
    "blocks_on_disk.py": lambda: pl.BlockDiag(np.eye(3), np.eye(3), np.eye(3)),
    "blocks_public.py": lambda: pl.BlockDiag(np.eye(2), np.eye(4), np.eye(3)),
}


def gallery():
    """Cards of the examples, and a page with the source of each."""
    folder = MADE / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    text, names = [GALLERY], []
    for path in sorted(EXAMPLES.glob("[a-z]*.py")):
        said = re.match(r'"""(.+?)\n\n(.*?)"""', path.read_text(encoding="utf-8"), re.S)[1]
        title, _, rest = " ".join(said.split()).partition(":")
        image = f"../pictures/{path.stem}.png"
        if not (MADE / image).exists():
            (folder / f"{path.stem}.svg").write_text(picture(ABOUT.get(path.name, _plain)(), 160))
            image = f"examples/{path.stem}.svg"
        source = f"```{{literalinclude}} ../../../examples/{path.name}\n:language: python\n```\n"
        write(folder / f"{path.stem}.md", f"# {path.name}\n\n{source}")
        text += card(title, f"examples/{path.stem}", image, rest.strip())
        names.append(f"examples/{path.stem}")
    tree = ["```{toctree}", ":hidden:", "", *names, "```", ""]
    return "\n".join([*text, "::::", "", *tree])


# -- docstrings: bars of absolute values, and costs ------------------------------------------------


COLON = "\x1f"
LITERAL = re.compile(r"(``.*?``)")


def with_bars(app, what, name, obj, options, lines):
    """|x| is an absolute value in our docstrings, where reStructuredText sees a substitution; what
    stands before the colon in a parameter's own docstring is no type. Examples stay as they are."""
    for i, line in enumerate(lines):
        if line == "Examples":
            break
        parts = LITERAL.split(line)
        lines[i] = "".join(
            # autosummary ends its summary at a full stop
            p.replace("...", "…") if p.startswith("``") else p.replace("|", r"\|")
            for p in parts
        )
        if what in ("attribute", "property"):
            lines[i] = lines[i].replace(":", COLON)


def with_colons(app, what, name, obj, options, lines):
    """After napoleon, which looks for types before colons."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def with_cost(app, what, name, obj, options, lines):
    """A section Cost from the table that the function chooses its way by."""
    question = dispatch.QUESTIONS.get(name.removeprefix("pylinop."))
    if question is None or not callable(obj):
        return
    names = {row["head"]: row["name"] for row in pl.kinds() if row["signature"]}
    ways: dict[tuple[str, str], list[str]] = {}
    for head, said in question.texts.items():
        ways.setdefault(said, []).append(names.get(head, head))
    rows = [(", ".join(kinds), *said) for said, kinds in ways.items()]
    rows.append(("all others, by their dense form", *question.text))
    lines += ["", ".. rubric:: Cost", ""]
    for row in rows:
        kinds, how, cost = (part.replace("|", r"\|").replace("*", r"\*") for part in row)
        lines.append(f"* {kinds}: {how}; {cost}")
    lines.append("")


def write(path, text):
    """Leaves a file alone whose text is the same, so that Sphinx does not read it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def make_all():
    """Writes docs/made anew."""
    MADE.mkdir(exist_ok=True)
    changes = [sys.executable, DOCS.parent / "tools" / "changelog.py"]
    said = subprocess.run(changes, capture_output=True, text=True, check=True).stdout
    notebooks = [sys.executable, DOCS.parent / "tools" / "notebooks.py", MADE / "notebooks"]
    subprocess.run(notebooks, check=True)
    pictures()
    write(MADE / "api.md", api())
    write(MADE / "kinds_in_pictures.md", kinds_page())
    write(MADE / "gallery.md", gallery())
    write(MADE / "changelog.md", said)
