"""What a user calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytensor.gradient

from .._programs.entry import road
from ._compat import OTHERS, MatrixInverse, rewrite_graph, toposorted
from .ops import Structured
from .program import innermost
from .report import Explanation, Report, census, named, shown
from .rewrites import reported, settings
from .views import op_of

__all__ = ["Explanation", "config", "explain", "grad", "rewrite"]


def rewrite(expr: Any) -> Any:
    """The expression with its structure in use; before a gradient is taken.

    Parameters
    ----------
    expr : TensorVariable or list of them

    Returns
    -------
    TensorVariable or list of them
        The same values. Nothing is computed.

    Examples
    --------
    >>> import pytensor.tensor as pt, pylinop.pytensor as pp
    >>> W, d = pt.dmatrix("W"), pt.dvector("d")
    >>> L = pt.linalg.cholesky(W @ W.T + pt.diag(d))
    >>> half_logdet = pp.rewrite(pt.sum(pt.log(pt.diag(L))))
    >>> pp.explain(pt.sum(pt.log(pt.diag(L))))
    Add.0 (?, ?): sum(root, diagonal) -> logdet, by pylinop
    """
    return rewrite_graph(expr, include=("canonicalize", "stabilize"), clone=True)


def grad(cost: Any, wrt: Any, **kwargs: Any) -> Any:
    """`pytensor.grad` of the rewritten cost: PyMC does so by itself, others say so.

    Parameters
    ----------
    cost : TensorVariable
        A number.
    wrt : TensorVariable or list of them
    **kwargs
        Those of `pytensor.grad`.

    Returns
    -------
    TensorVariable or list of them
    """
    return pytensor.gradient.grad(rewrite(cost), wrt, **kwargs)


def _others(expr: Any) -> Iterator[Report]:
    """Decompositions that are not looked at."""
    for v in toposorted(expr):
        op = op_of(v)
        if isinstance(op, OTHERS) and not isinstance(op, MatrixInverse):
            K = v.owner.inputs[0]
            yield Report(named(K), "", (), f"{type(op).__name__} is not among what is looked for")


def _programs(function: Any) -> Iterator[Report]:
    """The programs of a compiled function."""
    is_compiled = type(function.maker.linker).__name__ in ("NumbaLinker", "JAXLinker")
    for node in function.maker.fgraph.toposort():
        op = op_of(node.outputs[0])
        if not isinstance(op, Structured):
            continue
        spec, ups = innermost(op.spec)
        what = ("values", "gradients", "second derivatives")[min(ups, 2)]
        if op.spec[0] == "joined":
            what = "values and gradients"
        asked = tuple(dict.fromkeys(name for name, *_ in spec[2]))
        ran = road(f"pytensor\n{op.text}") if is_compiled else "in Python: not numba or JAX"
        yield Report(
            f"{what} of {', '.join(map(str, node.inputs))}", shown(spec[1]), asked, "", ran
        )


def explain(what: Any) -> Explanation:
    """What is rewritten in a model or an expression, and why other matrices are not.

    Parameters
    ----------
    what : pymc.Model, TensorVariable or list of them, or a compiled function
        A model is looked at by its log-density. Of a compiled function its programs are listed, and
        how each ran when it was last called: from C, or in Python, and why.

    Returns
    -------
    Explanation
        One `Report` for each matrix that is solved with, factored, inverted or decomposed:
        ``matrix``, ``structure``, ``asked``, ``reason``, ``road``, and where all sizes are known
        the flops ``before`` and ``after`` and the ``plans``. ``left`` counts the dense factors,
        solves and decompositions that are in the graph still.
    """
    if hasattr(what, "maker"):
        return Explanation(_programs(what))
    expr = what.logp() if hasattr(what, "logp") else what
    with reported() as found:
        made = rewrite(expr)
    return Explanation([*found, *_others(made)], census(made))


def config(*, least: int | None = None, least_dense: int | None = None) -> None:
    """From how many rows on matrices are rewritten, where their size is known.

    Parameters
    ----------
    least : int, optional
        Of matrices with structure.
    least_dense : int, optional
        Of dense ones.
    """
    for name, value in (("least", least), ("least_dense", least_dense)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} must be a number of rows, not {value!r}")
        setattr(settings, name, value)
