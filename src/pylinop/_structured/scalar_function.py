"""Scalar functions of which matrices are taken, with what multiples and shifts did to their
argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import multiples
from .cholesky import element_text
from .singular_values import floats
from .unitary import complex_of


def _is_python(x: Any, of: int) -> bool:
    """The number that stands where nobody has scaled or shifted: it takes any dtype."""
    return type(x) is int and x == of


class Function:
    """A scalar function with its inner scale and shift: x -> f(scale x + shift)."""

    __slots__ = ("call", "name", "p", "scale", "shift")

    def __init__(
        self, name: str, p: Any = None, call: Any = None, scale: Any = 1, shift: Any = 0
    ) -> None:
        self.name, self.p, self.call, self.scale, self.shift = name, p, call, scale, shift

    @property
    def arrays(self) -> float:
        """How many arrays of n^2 entries the dense answer takes, by its method in
        matrix_functions_dense.py."""
        if self.name == "power":
            return 6.2 if self.p == 0.5 else 21
        return {"exp": 10, "log": 21}.get(self.name, 12)

    def scaled(self, c: Any) -> Function:
        return Function(self.name, self.p, self.call, self._times(c), self.shift)

    def shifted(self, c: Any) -> Function:
        step = self._times(c)
        shift = step if _is_python(self.shift, 0) else multiples.total(self.shift, step)
        return Function(self.name, self.p, self.call, self.scale, shift)

    def _times(self, c: Any) -> Any:
        return c if _is_python(self.scale, 1) else multiples.product(self.scale, c)

    def conj(self) -> Function:
        scale, shift = self.scale.conjugate(), self.shift.conjugate()
        return Function(self.name, self.p, self.call, scale, shift)

    @property
    def word(self) -> str | None:
        """The function as text; None for a caller's own."""
        return None if self.call else f"{self.name} {self.p} {self.scale!r} {self.shift!r}"

    @property
    def needs_inverse(self) -> bool:
        return self.name == "log" or (self.name == "power" and self.p < 0)

    @property
    def plain(self) -> bool:
        """Is there no shift, and only a positive scale?"""
        c = complex(self.scale)
        return self.shift == 0 and c.imag == 0 and c.real > 0

    def inner(self, x: Any) -> Any:
        return self.scale * x + self.shift

    def __call__(self, x: Any) -> Any:
        """f of exact numbers, those of a diagonal."""
        return self._of(self.inner(x))

    def of_spectrum(self, w: Any, terms: Any = None) -> Any:
        """f of computed eigenvalues, which are accurate to about n u times the largest: values
        below that are zero where their sign or their inverse would count."""
        x = self.inner(w)
        if self.name not in ("log", "power") or not x.size:
            return self._of(x)
        terms = w.shape[-1] if terms is None else terms
        top = np.abs(self.scale * w).max(axis=-1, keepdims=True) + abs(self.shift)
        small = np.abs(x) <= terms * np.finfo(w.dtype).eps * top
        if self.needs_inverse:
            if small.any():
                raise np.linalg.LinAlgError(
                    f"Singular matrix: {self.words} needs a regular one, and an eigenvalue is "
                    f"{np.abs(x)[small].min():.1e} beside one of {np.max(top):.1e}"
                    f"{element_text(small.any(axis=-1))}"
                )
        elif not np.iscomplexobj(x):
            x = np.where(small & (x < 0), 0, x)
        return self._of(x)

    @property
    def words(self) -> str:
        return "the logarithm" if self.name == "log" else f"the power {self.p}"

    def _of(self, x: Any) -> Any:
        if self.name == "exp":
            return np.exp(x)
        if self.name == "any":
            return self._called(x)
        if self.needs_inverse and (x == 0).any():
            raise np.linalg.LinAlgError(f"Singular matrix: {self.words} needs a regular one")
        if np.iscomplexobj(x):
            x = x + 0  # -0 is +0: arguments lie in (-pi, pi]
        elif (x < 0).any():
            x = x.astype(complex_of(x.dtype))
        if self.name == "log":
            return np.log(x)
        return np.sqrt(x) if self.p == 0.5 else x**self.p

    def _called(self, x: Any) -> Any:
        """Calls the caller's function; if it returns NaN for real numbers, it is called with
        complex ones."""
        with np.errstate(invalid="ignore"):
            y = floats(self.call(x))
        if y.shape != x.shape:
            raise ValueError(f"the function gave shape {y.shape} for eigenvalues of {x.shape}")
        if not np.iscomplexobj(x) and (np.isnan(y) & ~np.isnan(x)).any():
            y = floats(self.call(x.astype(complex_of(x.dtype))))
        return y
