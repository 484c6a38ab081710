"""Preconditioners of block operators: Jacobi and block Jacobi, made in one sweep over the blocks.

All have the form M = F F^H, where F has blocks on its diagonal: M is near the inverse of A (`cg`),
or of A^H A + damp^2 (`lsmr`, `cgls`). `lsmr` solves for y in x = F y, whose matrix A F has columns
of norm one, or in each group orthonormal ones. F acts on the local piece of a vector: no group of
columns lies on two ranks. Where vectors lie along the blocks, groups begin anew with each block;
they depend only on the blocks."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from .._operators.convert import as_operator
from .gram import room

__all__ = ["of_least_squares", "of_square", "parsed", "said"]

_BLOCK = 8  # columns, where only the word is given
# The squared sine below which a group's columns count as dependent: it is then scaled alone.
_DEPENDENT = 1e-10


class Scales:
    """F = diag(f)."""

    def __init__(self, f: Any) -> None:
        self.f = f

    def right(self, y: Any) -> Any:
        """F y."""
        return self.f * y

    def left(self, w: Any) -> Any:
        """F^H w."""
        return self.f.conj() * w

    def back(self, x: Any) -> Any:
        """F^-1 x."""
        return x / self.f

    def __getitem__(self, at: slice) -> Scales:
        """F of these numbers, which are whole groups."""
        return Scales(self.f[at])

    def inverse(self, r: Any) -> Any:
        """M r = F F^H r."""
        return self.right(self.left(r))


class Groups(Scales):
    """F of small blocks on the diagonal, all of k x k; ``at`` is where numbers stand in them."""

    def __init__(self, F: Any, at: Any) -> None:
        self.F, self.at = F, at

    def _times(self, F: Any, x: Any) -> Any:
        g, k, _ = F.shape
        spread = np.zeros(g * k, np.result_type(F, x))
        spread[self.at] = x
        return np.matmul(F, spread.reshape(g, k, 1)).reshape(-1)[self.at]

    def right(self, y: Any) -> Any:
        """F y."""
        return self._times(self.F, y)

    def left(self, w: Any) -> Any:
        """F^H w."""
        return self._times(self.F.conj().transpose(0, 2, 1), w)

    def back(self, x: Any) -> Any:
        """F^-1 x."""
        return self._times(np.linalg.inv(self.F), x)

    def __getitem__(self, at: slice) -> Groups:
        """F of these numbers, which are whole groups."""
        here, k = self.at[at], self.F.shape[1]
        if not len(here):
            return Groups(self.F[:0], here)
        first, last = int(here[0]) // k, int(here[-1]) // k + 1
        return Groups(self.F[first:last], here - first * k)


class Given:
    """An operator that the caller brings, which takes whole vectors."""

    def __init__(self, M: Any, held: Any) -> None:
        self.M, self.held = M, held

    def inverse(self, r: Any) -> Any:
        """M r."""
        return self.M.matvec(self.held.whole(r))[self.held.at]


def parsed(M: Any, n: int, name: str) -> tuple[str, int, Any]:
    """(kind, size of its blocks, what was given) of the argument M."""
    if M is None:
        return "", 1, None
    word, k = M if isinstance(M, tuple) and len(M) == 2 else (M, _BLOCK)
    if isinstance(word, str):
        if word not in ("jacobi", "block_jacobi"):
            raise ValueError(f"M={M!r}: 'jacobi', 'block_jacobi' or ('block_jacobi', columns)")
        if isinstance(M, tuple) and (word == "jacobi" or int(k) != k or k < 1):
            raise ValueError(f"M={M!r}: ('block_jacobi', columns of a block, at least 1)")
        return word, 1 if word == "jacobi" else max(1, min(int(k), n)), None
    if not hasattr(M, "shape"):
        M = np.asarray(M)
    if name == "cg" and M.shape == (n, n):
        return "given", 1, as_operator(M)
    if M.shape != (n,) or np.dtype(M.dtype).kind not in "biuf":
        more = ", or an operator" if name == "cg" else ""
        raise ValueError(f"M is {M.dtype}{list(M.shape)}: a word, {n} real numbers{more}")
    M = np.asarray(M)
    if not (np.isfinite(M) & (M > 0)).all():
        at = int(np.flatnonzero(~(np.isfinite(M) & (M > 0)))[0])
        raise ValueError(f"M[{at}] is {M[at]}: its numbers are positive")
    return "given", 1, M.astype(float)


def said(A: Any, M: Any) -> str:
    """What a checkpoint says of M; block Jacobi may depend on the blocks."""
    kind, k, what = M
    if kind == "block_jacobi":
        what = np.array([b.shape[A.axis] for b in A.blocks], np.int64)
    if not isinstance(what, np.ndarray):
        return str(kind)
    return f"{kind} {k} {hashlib.sha256(np.ascontiguousarray(what).tobytes()).hexdigest()[:12]}"


def _places(A: Any, held: Any, k: int, along: bool) -> tuple[Any, int]:
    """Where the numbers that are here stand in groups of k, and how many groups there are."""
    if not along:
        return np.arange(held.size), -(-held.size // k)
    first, place, groups = 0, [np.zeros(0, np.int64)], 0
    for b in A.blocks:
        n = b.shape[A.axis]
        if held.at.start <= first < held.at.stop:
            place.append(np.arange(n) + groups * k)
            groups += -(-n // k)
        first += n
    return np.concatenate(place), groups


def _groups(rows: Any, at: Any, count: int) -> Any:
    """(count, k, k): the groups' matrices; short ones are filled up with the identity."""
    k = rows.shape[1]
    B = np.zeros((count * k, k), rows.dtype)
    missing = np.setdiff1d(np.arange(count * k), at, assume_unique=True)
    B[missing, missing % k] = 1
    B[at] = rows
    return B.reshape(count, k, k)


def _roots(B: Any) -> tuple[Any, Any]:
    """(F with F F^H = B^-1, where this could be had), of Hermitian B scaled to a diagonal of one.

    Elsewhere F is the identity."""
    good = np.isfinite(B).all(axis=(1, 2))
    L = np.zeros_like(B)
    try:
        L[good] = np.linalg.cholesky(B[good])
    except np.linalg.LinAlgError:  # one of them: find out which
        for g in np.flatnonzero(good):
            try:
                L[g] = np.linalg.cholesky(B[g])
            except np.linalg.LinAlgError:
                good[g] = False
    pivots = np.einsum("gii->gi", L).real ** 2
    good &= (pivots > _DEPENDENT).all(axis=1)
    F = np.broadcast_to(np.eye(B.shape[1], dtype=B.dtype), B.shape).copy()
    F[good] = np.linalg.inv(L[good]).conj().transpose(0, 2, 1)
    return F, good


def of_least_squares(A: Any, M: Any, held: Any, damp: float) -> Any:
    """F for A^H A + damp^2: columns' norms or groups' Cholesky factors; a column of zeros stays."""
    kind, k, given = M
    if not kind:
        return None
    m, n = A.shape
    if m < n and not damp:
        raise ValueError(
            f"M= of {m} x {n}: a problem with fewer rows than columns has many solutions, of which "
            "the least is meant; with M another one would come. damp= makes it unique"
        )
    if given is not None:
        return Scales(np.sqrt(given[held.at]))
    dtype = np.result_type(A.dtype, float)
    room(n, k, dtype.itemsize, A.engine.split + 3)
    shares, wide = A.engine.here("column_grams", k), held.times(k)
    if A.axis == 0:
        rows = wide.add(shares, dtype).reshape(-1, k)
    else:
        rows = wide.joined(shares, dtype).reshape(-1, k)
    at, count = _places(A, held, k, A.axis == 1)
    rows[np.arange(len(rows)), at % k] += damp**2
    norms = np.sqrt(rows[np.arange(len(rows)), at % k].real)
    A.engine.agree(_finite(norms, held))
    f = 1 / np.where(norms > 0, norms, 1.0)
    if kind == "jacobi":
        return Scales(f)
    spread = np.ones(count * k)
    spread[at] = f
    B = _groups(rows, at, count)
    own = spread.reshape(count, k)
    B *= own[:, :, np.newaxis] * own[:, np.newaxis, :]
    B[:, range(k), range(k)] = 1
    F, _ = _roots(B)
    return Groups(own[:, :, np.newaxis] * F, at)


def _finite(norms: Any, held: Any) -> Exception | None:
    bad = np.flatnonzero(~np.isfinite(norms))
    if not len(bad):
        return None
    return np.linalg.LinAlgError(
        f"M=: numbers are not finite: the square of column {held.at.start + int(bad[0])} of A is "
        f"{norms[bad[0]]}"
    )


def of_square(A: Any, M: Any, held: Any) -> Any:
    """F for a positive definite A: of its diagonal, or of blocks on it."""
    kind, k, given = M
    if not kind:
        return None
    if given is not None:
        return Given(given, held) if len(given.shape) == 2 else Scales(np.sqrt(given[held.at]))
    engine, edges = A.engine, A._edges()
    if k == 1:
        each = [(first, 0) for first in edges[:-1]]
        rows = held.joined(engine.here("diagonal", each=each), A.dtype)[:, np.newaxis]
    else:
        each = [(first, k) for first in edges[:-1]]
        dtype = np.result_type(A.dtype, float)
        room(A.shape[0], k, dtype.itemsize, 4)
        rows = held.times(k).joined(engine.here("diagonal_blocks", each=each), dtype).reshape(-1, k)
    at, count = _places(A, held, k, True)
    d = rows[np.arange(len(rows)), at % k]
    bad = np.flatnonzero(~((d.real > 0) & np.isfinite(d)))
    error = None
    if len(bad):
        error = np.linalg.LinAlgError(
            f"M=: element {held.at.start + int(bad[0])} of A's diagonal is {d[bad[0]]}: A is not "
            "positive definite"
        )
    engine.agree(error)
    f = 1 / np.sqrt(d.real)
    if k == 1:
        return Scales(f)
    spread = np.ones(count * k)
    spread[at] = f
    own = spread.reshape(count, k)
    B = _groups(rows, at, count)
    if A.axis == 1:
        B = B.transpose(0, 2, 1)
    F, _ = _roots(B * (own[:, :, np.newaxis] * own[:, np.newaxis, :]))
    return Groups(own[:, :, np.newaxis] * F, at)
