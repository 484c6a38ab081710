"""The rewriter: one `Structured` node for each Cholesky factor of a matrix whose structure is known
and all that was made of it."""

from __future__ import annotations

import contextlib
import contextvars
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytensor.tensor as pt

from ._compat import (
    Blockwise,
    Cholesky,
    GraphRewriter,
    ReplaceValidate,
    ancestors,
    optdb,
)
from .batches import Batch, batch_of
from .consumers import Want, anchors, general_wants, is_inverse_of, wants
from .hints import is_left_alone
from .ops import Structured
from .recognise import Refused, by_precision, kinds, recognise
from .report import Report, named, priced, shown
from .views import op_of, plain

__all__ = ["Settings", "off", "registered", "reported", "settings"]

NAME = "pylinop_structure"


class Settings:
    """What fires: `least` rows for structure, `least_dense` for dense matrices, as measured
    (benchmarks/pytensor_models.py). Where a size is not known when a graph is compiled, what has
    structure counts as large and what is dense as small."""

    least = 192
    least_dense = 200


settings = Settings()
_is_off: contextvars.ContextVar[bool] = contextvars.ContextVar("pylinop_off", default=False)
_heard: contextvars.ContextVar[list[Report] | None] = contextvars.ContextVar(
    "pylinop_heard", default=None
)


@contextlib.contextmanager
def off() -> Iterator[None]:
    """Nothing is rewritten within.

    Examples
    --------
    >>> import pytensor.tensor as pt, pylinop.pytensor as pp
    >>> d = pt.dvector("d")
    >>> L = pt.linalg.cholesky(pt.diag(d) + 1.0)
    >>> with pp.off():
    ...     pp.explain(pt.sum(pt.log(pt.diag(L))))
    no solve, determinant or factor of a matrix was met
    """
    before = _is_off.set(True)
    try:
        yield
    finally:
        _is_off.reset(before)


@contextlib.contextmanager
def reported() -> Iterator[list[Report]]:
    """What becomes of each matrix within; of those that are left alone the reasons of the last
    pass."""
    found: list[Report] = []
    before = _heard.set(found)
    try:
        yield found
    finally:
        _heard.reset(before)


def _rows(K: Any) -> int | None:
    rows: int | None = K.type.shape[-1]
    return K.type.shape[-2] if rows is None else rows


def _structured(K: Any) -> tuple[Any, list[Any]]:
    tree, variables = recognise(K)
    rows = _rows(K)
    if rows is not None and rows < settings.least:
        raise Refused(
            f"{rows} rows are fewer than the {settings.least} from which it pays", few=True
        )
    return tree, variables


def _tree_of(K: Any) -> tuple[Any, list[Any]]:
    """Of a positive definite matrix: its structure, or that it is dense where that pays."""
    try:
        return _structured(K)
    except Refused as why:
        core, rows = plain(K), _rows(K) or 0
        known = why.few or core is None
        if known or (settings.least_dense and rows < settings.least_dense):
            raise
        return ("dense", 0), [core]


def _program(
    tree: Any, variables: list[Any], found: list[Want], batch: Batch | None
) -> tuple[Any, list[Any]]:
    """One node for all that is wanted; the new variables."""
    arrays, asked, places = list(variables), [], []
    for want in found:
        if want.operand is None:
            ask: tuple[Any, ...] = (want.asked,)
        else:
            at = next((k for k, v in enumerate(arrays) if v is want.operand), len(arrays))
            if at == len(arrays):
                arrays.append(want.operand)
            ask = (want.asked, at)
        if ask not in asked:
            asked.append(ask)
        places.append(asked.index(ask))
    unproved = by_precision(tree) and ("logdet",) not in asked
    if unproved:
        asked.append(("logdet",))  # whether a precision is definite its factor tells, no product
    spec = ("values", tree, tuple(asked), len(arrays))
    values = Structured(repr(spec))(*arrays, return_list=True)
    if unproved:
        values = [pt.switch(pt.isnan(values[-1]), np.nan, x).astype(x.dtype) for x in values]
    if batch is not None:
        values = batch.repeated(values)
    made = [w.made(values[k]) for w, k in zip(found, places, strict=True)]
    return (spec, arrays), [  # of a float32 matrix there may be a right-hand side that is wider
        x if x.dtype == w.old.dtype else x.astype(w.old.dtype)
        for w, x in zip(found, made, strict=True)
    ]


class _Rewriter(GraphRewriter):  # type: ignore[misc]
    """Anchored at Cholesky: what is positive definite comes to it in PyTensor's normal form."""

    def add_requirements(self, fgraph: Any) -> None:
        fgraph.attach_feature(ReplaceValidate())

    def apply(self, fgraph: Any) -> None:
        if _is_off.get():
            return
        heard = _heard.get()
        if heard is not None:
            heard[:] = [r for r in heard if not r.reason]
        for node in fgraph.toposort():
            op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
            if isinstance(op, Cholesky) and op.lower and node in fgraph.apply_nodes:
                self._one(fgraph, node)

        for K in anchors(fgraph):
            self._general(fgraph, K)

    def _one(self, fgraph: Any, node: Any) -> None:
        K, L = node.inputs[0], node.outputs[0]
        try:
            _refuse_hinted(K)
            batch = batch_of(K)
            tree, variables = _tree_of(K if batch is None else batch.core)
            found = wants(fgraph, L, batch)
            _refuse_dear(K, tree, found)
            _replaced(fgraph, K, tree, variables, found, batch)
        except Refused as why:
            _hear(Report(named(K), "", (), str(why)))

    def _general(self, fgraph: Any, K: Any) -> None:
        """Solves, determinants and inverses of a matrix that nobody said is positive definite."""
        try:
            _refuse_hinted(K)
            tree, variables = _structured(K)
            if tree[0] == "blocks" and not _has_square_blocks(plain(K)):
                raise Refused("its blocks are not known to be square")
            if tree[0] == "kron" and is_inverse_of(fgraph, K):
                raise Refused("PyTensor inverts the factors of its Kronecker product")
            found = general_wants(fgraph, K)
            _refuse_dear(K, tree, found)
            _replaced(fgraph, K, ("general", tree), variables, found)
        except Refused as why:
            more = "" if is_inverse_of(fgraph, K) or is_left_alone(K) else NOT_SAID
            _hear(Report(named(K), "", (), f"{why}{more}"))


def _refuse_hinted(K: Any) -> None:
    if is_left_alone(K):
        raise Refused("hint(K, 'dense') asks for that")


def _refuse_dear(K: Any, tree: Any, found: list[Want]) -> None:
    """A product of two triangular solves becomes one with a whole solve: that pays by structure;
    and what has no low rank may have any where sizes are unknown, as in sparse Gaussian processes,
    where W has more columns than rows."""
    if tree == ("dense", 0) and any(want.is_product for want in found):
        raise Refused("products of triangular solves with a dense factor: nothing to gain")
    dear = any(want.needs_size for want in found)
    if dear and _rows(K) is None and not kinds(tree).isdisjoint(LOW):
        raise Refused("of unknown sizes its rank may be as large as its size")


LOW = ("root", "weighted", "congruence")


def _has_square_blocks(K: Any) -> bool:
    """Of blocks that are square PyTensor's own rewrites go block by block; others are singular
    together."""
    shapes = [x.type.shape[-2:] for x in K.owner.inputs]
    return all(m is not None and m == n for m, n in shapes)


NOT_SAID = " (it is not said to be positive definite: assume(K, positive_definite=True))"


def _replaced(
    fgraph: Any,
    K: Any,
    tree: Any,
    variables: list[Any],
    found: list[Want],
    batch: Batch | None = None,
) -> None:
    """One program in place of all that is wanted, repeated along a stack."""
    (spec, arrays), made = _program(tree, variables, found, batch)
    try:
        pairs = [
            (want.old, want.old.type.filter_variable(new, allow_convert=True))
            for want, new in zip(found, made, strict=True)
        ]
    except TypeError as why:
        raise Refused(f"the types do not fit: {why}") from None
    fgraph.replace_all_validate(pairs, reason=NAME)
    if _heard.get() is not None:
        asked = tuple(a[0] for a in spec[2])
        times = 1 if batch is None else batch.length
        _hear(Report(named(K), shown(tree), asked, "", "", *priced(spec, arrays, times)))


def _hear(report: Report) -> None:
    heard = _heard.get()
    if heard is not None:
        heard.append(report)


class _Unasked(GraphRewriter):  # type: ignore[misc]
    """Cotangents that nobody uses, as of observed values, are not computed."""

    def add_requirements(self, fgraph: Any) -> None:
        fgraph.attach_feature(ReplaceValidate())

    def apply(self, fgraph: Any) -> None:
        for node in fgraph.toposort():
            op = node.op
            if not isinstance(op, Structured) or op.spec[0] != "pullback":
                continue
            asked = [k for k, out in enumerate(node.outputs) if fgraph.clients[out]]
            if len(asked) == len(node.outputs) or not asked:
                continue
            _, program, by, values = op.spec
            spec = ("pullback", program, tuple(by[k] for k in asked), values)
            made = Structured(repr(spec))(*node.inputs, return_list=True)
            old = [node.outputs[k] for k in asked]
            fgraph.replace_all_validate(list(zip(old, made, strict=True)), reason="pylinop_unasked")


class _ForJax(GraphRewriter):  # type: ignore[misc]
    """Where a graph with programs is on its way to JAX, JAX knows them: not before, as its import
    takes a second."""

    def apply(self, fgraph: Any) -> None:
        if any(isinstance(op_of(node.outputs[0]), Structured) for node in fgraph.apply_nodes):
            importlib.import_module("pylinop.pytensor.dispatch_jax")


class _Joined(GraphRewriter):  # type: ignore[misc]
    """Values and their gradients as one program, which factors once, where the cotangents do not
    depend on the values: as those of a likelihood."""

    def add_requirements(self, fgraph: Any) -> None:
        fgraph.attach_feature(ReplaceValidate())

    def apply(self, fgraph: Any) -> None:
        given: dict[Any, Any] = {}
        for node in fgraph.toposort():
            if isinstance(node.op, Structured) and node.op.spec[0] == "values":
                given[(node.op.spec, *node.inputs)] = node
        for back in fgraph.toposort():
            if not isinstance(back.op, Structured) or back.op.spec[0] != "pullback":
                continue
            _, program, by, values = back.op.spec
            node = given.pop((program, *back.inputs[: len(back.inputs) - values]), None)
            if node is None or not set(node.outputs).isdisjoint(ancestors(back.inputs)):
                continue
            spec = ("joined", program, by, values)
            made = Structured(repr(spec))(*back.inputs, return_list=True)
            pairs = list(zip([*node.outputs, *back.outputs], made, strict=True))
            fgraph.replace_all_validate(pairs, reason="pylinop_joined")


def registered() -> None:
    """Puts the rewriter at the end of each pass of `stabilize`: before gradients in PyMC."""
    tags = ("fast_run", "fast_compile", "pylinop")
    optdb["stabilize"].register(NAME, _Rewriter(), *tags, final_rewriter=True)
    optdb.register("pylinop_unasked", _Unasked(), *tags, position=2.9)
    optdb.register("pylinop_joined", _Joined(), *tags, position=2.91)
    optdb.register("pylinop_jax", _ForJax(), "jax", position=2.92)  # JAX's linker asks for this tag
