"""How an explanation reads: what is done in one sentence, then its cost and the road, then what
only matters where something fails or surprises: other steps, rules, the formula.

What makes explanations (the core, trees of rules, iterations) writes sections, each of a word of at
most nine letters and lines behind it. Here they are put in the order in which one reads them."""

import re
from collections.abc import Iterator
from typing import Any

# What a step is to people, where it is a method: "Cholesky of 3 x 3".
_METHODS = {
    "potrf": "Cholesky of", "pbtrf": "banded Cholesky of", "pttrf": "tridiagonal Cholesky of",
    "ptsv": "tridiagonal Cholesky of", "cholesky_batch": "Cholesky of",
    "block-cholesky": "block Cholesky of", "getrf": "LU of", "gesv": "LU of",
    "gbtrf": "banded LU of", "gbsv": "banded LU of", "gttrf": "tridiagonal LU of",
    "gtsv": "tridiagonal LU of", "block-lu": "block LU of", "sytrf": "L D L^H of",
    "hetrf": "L D L^H of", "sysv": "L D L^H of", "hesv": "L D L^H of", "geqrf": "QR of",
    "geqp3": "pivoted QR of", "syevd": "eigenvectors of", "heevd": "eigenvectors of",
    "gesdd": "SVD of", "gees": "Schur form of", "trsyl": "Bartels and Stewart on",
    "sparse-solve": "sparse factors of",
}  # fmt: skip
_WORDS = {
    "gemm": "products", "gemv": "products", "syrk": "a Gram matrix", "herk": "a Gram matrix",
    "weighted-gram": "a Gram matrix", "trsm": "triangular solves", "trmm": "triangular products",
    "sptrsv": "sparse triangular solves", "spmm": "sparse products", "spgemm": "a sparse product",
    "fft": "FFT", "toeplitz-fft": "FFT", "convolve-fft": "FFT", "diagonal-sums-fft": "FFT",
    "circulant-solve": "FFT", "spectrum": "FFT", "dct": "DCT", "kron": "Kronecker products",
    "rowscale": "scaling", "div": "scaling", "scale": "scaling", "add": "sums", "sumall": "a sum",
    "toeplitz-factor": "Toeplitz factors", "toeplitz-solve": "Toeplitz factors",
    "quasi-factor": "quasiseparable factors", "quasi-band-factor": "quasiseparable factors",
    "quasi-solve": "quasiseparable solves", "quasi-band-solve": "quasiseparable solves",
    "potrs": "triangular solves", "getrs": "triangular solves",
}  # fmt: skip
_BY_RULE = {
    "solve-update": "Woodbury's formula", "scaledet-update": "the determinant lemma",
    "solve-kron": "factors one by one", "solve-blockdiag": "blocks one by one",
}  # fmt: skip
# Steps that look at a result, or move it: they are not what is done.
_ASIDE = {"accept", "accepted", "bound", "checked", "probe", "nearone", "shift", "part", "place"}
_ACTIONS = {
    "apply": "product", "dense": "dense form", "todense": "dense form", "det": "determinant",
    "scaledet": "determinant",
}  # fmt: skip
_COST = ("total", "memory", "rcond", "verified")
_ROAD = ("method", "tried", "M", "took", "residual", "backward", "planned", "instead", "steps")
_FORMULA = ("written", "canonical")
_LINE = "--- if a step fails; the rules; the formula as written ---"
_COLUMNS = 100
EXACT = "exact to rounding"
_STEP = re.compile(r" {2,3}(\d+) \S")


def amount(n: float, unit: str) -> str:
    """1.5 GB, 20 Mflop: three digits and a prefix."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {prefix}{unit}"
    return f"{n:.3g} {unit}".rstrip()


def time(s: float) -> str:
    """1.2 us."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if s >= size:
            return f"{s / size:.3g} {unit}"
    return f"{s / 1e-9:.3g} ns"


def in_reserve(step: dict[str, Any]) -> bool:
    """Does it run only where another fails, and did it not?"""
    return bool(step.get("conditional")) and step["took"] is None


def _size(step: dict[str, Any]) -> str:
    """The shape of what a step reads first: "3 x 3"."""
    found = re.search(r"\((\d[\d, ]*)\)", step["reads"][0] if step["reads"] else "")
    return " x ".join(found[1].replace(" ", "").strip(",").split(",")) if found else "a matrix"


def _means(data: dict[str, Any]) -> list[str]:
    """By what it is done: formulas, factorisations, then what takes the time."""
    road = [s for s in data["steps"] if not in_reserve(s) and not s.get("by_strides")]
    known = [
        _BY_RULE[r["name"]]
        for r in data["rules"]
        if r["outcome"] == "fired" and r["name"] in _BY_RULE
    ]
    sure = [s for s in road if not s.get("conditional")]
    methods = [f"{_METHODS[s['name']]} {_size(s)}" for s in sure if s["name"] in _METHODS]
    whole = sum(s["seconds"] for s in sure)
    slow = [s for s in sorted(sure, key=lambda s: -s["seconds"]) if s["seconds"] >= 0.1 * whole]
    others = [
        _word(s, data["action"])
        for s in slow
        if s["name"] not in _METHODS and s["name"] not in _ASIDE
    ]
    return list(dict.fromkeys([*known, *methods, *others]))[:4]


def _word(step: dict[str, Any], action: str) -> str:
    """A step in words; of a function's rules, what it is asked of."""
    name, of = step["name"], step["reads"][0] if step["reads"] else ""
    of_tree = "arguments" not in step  # the core's steps have them
    if of_tree and name.endswith("-dense") and of:
        return f"LAPACK on {_size(step)}"
    if of_tree and name.startswith(f"{action}-"):
        return f"the structure of {of}"
    return "determinants" if name.endswith("_det") else _WORDS.get(name, name)


def asked(data: dict[str, Any]) -> str:
    """What was asked for."""
    action: str = data["action"]
    return _ACTIONS.get(action, action)


def in_short(data: dict[str, Any]) -> str:
    """What is done, what it costs, what it takes."""
    if "where" in data:  # on arrays elsewhere, without times
        return f"{asked(data)} by {', '.join(_means(data))}: {data['where']}"
    took = f"took {time(data['took'])}, " if data["took"] is not None else ""
    cost = (
        f"{took}about {time(data['seconds'])}{' expected' if took else ''}, "
        f"{amount(data['flops'], 'flop')}, {amount(data['memory'], 'B')} at most, "
        f"{data.get('answer', EXACT)}"
    )
    means = ", ".join(_means(data))
    return f"{asked(data)} by {means}: {cost}" if means else f"{asked(data)}: {cost}"


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The words of a text with the lines behind them."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line[:1].strip():
            found.append((line[:10].split(None, 1)[0], [line]))
        elif found:
            found[-1][1].append(line)
    yield from found


def _road(lines: list[str], steps: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The section of the steps without those in reserve, one line each where it is long enough, and
    a section of these, in short."""
    kept: list[str] = []
    shown, use = 0, True
    for line in lines[1:]:
        begins = _STEP.match(line)
        if begins:
            use = not in_reserve(steps[int(begins[1])])
            shown += use
        elif line.startswith("  ..."):
            use = False
        elif use and kept and len(kept[-1]) + len(line.strip()) + 3 <= _COLUMNS:
            kept[-1] += (", " if kept[-1].endswith(" bytes") else "   ") + line.strip()
            continue
        if use:
            kept.append(line)
    reserve = [s for s in steps if in_reserve(s)]
    left = len(steps) - len(reserve) - shown
    if left > 0:
        kept.append(f"  ... {left} more")
    of = f" of {len(steps)}, the others where one fails" if reserve else ""
    names = ", ".join(dict.fromkeys(s["name"] for s in reserve))
    other = (
        [f"otherwise {len(reserve)} step{'s' * (len(reserve) > 1)}, all in e.steps: {names}"]
        if reserve
        else []
    )
    return [f"steps     {len(steps) - len(reserve)}{of}", *kept], other


def arranged(data: dict[str, Any]) -> str:
    """The text in the order of reading, without its opening sentence."""
    found = list(_sections(data["text"]))
    cost = [lines for word, lines in found if word in _COST]
    road = [lines for word, lines in found if word in _ROAD]
    below = [lines for word, lines in found if word not in (*_COST, *_ROAD, *_FORMULA)]
    below += [lines for word, lines in found if word in _FORMULA]
    for i, lines in enumerate(road):
        if lines[0].startswith("steps "):
            road[i], reserve = _road(lines, data["steps"])
            below[:0] = [reserve] if reserve else []
    parts = [*cost, *road, [_LINE], *below] if below else [*cost, *road]
    return "".join(f"{line}\n" for lines in parts for line in lines)
