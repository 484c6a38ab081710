"""Numbers on which a program is tried (freezing.py): near those of a call, and far from them.

Where a coefficient comes from is found by its value. So elements are moved by random amounts, each
by its own, and also those that are zero; what is alike by accident is looked for nonetheless
(coefficients.py), and probes of other numbers are what a tape is tried on before it is kept.
Arrays that a proof wants alike, above and below the diagonal of a band, stay so: `twins`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["is_even", "moved", "probes", "twins"]

_BAND = 12  # of exec/tape_proof.h
_draws = itertools.count()  # a try that comes again has other numbers


def is_even(a: Any) -> bool:
    """Is it a symmetric matrix, or a batch of such, or of Hermitian ones?"""
    square = a.ndim > 1 and a.shape[-1] == a.shape[-2]
    return bool(square and (a == np.swapaxes(a, -1, -2).conj()).all())


def twins(proof: Any, arrays: Any) -> tuple[tuple[int, int], ...]:
    """(k, j): array k stands as far below the diagonal of a proof's band as j, which is the same,
    stands above it."""
    found = []
    for kind, _, held, offsets in proof:
        above = [(o, j) for o, j in zip(offsets, held, strict=True) if kind == _BAND and o > 0]
        for o, k in zip(offsets, held, strict=True):
            for pair in above if kind == _BAND and o < 0 else ():
                if pair[0] == -o and np.array_equal(arrays[pair[1]], arrays[k]):
                    above.remove(pair)
                    found.append((k, pair[1]))
                    break
    return tuple(found)


def _even(r: Any) -> Any:
    """Likewise with the same at i, j and j, i."""
    square = r.ndim > 1 and r.shape[-1] == r.shape[-2]
    return np.maximum(r, np.swapaxes(r, -1, -2)) if square else r


def _like(a: Any) -> Any:
    fortran = a.flags.f_contiguous and not a.flags.c_contiguous
    return np.asfortranarray(a).copy("F") if fortran else np.array(a, order="C")


def _near(a: Any, rng: Any, by: float, even: bool) -> Any:
    """Factors near 1, and what stands where there is a zero: of an element by itself few roundings,
    as more would make what is just definite indefinite."""
    single = a.dtype.char in "fF"
    unit = by * 2 ** (18 if single else 26) * np.finfo(a.dtype).eps
    r = unit * (_even(rng.random(a.shape)) if even else rng.random(a.shape))
    return np.where(a == 0, (np.abs(a).max(initial=0) or 1) * r, a * ((1 + by) * (1 + r)))


def _far(a: Any, rng: Any, zeros: bool) -> Any:
    """Factors between 1/2 and 2, d_i d_j at i, j of a matrix but for a 256th: what is definite
    mostly stays so. Zeros become numbers of the others' size, or few roundings of it."""
    factor: Any = 1.0
    for axis in range(-min(a.ndim, 2), 0):
        half = 1 / min(a.ndim, 2)
        d = np.exp2(rng.uniform(-half, half, a.shape[axis]))
        factor = d.reshape(-1, *(1,) * (-axis - 1)) * factor
    if a.ndim != 1:
        factor = factor * (1 + rng.uniform(0, 2**-8, a.shape))
    size = (np.abs(a).max(initial=0) or 1) * (1 if zeros else 16 * np.finfo(a.dtype).eps)
    return np.where(a == 0, size * rng.uniform(0.25, 0.5, a.shape), a * factor)


def _number(x: Any, rng: Any, by: float) -> Any:
    """A number that is not 0, 1 or -1, nor near it."""
    if x == 0 or abs(abs(x) - 1) < 1e-3:
        return x + (1e-2 + by) * (1 + rng.random())
    return x * (1 + by * (1 + rng.random()))


def _made(
    arrays: Any, pinned: tuple[int, ...], alike: Any, change: Callable[[Any, Any], Any]
) -> list[Any]:
    rng, made = np.random.default_rng(next(_draws)), []
    for k, a in enumerate(arrays):
        x = _like(a)
        if k not in pinned:
            x[...] = change(a, rng)
        made.append(x)
    for k, j in alike:
        made[k][...] = made[j]
    return made


def moved(
    arrays: Any, by: float, pinned: tuple[int, ...] = (), even: bool = False, alike: Any = ()
) -> list[Any]:
    """Other numbers in other memory: arrays by one factor, and each element by one of its own near
    1; single numbers are no special ones. Pinned ones stay. `even`: what is symmetric stays so.
    `alike`: twins."""
    return _made(
        arrays,
        pinned,
        alike,
        lambda a, rng: _near(a, rng, by, even) if a.ndim else _number(a, rng, by),
    )


def probes(arrays: Any, pinned: tuple[int, ...], alike: Any = ()) -> Iterator[list[Any]]:
    """Numbers far from these, and nearer ones, which a program takes that does not take those."""
    for zeros in (True, False):
        yield _made(arrays, pinned, alike, lambda a, rng, zeros=zeros: _far(a, rng, zeros))  # type: ignore[misc]
    yield moved(arrays, 2.0**-12, pinned, alike=alike)
    yield moved(arrays, 2.0**-12, pinned, even=True, alike=alike)
