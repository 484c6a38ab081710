"""A formula as a program: straight lines, each an operation on earlier ones.

    sizes  {"a": 17, "b": 16}                      the names of sizes that dimensions are made of
    lines  [("leaf", (), ("Toeplitz", "a", "b", "float64", "C", (), 3, False)),
            ("add", (0, 1), ()), ...]              operation, numbers of lines, parameters
    asks   [("toarray", (2,), ()), ("write", (0,), ()), ("apply", (2,), ("x", 5))]

Dimensions are text over the names ("a", "a*b", "a+b"), so that one program can be tried at other
sizes. A program is plain data: its repr is what a failing one is kept as."""

from dataclasses import dataclass, field

import numpy as np
import samples

from . import leaves
from .parameters import WRITTEN
from .sizes import size

# How each operation is written: with pylinop on operators, and on LazyArrays.
OPERATORS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "matmul": "{0} @ {1}",
    "scale": "{p} * {0}",
    "divide": "{0} / {p}",
    "neg": "-{0}",
    "T": "{0}.T",
    "H": "{0}.H",
    "conj": "{0}.conj()",
    "real": "np.real({0})",
    "imag": "np.imag({0})",
    "inv": "pl.inv({0})",
    "power": "{0} ** {p}",
    "kron": "pl.Kron({0}, {1})",
    "kronsum": "pl.KronSum({0}, {1})",
    "blockdiag": "pl.BlockDiag({0}, {1})",
    "hstack": "pl.Block([[{0}, {1}]])",
    "vstack": "pl.Block([[{0}], [{1}]])",
    "update": "pl.LowRankUpdate({0}, {1}, {2})",
    "lowrank": "pl.LowRank({0}, {1})",
    "congruence": "pl.Congruence({0}, {1})",
    "root": "pl.Root({0})",
    "multiply": "pl.multiply({0}, {1})",
    "khatrirao": "pl.KhatriRao({0}, {1})",
    "cut": "{0}[..., {r}, {c}]",
    "turn": "{0}[..., ::-1, :]",
}
ARRAYS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "times": "{0} * {1}",
    "matmul": "{0} @ {1}",
    "scale": "{p} * {0}",
    "divide": "{0} / {p}",
    "over": "{0} / (2 + abs({1}))",
    "neg": "-{0}",
    "T": "{0}.mT",
    "H": "{0}.mT.conj()",
    "conj": "{0}.conj()",
    "real": "{0}.real",
    "imag": "{0}.imag",
    "abs": "abs({0})",
    "sin": "np.sin({0})",
    "cos": "np.cos({0})",
    "tanh": "np.tanh({0})",
    "arctan": "np.arctan({0})",
    "square": "{0} ** 2",
    "maximum": "np.maximum({0}, {1})",
    "minimum": "np.minimum({0}, {1})",
    "hypot": "np.hypot({0}, {1})",
    "sum0": "{0}.sum(axis=-2, keepdims=True)",
    "sum1": "np.sum({0}, axis=-1, keepdims=True)",
    "sum": "{0}.sum(axis=(-2, -1), keepdims=True)",
    "mean0": "{0}.mean(axis=-2, keepdims=True)",
    "mean1": "np.mean({0}, axis=-1, keepdims=True)",
    "max0": "{0}.max(axis=-2, keepdims=True)",
    "min1": "{0}.min(axis=-1, keepdims=True)",
    "cumsum": "np.cumsum({0}, axis=-1)",
    "turn": "{0}[..., ::-1, :]",
    "cut": "{0}[..., {r}, {c}]",
    "inv": "np.linalg.inv({0})",
    "solve": "np.linalg.solve({0}, {1})",
    "hstack": "np.concatenate([{0}, {1}], axis=-1)",
    "vstack": "np.concatenate([{0}, {1}], axis=-2)",
    "einsum": "np.einsum('...ij,...jk->...ik', {0}, {1})",
    "swap": "np.swapaxes({0}, -1, -2)",
    "where": "np.where({0} > {1}, {0}, {1})",
    # vectors (a dimension alone) and numbers (none)
    "matvec": "{0} @ {1}",
    "vecmat": "{0} @ {1}",
    "vdot": "{0} @ {1}",
    "quad": "{0} @ {1} @ {2}",
    "vsolve": "np.linalg.solve({0}, {1})",
    "vadd": "{0} + {1}",
    "vsub": "{0} - {1}",
    "vtimes": "{0} * {1}",
    "multiple": "{0} * {1}",
    "vscale": "{p} * {0}",
    "vneg": "-{0}",
    "vconj": "{0}.conj()",
    "vreverse": "{0}[::-1]",
    "row": "{0}[{i}]",
    "column": "{0}[:, {i}]",
    "vdiagonal": "np.diagonal({0})",
    "rowsums": "{0}.sum(axis=1)",
    "entry": "{0}[{i}, {i}]",
    "ventry": "{0}[{i}]",
    "vsum": "{0}.sum()",
    "ntrace": "np.trace({0})",
    "nlogdet": "np.linalg.slogdet({0})[1]",
    "vnorm": "np.linalg.norm({0})",
    "nadd": "{0} + {1}",
    "ntimes": "{0} * {1}",
    "outer": "np.outer({0}, {1})",
    "upright": "{0}[:, None]",
    "flat": "{0}[None, :]",
    "single": "{0}[None, None]",
    "rowscale": "{0}[:, None] * {1}",
    "colscale": "{0} * {1}",
    **WRITTEN,
}


@dataclass
class Program:
    sizes: dict
    lines: list
    asks: list
    lazy: bool = False
    options: dict = field(default_factory=dict)


def operand(line, sizes):
    """The Leaf, or the array, of a line of the head leaf or array; None where it does not exist."""
    head, _, p = line
    if head == "leaf":
        kind, rows, cols, dtype, layout, batch, seed, invertible = p
        rng = np.random.default_rng(seed)
        return leaves.draw(
            kind, rng, size(rows, sizes), size(cols, sizes), dtype, batch, layout, invertible
        )
    dims, dtype, layout, batch, seed, dominant = p
    shape = tuple(size(d, sizes) for d in dims)
    a = samples.values(np.random.default_rng(seed), (*batch, *shape), dtype)
    if dominant:
        a = (a + np.asarray(4 * shape[-1] * np.eye(*shape), a.dtype)).astype(a.dtype)
    return spread(a, layout)


def spread(a, layout):
    """samples.arrange, and an array all of whose rows are one."""
    if layout == "broadcast":
        return np.broadcast_to(a[..., :1, :], a.shape) if a.ndim > 1 and a.shape[-2] else a
    return samples.arrange(a, layout)


def text(line, names, sizes, lazy=False):
    """The right side of a line in Python; `names` are those of its operands."""
    head, _, p = line
    if head == "leaf":
        kind, rows, cols, dtype, layout, batch, seed, invertible = p
        m, n = size(rows, sizes), size(cols, sizes)
        more = "".join(
            f", {k}={v!r}"
            for k, v, usual in (
                ("batch", batch, ()),
                ("layout", layout, "C"),
                ("invertible", invertible, False),
            )
            if v != usual
        )
        return f"draw({kind!r}, np.random.default_rng({seed}), {m}, {n}, {dtype!r}{more}).build()"
    if head == "array":
        return f"operand({line!r}, {sizes!r})"
    if head == "mixed":
        return names[0]
    if head == "lazy":
        return f"pl.lazy({names[0]})"
    form = (ARRAYS if lazy else OPERATORS)[head]
    values = {"p": repr(p[0]) if p else "", "i": repr(p[0]) if p else ""}
    if head in WRITTEN and p:
        values["n"] = size(p[0], sizes)
    if head == "cut":
        for key, part in zip("rc", p, strict=True):
            dim, last = part
            n = None if dim == ":" else size(dim, sizes)
            values[key] = ":" if n is None else f"-{n}:" if last and n else f":{n}"
    return form.format(*names, **values)


def written(program, note=""):
    """The whole as a Python script that repeats it."""
    lines = ["import numpy as np", "import pylinop as pl", "from formulas.leaves import draw"]
    if any(line[0] == "array" for line in program.lines):
        lines += ["from formulas.program import operand"]
    if any(line[0] == "kernelof" for line in program.lines):
        lines += ["from formulas.parameters import points"]
    for i, line in enumerate(program.lines):
        names = [f"v{j}" for j in line[1]]
        lines.append(f"v{i} = {text(line, names, program.sizes, program.lazy)}")
    for head, over, p in program.asks:
        lines.append(
            f"# asked: {head}({', '.join(f'v{i}' for i in over)}) {p or ''} {note}".rstrip()
        )
    return "\n".join(lines)
