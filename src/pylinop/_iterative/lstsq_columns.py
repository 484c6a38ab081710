"""LSMR and LSQR of several right-hand sides at once: each iteration takes one product with A and
one with A^H."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import config
from .krylov_run import Run, run


def width_of(A: Any, method: str, dtype: Any, k: int) -> int:
    """How many columns run together: as many as fill a cache line, or one where memory is short."""
    width = min(k, 64 // dtype.itemsize)
    limit = config.get("memory_limit")
    if method not in ("lsmr", "lsqr") or width < 2:
        return 1
    return 1 if limit is not None and peak(A, dtype, k, width) > limit else width


def peak(A: Any, dtype: Any, k: int, width: int) -> int:
    """The most bytes, beside the operands, that so many columns at a time take."""
    m, n = A.shape
    double = max(dtype.itemsize, 16 if dtype.kind == "c" else 8)
    return int(dtype.itemsize * n * k + double * width * (8 * n + 6 * m))


def together(op: Any, B: Any, X: Any, watches: list[Any], method: str) -> list[int]:
    """Improves the columns of X, restarting from where they stopped until their recomputed
    residuals are small enough; returns the iterations of each. Converged columns are dropped."""
    used = np.zeros(len(watches), np.int64)
    on, target = np.arange(len(watches)), watches[0].rtol
    while len(on):
        R = B[:, on] - op @ X[:, on]
        G = op.H @ R
        keep = []
        for i, c in enumerate(on):
            watch = watches[c]
            watch.judge(X[:, c], float(np.linalg.norm(R[:, i])), G[:, i])
            if not watch.error <= watch.rtol and used[c] < watch.most:
                keep.append(i)
        if not keep:
            break
        on = on[keep]
        right = np.ascontiguousarray(R[:, keep], np.result_type(R.dtype, np.float64))
        D = np.zeros((X.shape[0], len(keep)), right.dtype)
        left = int(min(watches[c].most - used[c] for c in on))
        answer = run(
            Run(name=method, op=op, M=None, b=right, x=D, maxiter=left, rtol=target, atol=target)
        )
        good = np.isfinite(D).all(axis=0)
        if answer[1] == 0 or not good.any():
            break
        on, D = on[good], D[:, good]
        used[on] += answer[1]
        X[:, on] += D.astype(X.dtype)
        target = max(target / 10, float(np.finfo(X.dtype).eps))
    return [int(i) for i in used]
