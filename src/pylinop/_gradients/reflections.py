"""Cotangents by the vectors of reflections, as formulas: of H = I - tau v v^H, and of products of
them on neighbouring rows. Those of a product, its tangent and the second derivatives are functions
of arrays; of higher order is `_formula`, which is made of LazyArrays and slow to plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._lazy.build import view
from .._lazy.leaves import lazy
from .pieces import Through, ThroughGradient, call, conj, stopped


def _householder(given: dict[int, Any], g: Any, number: int) -> Any:
    """By v or tau. Without a tau, 2 / |v|^2, a multiple of v makes the same matrix: v is divided by
    its largest modulus, so that no square is out of range."""
    v, tau = lazy(given[0]), given.get(1)
    top = None
    if tau is None:
        top = stopped(np.max(np.abs(v), axis=-1, keepdims=True))
        v = v / top
    column = np.reshape(v, (*v.shape, 1))
    first, second = (np.reshape(y, y.shape[:-1]) for y in (g @ column, view(g, 3) @ column))
    if number == 1:
        return -np.sum(conj(v) * first, axis=-1)
    if tau is None:
        both, square = first + second, np.sum(np.real(conj(v) * v), axis=-1, keepdims=True)
        along = np.sum(np.real(conj(v) * both), axis=-1, keepdims=True)
        return 2 * (v * (along / square**2) - both / square) / top
    tau = lazy(tau)
    tau = np.reshape(tau, (*tau.shape, 1))
    return -(conj(tau) * first + tau * second)


def _block(v: Any, j: int, n: int) -> Any:
    """The vector of reflection j as a column, and 2 / |v|^2; 0 for one of zeros."""
    u = v[..., j, : max(0, n - j), None]
    top = np.abs(u).max(axis=(-2, -1), keepdims=True, initial=0.0)
    u = u / np.where(top == 0, 1, top)
    square = np.sum(np.abs(u) ** 2, axis=(-2, -1), keepdims=True)
    return u, np.where(square == 0, 0, 2 / np.where(square == 0, 1, square)), top


def cotangent_of_reflections(v: Any, g: Any) -> Any:
    """The cotangent of v of Q = H_0 H_1 ... from that of Q: reflections are their own inverses, so
    that what stands left and right of each follows from that of the one before."""
    n, (k, w) = g.shape[-1], v.shape[-2:]
    batch = np.broadcast_shapes(v.shape[:-2], g.shape[:-2])
    m = np.array(np.broadcast_to(g, (*batch, n, n)), np.result_type(v, g))
    found = np.zeros((*batch, k, w), m.dtype)

    def right(j: int) -> None:
        u, tau, _ = _block(v, j, n)
        part = m[..., :, j : j + w]
        part -= (tau * (part @ u)) @ np.conj(np.swapaxes(u, -1, -2))

    for j in range(k - 1, 0, -1):
        right(j)
    for j in range(k):
        u, tau, top = _block(v, j, n)
        block = m[..., j : j + w, j : j + w]
        both = block @ u + np.conj(np.swapaxes(block, -1, -2)) @ u
        along = np.real(np.conj(np.swapaxes(u, -1, -2)) @ both)
        made = tau * (u * (tau * along / 2) - both) / np.where(top == 0, 1, top)
        found[..., j, : u.shape[-2]] = made[..., 0]
        rows = m[..., j : j + w, :]
        rows -= u @ (tau * (np.conj(np.swapaxes(u, -1, -2)) @ rows))
        if j + 1 < k:
            right(j + 1)
    return found


def tangent_of_reflections(v: Any, t: Any, n: int) -> Any:
    """The derivative of Q = H_0 H_1 ... of n rows along t, by the product rule from the left."""
    k, w = v.shape[-2:]
    batch = np.broadcast_shapes(v.shape[:-2], t.shape[:-2])
    dtype = np.result_type(v, t)
    q = np.array(np.broadcast_to(np.eye(n, dtype=dtype), (*batch, n, n)))
    d = np.zeros_like(q)
    for j in range(k):
        u, tau, top = _block(v, j, n)
        du = t[..., j, : u.shape[-2], None] / np.where(top == 0, 1, top)
        uh, duh = np.conj(np.swapaxes(u, -1, -2)), np.conj(np.swapaxes(du, -1, -2))
        along = tau * np.real(uh @ du)
        now, moved = q[..., :, j : j + w], d[..., :, j : j + w]
        moved -= tau * ((moved @ u) @ uh)
        moved -= tau * ((now @ du) @ uh + (now @ u) @ duh - along * ((now @ u) @ uh))
        now -= tau * ((now @ u) @ uh)
    return d


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _reflect_right(m: Any, dm: Any, u: Any, du: Any, tau: Any, dtau: Any) -> None:
    """m becomes m H, and dm what that grows by, both in place."""
    mu, uh = m @ u, _adjoint(u)
    dm -= (dtau * mu + tau * (dm @ u + m @ du)) @ uh + (tau * mu) @ _adjoint(du)
    m -= (tau * mu) @ uh


def second_of_reflections(v: Any, t: Any, g: Any) -> Any:
    """What `cotangent_of_reflections` grows by when v grows by t: its lines, and beside each what
    it grows by. The vectors' scale is a constant: multiples of v make the same Q."""
    n, (k, w) = g.shape[-1], v.shape[-2:]
    batch = np.broadcast_shapes(v.shape[:-2], t.shape[:-2], g.shape[:-2])
    m = np.array(np.broadcast_to(g, (*batch, n, n)), np.result_type(v, t, g))
    dm, found = np.zeros_like(m), np.zeros((*batch, k, w), m.dtype)

    def grown(j: int) -> tuple[Any, Any, Any, Any, Any]:
        u, tau, top = _block(v, j, n)
        top = np.where(top == 0, 1, top)
        du = t[..., j, : u.shape[-2], None] / top
        return u, du, tau, -tau * tau * np.real(_adjoint(u) @ du), top

    def right(j: int) -> None:
        _reflect_right(m[..., :, j : j + w], dm[..., :, j : j + w], *grown(j)[:4])

    for j in range(k - 1, 0, -1):
        right(j)
    for j in range(k):
        u, du, tau, dtau, top = grown(j)
        block, dblock = (x[..., j : j + w, j : j + w] for x in (m, dm))
        block, dblock = block + _adjoint(block), dblock + _adjoint(dblock)
        both = block @ u
        dboth = dblock @ u + block @ du
        along = np.real(_adjoint(u) @ both)
        dalong = np.real(_adjoint(du) @ both + _adjoint(u) @ dboth)
        made = dtau * (u * (tau * along / 2) - both)
        made = made + tau * (du * (tau * along / 2) + u * ((dtau * along + tau * dalong) / 2))
        found[..., j, : u.shape[-2]] = ((made - tau * dboth) / top)[..., 0]
        rows, drows = (np.swapaxes(x[..., j : j + w, :], -1, -2) for x in (m, dm))
        _reflect_right(rows, drows, np.conj(u), np.conj(du), tau, dtau)  # H from the left
        if j + 1 < k:
            right(j + 1)
    return found


def _along(y: Any, t: Any) -> Any:
    """Of the cotangent of v, linear in that of Q: its adjoint is the tangent of Q."""
    v, g = y._args
    n, batch = g.shape[-1], np.broadcast_shapes(tuple(v.shape[:-2]), tuple(t.shape[:-2]))
    return call(tangent_of_reflections, (v, t), (*batch, n, n), np.result_type(v, t), n=n)


def _back(y: Any, g: Any) -> Any:
    """Of the tangent of Q, linear in that of v: its adjoint is the cotangent of v."""
    return _reflections({0: y._args[0]}, g, 0)


def _columns(v: Any, j: int, n: int, *more: Any) -> list[Any]:
    """Of v and of others the vectors of reflection j, as columns of n rows with zeros around."""
    high = min(v.shape[-1], n - j)
    made = []
    for x in (v, *more):
        batch = tuple(x.shape[:-2])
        zeros = [np.zeros((*batch, k), x.dtype) for k in (j, n - j - high)]
        whole = np.concatenate([zeros[0], x[..., j, :high], zeros[1]], axis=-1)
        made.append(np.reshape(whole, (*batch, n, 1)))
    return made


def _formula(v: Any, t: Any, n: int) -> Any:
    """The derivative of Q along t as a formula of v: the product rule from the left."""
    q, d = lazy(np.eye(n, dtype=v.dtype)), None
    for j in range(v.shape[-2]):
        u, du = _columns(v, j, n, t)
        top = stopped(np.max(np.abs(u), axis=(-2, -1), keepdims=True))
        top = np.where(top == 0, 1.0, top)
        u, du = u / top, du / top
        square = np.sum(np.real(conj(u) * u), axis=(-2, -1), keepdims=True)
        tau = np.where(square == 0, 0.0, 2.0 / np.where(square == 0, 1.0, square))
        along = tau * np.sum(np.real(conj(u) * du), axis=(-2, -1), keepdims=True)
        uh, duh = (conj(np.swapaxes(x, -1, -2)) for x in (u, du))
        qu = q @ u
        grown = (tau * (q @ du - along * qu)) @ uh + (tau * qu) @ duh
        d = -grown if d is None else d - (tau * (d @ u)) @ uh - grown
        q = q - (tau * qu) @ uh
    return d


def again(y: Any, g: Any) -> Any:
    """Of a function in `LINEAR`, by the vectors: the gradient of <G, the tangent of Q along t>."""
    v, other = y._args
    t, of_q = (other, g) if y._more[0] is tangent_of_reflections else (g, other)
    batch = np.broadcast_shapes(*(tuple(x.shape[:-2]) for x in (v, t, of_q)))
    dtype = np.result_type(v, t, of_q)
    made = call(second_of_reflections, (v, t, of_q), (*batch, *v.shape[-2:]), dtype)
    return np.real(made) if dtype.kind == "c" and v.dtype.kind != "c" else made


def once_more(y: Any, g: Any) -> Any:
    """Of `second_of_reflections`: through what a sweep finds through the formula."""
    v, t, of_q = y._args
    expression = _formula(v, t, of_q.shape[-1])
    if expression is None or 0 in expression.shape:
        return None
    return ThroughGradient(Through(expression, of_q, (v, t, of_q)), v, g)


# By their second argument these are linear; by the first see `again`.
LINEAR = {cotangent_of_reflections: _along, tangent_of_reflections: _back}


def _reflections(given: dict[int, Any], g: Any, number: int) -> Any:
    v = lazy(given[0])
    batch = np.broadcast_shapes(tuple(v.shape[:-2]), tuple(g.shape[:-2]))
    dtype = np.result_type(v.dtype, g.dtype)
    return call(cotangent_of_reflections, (v, g), (*batch, *v.shape[-2:]), dtype)


BY_FORMULA: dict[str, Callable[[dict[int, Any], Any, int], Any]] = {
    "householder": _householder,
    "reflections": _reflections,
}
