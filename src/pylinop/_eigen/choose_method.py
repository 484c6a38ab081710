"""``method=`` and ``k=`` of eigh and eigvalsh: all pairs, or some of them by a dense form, by
structure, or by Lanczos.

"auto" compares the estimated time and memory of a dense form and of Lanczos; both are exact. Where
Lanczos does not converge, the dense form is used."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from .. import _core
from .._base import config, errors, explanation
from .._base.errors import FallbackWarning, LinAlgError
from .._base.progress import Meter
from .._stochastic import choose_method
from .._structured import banded_eigh, dispatch, eigh_price, questions, trees
from .._structured.eigh import ascending
from .._structured.prices import Price
from . import eigsh as _eigsh
from . import thick_restart_lanczos
from .scipy_api import eigsh

NAMES = ("auto", "direct", "iterative")
_OPAQUE = 8  # from this ratio of rows to basis vectors on, a callable is not made dense
_WORDS = ("which", "sigma")
_ALL = ("method", "k", *list(inspect.signature(eigsh).parameters)[2:])


def _row(price: Price, text: str) -> dict[str, Any]:
    return price._asdict() | {"text": text}


def options(op: Any, method: Any, k: Any, vectors: bool, how: dict[str, Any]) -> Any:
    """(the way taken, why, all ways with their prices, that one first)."""
    method = choose_method.canonical(method, NAMES)
    n = op.shape[-1]
    tree = eigh_price.tree(op, vectors)
    price = tree.total
    direct = _row(price, "structure" if price.by == "structure" else "direct") | {"tree": tree}
    if k is None:
        if method == "iterative":
            raise ValueError("method='iterative' takes k=, the number of eigenpairs")
        return "direct", f"method={method!r}, all pairs", [direct]
    band = eigh_price.within_band(op, k if vectors else 0) if k < n else None
    if band is not None and price.by != "structure":
        direct = _row(band, "direct")
    sigma = how.get("sigma")
    inner = op if sigma is None or op._opaque else _eigsh.shifted_inverse(op, sigma, None)
    rows = [direct, _row(eigh_price.iterative(op, k, inner), "iterative")]
    why = f"method={method!r}"
    if method == "auto":
        method, why = "direct", why + ", the cheaper"
        limit = config.get("memory_limit")
        by_structure = direct["text"] == "structure"
        if by_structure and not _eigsh.is_slower_than_lanczos(op, price, rows[1]["seconds"], how):
            why = "method='auto', by structure"
        elif k < n and limit is not None and direct["memory"] > limit >= rows[1]["memory"]:
            method, why = "iterative", "method='auto', the dense form passes the memory limit"
        elif op._opaque and not by_structure:
            method = "iterative" if n > _OPAQUE * (2 * k + 20) else "direct"
            why = "method='auto', of a callable"
        elif k < n and rows[1]["seconds"] < direct["seconds"]:
            method = "iterative"
    rows.sort(key=lambda row: (row["text"] == "iterative") != (method == "iterative"))
    return method, why, rows


def _count(op: Any, k: Any) -> int | None:
    if k is None:
        return None
    if op.ndim != 2:
        raise ValueError(f"k= takes one matrix, not a batch: {op.shape}")
    if not hasattr(k, "__index__") or isinstance(k, bool):
        raise TypeError(f"k must be an integer, got {k!r}")
    count = int(k.__index__())
    if not 0 < count <= op.shape[-1]:
        raise ValueError(f"k must be from 1 to {op.shape[-1]}, got {count}")
    return count


def _picked(w: Any, k: int, how: dict[str, Any]) -> Any:
    """The positions of the k wanted among ascending values, ascending."""
    which, sigma = how.get("which", "LA"), how.get("sigma")
    if which not in _eigsh._WHICH:
        raise ValueError(f"which must be one of {' '.join(_eigsh._WHICH)}, got {which!r}")
    if sigma is None:
        return np.sort(thick_restart_lanczos.picked(w, k, which))
    if complex(sigma).imag or not np.isfinite(complex(sigma)):
        raise ValueError(f"sigma must be real and finite, got {sigma!r}")
    with np.errstate(divide="ignore"):
        nu = 1 / (w - complex(sigma).real)
    order = np.argsort(nu, kind="stable")
    return np.sort(order[thick_restart_lanczos.picked(nu[order], k, which)])


def _some(op: Any, uplo: str, k: int, vectors: bool, how: dict[str, Any]) -> Any:
    """Picks k of all pairs."""
    if not vectors:
        w = np.asarray(questions.eigvalsh(op, uplo))
        return w[_picked(w, k, how)], None
    price = eigh_price.within_band(op, k) if k < op.shape[-1] else None
    if price is not None:
        values = np.asarray(questions.eigvalsh(op, uplo))
        with dispatch.step("eigh-within-band", op, price):
            found = banded_eigh.some(op, uplo, _picked(values, k, how), values)
        if found is not None:
            return found[0], _core.Dense(found[1])
    w, q = ascending(op, uplo)
    at = _picked(w, k, how)
    return w[at], q @ _core.Selection(at, op.shape[-1]).T


def _by_lanczos(op: Any, k: int, vectors: bool, how: dict[str, Any]) -> Any:
    how = {"which": "LA"} | how
    given = inspect.signature(eigsh).bind(op, k, return_eigenvectors=vectors, **how)
    given.apply_defaults()
    said = given.arguments
    start, pencil = ("v0", "ncv", "maxiter", "tol", "rng"), ("M", "Minv", "OPinv", "mode")
    with Meter("eigsh", "residual", said["callback"], said["progress"]) as meter:
        made = _eigsh.eigsh(
            op, k, said["sigma"], said["which"], said["return_eigenvectors"],
            {name: said[name] for name in start}, {name: said[name] for name in pencil}, meter,
            structured=False,
        )  # fmt: skip
    return (made[0], _core.Dense(made[1])) if vectors else (made, None)


def pairs(op: Any, uplo: str, method: str, k: Any, vectors: bool, how: dict[str, Any]) -> Any:
    """(values, vectors) by a method; ``how`` has the options of `eigsh`."""
    k = _count(op, k)
    if misspelt := [word for word in how if word not in _ALL]:
        close = config.near(misspelt[0], _ALL)
        raise TypeError(f"eigh() got an unexpected keyword argument {misspelt[0]!r}{close}")
    if how and k is None:
        raise TypeError(f"{', '.join(how)}: that goes with k=, the number of eigenpairs")
    chosen, why, rows = options(op, method, k, vectors, how)
    name = "eigh" if vectors else "eigvalsh"
    said, others = f"{rows[0]['text']} ({why})", choose_method.others(rows)
    if k is None:
        with trees.recorded(name, op, said, others):
            return ascending(op, uplo) if vectors else (questions.eigvalsh(op, uplo), None)
    if chosen == "iterative" and k < op.shape[-1]:
        record = config.record()
        if record is not None:
            record.append(choose_method.data(op, name, why, rows, None))
        try:
            return _by_lanczos(op, k, vectors, how)
        except (LinAlgError, errors.ConvergenceError, RuntimeError) as error:
            if method != "auto" or isinstance(error, RecursionError | NotImplementedError):
                raise
            warnings.warn(
                f"Lanczos gave up ({str(error).splitlines()[0]}): all pairs of the dense form "
                f"were computed",
                FallbackWarning,
                stacklevel=errors.outside(),
            )
    elif how.keys() - set(_WORDS) and method == "direct":
        raise TypeError(
            f"{', '.join(sorted(how.keys() - set(_WORDS)))}: that belongs to method='iterative'"
        )
    with trees.recorded(name, op, said, others):
        return _some(op, uplo, k, vectors, how)


def explained(
    op: Any, action: str, run: bool = False, method: str = "auto", k: Any = None, **how: Any
) -> Any:
    """The explanation of eigh and eigvalsh; with ``run``, from the record of a call."""
    if run:
        with explanation.explaining() as e:
            pairs(op, "L", method, k, action == "eigh", how)
        return e.explanation
    _, why, rows = options(op, method, _count(op, k), action == "eigh", how)
    if "tree" in rows[0]:
        said = f"{rows[0]['text']} ({why})"
        return trees.explained(action, op, rows[0]["tree"], said, choose_method.others(rows))
    return explanation.Explanation._of(choose_method.data(op, action, why, rows, None))
