"""The problem of an iterative solve: A, right sides, options; and the list of methods."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._base.config import near
from .._base.dlpack import as_array
from .loops import IN_PYTHON

ITERATIVE = ("cg", "minres", "gmres", "fgmres", "bicgstab", "lsqr", "lsmr", *IN_PYTHON)
METHODS = ("auto", "direct", "iterative", *ITERATIVE)
_OPTIONS = ("rtol", "atol", "maxiter", "M", "x0", "callback", "progress")


class Problem:
    """One A, right sides (n,) or (n, k), and what is asked of x."""

    def __init__(self, op: Any, M: Any, b: Any, x: Any, options: dict[str, Any]) -> None:
        self.op, self.M, self.b, self.x, self.options = op, M, b, x, options
        self.n, self.dtype = b.shape[0], b.dtype
        self.eps = float(np.finfo(b.dtype).eps)
        self.working = 5 * math.sqrt(max(self.n, 1)) * self.eps
        self.norm_a: Any = None
        self.light: bool | None = None  # do the vectors take longer than a product?
        self.product: int | None = None  # bytes that a product takes, once it was asked
        self.room: Any = ...  # bytes for its vectors, once it was asked
        self.said, self.batch = (op, b), False  # what is written down; are columns of a batch's?
        self.products = 0

    @functools.cached_property
    def bnorm(self) -> Any:
        return norms(self.b)

    def residual(self, x: Any) -> Any:
        """b - A x, or b where x is 0."""
        if not x.any():
            return self.b.copy()
        self.products += 1
        return self.b - (self.op @ x).astype(self.dtype, copy=False)

    def tolerances(self) -> Any:
        rtol, atol = self.options["rtol"], self.options["atol"]
        return np.maximum(rtol * self.bnorm, atol)

    def norm(self) -> Any:
        """A lower bound of |A|: the largest |A v| / |v| over some steps of a power iteration. In a
        batch, one for each column's A."""
        if self.norm_a is None:
            rng = np.random.default_rng(20)
            shape = self.b.shape if self.batch else (self.n,)
            v = rng.standard_normal(shape).astype(self.dtype)
            best = np.zeros(norms(v).shape)
            for _ in range(8):
                size = norms(v)
                good = np.isfinite(size) & (size > 0)
                if not good.any():
                    break
                size = np.where(good, size, 1).astype(v.real.dtype)
                v = (self.op @ (v / (size if v.ndim > 1 else size[0]))).astype(
                    self.dtype, copy=False
                )
                self.products += 1
                new = norms(v)
                best = np.where(good & (new > best), new, best)
            self.norm_a = best if self.batch else float(best[0])
        return self.norm_a

    def backward(self, x: Any, size: Any) -> Any:
        below = self.norm() * norms(x) + self.bnorm
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size == 0, 0.0, size / below)


def norm_of(v: Any) -> float:
    most = float(np.abs(v).max(initial=0.0))
    if most == 0 or not math.isfinite(most):
        return most
    return most * float(np.linalg.norm((v / most).astype(np.result_type(v.dtype, np.float64))))


def norms(b: Any) -> Any:
    """The norms of the columns, as float64."""
    if b.ndim == 1:
        return np.array([norm_of(b)])
    return np.array([norm_of(b[:, j]) for j in range(b.shape[1])])


def power_of_two(x: float) -> float:
    return math.ldexp(1.0, -math.frexp(x)[1]) if x and math.isfinite(x) else 1.0


# -- one pass of one method: d with A d = r, each column of r - A d below its goal --


def default_rtol(dtype: Any) -> float:
    return 1e-5 if np.finfo(dtype).eps > 1e-10 else 1e-10


def options_of(given: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        known = ("assume_a", "method", *_OPTIONS)
        raise TypeError(
            f"solve() got an unexpected keyword argument {unknown[0]!r}; there are "
            f"{', '.join(known)}{near(unknown[0], known)}"
        )
    return {name: given.get(name) for name in _OPTIONS}


def refuse(method: str, given: dict[str, Any]) -> None:
    said = [name for name, value in given.items() if value is not None]
    if said:
        raise TypeError(
            f"{', '.join(said)} is for iterative methods, and method={method!r}: say which, "
            f"one of {', '.join(METHODS[2:])}"
        )


def start_of(x0: Any, shape: Any) -> Any:
    """x0 in the shape of the solution; a word or None is returned as it is."""
    if x0 is None or isinstance(x0, str):
        return x0
    start = as_array(x0)
    if len(shape) == 1 and start.shape == (*shape, 1):
        start = start[:, 0]
    try:
        return np.broadcast_to(start, shape)
    except ValueError:
        raise ValueError(f"x0 has shape {start.shape}, the solution {shape}") from None
