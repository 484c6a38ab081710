"""``method=`` and ``k=`` of eigh and eigvalsh: all pairs, or some of them by a dense form, by
structure, or by Lanczos.

"auto" compares what a dense form and what Lanczos is estimated to take, and to need of memory; both
are exact. Where Lanczos does not converge, the dense form decides."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from . import _answers, _band_eigh, _config, _core, _eigsh, _errors, _explain, _methods, _restarted
from ._eigs import eigsh
from ._errors import FallbackWarning, LinAlgError
from ._spectra_eigh import ascending
from ._steps import run

NAMES = ("auto", "direct", "iterative")
_RESTARTS = 8  # what Lanczos is priced at
_OPAQUE = 8  # rows over vectors of the basis from which a callable is not made dense
_WORDS = ("which", "sigma")


def _reduction(n: int, vectors: bool) -> tuple[float, float]:
    """(flops, seconds) of LAPACK on a dense form, at a third of gemm's rate."""
    flops = (9.0 if vectors else 4 / 3) * float(n) ** 3
    return flops, flops / _core._costs()["gemm_rate"] * 3


def _direct(op: Any, vectors: bool) -> dict[str, Any]:
    row = _methods.row_of("direct")
    n = op.shape[-1]
    if run(_eigsh._small_parts, op):
        return row | {"text": "structure", "seconds": 0.0}
    item = _answers.inexact(op.dtype).itemsize
    flops, seconds = _reduction(n, vectors)
    row |= {"flops": flops, "memory": int((4.6 if vectors else 1.5) * n * n * item)}
    if op._opaque:
        return row
    dense = op.explain("dense")
    return row | {
        "seconds": dense.seconds + seconds,
        "bytes": dense.bytes + 8.0 * n * n * item,
    }


def _within_band(op: Any, k: int) -> dict[str, Any] | None:
    """The price of all values and k vectors by inverse iteration within a band of more than three
    diagonals; None of others, and where the dense form is cheaper."""
    w = _band_eigh.width_of(op)
    if w < 2:
        return None
    n = op.shape[-1]
    flops, seconds = _band_eigh.price(op, k, _core._costs())
    if seconds > _reduction(n, k > 0)[1]:
        return None
    item, row = np.dtype(np.complex128).itemsize, _methods.row_of("direct")
    memory = n * (4 * w + 2 + 3 * k) * item
    return row | {"flops": flops, "seconds": seconds, "memory": memory, "bytes": 8.0 * memory}


def _iterative(op: Any, k: int, sigma: Any) -> dict[str, Any]:
    n, m = op.shape[-1], min(2 * k + 20, op.shape[-1])
    item = _answers.inexact(op.dtype).itemsize
    products = m + _RESTARTS * (m - k)
    row = _methods.row_of("iterative") | {"memory": (2 * m + 4) * n * item}
    if op._opaque:
        return row
    inner = op if sigma is None else _eigsh.shifted_inverse(op, sigma, None)
    one = inner.explain("apply")
    flops = products * (one.flops + 4.0 * m * n)
    seconds = products * (one.seconds + 4.0 * m * n / _core._costs()["flop_rate"] / 2)
    return row | {
        "flops": flops,
        "seconds": seconds,
        "bytes": products * (one.bytes + m * n * item),
    }


def options(op: Any, method: Any, k: Any, vectors: bool, how: dict[str, Any]) -> Any:
    """(the way taken, why, all ways with their prices, that one first)."""
    method = _methods.canonical(method, NAMES)
    n = op.shape[-1]
    direct = _direct(op, vectors)
    if k is None:
        if method == "iterative":
            raise ValueError("method='iterative' takes k=, the number of eigenpairs")
        return "direct", f"method={method!r}, all pairs", [direct]
    if k < n and direct["text"] != "structure":
        direct = _within_band(op, k if vectors else 0) or direct
    rows = [direct, _iterative(op, k, how.get("sigma"))]
    why = f"method={method!r}"
    if method == "auto":
        method, why = "direct", why + ", the cheaper"
        limit = _config.get("memory_limit")
        if direct["text"] == "structure":
            why = "method='auto', by structure"
        elif k < n and limit is not None and direct["memory"] > limit >= rows[1]["memory"]:
            method, why = "iterative", "method='auto', the dense form passes the memory limit"
        elif op._opaque:
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
    k = int(k.__index__())
    if not 0 < k <= op.shape[-1]:
        raise ValueError(f"k must be from 1 to {op.shape[-1]}, got {k}")
    return k


def _picked(w: Any, k: int, how: dict[str, Any]) -> Any:
    """Where the k wanted of ascending values are, ascending."""
    which, sigma = how.get("which", "LA"), how.get("sigma")
    if which not in _eigsh._WHICH:
        raise ValueError(f"which must be one of {' '.join(_eigsh._WHICH)}, got {which!r}")
    if sigma is None:
        return np.sort(_restarted.picked(w, k, which))
    if complex(sigma).imag or not np.isfinite(complex(sigma)):
        raise ValueError(f"sigma must be real and finite, got {sigma!r}")
    with np.errstate(divide="ignore"):
        nu = 1 / (w - complex(sigma).real)
    order = np.argsort(nu, kind="stable")
    return np.sort(order[_restarted.picked(nu[order], k, which)])


def _some(op: Any, uplo: str, k: int, vectors: bool, how: dict[str, Any]) -> Any:
    """k of all pairs."""
    if not vectors:
        w = np.asarray(_answers.eigvalsh(op, uplo))
        return w[_picked(w, k, how)], None
    if k < op.shape[-1] and _within_band(op, k) is not None:
        values = np.asarray(_answers.eigvalsh(op, uplo))
        found = _band_eigh.some(op, uplo, _picked(values, k, how), values)
        if found is not None:
            return found[0], _core.Dense(found[1])
    w, q = ascending(op, uplo)
    at = _picked(w, k, how)
    return w[at], q @ _core.Selection(at, op.shape[-1]).T


def _by_lanczos(op: Any, k: int, vectors: bool, how: dict[str, Any]) -> Any:
    how = {"which": "LA"} | how
    made = eigsh(op, k, return_eigenvectors=vectors, **how)
    return (made[0], _core.Dense(made[1])) if vectors else (made, None)


def pairs(op: Any, uplo: str, method: str, k: Any, vectors: bool, how: dict[str, Any]) -> Any:
    """(values, vectors) by a method; ``how``: what `eigsh` takes."""
    k = _count(op, k)
    if how and k is None:
        raise TypeError(f"{', '.join(how)}: that goes with k=, the number of eigenpairs")
    chosen, why, rows = options(op, method, k, vectors, how)
    local = _config._local.get()
    record = local.get("_record") if local else None
    if record is not None:
        name = "eigh" if vectors else "eigvalsh"
        record.append(_methods.data(op, name, why, rows, None))
    if k is None:
        return ascending(op, uplo) if vectors else (_answers.eigvalsh(op, uplo), None)
    if chosen == "iterative" and k < op.shape[-1]:
        try:
            return _by_lanczos(op, k, vectors, how)
        except (LinAlgError, _errors.ConvergenceError, RuntimeError) as error:
            if method != "auto" or isinstance(error, RecursionError | NotImplementedError):
                raise
            warnings.warn(
                f"Lanczos gave up ({str(error).splitlines()[0]}): all pairs of the dense form "
                f"were computed",
                FallbackWarning,
                stacklevel=_errors.outside(),
            )
    elif how.keys() - set(_WORDS) and method == "direct":
        raise TypeError(
            f"{', '.join(sorted(how.keys() - set(_WORDS)))}: that belongs to method='iterative'"
        )
    return _some(op, uplo, k, vectors, how)


def explained(op: Any, action: str, method: str = "auto", k: Any = None, **how: Any) -> Any:
    """What `explain` says of eigh and eigvalsh."""
    _, why, rows = options(op, method, _count(op, k), action == "eigh", how)
    return _explain.Explanation._of(_methods.data(op, action, why, rows, None))
