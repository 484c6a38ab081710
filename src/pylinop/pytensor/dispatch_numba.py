"""`Structured` for numba, PyTensor's default: a call of pylinop's C face by its address, so that
compiled functions are kept on disk, and work in nutpie's threads."""

from __future__ import annotations

import zlib
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.extending import get_cython_function_address

from ._compat import (
    call_cached_ptr,
    compile_numba_function_src,
    numba_njit,
    register_funcify_default_op_cache_key,
)
from .ops import Structured
from .program import like

__all__ = ["funcify"]

WORDS = 6  # of lop_capi_array
_CALL = types.FunctionType(
    types.int32(
        types.intp, types.int64, types.int64, types.intp, types.int64, types.intp, types.int32
    )
)


@numba_njit  # type: ignore[untyped-decorator]
def _address() -> Any:
    with numba.objmode(ptr=types.intp):
        ptr = get_cython_function_address("pylinop._core", "lop_capi_call")
    return ptr


@numba_njit  # type: ignore[untyped-decorator]
def _run(program: Any, nargs: Any, nout: Any, words: Any, dims: Any) -> Any:
    call = call_cached_ptr(
        get_ptr_func=_address, func_type_ref=_CALL, unique_func_name_lit="pylinop.lop_capi_call"
    )
    at = np.int64(words.ctypes.data)
    status = call(
        np.int64(program.ctypes.data),
        program.size,
        nargs,
        at,
        nout,
        at + nargs * WORDS * 8,
        np.int32(0),
    )
    return status + 0 * (words[0] + dims[0])  # both are alive until here


def _source(node: Any, spec: Any) -> str:
    """The function's text: it lays out the arrays and calls. All arrays are looked at afterwards,
    or numba would drop them before."""
    nargs, nout = len(node.inputs), len(node.outputs)
    dims = 2 * sum(x.ndim for x in (*node.inputs, *node.outputs)) + 1
    names = [f"x{k}" for k in range(nargs)]
    lines = [f"def structured({', '.join(names)}):"]
    lines += [f"    a{k} = np.asarray({x})" for k, x in enumerate(names)]
    for k, (out, (what, j)) in enumerate(zip(node.outputs, like(spec), strict=True)):
        shape = {"number": "()", "same": f"a{j}.shape", "rows": f"a{j}.shape[:-1]"}[what]
        lines.append(f"    o{k} = np.empty({shape}, np.{out.dtype})")
    lines.append(f"    dims = np.zeros({dims}, np.int64)")
    lines.append("    start = np.int64(dims.ctypes.data)")
    lines.append(f"    words = np.zeros({WORDS * (nargs + nout)}, np.int64)")
    at = 0
    everything = [(f"a{k}", v) for k, v in enumerate(node.inputs)]
    everything += [(f"o{k}", v) for k, v in enumerate(node.outputs)]
    for k, (name, v) in enumerate(everything):
        code = ord(np.dtype(v.dtype).char)
        where = f"start + {8 * at}", f"start + {8 * (at + v.ndim)}"
        for i, word in enumerate((f"np.int64({name}.ctypes.data)", code, v.ndim, *where)):
            lines.append(f"    words[{WORDS * k + i}] = {word}")
        for i in range(v.ndim):
            lines.append(f"    dims[{at + i}] = {name}.shape[{i}]")
            lines.append(f"    dims[{at + v.ndim + i}] = {name}.strides[{i}]")
        at += 2 * v.ndim
    lines.append(f"    status = run(program, {nargs}, {nout}, words, dims)")
    alive = " + ".join(f"{name}.size" for name, _ in everything)
    lines.append(f"    if status != 0 or {alive} < 0:")
    lines.append('        raise RuntimeError("pylinop: a program failed")')
    lines.append(f"    return {', '.join(f'o{k}' for k in range(nout))}")
    return "\n".join(lines)


@register_funcify_default_op_cache_key(Structured)  # type: ignore[untyped-decorator]
def funcify(op: Structured, node: Any, **kwargs: Any) -> Any:
    """The numba function of a program, and a number for what of it depends on the dtypes."""
    text = f"pytensor\n{op.text}"
    program = np.frombuffer(text.encode(), np.uint8)
    source = _source(node, op.spec)
    made = compile_numba_function_src(
        source, "structured", global_env={"np": np, "run": _run, "program": program}
    )
    return numba_njit(made), zlib.crc32(source.encode())
