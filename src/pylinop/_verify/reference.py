"""Applies expressions as they are written, node by node, by NumPy alone; verified answers
(`compare.py`) are compared with the result. No plan, no rule and no kernel of ours takes part.

`Walk.apply` gives mode(A) x. With ``bound`` all numbers are replaced by their absolute values and
all differences become sums: this gives |A| |x|, by which rounding errors are judged (those of a
product by |A| |B| |x|, of an inverse by |A^-1| |A| |A^-1|). Each step adds what underflow may lose
there, so that later factors enlarge it as they enlarge the lost numbers. A walk is a loop over
generators, so there is no depth limit."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from .. import _core
from .._base.checks import is_lazy
from .._base.dtypes import C, H, N, T
from .._base.index_steps import as_slice, taken
from .._base.trampoline import run
from .._fallback import interpreter, interpreter_composites
from .reference_inverse import Inverse
from .reference_kinds import apply
from .reference_leaf import NotVerified, check_length, has_room, magnitudes, sizes, thin, top, units

LARGEST_INVERSE = 1024  # rows of an inverse within an expression, solved from its dense form
_MOST_WORK = 1 << 33  # entries of operators that are met in one walk, times columns
_MOST_NODES = 1 << 20
_SHARED = {
    "kron": interpreter._kron,
    "lowrank": interpreter._lowrank,
    "kronsum": interpreter_composites._kron_sum,
    "blockdiag": interpreter_composites._block_diag,
    "block": interpreter_composites._block,
    "lowrankupdate": interpreter_composites._low_rank_update,
    "congruence": interpreter_composites._sandwich,
    "root": interpreter_composites._sandwich,
}
_FEW = 64  # what kinds of few numbers take of each row, FFT among them
_OF_FEW = ("tridiagonal", "toeplitz", "circulant", "hankel", "difference", "laplacian")
LEAN = ("diag", "offdiag", "identity", "zeros", "selection", "permutation", "full", "householder")


_LINEAR = ("matmul", "add", "scale", "over", "view", "inverse")
_SMALL = 256  # rows of parts whose sizes are found anew
_HEADS = {"matmul": "prod", "add": "sum", "scale": "scaled"}  # of LazyArrays, in operators' words


def written(op: Any) -> Any:
    """The head that a node was written with; a closed result goes by what it was closed from."""
    if is_lazy(op):
        return _HEADS.get(op._head, op._head)
    return op._by if op._operands else op._head


def operands(op: Any) -> Any:
    """What a node was made of: operators, LazyArrays, numbers."""
    return op._args if is_lazy(op) else op._operands


def mode_of(op: Any) -> Any:
    """Of a view."""
    return op._more if is_lazy(op) else op._mode


def is_operand(x: Any) -> Any:
    """Is x to be walked, no array or number?"""
    return isinstance(x, _core.Operator) or (is_lazy(x) and x._value is None and x._head != "leaf")


def below(op: Any) -> list[Any]:
    """The operators, or LazyArrays without a value, that a node is made of."""
    if is_lazy(op):
        return [x for x in op._args if is_operand(x)]
    known = op._operands or (op._init or ())
    return [o for o in known if isinstance(o, _core.Operator)]


def entries(leaf: Any) -> Any:
    """What a product with a vector multiplies by, about."""
    n = leaf.size // max(min(leaf.shape[-2:]), 1)
    if leaf._head in LEAN:
        return n
    if leaf._head in ("sparse", "sparsetriangular"):
        return n + getattr(leaf._given("A"), "nnz", n)
    return min(leaf.size, _FEW * n) if leaf._head in _OF_FEW else leaf.size


def _has_single_part(a: Any) -> bool:
    """Has a LazyArray within another single precision, at any depth, as NumPy's array would have?
    With a value too: it may be younger than the plan that is verified."""
    stack, met = list(a._args), set()
    while stack:
        x = stack.pop()
        if id(x) in met or not is_lazy(x) or x._head == "leaf":
            continue
        met.add(id(x))
        if x.dtype is not None and x.dtype.char in "fF":
            return True
        stack += x._args
    return False


def steps(root: Any, dtype: Any = None) -> Any:
    """How many roundings a result of that dtype meets on its way, about: what a bound is multiplied
    by. Parts of LazyArrays are in their own dtypes, as NumPy's arrays would be: what is wide in the
    end may have been single on its way, and what is assumed of an array holds to its rounding."""
    known: dict[int, int] = {}
    stack = [root]
    while stack:
        op = stack[-1]
        if id(op) in known:
            stack.pop()
            continue
        parts = below(op)
        missing = [o for o in parts if id(o) not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        counts = [known[id(o)] for o in parts]
        head = written(op)
        if not parts:
            lean = head in LEAN and head not in ("full", "householder")
            met = op.shape[-2:]
            if is_lazy(op):  # what its arguments have is known: the product counts
                met = [s for x in op._args for s in np.shape(x)]
            known[id(op)] = 4 if lean else max(met, default=1) + 4
        elif head in ("sum", "joint"):
            known[id(op)] = max(counts) + 1
        elif head in ("view", "scaled", "over", "part", "sliced", "blockdiag", "operator", "index"):
            known[id(op)] = max(counts) + 1
        elif head == "power":
            known[id(op)] = counts[0] * max(abs(int(op._operands[1])), 1) + 1
        elif head == "inverse":
            known[id(op)] = 2 * counts[0] + max(op.shape[-1], 1)
        else:  # of a LazyArray's product the array on the other side counts too
            known[id(op)] = sum(counts) + len(counts)
            if is_lazy(op) and len(parts) < len(op._args):
                known[id(op)] += max((s for x in op._args for s in np.shape(x)), default=1)
    double = dtype is not None and dtype.char in "dD"
    rough = double and ((is_lazy(root) and _has_single_part(root)) or has_named(root, "fF"))
    return known[id(root)] * (2.0**29 if rough else 1)


def _has_sizes(a: Any) -> bool:
    """Is what errors of a known part of a LazyArray are judged by to be had from how it is written?
    The value may be younger than the plan, which computed the part anew: where the entries of
    inv(A) @ A cancel, the value's say nothing of that. (Of small parts: of large ones it costs.)
    NotVerified where that part has parts without a value that no reference is written for."""
    stack, unknown = [a], ""
    for _ in range(64):
        if not stack:
            break
        x = stack.pop()
        if not is_lazy(x) or x._head == "leaf":
            continue
        if max(x.shape, default=1) > _SMALL:
            return False
        if x._head in _LINEAR or _is_sum(x):
            stack += x._args
        elif x._value is None and x._head not in ("operator", "index"):
            unknown = x._head
    if unknown and not stack:
        raise NotVerified(f"the sizes of a part of a formula, for there is {unknown!r} within it")
    return not stack


def _is_sum(x: Any) -> bool:
    """Of vectors or numbers, by NumPy's functions."""
    if x._head != "call" or x.ndim >= 2 or x._more[1]:
        return False
    return getattr(x._more[0], "__name__", "") in ("negative", "add", "subtract", "multiply")


class Walk:
    """One expression's reference; dense forms of inverses are kept as long as it lives. `dtype`:
    of the result, whose least number is what a step may lose."""

    def __init__(self, work: Any, root: Any = None, named: bool = False, dtype: Any = None) -> None:
        self.work, self.bound, self.root = np.dtype(work), False, root
        inexact = dtype is not None and np.dtype(dtype).kind in "fc"
        info = np.finfo(dtype if inexact else float)
        self.lost = float(info.smallest_subnormal / info.eps)  # sizes are multiplied by u later
        self.named = named  # of what is assumed the named triangle is read alone
        self.forms: dict[Any, Any] = {}
        self.nodes, self.entries, self.most = 0, 0, _MOST_WORK

    def apply(self, op: Any, x: Any, mode: int = N, bound: bool = False) -> Any:
        """mode(op) x for x of shape (..., n, k); |op| x with ``bound``."""
        before, self.bound = self.bound, bound
        try:
            with np.errstate(all="ignore"):
                return run(self._rounded, op, x, mode, False)
        finally:
            self.bound = before

    def dense(self, op: Any, bound: bool = False) -> Any:
        """The dense form of an expression."""
        if not has_room(int(np.prod(op.shape, dtype=np.int64))):
            raise NotVerified(f"the dense form of {type(op).__name__} {op.shape} is too large")
        key = id(op), bound
        if key not in self.forms:
            dtype = float if bound else self.work
            eye = np.eye(op.shape[-1], dtype=dtype)
            if is_plain(op) and not self.named:
                a = np.asarray(op._given("a")).astype(
                    self.work if op.dtype.kind != "c" else complex
                )
                form = np.abs(a) if bound else a
            else:
                form = self.apply(op, eye, N, bound)
            self.forms[key] = op, form  # op: so that its id stays its own
        return self.forms[key][1]

    # -- one node

    def _rounded(self, op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
        y = yield from self._steps(op, x, mode, vec)
        return y + self.lost if self.bound else y

    def _steps(self, op: Any, x: Any, mode: int, vec: bool) -> Generator[Any, Any, Any]:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise NotVerified("the expression as written has too many products")
        if x is not None and op.ndim >= 2:
            check_length(max(op.shape[-2:]), x.shape[-1])
        if is_lazy(op):
            return (yield from self._lazily(op, x, mode))
        parts = op._operands
        head = written(op)
        if op._opaque and not parts and not below(op):
            raise NotVerified(f"{type(op).__name__} is a callable or a class of a user's")
        if head == "sum":
            left = yield parts[0], x, mode, vec
            right = yield parts[1], x, mode, vec
            return left + right
        if head == "prod":
            first, second = parts if mode & T else parts[::-1]
            y = yield first, x, mode, vec
            return (yield second, y, mode, vec)
        if head == "scaled":
            y = yield parts[0], x, mode, vec
            return self._number(parts[1], mode) * y
        if head == "view":
            return (yield parts[0], x, mode ^ op._mode, vec)
        if head == "power":
            for _ in range(int(parts[1])):
                x = yield parts[0], x, mode, vec
            return x
        if head == "inverse":
            return (yield from self._inverse(parts[0], x, mode))
        if head == "part":
            return (yield from self._part(op, x, mode))
        if head == "sliced":
            return (yield from self._sliced(op, x, mode))
        if head == "eigen":
            return (yield from self._eigen(op, x, mode))
        if head in ("elementwise", "khatrirao"):
            return self._elements(op, head, mode) @ x
        if head in _SHARED:
            return (yield from _SHARED[head](op, x, mode, vec))
        if self.named and assumed(op) is not None:
            kind = complex if op.dtype.kind == "c" and self.work.kind == "f" else self.work
            key = id(op), kind
            if key not in self.forms:
                self.forms[key] = op, solved_form(op, np.asarray(op._given("a")).astype(kind))
            a = self.forms[key][1]
            return self._seen(np.abs(a) if self.bound else a, mode) @ x
        self.entries += entries(op) * x.shape[-1]
        if self.entries > self.most:
            raise NotVerified("the expression as written takes too long")
        return apply(op, x, mode, self.work, self.bound)

    def _number(self, c: Any, mode: int) -> Any:
        c = np.asarray(c)
        if self.bound:
            return np.abs(c.astype(complex)).item() if c.ndim == 0 else np.abs(c)
        c = np.conjugate(c) if mode & C else c
        return c.astype(np.result_type(self.work, complex) if c.dtype.kind == "c" else self.work)

    def _part(self, op: Any, x: Any, mode: int) -> Generator[Any, Any, Any]:
        """The real or imaginary part, of a real x and of i times a real x."""
        y = yield op._operands[0], x, mode, False
        if self.bound:
            return y
        if np.iscomplexobj(x):
            z = yield op._operands[0], x, mode ^ C, False
            half = (0.5j if mode & C else -0.5j) if op._mode else 0.5
            return (y - z) * half if op._mode else (y + z) * half
        y = -y if mode & C and op._mode else y
        return y.imag if op._mode else y.real

    def _sliced(self, op: Any, x: Any, mode: int) -> Generator[Any, Any, Any]:
        """Put where it was taken from, apply the whole, take."""
        whole, steps = op._operands
        if any(s[0] > 1 for s in steps):
            a = taken(self.dense(whole, self.bound), steps)
            return self._seen(a, mode) @ x
        take = {s[0]: s[1] if len(s) == 2 else as_slice(s) for s in steps}
        into, out = (0, 1) if mode & T else (1, 0)
        if into in take:
            check_length(whole.shape[-2 + into], x.shape[-1])
            full = np.zeros((*x.shape[:-2], whole.shape[-2 + into], x.shape[-1]), x.dtype)
            at: Any = (..., take[into], slice(None))
            np.add.at(full, at, x)
            x = full
        y = yield whole, x, mode, False
        return y[..., take[out], :] if out in take else y

    def _eigen(self, op: Any, x: Any, mode: int) -> Generator[Any, Any, Any]:
        a, b = op._given("Q", "d")
        flipped = mode in (C, T)
        x = yield a, x, T if flipped else H, False
        b = (
            magnitudes(np.asarray(b))
            if self.bound
            else np.conjugate(b)
            if mode & C
            else np.asarray(b)
        )
        dtype = float if self.bound else np.result_type(b, self.work)
        x = b.astype(dtype)[..., None] * x
        return (yield a, x, C if flipped else N, False)

    def _elements(self, op: Any, head: str, mode: int) -> Any:
        pair = op._operands if op._init is None else op._given("A", "B")
        a, b = (self.dense(o, self.bound) for o in pair)
        if head == "elementwise":
            return self._seen(a * b, mode)
        both = a[..., :, None, :] * b[..., None, :, :]
        rows = a.shape[-2] * b.shape[-2]
        return self._seen(both.reshape(*both.shape[:-3], rows, both.shape[-1]), mode)

    def _seen(self, a: Any, mode: int) -> Any:
        a = np.swapaxes(a, -1, -2) if mode & T else a
        return np.conjugate(a) if mode & C and not self.bound else a

    # -- LazyArrays: a matrix is applied, a vector is a column, a number is one by one

    def _lazily(self, a: Any, x: Any, mode: int) -> Generator[Any, Any, Any]:
        if a is not self.root:
            array = a._value if a._value is not None else a._args[0] if a._head == "leaf" else None
            if array is not None:
                y = self._array(array, x, mode, a if a._value is None else None)
                if not (self.bound and (a._head in _LINEAR or _is_sum(a)) and _has_sizes(a)):
                    return y
                anew = yield from (self._matrix if a.ndim >= 2 else self._vector)(a, x, mode)
                return y + anew  # whichever is larger: operands may have been written to
        elif a._head == "leaf":
            return self._array(a._args[0], x, mode)
        return (yield from (self._matrix if a.ndim >= 2 else self._vector)(a, x, mode))

    def _array(self, array: Any, x: Any, mode: int, leaf: Any = None) -> Any:
        """What an array stands for: applied, or a column."""
        a = np.asarray(array)
        if a.dtype.char not in "?bBhHiIlLqQfdFD":
            raise NotVerified(f"an array of dtype {a.dtype}")
        if self.named and leaf is not None and assumed(leaf) is not None:
            a = solved_form(leaf, a)
        if self.bound and a.ndim == 2 and x.ndim == 2:
            return sizes(np.swapaxes(a, -1, -2) if mode & T else a, x)
        kind = complex if a.dtype.kind == "c" and self.work.kind == "f" else self.work
        a = a.astype(kind, copy=False)
        a = np.abs(a) if self.bound else a
        if a.ndim < 2:
            return a.reshape(-1, 1)
        return thin(self._seen(a, mode), x)

    def _matrix(self, a: Any, x: Any, mode: int) -> Generator[Any, Any, Any]:
        head, args = a._head, a._args
        if head == "operator":
            return (yield args[0], x, mode, False)
        if head == "matmul":
            if min(v.ndim for v in args) < 2:
                raise NotVerified("a stack of products with a vector")
            first, second = args if mode & T else args[::-1]
            y = yield first, x, mode, False
            return (yield second, y, mode, False)
        if head == "add":
            left = yield args[0], x, mode, False
            right = yield args[1], x, mode, False
            return left + right
        if head in ("scale", "over"):
            y = yield args[0], x, mode, False
            c = yield from self._scalar(args[1], mode)
            return c * y if head == "scale" else y / c
        if head == "view":
            return (yield args[0], x, mode ^ a._more, False)
        if head == "inverse":
            return (yield from self._inverse(args[0], x, mode))
        if head == "index" and a.ndim == 2 and args[0].ndim == 2:
            whole = self.dense(args[0], self.bound)
            return self._seen(whole[a._more], mode) @ x
        raise NotVerified("a function of NumPy's within a formula")

    def _scalar(self, c: Any, mode: int) -> Generator[Any, Any, Any]:
        """A number of Python's, or the value of a LazyArray of no dimensions."""
        if is_lazy(c):
            c = (yield c, None, N, False).ravel()[0]
        return self._number(c, mode)

    def _vector(self, a: Any, x: Any, mode: int) -> Generator[Any, Any, Any]:
        """The column of a vector, or the one entry of a number."""
        head, args = a._head, a._args
        if head == "matmul":
            left, right = args
            if left.ndim == 1:
                y = yield left, None, N, False
                if right.ndim == 2:
                    return (yield right, y, T, False)
                return np.swapaxes(y, -1, -2) @ (yield right, None, N, False)
            return (yield left, (yield right, None, N, False), N, False)
        if head == "index":
            return (yield from self._entry(a))
        if head in ("scale", "over"):
            y = yield args[0], None, N, False
            c = yield from self._scalar(args[1], N)
            return c * y if head == "scale" else y / c
        if head != "call" or a._more[1]:
            raise NotVerified("a function of NumPy's within a formula")
        values = []
        for v in args:
            value = yield from self._argument(v)
            values.append(value)
        name = getattr(a._more[0], "__name__", "")
        if name == "negative":
            return values[0] if self.bound else -values[0]
        if name in ("add", "subtract"):
            return values[0] - values[1] if name == "subtract" and not self.bound else sum(values)
        if name == "multiply":
            return values[0] * values[1]
        raise NotVerified(f"NumPy's {name} within a formula")

    def _argument(self, v: Any) -> Generator[Any, Any, Any]:
        if is_lazy(v):
            return (yield v, None, N, False)
        if isinstance(v, np.ndarray):
            return self._array(v, None, N)
        return self._number(v, N)

    def _entry(self, a: Any) -> Generator[Any, Any, Any]:
        """One element of a matrix, or a row or column as a column."""
        whole, key = a._args[0], a._more
        if whole.ndim != 2:
            raise NotVerified("an index into a stack")
        if isinstance(key, tuple) and len(key) == 2 and all(type(k) is int for k in key):
            unit = units(whole.shape[1], [key[1]], float if self.bound else self.work)
            return (yield whole, unit, N, False)[[key[0]], :]
        return self.dense(whole, self.bound)[key].reshape(-1, 1)

    # -- inverses within an expression, whose result is not at hand

    def _inverse(self, op: Any, x: Any, mode: int) -> Generator[Any, Any, Any]:
        parts, head = operands(op), written(op)
        if head == "view":
            return (yield from self._inverse(parts[0], x, mode ^ mode_of(op)))
        n = op.shape[-1]
        batch = int(np.prod(op.shape[:-2], dtype=np.int64))
        large = n > LARGEST_INVERSE or n**3 * max(batch, 1) > LARGEST_INVERSE**3
        if head == "inverse":
            y = yield parts[0], x, mode, False
            if not self.bound or large:
                return y
            a, inverse = self._written_out(parts[0])  # twice inverted: what both lose
            return y + self._seen(np.abs(a), mode) @ top(self._seen(np.abs(inverse), mode) @ y)
        if op._head in ("diag", "identity") and not parts:
            return self._over_diagonal(op, x, mode)
        if large:
            return self._by_residual(op, x, mode)
        a, inverse = self._written_out(op)
        if not self.bound:
            return np.linalg.solve(self._seen(a, mode), x)
        inverse = self._seen(np.abs(inverse), mode)
        size = self._seen(np.maximum(self.dense(op, True), np.abs(a)), mode)
        y = inverse @ x  # what a solve promises: by the largest entries, for LU fills what is zero
        return y + inverse @ top(size @ y)

    def _written_out(self, op: Any) -> Any:
        """The dense form and its inverse."""
        key = id(op), "inverse"
        if key not in self.forms:
            before, self.bound = self.bound, False
            a = self.dense(op)
            a = solved_form(op, a) if self.named else a
            self.bound = before
            try:
                self.forms[key] = op, (a, np.linalg.inv(a))
            except np.linalg.LinAlgError:
                raise NotVerified("an inverse that NumPy's LU found singular") from None
        return self.forms[key][1]

    def _by_residual(self, op: Any, x: Any, mode: int) -> Any:
        key = id(op), "residual"
        if key not in self.forms:
            self.forms[key] = op, Inverse(self, op, steps(op, np.dtype(float)))
        known = self.forms[key][1]
        if self.bound:
            return known.bound(x)
        return known.solved(x, mode)

    def _over_diagonal(self, op: Any, x: Any, mode: int) -> Any:
        if op._head == "identity":
            return x
        d = np.asarray(op._given("d")).astype(self.work if op.dtype.kind != "c" else complex)
        d = 1 / (np.abs(d) if self.bound else np.conjugate(d) if mode & C else d)
        return d[..., None] * x


def is_plain(op: Any) -> Any:
    """Is it a Dense as constructed?"""
    lazy = is_lazy(op)
    return not lazy and op._head == "dense" and not op._operands and op._init is not None


_LOWER, _UPPER = ("lower triangular", "lower"), ("upper triangular", "upper")
TRIANGLES = (*_LOWER, *_UPPER)


def assumed(op: Any) -> Any:
    """The word of an assumed Dense, or of a LazyArray over an array; None."""
    if is_lazy(op):
        return op._more if op._head == "leaf" else None
    return op._given("assume_a") if is_plain(op) else None


def has_named(root: Any, dtypes: str = "") -> bool:
    """Is there an assumed matrix, of such a dtype, of which the named triangle is not all of it?"""
    stack, seen = [root], set()
    while stack:
        op = stack.pop()
        if id(op) in seen:
            continue
        seen.add(id(op))
        stack += below(op)
        leaves = [op, *(x for x in op._args if is_lazy(x))] if is_lazy(op) else [op]
        for x in leaves:
            if assumed(x) is not None:
                a = np.asarray(x._args[0] if is_lazy(x) else x._given("a"))
                if (not dtypes or a.dtype.char in dtypes) and not np.array_equal(
                    solved_form(x, a), a
                ):
                    return True
    return False


def solved_form(op: Any, a: Any) -> Any:
    """The matrix that a solve sees: of an assumed Dense the named triangle is read alone."""
    word = assumed(op)
    if word is None:
        return a
    if word in ("diagonal", "tridiagonal"):
        k = int(word == "tridiagonal")
        return np.triu(np.tril(a, k), -k)
    upper = np.triu(a, 1)
    if word in _LOWER:
        return np.tril(a)
    if word in _UPPER:
        return np.triu(a)
    if word in ("sym", "symmetric"):
        return np.triu(a) + np.swapaxes(upper, -1, -2)
    if word in ("her", "hermitian", "pos", "positive definite"):
        d = np.zeros_like(a)
        at = np.arange(a.shape[-1])
        d[..., at, at] = a[..., at, at].real
        return upper + d + np.conjugate(np.swapaxes(upper, -1, -2))
    return a


def peeled(op: Any, mode: int) -> Any:
    """mode(op) = c A_1^-1 ... A_p^-1 B_1 ... B_q as ([A], [B], c), each with its mode: what a
    residual needs. A product of inverses in front is as far as it goes."""
    left, right, c = [], [(op, mode)], []
    while right:
        first, how = right[0]
        head, parts = written(first), operands(first)
        if is_lazy(first) and first._value is not None and first is not op:
            break
        if head == "operator":
            right[0] = parts[0], how
        elif head == "view":
            right[0] = parts[0], how ^ mode_of(first)
        elif head == "scaled" and not is_lazy(parts[1]):
            right[0] = parts[0], how
            c.append((parts[1], how))
        elif head == "prod":
            right[:1] = [(o, how) for o in (parts[::-1] if how & T else parts)]
        elif head == "inverse":
            inner = parts[0]
            while written(inner) == "view":
                inner, how = operands(inner)[0], how ^ mode_of(inner)
            left.append((inner, how))
            del right[0]
        else:
            break
    return left, right, c
