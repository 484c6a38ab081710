"""What programs ask torch for on another device, recorded and asked for again.

A walk looks at shapes, strides and options, never at a value: so the second call of a program is
recorded, function by function of torch's dispatcher, and from the third on these are called alone,
without the formula and its rewriting, which take longer than what a GPU does with a few thousand
rows. What comes twice is called once, what does not depend on the arguments is made once and kept,
as far as it is small."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from .._base import config, memory
from .._namespace.formulas import settings

__all__ = ["by_record"]

_FOLDED = 1 << 20  # bytes of what is made once and kept; larger ones are made anew
_KEPT = 16 << 20  # bytes that one record keeps
_ALL = 256 << 20  # bytes that all records keep
_LONGEST = 8000  # calls of torch in a record
_SAME = ("aten.detach.default", "aten.alias.default", "aten.lift_fresh.default")
_ATEN = torch.ops.aten

Compute = Callable[[list[Any], list[Any]], list[Any]]


class _Slot:
    """Of a program on arguments of the same kinds: whether it was called, its record, whether it
    can have none, of which dense forms it warns, and when its constants are made."""

    __slots__ = ("called", "heard", "made", "record", "refused")

    def __init__(self) -> None:
        self.called = self.refused = False
        self.heard: list[Any] = []
        self.made: Any = None
        self.record: Callable[..., list[Any]] | None = None

    def constants_seen(self, device: Any) -> None:
        """What this stream is asked from here on has them: they may be another stream's, and not
        be there yet."""
        made = self.made  # another thread may take it away
        if made is None or made.query():
            self.made = None
        else:
            torch.cuda.current_stream(device).wait_event(made)


@functools.lru_cache(maxsize=256)
def _slot(program: Any, kinds: Any, options: Any) -> _Slot:
    return _Slot()


_records: dict[_Slot, int] = {}  # bytes that each keeps, the oldest first
_captured: set[Any] = set()  # records whose constants a CUDA graph reads, as long as it is called
_lock = threading.Lock()


def _keep(slot: _Slot, nbytes: int) -> None:
    """Lets go of the oldest records where all of them keep too much."""
    with _lock:
        _records[slot] = nbytes
        while sum(_records.values()) > _ALL:
            oldest = next(iter(_records))
            del _records[oldest]
            oldest.record = None  # it is recorded anew when it is called


class _Line(NamedTuple):
    """One call: its function, its arguments as they are written, the tensors among these, what it
    gives, and whether that is a tuple."""

    func: Any
    given: tuple[str, ...]
    operands: tuple[str, ...]
    made: tuple[str, ...]
    several: bool


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Writes down what is called, as a function of the tensors that are given. Names: a0, a1, ...
    are these, c... constants, v... made. `failed` says why there can be no record."""

    def __init__(self, tensors: Any) -> None:
        super().__init__()
        self.lines: list[_Line] = []
        self.scope: dict[str, Any] = {}
        self.names: Any = WeakTensorKeyDictionary()
        self.roots: dict[str, str] = {}  # of views: whose memory they see
        self.known: dict[Any, Any] = {}  # what was called, or is seen: the names of what it gives
        self.bytes, self.calls, self.failed = 0, 0, ""
        for k, x in enumerate(tensors):
            self.names[x] = f"a{k}"
            self.known[self._view_of(f"a{k}", x)] = f"a{k}"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if not self.failed:
            self._note(func, args, kwargs or {}, found)
        return found

    def _note(self, func: Any, args: Any, kwargs: Any, found: Any) -> None:
        several = isinstance(found, (tuple, list))
        results = list(found) if several else [found]
        if func._schema.is_mutable or len(self.lines) >= _LONGEST:
            self.failed = f"{func} writes to its operands, or there is too much"
        elif not all(isinstance(x, torch.Tensor) for x in results):
            if any(self._name(x)[0] != "c" for x in args if isinstance(x, torch.Tensor)):
                self.failed = f"{func} gives what is no tensor"  # else it is the same each time
        elif str(func) in _SAME:
            self.names[found] = self._name(args[0])
        else:
            operands: list[str] = []
            given = [self._text(x, operands) for x in args]
            given += [f"{k}={self._text(x, operands)}" for k, x in kwargs.items()]
            self._call(_Line(func, tuple(given), tuple(operands), (), several), results)

    def _call(self, line: _Line, results: list[Any]) -> None:
        key: Any = line.func, line.given
        made = self.known.get(key)
        if made is None:
            self.calls += 1
            made = self.known[key] = self._named(line, results)
            if f"v{self.calls}_0" in made:
                self.lines.append(line._replace(made=made))
        for x, name in zip(results, made, strict=True):
            self.names[x] = name

    def _named(self, line: _Line, results: list[Any]) -> tuple[str, ...]:
        """Names for what a call gives: those of constants where no argument is in it, that of what
        is seen already where it is a view of something."""
        fixed = all(name[0] == "c" for name in line.operands)
        if fixed and all(x.untyped_storage().nbytes() <= _FOLDED for x in results):
            return tuple(map(self._constant, results))
        names = tuple(f"v{self.calls}_{k}" for k in range(len(results)))
        if line.func.is_view and len(line.operands) == 1 and not line.several:
            root = self.roots.get(line.operands[0], line.operands[0])
            found = self.known.setdefault(self._view_of(root, results[0]), names[0])
            if found == names[0]:
                self.roots[found] = root
            return (found,)
        if line.func.is_view and len(line.operands) == 1:  # pieces, each a view
            root = self.roots.get(line.operands[0], line.operands[0])
            self.roots.update((n, root) for n in names)
            return names
        self.known.update((self._view_of(n, x), n) for n, x in zip(names, results, strict=True))
        return names

    def _view_of(self, root: str, x: Any) -> Any:
        seen = tuple(x.shape), x.stride(), x.storage_offset()
        return root, *seen, x.dtype, x.is_conj(), x.is_neg()

    def _constant(self, x: Any) -> str:
        name = f"c{len(self.scope)}"
        self.scope[name] = x
        self.bytes += x.untyped_storage().nbytes()
        return name

    def _name(self, x: Any) -> str:
        """Of a tensor; one that came from nowhere is a constant."""
        if x not in self.names:
            self.names[x] = self._constant(x)
        found: str = self.names[x]
        return found

    def _text(self, x: Any, operands: list[str]) -> str:
        """Of an argument. What is no tensor is equal where it is written alike."""
        if isinstance(x, torch.Tensor):
            operands.append(self._name(x))
            return operands[-1]
        if isinstance(x, (list, tuple)):
            return f"[{', '.join([self._text(y, operands) for y in x])}]"
        if x is None or isinstance(x, (bool, int)):
            return repr(x)
        key = "other", type(x), repr(x)  # floats too: inf and NaN have no literal
        name: str = self.known.setdefault(key, f"o{len(self.scope)}")
        self.scope.setdefault(name, x)
        return name

    # -- the function

    def _subtractions(self) -> None:
        """a + b * -1.0 is a - b, to the last bit."""
        minus = self.known.get(("other", float, "-1.0"))
        negated = {
            line.made[0]: line.given[0]
            for line in self.lines
            if line.func is _ATEN.mul.Tensor and line.given[1] == minus
        }
        for k, line in enumerate(self.lines):
            if line.func is _ATEN.add.Tensor and len(line.given) == 2 and line.given[1] in negated:
                pair = line.given[0], negated[line.given[1]]
                self.lines[k] = line._replace(func=_ATEN.sub.Tensor, given=pair, operands=pair)

    def _used(self, out: list[str]) -> list[_Line]:
        """The calls that the results need."""
        need, kept = set(out), []
        for line in reversed(self.lines):
            if not need.isdisjoint(line.made):
                need.update(line.operands)
                kept.append(line)
        return kept[::-1]

    def function(self, count: int, results: Any) -> Callable[..., list[Any]] | None:
        """Of the tensors to the results; tensors are let go after their last use."""
        out = [self._name(x) for x in results]
        if self.failed or self.bytes > _KEPT:
            return None
        self._subtractions()
        lines = self._used(out)
        last = {name: k for k, line in enumerate(lines) for name in line.operands}
        body, scope = [], dict(self.scope)
        for k, line in enumerate(lines):
            scope[f"f{k}"] = line.func
            left = ", ".join(line.made) + ("," if line.several else "")
            body.append(f"{left} = f{k}({', '.join(line.given)})")
            gone = [n for n in dict.fromkeys(line.operands) if n[0] == "v" and last[n] == k]
            gone += [n for n in line.made if n not in last]
            gone = [n for n in gone if n not in out]
            body += [f"del {', '.join(gone)}"] if gone else []
        body.append(f"return [{', '.join(self._fresh(out))}]")
        head = f"def recorded({', '.join(f'a{k}' for k in range(count))}):\n    "
        exec(head + "\n    ".join(body), scope)
        found: Callable[..., list[Any]] = scope["recorded"]
        return found

    def _fresh(self, out: list[str]) -> list[str]:
        """Results as they are given: users write to them, so that none is a constant, and none
        another one."""
        seen: set[str] = set()
        found = []
        for name in out:
            root = self.roots.get(name, name)
            shared = name[0] in "ac" or root[0] in "ac" or root in seen
            found.append(f"{name}.clone()" if shared else name)
            seen.add(root)
        return found


def _is_captured(device: Any) -> bool:
    """Whether what is asked for goes into a CUDA graph, which computes nothing as yet."""
    return bool(device.type == "cuda" and torch.cuda.is_current_stream_capturing())


def by_record(compute: Compute, program: Any, kinds: Any, tensors: list[Any]) -> list[Any]:
    """`compute(held, tensors)`, by its record where there is one. It puts into `held` the arrays
    that it read, and others may write to. `kinds` are shapes and dtypes of the tensors."""
    device = tensors[0].device
    if device.type == "meta":
        return compute([], tensors)
    how = tuple([(x.stride(), x.is_conj(), x.is_neg()) for x in tensors])
    slot = _slot(program, (kinds, how, device), settings())
    record, captured = slot.record, _is_captured(device)
    if record is not None and not config.recording():
        for told in slot.heard:
            memory.materialising_elsewhere(*told)
        if captured:
            _captured.add(record)
        elif slot.made is not None:
            slot.constants_seen(device)
        return record(*tensors)
    if not slot.called or slot.refused or captured or config.recording():
        slot.called = slot.called or not captured
        return compute([], tensors)
    held: list[Any] = []
    heard: list[Any] = []
    recorder, token = _Recorder(tensors), memory.heard.set(heard)
    try:
        with recorder:
            found = compute(held, tensors)
    finally:
        memory.heard.reset(token)
    made = None if held else recorder.function(len(tensors), found)
    if recorder.bytes and device.type == "cuda":
        slot.made = torch.cuda.current_stream(device).record_event()
    slot.heard, slot.record, slot.refused = heard, made, made is None
    if made is not None:
        _keep(slot, recorder.bytes)
    return found
