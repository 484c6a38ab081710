"""Cholesky factors of sparse matrices by CHOLMOD, where scikit-sparse is installed.

Its releases 0.4 and 0.5 have different names for the same functions; both work. A `Cholesky` has
the members of SciPy's SuperLU, so that solves, determinants and entries of the inverse need one
interface."""

from typing import Any

import numpy as np

_EPS = np.finfo(np.float64).eps
_module: Any = None  # False: not installed


def _cholmod() -> Any:
    global _module
    if _module is None:
        try:
            from sksparse import cholmod  # type: ignore[import-not-found, unused-ignore]

            _module = cholmod
        except ImportError:
            _module = False
    return _module


def factor(A: Any, sign: int) -> "Cholesky | None":
    """The factor of sign A, a Hermitian CSC matrix with a positive diagonal. None if CHOLMOD is not
    installed, or the matrix is not positive definite, or so nearly singular that pivoting is
    better."""
    cholmod = _cholmod()
    if not cholmod:
        return None
    made = _Release5 if hasattr(cholmod, "cho_factor") else _Release4
    try:
        found = made(cholmod, A if sign > 0 else -A)
    except (cholmod.CholmodError, MemoryError):
        return None
    return Cholesky(found, A.shape, sign) if found.rcond >= A.shape[0] * _EPS else None


class _Release5:
    def __init__(self, cholmod: Any, A: Any) -> None:
        self.own = cholmod.cho_factor(A, lower=True)
        self.rcond = self.own.rcond
        self.perm = self.own.get_perm()
        self.nnz = int(self.own.nnz)
        self.solve = self.own.solve

    def lower(self) -> Any:
        return self.own.get_factor(kind="LL", lower=True)


class _Release4:
    """Release 0.4 factors an indefinite matrix too, as L D L^H: its D shows that."""

    def __init__(self, cholmod: Any, A: Any) -> None:
        self.own = cholmod.cholesky(A)
        d = self.own.D().real
        self.rcond = d.min() / d.max() if d.size and d.min() > 0 else 0.0
        self.perm = self.own.P().copy()
        self.nnz = int(self.own.L().nnz) if self.rcond else 0
        self.solve = self.own.solve_A

    def lower(self) -> Any:
        return self.own.L()


class Cholesky:
    """A[p][:, p] = sign L L^H, given as SuperLU gives L U, with a unit triangle L."""

    def __init__(self, found: Any, shape: tuple[int, int], sign: int) -> None:
        self.shape, self.nnz = shape, found.nnz
        self._found, self._sign = found, sign
        self.perm_r = self.perm_c = np.argsort(found.perm, kind="stable")

    def solve(self, b: np.ndarray, mode: str) -> np.ndarray:
        """Solves; A is its own adjoint, so A^T is the conjugate."""
        x: np.ndarray = self._found.solve(b.conj() if mode == "T" else b)
        x = x.conj() if mode == "T" else x
        return x if self._sign > 0 else -x

    def _parts(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """L with its own diagonal, and how often each diagonal entry is repeated in the columns."""
        L = self._found.lower()
        return L, L.diagonal().real, np.diff(L.indptr)

    @property
    def L(self) -> Any:
        L, d, times = self._parts()
        L.data /= np.repeat(d, times)
        return L

    @property
    def U(self) -> Any:
        L, d, times = self._parts()
        L.data *= np.repeat(self._sign * d, times)
        return L.conj().T
