"""Programs as one operator of PyTorch's dispatcher, for transforms of `torch.func` and graphs,

    pylinop::run(program, sizes, flags, tensors) -> tensors

of the program's text (`_programs/text.py`). Its shapes are known without values; its derivatives,
of any order in both modes, are the same operator of another program; batches of `torch.func.vmap`
are dimensions in front, of these `sizes`, and `flags` has a word for each tensor that says which of
them it has. So a graph of `torch.compile` need not break at a result, nor within a transform.

`torch.library.register_autograd` does not do: under `torch.func.grad` it raises, and under
`torch.func.jvp` tangents are zero without an error. An autograd Function of a single level does
what PyTorch's own operators do under a transform."""

from __future__ import annotations

import importlib
import operator
from typing import Any

import numpy as np
import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction

from .._programs.formulas import Held, Kept, Parts, Several, number_of
from .._programs.operators import Operator
from .._programs.programs import Formula, Program, WithGradients
from .._programs.text import kept, now, of_program, program_of
from . import derived
from .arrays import LETTERS, out_dtype
from .tracer import constant, when_traced
from .values import kinds_of, mapped, values

__all__ = ["called", "in_graph", "kind_in_graph"]

_library = torch.library.Library("pylinop", "FRAGMENT")
_library.define("run(str program, SymInt[] sizes, str flags, Tensor[] tensors) -> Tensor[]")
_op: Any = torch.ops.pylinop.run.default
_C: Any = torch._C
_is_batch = _C._functorch.is_legacy_batchedtensor


def _words(flags: str, tensors: Any) -> tuple[str, ...]:
    return tuple(flags.split(",")) if tensors else ()


def _bound(program: Program, sizes: Any, flags: Any, tensors: Any) -> list[Any]:
    found: list[Any] = _op(of_program(program), list(sizes), ",".join(flags), list(tensors))
    return found


def called(program: Program, tensors: Any) -> list[Any]:
    """The values of a program, whatever transforms and modes there are."""
    found: list[Any] = _op(of_program(program), (), "," * (len(tensors) - 1), tensors)
    return found


# -- values ----------------------------------------------------------------------------------------


def _promised(text: str, sizes: Any, flags: str, tensors: Any) -> list[Any]:
    """Tensors without values. The graph is for these shapes."""
    kinds = kinds_of(program_of(text), _words(flags, tensors), tensors)
    device = tensors[0].device if tensors else None
    return [
        torch.empty((*sizes, *shape), dtype=out_dtype(dtype), device=device)
        for shape, dtype in kinds
    ]


def _computed(text: str, sizes: Any, flags: str, tensors: Any) -> list[Any]:
    program, sizes = now(text), tuple(map(int, sizes))
    if sizes:
        return mapped(program, sizes, _words(flags, tensors), tensors)
    return _own(values(program, tensors), tensors)


def _own(found: list[Any], tensors: Any) -> list[Any]:
    """Values in memory of their own that begins with them, as the dispatcher is told: compiled code
    relies on its alignment."""
    known = {x.untyped_storage().data_ptr() for x in tensors}
    made = []
    for x in found:
        at = x.untyped_storage().data_ptr()
        made.append(x.clone() if at in known or x.storage_offset() else x)
        known.add(at)
    return made


_library.impl("run", _computed, "CompositeExplicitAutograd")
torch.library.register_fake("pylinop::run", _promised, lib=_library)


# -- derivatives -----------------------------------------------------------------------------------


class _Run(_SingleLevelFunction):  # type: ignore[misc]
    """(keys of the dispatcher, program, gradients asked for, sizes, flags, tensors) -> (values,
    gradients of the values)."""

    @staticmethod
    def forward(
        ctx: Any, keys: Any, program: Program, by: Any, sizes: Any, flags: Any, *tensors: Any
    ) -> Any:
        text = of_program(WithGradients(program, by) if by else program)
        with torch.enable_grad(), _set_fwd_grad_enabled(True), _C._AutoDispatchBelowAutograd():
            # A Function turns both off; the transforms outside of this one need them.
            below = keys & _C._after_autograd_keyset
            found = _op.redispatch(below, text, sizes, ",".join(flags), list(tensors))
        return derived.keep_all(ctx, program, by, tuple(sizes), flags, tensors, found)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        asked = ctx.needs_input_grad[5:]
        return None, None, None, None, None, *derived.backward(ctx, _bound, asked, cotangents)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return derived.jvp(ctx, _bound, tangents[5:])


def _differentiated(keys: Any, text: str, sizes: Any, flags: str, tensors: Any) -> list[Any]:
    program, words = program_of(text), _words(flags, tensors)
    by = derived.gradients_with(program, words, tensors)
    with enable_single_level_autograd_function():
        found = _Run.apply(keys, program, by, sizes, words, *tensors)
    return list(found[: len(found) // (1 + len(by))])


_library.impl("run", _differentiated, "Autograd", with_keyset=True)


# -- batches ---------------------------------------------------------------------------------------


def _batched(info: Any, dims: Any, text: str, sizes: Any, flags: str, tensors: Any) -> Any:
    pairs = list(zip(tensors, dims[3], strict=True))
    moved = [x if d is None else x.movedim(d, 0) for x, d in pairs]
    more = ["0" if d is None else "1" for _, d in pairs]
    words = [a + b for a, b in zip(more, _words(flags, tensors), strict=True)]
    found = _op(text, [info.batch_size, *sizes], ",".join(words), moved)
    return found, [0] * len(found)


torch.library.register_vmap("pylinop::run", _batched, lib=_library)


def called_of_batches(program: Program, tensors: Any) -> list[Any]:
    """The values of a program, of tensors of which some are batches of autograd's own map
    (`is_grads_batched`, `vectorize=True`), which has no rules that an operator could register."""
    level = _C._vmapmode_increment_nesting() - 1
    _C._vmapmode_decrement_nesting()
    if level > 1:
        raise NotImplementedError(
            "pylinop.torch within is_grads_batched or vectorize=True within another one: "
            "torch.func.vmap, or torch.func.jacrev and hessian, nest"
        )
    whole = [torch._remove_batch_dim(x, level, 1, 0) if _is_batch(x) else x for x in tensors]
    flags = ["1" if _is_batch(x) else "0" for x in tensors]
    size = next(x.shape[0] for x, on in zip(whole, flags, strict=True) if on == "1")
    found = _bound(program, (size,), flags, whole)
    return [torch._add_batch_dim(x, 0, level) for x in found]


# -- within torch.compile, whose tracer reads this: constants and calls alone ----------------------


@constant
def _text(code: Any, asked: Any, arrays: int) -> str:
    return kept(Formula(Parts(code, asked, arrays)))


@constant
def _kind(code: Any, asked: Any, arrays: int, given: Any) -> Any:
    avals = tuple((shape, np.dtype(letter)) for shape, letter in given)
    shape, dtype = Formula(Parts(code, asked, arrays)).kinds(avals)[0]
    return shape, dtype.str


def _multiply_operators(tracer: Any) -> None:
    """Older tracers (2.11) have no row for `@` of two objects, as they have for `+`; this one is
    for ours alone, others are refused as before."""
    tables = getattr(tracer, "_binop_handlers", None)
    objects = getattr(torch._dynamo.variables, "UserDefinedObjectVariable", None)
    if tables is None or objects is None:
        return

    def product(tx: Any, a: Any, b: Any) -> Any:
        ours = issubclass(a.python_type(), Operator) and issubclass(b.python_type(), Operator)
        return a.call_method(tx, "__matmul__", [b], {}) if ours else None

    tables().setdefault(operator.matmul, []).append(((objects, objects), product))


@when_traced
def _reflect_products() -> None:
    """Where the first of two operands is no tensor, the tracer turns them around and takes the
    reflected method, but for `@`, of which its table has no row: there it takes the same method
    for both orders. The row makes of it what Python does. Where there is no such table `A @ x`
    has no place in a graph, and says so (`operators.py`)."""
    try:
        tracer = importlib.import_module("torch._dynamo.variables.builtin")
    except ImportError:  # a room of its own house, which may be moved
        return
    table = getattr(tracer, "BUILTIN_TO_TENSOR_RFN_MAP", None)
    if isinstance(table, dict):
        table.setdefault(operator.matmul, torch.Tensor.__rmatmul__)
    builtin = getattr(tracer, "BuiltinVariable", None)
    if builtin is not None and not hasattr(builtin, "call_matmul"):
        _multiply_operators(builtin)


_number = constant(number_of)
_KEEPS = torch.torch_version.TorchVersion(torch.__version__) >= (2, 12)
"""Does the tracer hand objects on to functions of constant results? (2.11 fails in itself.)"""


def _constant(x: Any) -> Any:
    """An argument whose objects are numbers."""
    if type(x) is Held:
        if not _KEEPS:
            raise TypeError(
                f"a {type(x.held).__name__} is no part of a graph before PyTorch 2.12: compile a "
                "function that calls a program(f), with it in f"
            )
        return Kept(_number(x.held))
    if type(x) is Several:
        pairs = x.type is dict
        return Several(
            x.type, tuple([(y[0], _constant(y[1])) if pairs else _constant(y) for y in x.parts])
        )
    return x


def _code(parts: Parts) -> Any:
    """Nodes as constants."""
    return tuple([(name, _constant(args), _constant(words)) for name, args, words in parts.code])


def avals_in_graph(tensors: Any) -> Any:
    """Shapes and dtypes as constants."""
    return tuple([(tuple(x.shape), LETTERS[x.dtype]) for x in tensors])


def kind_in_graph(parts: Parts, tensors: Any) -> Any:
    """Shape and dtype of the first value."""
    given = avals_in_graph(tensors)
    shape, letter = _kind(_code(parts), parts.asked, parts.arrays, given)
    return shape, np.dtype(letter)


def in_graph(parts: Parts, tensors: Any) -> Any:
    """The values of a formula."""
    return text_in_graph(_text(_code(parts), parts.asked, parts.arrays), tensors)


def text_in_graph(text: str, tensors: Any) -> Any:
    """The values of a program."""
    return _op(text, (), "," * (len(tensors) - 1), tensors)


def written(program: Program, given: Any) -> str:
    """The text of a function's program, for a graph of tensors of these shapes and dtypes."""
    program.kinds(tuple((shape, np.dtype(letter)) for shape, letter in given))
    return kept(program)
