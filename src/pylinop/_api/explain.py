"""``pl.explain`` and the methods of that name: they say how something would be computed."""

from __future__ import annotations

import inspect
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config, explanation
from .._base.lazy_import import Later
from .._lazy import evaluate, text
from .._operators import convert

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["explain"]
_estimates = Later("_stochastic.choose_method")
_iterative = Later("_iterative.explain")
_lazily = Later("_api.lazy_iterative")
_eigenpairs = Later("_eigen.choose_method")
_functions = Later("_api.explain_functions")


def explain(x: Any, action: str = "apply", *args: Any, run: bool = False, **kwargs: Any) -> Any:
    """Say how ``x`` is computed: the plan, its estimates, what was refused, what else was priced.

    Parameters
    ----------
    x : LazyArray or operator
        For an operator, one action is explained.
    action : str
        For an operator: ``explain(A, "apply", x)``, ``explain(A, "solve", b)``, ``"dense"``,
        ``"diagonal"``, ``"trace"``, ``"element"``, ``"det"``; or a function by its name, with its
        arguments: ``explain(A, "svd", full_matrices=False)``; see ``A.explain``.
    *args, **kwargs
        The arguments of the action.
    run : bool
        Run the plan once, and show the time that each step took beside the estimate. Otherwise
        nothing is computed.

    Returns
    -------
    Explanation
        Text; ``.rules``, ``.steps``, ``.alternatives``, ``.memory`` and more as data; a table in a
        notebook.

    Raises
    ------
    TypeError
        For anything else: an array is computed already.

    Examples
    --------
    >>> import numpy as np, pylinop as pl
    >>> A = pl.Dense(np.ones((50, 3)))
    >>> e = pl.explain(A @ A.T, "apply", np.ones(50))
    >>> e.alternatives[0]["text"], e.took
    ("((A A') b)", None)
    """
    if isinstance(x, _core.Lazy):
        if action != "apply" or args or kwargs:
            raise TypeError("a LazyArray is explained as it is: pl.explain(x)")
        return of_lazy(x, run)
    if isinstance(x, _core.Operator):
        return of_operator(x, action, args, kwargs, run)
    raise TypeError(f"explain takes a LazyArray or an operator, got {type(x).__name__}")


# -- explain: an action's arguments -> (number of the action, right-hand side, i, j) --


def _rhs(op: Any, x: Any, n: Any) -> Any:
    return np.zeros(n, op.dtype or np.float64) if x is None else np.asarray(x)


def _apply(op: Any, x: Any = None) -> tuple[Any, int, Any, int, int]:
    return op, 0, _rhs(op, x, op.shape[-1]), 0, 0


def _solve(op: Any, b: Any = None) -> Any:
    return _core._build("inverse", op), 0, _rhs(op, b, op.shape[-2]), 0, 0


def _dense(op: Any) -> tuple[Any, int, None, int, int]:
    return op, 8, None, 0, 0


def _diagonal(op: Any, offset: int = 0) -> tuple[Any, int, None, int, int]:
    return op, 9, None, operator.index(offset), 0


def _trace(op: Any) -> tuple[Any, int, None, int, int]:
    return op, 10, None, 0, 0


def _element(op: Any, i: int, j: int) -> tuple[Any, int, None, int, int]:
    return op, 11, None, *convert.bounded(op, operator.index(i), operator.index(j))


def _det(op: Any) -> tuple[Any, int, None, int, int]:
    return op, 12, None, 0, 0


_ACTIONS: dict[str, Callable[..., Any]] = {
    "apply": _apply,
    "matvec": _apply,
    "solve": _solve,
    "dense": _dense,
    "diagonal": _diagonal,
    "trace": _trace,
    "element": _element,
    "det": _det,
    "slogdet": _det,
    "logdet": _det,
}


_RUNS = {
    0: lambda op, x, i, j: op @ x,
    8: lambda op, x, i, j: op.toarray(),
    9: lambda op, x, i, j: op.diagonal(i),
    10: lambda op, x, i, j: op.trace(),
    11: lambda op, x, i, j: op._element(i, j),
    12: lambda op, x, i, j: op._scaledet(),
}


def _words(how: Callable[..., Any]) -> str:
    """The arguments of a function without their types."""
    signature = inspect.signature(how)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def of_operator(
    op: Any, action: str, args: tuple[Any, ...], kwargs: dict[str, Any], run: bool = False
) -> Any:
    """The plan of an action; with ``run``, the times that its steps took too."""
    if action in ("trace", "logdet", "diagonal") and "method" in kwargs:
        return _estimates.explained(op, action, kwargs["method"], kwargs)
    if action in ("eigh", "eigvalsh"):
        return _eigenpairs.explained(op, action, run, *args, **kwargs)
    how = _ACTIONS.get(action) if isinstance(action, str) else None
    if how is None:
        names = (*_ACTIONS, "eigh", "eigvalsh", *_functions.FUNCTIONS)
        if not isinstance(action, str) or action not in names:
            close = config.near(str(action), names)
            raise ValueError(
                f"no action {action!r} to explain; there are {', '.join(names)}{close}"
            )
        return _functions.explained(op, action, args, kwargs, run)
    if how is _solve and "method" in kwargs:
        return _iterative.explained(op, run, *args, **kwargs)
    try:
        inspect.signature(how).bind(op, *args, **kwargs)
    except TypeError as error:
        words = _words(how).replace("(op", f"({action!r}").replace("=None", "=...")
        raise TypeError(f"explain{words}: {error}") from None
    own = getattr(type(op), "_explained", None)
    if own is not None and not run:
        return own(op, action, args, kwargs)
    asked = op
    op, *rest = how(op, *args, **kwargs)
    planned = explanation.Explanation._of(op._explain(*rest))
    if how is _solve:
        if _iterative.too_large(asked, planned) or _iterative.by_price.offered(
            asked, rest[1], planned
        ):
            return _iterative.explained(asked, run, *args, **kwargs)
    if not run:
        return planned._called(action)
    with explanation.explaining() as e:
        _RUNS[rest[0]](op, *rest[1:])
    return e.explanation._called(action)


# -- explain ---------------------------------------------------------------------------------------


def of_lazy(root: Any, run: bool = False) -> Any:
    """Explains how the value of root is computed, on a copy whose values are arrays without memory;
    with ``run`` on a copy that is computed. A value that is kept is left out of the copy."""
    parts: list[Any] = []
    seen: set[int] = set()
    kept = root._value is not None and root._head != "leaf"

    def title(a: Any) -> str:
        anew = "  (its value is kept; this is how it is computed anew)" if kept else ""
        return f"{text.formula(a)}  {_functions.made_of(a, a is copy)}{anew if a is copy else ''}"

    def pretend(a: Any) -> None:
        if a._head != "leaf":
            found = list(_functions.within(a, seen))
            parts.extend((title(x), e) for x, e in found)
            if all(x is not a for x, _ in found):
                parts.append((title(a), _plan(a) or _functions.unplanned(a)))
        if a._head != "leaf" or a._value is None:
            a._value = np.broadcast_to(np.ones((), a.dtype), a.shape)

    def compute(a: Any) -> None:
        with explanation.explaining() as e:
            _core._lazy_value(a)
        if a._head != "leaf":
            parts.append((title(a), e.explanation if e.plans else _functions.unplanned(a)))

    rows = text.program(root)
    if kept:
        rows = [row if row[0] in ("leaf", "given") else (*row[:-1], None) for row in rows]
    copy = text.rebuild(rows if run else _functions.standing_in(rows))
    _core._lazy_run([copy], compute if run else pretend)
    return explanation.Explanation._joined(parts)


def _plan(a: Any) -> Any:
    """The plan of one linear part; None where NumPy computes it."""
    return _lazily.explained(a, _direct_plan(a))


def _direct_plan(a: Any) -> Any:
    args = a._args
    if _core._lazy_is_deep(a):
        column = _core._lazy_operator(a)
        return column.explain("dense") if column is not None else None
    if a._head == "matmul" and min(x.ndim for x in args) < 2:
        x, y = args
        if x.ndim >= 2:
            return x._form.explain("apply", evaluate.array_of(y))
        return y._form.T.explain("apply", evaluate.array_of(x)) if y.ndim >= 2 else None
    if a._head == "of form" and a._more[0] in (evaluate.trace, evaluate.diagonal):
        name = "trace" if a._more[0] is evaluate.trace else "diagonal"
        return args[0]._form.explain(name)
    linear = ("operator", "matmul", "add", "scale", "over", "view", "inverse")
    if a.ndim < 2 or a._head not in linear:
        return None
    return (args[0] if a._head == "operator" else a._form).explain("dense")
