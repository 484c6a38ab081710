"""Draws from distributions made of others, by draws from those (Matheron's rule): the root of a
difference of matrices would cost a dense form, and rounding may leave it none.

    x ~ N(0, A), e ~ N(0, R):   x - A H^H S^-1 (H x + e)  has the covariance  A - A H^H S^-1 H A

Wilson et al., Pathwise conditioning of Gaussian processes, JMLR 22, 2021, section 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from .covariance import sample


def rows(f: Any, x: Any) -> Any:
    """f, which takes columns, of rows."""
    if x.ndim == 1:
        return f(x)
    found = f(np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T))
    return found.T.reshape(*x.shape[:-1], -1)


class Root:
    """By a root of the covariance."""

    def __init__(self, cov: Any) -> None:
        self._cov = cov

    def __call__(self, size: tuple[int, ...], rng: Any) -> Any:
        return sample(self._cov, size, rng)


class Given:
    """Of the entries a, by draws of all entries and the factor S of those that are known."""

    def __init__(self, draw: Any, a: Any, i: Any, C: Any, S: Any) -> None:
        self._draw, self._a, self._i, self._C, self._S = draw, a, i, C, S

    def __call__(self, size: tuple[int, ...], rng: Any) -> Any:
        x = self._draw(size, rng)
        return x[..., self._a] - rows(self._C.__matmul__, rows(self._S.solve, x[..., self._i]))


class Seen:
    """By draws of the prior and of the noise (None: there is none)."""

    def __init__(self, draw: Any, H: Any, C: Any, S: Any, R: Any) -> None:
        self._draw, self._H, self._C, self._S, self._R = draw, H, C, S, R

    def __call__(self, size: tuple[int, ...], rng: Any) -> Any:
        x = self._draw(size, rng)
        seen = rows(self._H.__matmul__, x)
        if self._R is not None:
            seen = seen + sample(self._R, size, rng)
        return x - rows(self._C.__matmul__, rows(self._S.solve, seen))


class Mapped:
    """Of A x, by draws of x."""

    def __init__(self, draw: Any, A: Any) -> None:
        self._draw, self._A = draw, A

    def __call__(self, size: tuple[int, ...], rng: Any) -> Any:
        return rows(self._A.__matmul__, self._draw(size, rng))
