"""Ways to look at operators: a small picture of the structure, spy, Graphviz, the dot test."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.lazy_import import Standard
from .convert import as_operator
from .repr import text

_INK, _PALE = "#30618c", "#c9d9e8"


# -- the small picture: drawn from kinds and shapes, nothing is computed ---------------------------


def _rect(x: Any, y: Any, w: Any, h: Any, fill: Any = _INK) -> str:
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{w:.1f}' height='{h:.1f}' fill='{fill}'/>"


def _line(x1: Any, y1: Any, x2: Any, y2: Any, width: float = 1.5, color: Any = _INK) -> Any:
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' "
        f"stroke='{color}' stroke-width='{width}'/>"
    )


def _diagonal(op: Any, w: Any, h: Any) -> Any:
    return _line(0, 0, w, h)


def _stripes(op: Any, w: Any, h: Any) -> Any:
    shades = [_line(0, k * h / 4, w - k * w / 4, h, 1) for k in range(1, 4)]
    shades += [_line(k * w / 4, 0, w, h - k * h / 4, 1, "#8aa9c6") for k in range(1, 4)]
    return "".join(shades) + _line(0, 0, w, h, 2)


def _band(op: Any, w: Any, h: Any) -> Any:
    return _line(0, 0, w, h, 5)


def _lower(op: Any, w: Any, h: Any) -> str:
    return f"<path d='M0 0 L{w} {h} L0 {h} Z' fill='{_INK}'/>"


def _scattered(op: Any, w: Any, h: Any) -> str:
    spots = [(0.1, 0.2), (0.3, 0.1), (0.2, 0.6), (0.5, 0.45), (0.7, 0.2), (0.8, 0.7), (0.4, 0.85)]
    return "".join(_rect(x * w, y * h, 3, 3) for x, y in spots)


def _low_rank(op: Any, w: Any, h: Any) -> str:
    k = max(3, w / 8)
    return _rect(0, 0, k, h) + _rect(k + 3, 0, w - k - 3, k)


def _blocks(op: Any, w: Any, h: Any) -> str:
    """The picture of a Kron: the first factor's grid, with the second factor's picture in each
    cell."""
    cells = [(i, j) for i in range(3) for j in range(3)]
    return "".join(_rect(j * w / 3 + 1, i * h / 3 + 1, w / 3 - 2, h / 3 - 2) for i, j in cells)


def _diagonal_blocks(op: Any, w: Any, h: Any) -> str:
    parts = _operands(op) or [op]
    m, n = (sum(p.shape[k] for p in parts) or 1 for k in (-2, -1))
    text, i, j = "", 0, 0
    for p in parts[:12]:
        a, b = p.shape[-2] / m * h, p.shape[-1] / n * w
        text += _rect(j, i, max(b, 1), max(a, 1))
        i, j = i + a, j + b
    return text


def _grid(op: Any, w: Any, h: Any) -> str:
    """The blocks of a Block, each with its own picture."""
    parts = _operands(op)
    rows = int(op._mode) if op._init is not None and parts else 0
    if not rows or len(parts) % rows or len(parts) > 100:
        return _rect(0, 0, w, h, _PALE)
    columns = len(parts) // rows
    m, n = (max(1, d) for d in op.shape[-2:])
    text, y = "", 0.0
    for i in range(rows):
        row = parts[i * columns : (i + 1) * columns]
        high, x = row[0].shape[-2] / m * h, 0.0
        for p in row:
            wide = p.shape[-1] / n * w
            inner = _PICTURES.get(type(p).__name__, lambda o, a, b: _rect(0, 0, a, b, _PALE))
            frame = f"<rect width='{wide:.1f}' height='{high:.1f}' fill='none' stroke='{_INK}'/>"
            text += f"<g transform='translate({x:.1f} {y:.1f})'>{inner(p, wide, high)}{frame}</g>"
            x += wide
        y += high
    return text


_html = Standard("html")
_PICTURES = {
    "Block": _grid,
    "Diag": _diagonal,
    "Identity": _diagonal,
    "Zeros": lambda op, w, h: "",
    "Toeplitz": _stripes,
    "Hankel": lambda op, w, h: (
        f"<g transform='translate({w} 0) scale(-1 1)'>{_stripes(op, w, h)}</g>"
    ),
    "Circulant": _stripes,
    "Convolution": _stripes,
    "Banded": _band,
    "Tridiagonal": _band,
    "Laplacian": _band,
    "FiniteDifference": _band,
    "Triangular": _lower,
    "Sparse": _scattered,
    "Permutation": _scattered,
    "Selection": _scattered,
    "LowRank": _low_rank,
    "LowRankUpdate": lambda op, w, h: _rect(0, 0, w, h, _PALE) + _diagonal(op, w, h),
    "Kron": _blocks,
    "KronSum": _blocks,
    "KhatriRao": _blocks,
    "BlockDiag": _diagonal_blocks,
}
_SIGNS = {"Sum": "+", "Product": "·"}


def _operands(op: Any) -> Any:
    """The operators directly below."""
    below = [o for o in op._operands if isinstance(o, _core.Operator)]
    return below or [o for o in (op._init or ()) if isinstance(o, _core.Operator)]


def _size(op: Any, most: float) -> tuple[Any, Any]:
    m, n = (max(1, d) for d in op.shape[-2:])
    longest = max(m, n)
    return max(8, most * n / longest), max(8, most * m / longest)


def _drawn(op: Any, most: float, depth: int) -> tuple[str, Any, Any]:
    """(text, width, height) of one operator's picture."""
    name = type(op).__name__
    parts = _operands(op)
    if name in _SIGNS and depth and len(parts) == 2:
        (s, w, h), (t, v, k) = (_drawn(p, most * 0.7, depth - 1) for p in parts)
        high = max(h, k)
        sign = f"<text x='{w + 3:.1f}' y='{high / 2 + 4:.1f}' font-size='12'>{_SIGNS[name]}</text>"
        right = f"<g transform='translate({w + 14:.1f} {(high - k) / 2:.1f})'>{t}</g>"
        return (
            f"<g transform='translate(0 {(high - h) / 2:.1f})'>{s}</g>{sign}{right}",
            w + 14 + v,
            high,
        )
    w, h = _size(op, most)
    frame = f"<rect width='{w:.1f}' height='{h:.1f}' fill='white' stroke='{_PALE}'/>"
    if name not in _PICTURES and len(parts) == 1 and depth:
        inner = _PICTURES.get(type(parts[0]).__name__)
        draw = inner or (lambda o, a, b: _rect(0, 0, a, b, _PALE))
    else:
        draw = _PICTURES.get(name, lambda o, a, b: _rect(0, 0, a, b, _PALE))
    return frame + draw(op, w, h), w, h


def picture(op: Any, most: int = 64) -> Any:
    """An SVG of the structure, drawn from kinds and shapes."""
    text, w, h = _drawn(op, most, 2)
    return (  # notebooks shrink pictures beside wide tables, unless told otherwise
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{w + 2:.0f}' height='{h + 2:.0f}' "
        f"style='min-width:{w + 2:.0f}px;max-width:none' "
        f"viewBox='-1 -1 {w + 2:.1f} {h + 2:.1f}'>{text}</svg>"
    )


# -- spy -------------------------------------------------------------------------------------------


def spy(op: Any, ax: Any = None, precision: float = 0, most: int = 400, **kwargs: Any) -> Any:
    """Draw where the entries are (needs matplotlib); returns the axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("spy draws with matplotlib: pip install matplotlib") from None
    if op.ndim != 2:
        raise ValueError(f"spy draws one matrix, this operator has shape {op.shape}")
    ax = plt.gca() if ax is None else ax
    shown, step = _thinned(op, precision, most)
    ax.spy(shown, aspect="auto" if max(op.shape) > 8 * max(1, min(op.shape)) else "equal", **kwargs)
    words = "" if step == (1, 1) else f", {step[0]}x{step[1]} entries a point"
    ax.set_title(f"{type(op).__name__} {op.shape[0]}x{op.shape[1]}{words}")
    return ax


def _thinned(op: Any, precision: Any, most: int) -> Any:
    """(which points are marked, entries a point): a point is marked if any of its entries is."""
    m, n = op.shape
    step = (max(1, -(-m // most)), max(1, -(-n // most)))
    shown = np.zeros((-(-m // step[0]), -(-n // step[1])), dtype=bool)
    for i in range(shown.shape[0]):
        rows = op[i * step[0] : min(m, (i + 1) * step[0])].toarray()
        marked = np.any(np.abs(rows) > precision, axis=0)
        shown[i] = np.logical_or.reduceat(marked, np.arange(0, n, step[1])) if n else False
    return shown, step


# -- Graphviz --------------------------------------------------------------------------------------


def to_dot(op: Any) -> str:
    """The expression as Graphviz text, with a box for each operator and an arrow to each part;
    shared parts are drawn once."""
    names: dict[int, tuple[str, Any]] = {}
    lines: list[str] = []
    stack = [op]
    while stack:
        o = stack.pop()
        if id(o) in names:
            continue
        names[id(o)] = (f"n{len(names)}", o)
        stack += _operands(o)[::-1]
    for name, o in names.values():
        size = "x".join(map(str, o.shape))
        label = f"{type(o).__name__}\\n{size} {o.dtype}"
        lines.append(f'  {name} [label="{label}"];')
        lines += [f"  {name} -> {names[id(p)][0]};" for p in _operands(o)]
    body = "\n".join(lines)
    return f'digraph operator {{\n  node [shape=box, fontname="sans-serif"];\n{body}\n}}\n'


# -- the dot test ----------------------------------------------------------------------------------


def check_adjoint(
    A: Any, trials: int = 3, rtol: float | None = None, rng: np.random.Generator | None = None
) -> float:
    """The dot test: is ``A.H`` the adjoint of ``A``? Use it for operators of your own.

    Draws x and y and compares y^H (A x) with (A^H y)^H x, for vectors and for matrices of two
    columns.

    Parameters
    ----------
    A : operator
    trials : int
        How many pairs are drawn.
    rtol : float, optional
        The largest difference allowed, relative to |y| |A x| + |A^H y| |x|; 1000 units of rounding
        when not given.
    rng : numpy.random.Generator, optional
        Where x and y come from; ``default_rng(0)`` when not given.

    Returns
    -------
    float
        The largest relative difference found.

    Raises
    ------
    ValueError
        When a difference is larger than ``rtol``, or a product has the wrong shape.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.MatVec((2, 2), lambda x: x[::-1] * [1, 2], rmatvec=lambda y: y[::-1] * [1, 2])
    >>> pl.check_adjoint(A)
    Traceback (most recent call last):
        ...
    ValueError: A.H is not the adjoint of A: y^H (A x) = -0.0582247 and (A^H y)^H x = -0.156017, \
relative difference 0.23
    """
    A = as_operator(A)
    if A.ndim != 2:
        raise ValueError(f"the dot test takes one matrix, got shape {A.shape}")
    rng = np.random.default_rng(0) if rng is None else rng
    dtype = np.result_type(A.dtype or np.float64, np.float32)
    allowed = 1e3 * np.finfo(dtype).eps if rtol is None else rtol
    worst = 0.0
    for k in range(trials):
        columns = () if k % 2 == 0 else (2,)
        x, y = (_draw(rng, (n, *columns), dtype) for n in A.shape[::-1])
        Ax, Ahy = np.asarray(A @ x), np.asarray(A.H @ y)
        if Ax.shape != y.shape or Ahy.shape != x.shape:
            raise ValueError(
                f"A x has shape {Ax.shape}, A^H y {Ahy.shape}: {y.shape} and {x.shape} were due"
            )
        left, right = np.vdot(y, Ax), np.vdot(Ahy, x)
        norm = np.linalg.norm
        scale = norm(y) * norm(Ax) + norm(Ahy) * norm(x)
        error = float(abs(left - right) / scale) if scale else 0.0
        if not error <= allowed:
            raise ValueError(
                f"A.H is not the adjoint of A: y^H (A x) = {left:.6g} and "
                f"(A^H y)^H x = {right:.6g}, relative difference {error:.2g}"
            )
        worst = max(worst, error)
    return worst


def _draw(rng: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def html(op: Any) -> str:
    """The notebook's view: the picture, then a small table."""
    rows = [("kind", type(op).__name__), ("shape", str(op.shape)), ("dtype", str(op.dtype))]
    below = _operands(op)
    if below:
        names = ", ".join(text(o)[1:-1] for o in below[:6]) + (", ..." if len(below) > 6 else "")
        rows.append(("of", names))
    rows.append(("memory", f"{op.nbytes:,} bytes"))
    left = "style='text-align:left'"
    body = "".join(
        f"<tr><th {left}>{k}</th><td {left}>{_html.escape(v)}</td></tr>" for k, v in rows
    )
    return (
        "<table><tr><td style='vertical-align:top'>"
        f"{picture(op)}</td><td><table>{body}</table></td></tr></table>"
    )
