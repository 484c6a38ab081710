"""``op.explain(name, ...)`` of the functions on structure: svd, cholesky, expm, norms and others;
and those in the formula of a LazyArray.

Each is planned by the question that answers it, whose rows are rules of `pl.rules()`. The arguments
are those of the public function, which is what ``run=True`` calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from .._base import explanation
from .._base.checks import square
from .._base.kind_flags import OF_PARTS
from .._base.lazy_import import Later
from .._contractions import show
from .._contractions.recorded import Deferred
from .._lazy import decompositions, text
from .._lazy import matrix_functions as lazy_functions
from .._lazy.matrix_functions import OfForm, Piece
from .._structured import (
    cholesky,
    determinants,
    eig,
    eigh,
    least_squares,
    lu,
    matrix_functions,
    pinv,
    qr,
    questions,
    square_roots,
    svd,
    trees,
)
from .._structured.operands import factors_of
from .._structured.scalar_function import Function
from . import covariance, factorizations, norms, spectra

_Arguments = dict[str, Any]
_action = Later("_eigen.exponential_action")


def _svd(op: Any, a: _Arguments) -> trees.Node:
    if a["hermitian"]:
        question = eigh.eigenbasis if a["compute_uv"] else questions.eigvalsh
        return trees.planned(question, square(op), "L")
    if not a["compute_uv"]:
        return trees.planned(questions.svdvals, op)
    return trees.planned(svd.singular, op, bool(a["full_matrices"]))


def _qr(op: Any, a: _Arguments) -> trees.Node:
    if a["mode"] == "raw":
        raise ValueError("qr in the mode 'raw' is LAPACK's alone: there is no choice to explain")
    return trees.planned(qr.qr, op, a["mode"])


def _cond(op: Any, a: _Arguments) -> trees.Node:
    p = 2 if a["p"] is None else norms._order(a["p"])
    return trees.planned(questions.cond, op if p in (2, -2) else square(op), p)


def _rank(op: Any, a: _Arguments) -> trees.Node:
    if a["hermitian"]:
        return trees.planned(questions.eigvalsh, square(op), "L")
    return trees.planned(questions.svdvals, op)


def _pinv(op: Any, a: _Arguments) -> trees.Node:
    rtol = a["given"].get("rtol")
    words = pinv.pinv_words(a["rcond"], a["hermitian"], {} if rtol is None else {"rtol": rtol})
    return trees.planned(questions.pinv, op, words)


def _power(op: Any, a: _Arguments) -> trees.Node:
    if float(a["t"]).is_integer():
        raise ValueError("an integer power is an operator, lazy: explain what is done with it")
    f = Function("power", float(a["t"]))
    return trees.planned(matrix_functions.power, square(op), f)


def _expm(op: Any, a: _Arguments) -> trees.Node:
    node = trees.planned(matrix_functions.expm, square(op), Function("exp"))
    made = _action.offered(op, True)
    if made is not None:
        first = f"one takes about {made.price(1).seconds:.2g} s"
        node.note = f"times up to {made.most} columns by products, {made.way.words}: {first}"
        node.unsure = "where all that is asked for are such products"
        node.instead = trees.Node("products with A", op)
        node.instead.label, node.instead.price = made.way.words, made.price(1)
    return node


def _lstsq(op: Any, a: _Arguments) -> trees.Node:
    if a["method"] is not None:
        raise NotImplementedError(
            f"lstsq is explained as it goes directly, not by method={a['method']!r}: run it within "
            "`with pl.explaining()`"
        )
    b = np.zeros(op.shape[-2], op.dtype) if a["b"] is None else np.asarray(a["b"])
    return least_squares.tree(op, b if b.ndim > 1 else b[:, None])


def _of(question: Any, *args: Any, needs_square: bool = True) -> Callable[..., trees.Node]:
    """The tree of a question with these arguments."""

    def made(op: Any, a: _Arguments) -> trees.Node:
        return trees.planned(question, square(op) if needs_square else op, *args)

    return made


# The public function, and what its arguments ask.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., trees.Node]]] = {
    "svd": (spectra.svd, _svd),
    "svdvals": (norms.svdvals, _of(questions.svdvals, needs_square=False)),
    "eig": (spectra.eig, _of(eig.pairs)),
    "eigvals": (spectra.eigvals, _of(eig.eigvals)),
    "cholesky": (
        factorizations.cholesky,
        lambda op, a: trees.planned(cholesky.cholesky, square(op), "U" if a["upper"] else "L"),
    ),
    "qr": (factorizations.qr, _qr),
    "lu": (factorizations.lu, _of(lu.lu, needs_square=False)),
    "ldl": (
        factorizations.ldl,
        lambda op, a: trees.planned(lu.ldl, square(op), bool(a["lower"]), bool(a["hermitian"])),
    ),
    "lstsq": (factorizations.lstsq, _lstsq),
    "null_space": (
        factorizations.null_space,
        _of(least_squares.frames, "null", needs_square=False),
    ),
    "orth": (factorizations.orth, _of(least_squares.frames, "range", needs_square=False)),
    "pinv": (norms.pinv, _pinv),
    "matrix_norm": (
        norms.matrix_norm,
        lambda op, a: trees.planned(questions.norm, op, norms._order(a["ord"])),
    ),
    "cond": (norms.cond, _cond),
    "matrix_rank": (norms.matrix_rank, _rank),
    "expm": (spectra.expm, _expm),
    "logm": (spectra.logm, _of(matrix_functions.logm, Function("log"))),
    "sqrtm": (spectra.sqrtm, _of(matrix_functions.power, Function("power", 0.5))),
    "fractional_matrix_power": (spectra.fractional_matrix_power, _power),
    "funm": (
        spectra.funm,
        lambda op, a: trees.planned(
            matrix_functions.funm, square(op), Function("any", call=a["func"])
        ),
    ),
    "sample": (covariance.sample, _of(square_roots.root)),
    "sqrt_inv_matmul": (covariance.sqrt_inv_matmul, _of(square_roots.power, -0.5)),
}
_SIDES = ("lstsq", "sqrt_inv_matmul")  # whose second argument may be left out: a vector is taken


def explained(
    op: Any, name: str, args: tuple[Any, ...], kwargs: _Arguments, runs: bool
) -> explanation.Explanation:
    """How a function goes; with ``runs``, from the record of a call."""
    public, plan = FUNCTIONS[name]
    if name in _SIDES and not args and "b" not in kwargs:
        args = (np.ones(op.shape[-2], op.dtype or np.float64),)
    try:
        given = inspect.signature(public).bind(op, *args, **kwargs)
    except TypeError as error:
        words = str(inspect.signature(public, eval_str=False)).replace("'", "")
        raise TypeError(f"explain({name!r}), of {name}{words}: {error}") from None
    if runs:
        with explanation.explaining() as e:
            public(op, *args, **kwargs)
        return e.explanation
    said = dict(given.arguments)
    given.apply_defaults()
    return trees.explained(name, op, plan(op, {**given.arguments, "given": said}))


# -- within formulas --

_NAMES = {"norm": "matrix_norm", "r of qr": "qr"}  # of nodes, by those of functions
_NUMBERS: dict[Any, str] = {
    determinants.det: "det",
    determinants.logdet: "logdet",
    determinants.pair: "slogdet",
}


def _asked(a: Any) -> tuple[str, dict[str, Any], Any] | None:
    """The function that a node is of, its arguments, and what it is computed once for."""
    f = a._more[0] if a._head in ("of form", "made") else None
    f = f.function if isinstance(f, _StandIn) else f
    if isinstance(f, Piece):
        return f.joint.name, f.joint.kwargs, f.joint
    if a._head == "of form" and callable(f) and f in _NUMBERS:
        return _NUMBERS[f], {}, a
    if f is lazy_functions.rank_of:  # its own least squares: the rank that comes with them
        name, kwargs = "lstsq", {"b": np.zeros((a._args[0].shape[-2], 1), a._args[0].dtype)}
    elif isinstance(f, decompositions.Function):
        name, kwargs = f.name, a._more[1]
    elif isinstance(f, OfForm):
        name, kwargs = f.name, f.kwargs
    else:
        return None
    if name in _SIDES and "b" not in kwargs:
        kwargs = kwargs | {"b": a._args[1]}
    name = _NAMES.get(name, name)
    return (name, kwargs, a) if name in FUNCTIONS or name in ("eigh", "eigvalsh") else None


def made_of(a: Any, known: bool = True) -> str:
    """The shape and dtype of a value, or of the results that it holds one after the other; what is
    not ``known`` is stood in for where it is used."""
    f = a._more[0] if a._head in ("of form", "made") else None
    if f is determinants.pair:
        return "its mantissa and exponent"
    if isinstance(f, _StandIn) and not known:
        return f"{a.shape} {a.dtype}, priced below as {type(a._form).__name__}"
    if isinstance(f, decompositions.Function) and f.parts is not None:
        return " and ".join(f"{shape} {dtype}" for shape, dtype in f.parts)
    return f"{a.shape} {a.dtype}"


def unplanned(a: Any) -> str:
    """How a value is made that has no plan."""
    f = a._more[0] if a._head == "call" else None
    if isinstance(f, decompositions.Result):
        return "one of the results of the function, which is called once for all"
    if f in (determinants.sign_of, determinants.logabs_of):
        return "from the determinant's mantissa and exponent"
    if isinstance(f, Deferred):
        return show.path(f.task, list(map(_laid_out, a._args)))[1]
    return "by NumPy"


def _laid_out(x: Any) -> Any:
    """An operand of a contraction as it will lie: a leaf's array, else one in C order that nobody
    reads (NumPy clears it when it is)."""
    if x._head == "leaf" and isinstance(x._value, np.ndarray):
        return x._value
    return np.zeros(x.shape, x.dtype)


class _StandIn:
    """A function that is not called: what it makes is stood in for by an operator without memory, a
    Kron, BlockDiag or Diag where the function keeps that kind, else a Dense."""

    def __init__(self, function: Any, shape: Any, dtype: Any) -> None:
        self.function, self.shape, self.dtype = function, shape, dtype
        self.__name__ = function.__name__

    def __call__(self, form: Any, *values: Any, **kwargs: Any) -> Any:
        f = self.function
        name = f.joint.name if isinstance(f, Piece) else f.name
        return _hollow(form if name in _KEEPS else None, self.shape, self.dtype, name)


# What these make of a Kron is one of what they make of its factors, or as quick; they, and those
# after them, make BlockDiags and Diags of such.
_OF_FACTORS = ("sqrtm", "fractional_matrix_power", "cholesky", "pinv", "qr", "eigh", "svd")
_KEEPS = (*_OF_FACTORS, "logm", "expm", "funm")


def _hollow(like: Any, shape: Any, dtype: Any, name: str) -> Any:
    """What a function makes of ``like``, None for a Dense, without memory."""
    ones = np.broadcast_to(np.ones((), dtype), shape)
    head = None if like is None or like._init is None or like.dtype is None else like._head
    if head == "diag" and name not in ("eigh", "svd"):  # whose vectors are in another order
        return _core.Diag(ones[..., 0])
    if head not in OF_PARTS or shape != like.shape:
        return _core.Dense(ones)
    parts = factors_of(like)
    if any(f.shape[-1] != f.shape[-2] for f in parts):
        return _core.Dense(ones)
    if head == "blockdiag" or name in _OF_FACTORS:
        return type(like)(*(_hollow(f, f.shape, dtype, name) for f in parts))
    if not all(map(questions.looks_hermitian, parts)):
        return _core.Dense(ones)
    return _core.Eigen(
        type(like)(*(_hollow(f, f.shape, dtype, "eigh") for f in parts)), ones[..., 0]
    )


def standing_in(rows: list[Any]) -> list[Any]:
    """The rows of a program (text.py) whose functions from matrices to matrices are not called."""
    made = []
    for head, args, shape, dtype, more, value in rows:
        if head == "made" and isinstance(more[0], OfForm | Piece):
            more = (_StandIn(more[0], shape, dtype), *more[1:])
        made.append((head, args, shape, dtype, more, value))
    return made


def within(root: Any, seen: set[int]) -> Iterator[tuple[Any, explanation.Explanation]]:
    """The functions within a formula that are computed for it, each with how; nothing is computed:
    its functions are `standing_in`. `seen`: what was told."""
    for a in text.postorder(root, known=False):
        asked = _asked(a)
        if asked is None or id(asked[2]) in seen:
            continue
        name, kwargs, once = asked
        seen.add(id(once))
        x = a._args[0]
        if x.ndim > decompositions._MOST:
            continue
        if isinstance(b := kwargs.get("b"), _core.Lazy):
            kwargs = kwargs | {"b": np.broadcast_to(np.ones((), b.dtype), b.shape)}
        try:
            yield a, x._form.explain(name, **kwargs)
        except NotImplementedError:  # a determinant of a callable, which NumPy computes
            if name not in _NUMBERS.values():
                raise
