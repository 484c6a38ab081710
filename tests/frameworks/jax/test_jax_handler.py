"""The handler in C: its view of XLA's structs, what it is given, threads, and other processes."""

import functools
import itertools
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp

import pylinop as pl
import pylinop.jax as pj
from pylinop import _core
from pylinop._base import config
from pylinop._programs import formulas
from pylinop._programs.programs import Formula
from pylinop.jax import handler, primitive

ROOT = Path(__file__).parents[3]
# ours -> theirs, and the fields that we read or write
STRUCTS = {
    ("xla_extension", "XLA_FFI_InternalExtension"): {"type": "type", "next": "next"},
    ("xla_version", "struct XLA_FFI_Api_Version"): {
        "extensions": "extension_start",
        "major": "major_version",
        "minor": "minor_version",
    },
    ("xla_metadata", "struct XLA_FFI_Metadata"): {"version": "api_version"},
    ("xla_metadata_extension", "struct XLA_FFI_Metadata_Extension"): {"metadata": "metadata"},
    ("xla_error_args", "struct XLA_FFI_Error_Create_Args"): {"message": "message", "code": "errc"},
    ("xla_api", "struct XLA_FFI_Api"): {
        "version": "api_version",
        "error_create": "XLA_FFI_Error_Create",
    },
    ("xla_buffer", "struct XLA_FFI_Buffer"): {
        "dtype": "dtype",
        "data": "data",
        "rank": "rank",
        "dims": "dims",
    },
    ("xla_list", "struct XLA_FFI_Args"): {"size": "size", "types": "types", "items": "args"},
    ("xla_list ", "struct XLA_FFI_Rets"): {"size": "size", "types": "types", "items": "rets"},
    ("xla_span", "XLA_FFI_ByteSpan"): {"text": "ptr", "length": "len"},
    ("xla_scalar", "XLA_FFI_Scalar"): {"dtype": "dtype", "value": "value"},
    ("xla_attributes", "struct XLA_FFI_Attrs"): {
        "size": "size",
        "types": "types",
        "names": "names",
        "items": "attrs",
    },
    ("xla_call", "struct XLA_FFI_CallFrame"): {
        "extensions": "extension_start",
        "api": "api",
        "stage": "stage",
        "arguments": "args",
        "results": "rets",
        "attributes": "attrs",
    },
}
NUMBERS = {
    "XLA_EXTENSION_METADATA": "XLA_FFI_Extension_Metadata",
    "XLA_STAGE_EXECUTE": "XLA_FFI_ExecutionStage_EXECUTE",
    "XLA_ARGUMENT_BUFFER": "XLA_FFI_ArgType_BUFFER",
    "XLA_ERROR_INTERNAL": "XLA_FFI_Error_Code_INTERNAL",
    "XLA_VERSION_MAJOR": "XLA_FFI_API_MAJOR",
}


@pytest.mark.skipif(not (ROOT / "src/c").is_dir() or not shutil.which("cc"), reason="no compiler")
def test_structs_are_laid_out_as_theirs(tmp_path):
    ours = (ROOT / "src/c/py/module/xla_ffi.h").read_text()
    numbers = dict(NUMBERS)
    for name in re.findall(r"\bXLA_([SUFC]\d+|PRED)\b", ours):
        numbers[f"XLA_{name}"] = f"XLA_FFI_DataType_{name}"
    assert len(numbers) == len(NUMBERS) + 13
    lines = ["#include <xla/ffi/api/c_api.h>", '#include "py/module/xla_ffi.h"']
    for (mine, theirs), fields in STRUCTS.items():
        for a, b in fields.items():
            lines.append(
                f"_Static_assert(offsetof({mine}, {a}) == offsetof({theirs}, {b}) && "
                f"sizeof((({mine} *)0)->{a}) == sizeof((({theirs} *)0)->{b}), "
                f'"{mine}.{a}");'
            )
    lines += [f'_Static_assert((int){a} == (int){b}, "{a}");' for a, b in numbers.items()]
    file = tmp_path / "layout.c"
    file.write_text("\n".join(lines) + "\n")
    headers = Path(jax.ffi.include_dir())
    includes = [f"-I{headers}", f"-I{ROOT / 'src/c'}"]
    if "XLA_FFI_InternalExtension" not in (headers / "xla/ffi/api/c_api.h").read_text():
        includes.append("-DXLA_FFI_InternalExtension=XLA_FFI_Extension_Base")  # its older name
    # a field of ours that is a part of a struct of theirs may be shorter: versions only grow
    subprocess.run(["cc", "-std=c11", "-fsyntax-only", *includes, str(file)], check=True)


def test_it_is_what_runs():
    text = jax.jit(pj.logdet).lower(pj.Diag(jnp.ones(3))).as_text()
    assert handler.NAME in text and "callback" not in text


def test_every_dtype_and_nothing():
    for dtype in "float32 int8 int16 int32 uint8 uint16 uint32 bool complex64".split():
        x = jnp.ones(3, dtype)
        found = jax.jit(lambda x: pj.Diag(x) @ x)(x)
        np.testing.assert_array_equal(found, np.ones(3))
    empty = jax.jit(lambda d: pj.solve(pj.Diag(d), d))(jnp.ones(0))
    assert empty.shape == (0,)
    assert float(jax.jit(lambda d: pj.logdet(pj.Diag(d)))(jnp.ones(0))) == 0
    few = jax.jit(lambda d: pj.Diag(d).toarray())(jnp.ones((2, 0)))
    assert few.shape == (2, 0, 0)


def test_results_do_not_lie_in_arguments():
    D = pj.Diag(jnp.arange(4.0))
    d = jax.jit(lambda D: D.diagonal())(D)
    np.testing.assert_array_equal(d, np.arange(4.0))
    again = jax.jit(lambda D: D.diagonal() + 1, donate_argnums=0)(D)
    np.testing.assert_array_equal(again, np.arange(4.0) + 1)
    np.testing.assert_array_equal(d, np.arange(4.0))


def test_threads():
    f = jax.jit(jax.value_and_grad(lambda d, U: pj.logdet(pj.Diag(d) + pj.LowRank(U))))
    rng = np.random.default_rng(0)
    cases = [
        (rng.random(40, np.float32) + 1, rng.standard_normal((40, 3), np.float32)) for _ in range(8)
    ]
    due = [f(*c) for c in cases]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for got, one in zip(pool.map(lambda c: f(*c), cases), due, strict=True):
                assert got[0] == one[0]
                np.testing.assert_array_equal(got[1], one[1])


def test_digests_tell_programs_apart():
    d = jnp.ones(3)
    U = jnp.ones((3, 1))
    seen = set()
    different = [
        2 * pj.Diag(d),
        2.0 * pj.Diag(d),
        True * pj.Diag(d),
        -0.0 * pj.Diag(d),
        0.0 * pj.Diag(d),
        pj.Diag(d) @ pj.Diag(d + 1),
        pj.Diag(d) + pj.LowRank(U),
        pj.LowRank(U) + pj.Diag(d),
        pj.LowRank(U, U),
        pj.LowRank(U),
        pj.Kernel("rbf", U, length_scale=1.0),
        pj.Kernel("matern12", U, length_scale=1.0),
    ]
    for op in different:
        structure = jax.tree.structure(op)
        seen.add((handler.digest(jax.tree.flatten(op)[1].node_data()[1]), structure))
    digests = {digest for digest, _ in seen}
    assert len(digests) == len(different)
    for a, b in itertools.combinations(different, 2):
        assert jax.tree.structure(a) != jax.tree.structure(b)


SCRIPT = """
import sys, jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
import pylinop.jax as pj
c = float(sys.argv[2])
f = jax.jit(lambda d: pj.logdet(c * pj.Diag(d)))
g = jax.jit(jax.grad(lambda d: pj.logdet(pj.Diag(d) + pj.LowRank(jnp.ones((3, 1))))))
print(float(f(jnp.ones(3))), *map(float, g(jnp.ones(3))))
"""


def test_compiled_functions_kept_on_disk(tmp_path):
    """Another process finds the compiled function and its own program of the same formula."""
    said = []
    for c in ("2.0", "2.0", "4.0"):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path), c]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        said.append([float(x) for x in done.stdout.split()])
    np.testing.assert_allclose(said[0], [3 * np.log(2), 0.75, 0.75, 0.75], rtol=1e-5)
    assert said[1] == said[0]
    np.testing.assert_allclose(said[2][0], 3 * np.log(4), rtol=1e-6)


def test_a_program_that_is_not_there():
    with pytest.raises(RuntimeError, match="from another process"):
        handler._call(1, 2, (), (), None)


def test_values_are_the_plain_ones():
    """The same plan, the same bits."""
    rng = np.random.default_rng(1)
    d, U, b = rng.random(60) + 1, rng.standard_normal((60, 4)), rng.standard_normal(60)
    with jax.enable_x64(True):
        got = jax.jit(lambda d, U, b: pj.solve(pj.Diag(d) + pj.LowRank(U), b))(d, U, b)
        A = pl.Diag(pl.lazy(d)) + pl.LowRank(pl.lazy(U))
        np.testing.assert_array_equal(got, pl.solve(A, pl.lazy(b)).toarray())


def test_other_threads_keep_the_dtypes():
    """How many bits JAX has may hold for one thread: XLA's own ask for what was promised."""
    d = np.linspace(1, 2, 5)
    with jax.enable_x64(True):
        parts, arrays = formulas.flat([pj.Diag(jnp.asarray(d)).T._node], True)
        results = (jax.ShapeDtypeStruct((5, 5), np.float64),)
        run = functools.partial(primitive._executed, Formula(parts), results, (), ((),))
        called = jax.jit(
            lambda d: primitive._called_back(d, program=Formula(parts), sizes=(), flags=((),))
        )
        np.testing.assert_array_equal(called(*arrays)[0], np.diag(d))
    with ThreadPoolExecutor(1) as pool:
        (found,) = pool.submit(run, d).result()
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.diag(d))


@pytest.mark.skipif(config.get("verify"), reason="there are no tapes under verify=")
def test_from_the_third_call_on_it_runs_from_c(rng):
    n = 40
    d, U, y = 1 + rng.random(n), rng.standard_normal((n, 3)), rng.standard_normal(n)

    def loss(d, U):
        quad, logdet = pj.inv_quad_logdet(pj.Diag(d) + pj.LowRank(U), y)
        return quad + logdet

    with jax.enable_x64(True):
        f = jax.jit(jax.value_and_grad(loss, (0, 1)))
        first = jax.block_until_ready(f(d, U))
        jax.block_until_ready(f(d, U))
        ran = _core._tape_counts()[1]
        for _ in range(3):
            again = jax.block_until_ready(f(d, U))
            for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
                np.testing.assert_array_equal(a, b)
        assert _core._tape_counts()[1] >= ran + 3
        value, (by_d, _) = f(2 * d, U)  # other numbers
        K = np.diag(2 * d) + U @ U.T
        x = np.linalg.solve(K, y)
        np.testing.assert_allclose(value, y @ x + np.linalg.slogdet(K)[1], rtol=1e-12)
        np.testing.assert_allclose(by_d, np.diag(np.linalg.inv(K)) - x * x, rtol=1e-9, atol=1e-12)


def test_arrays_that_a_program_holds_are_read_anew():
    """Written to between calls of a compiled function: no tape keeps what they were."""
    w, M = np.ones(6), np.eye(4)
    total = jax.jit(pj.program(lambda b: (b * w).sum()))
    solved = jax.jit(pj.program(lambda b: pl.solve(pl.Dense(M), b)))
    for k in range(1, 8):
        w[:], M[:] = k, k * np.eye(4)
        np.testing.assert_allclose(total(jnp.ones(6)), 6.0 * k)
        np.testing.assert_allclose(solved(jnp.ones(4)), np.full(4, 1.0 / k))
