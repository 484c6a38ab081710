"""The one BLAS of the process: whose it is, what becomes of an import without one, its threads."""

import ctypes
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._base import blas

ROOT = Path(__file__).resolve().parents[2]
NUMPY = Path(np._core._multiarray_umath.__file__)
ASKED = os.environ.get("PYLINOP_BLAS", "")  # the whole suite may run on another library


def python(code, *, wish=None, path=(), environment=None):
    """A fresh interpreter; `path` goes before all other folders of modules."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYLINOP_", "OPENBLAS_"))}
    # not resolved: the package of a debug build is of links to the sources, the core beside them
    before = [*map(str, path), str(Path(pl.__file__).absolute().parent.parent)]
    before += [p for p in (os.environ.get("PYTHONPATH"),) if p]
    env["PYTHONPATH"] = os.pathsep.join(before)
    env |= {"PYLINOP_BLAS": wish} if wish is not None else {}
    env |= environment or {}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=300
    )


def said(code, **more):
    done = python(code, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def refused(**more):
    """The last line of an import that fails."""
    done = python("import pylinop", **more)
    assert done.returncode == 1, done.stdout
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: "), done.stderr
    return last


WAY = "import pylinop as pl; from pylinop import _blas, _core; b = _core._blas(); "
WHICH = WAY + "print(_blas.way, b['integers'], b['spelling'], b['threads'], b['file'])"


def usable_numpy():
    """Has this NumPy a library of the kind that is taken unasked?"""
    return said(WHICH, wish="numpy")[1] == "64" if not refuses_numpy() else False


def refuses_numpy():
    return python("import pylinop", wish="numpy").returncode != 0


# ---- the table


def names():
    text = (ROOT / "src/c/kernels/dense/blas_table.def").read_text(encoding="utf-8")
    found = re.findall(r"^LOP_BLAS(?:_OWN)?\([^,]+, (\w+),", text, re.M)
    assert len(found) > 100 and len(set(found)) == len(found)
    return found


def libraries():
    wheel = blas._wheel_file()
    out = {"wheel": wheel} if wheel else {}
    for folder in (NUMPY.parents[2] / "numpy.libs",):
        for file in sorted(folder.glob("*openblas*")) if folder.is_dir() else ():
            out[file.name] = str(file)
    return out


@pytest.mark.parametrize("name", libraries())
def test_each_library_has_all_functions(name):
    library = ctypes.CDLL(libraries()[name], mode=os.RTLD_LOCAL)
    missing = [n for n in names() if not hasattr(library, f"scipy_{n}64_")]
    assert missing == []


def test_every_function_that_is_called_is_in_the_table_and_the_other_way_round():
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "src/c/kernels").rglob("k_*.c"))
    whole = set(re.findall(r"\b(?:cblas_[a-z0-9]+|openblas_\w+)\b", code))
    known = set(names())
    # LAPACK's names are put together from a letter and a stem
    stems = {n[len("LAPACKE_") + 1 : -len("_work")] for n in known if n.startswith("LAPACKE_")}
    assert whole <= known | {"openblas_get_corename"}
    assert {n for n in known if n.startswith("cblas_")} <= whole
    assert {s for s in stems if s not in code and s[2:] not in code} == set()


# ---- whose library


def test_unasked_it_is_numpys_own():
    if not usable_numpy():
        pytest.skip("this NumPy has no OpenBLAS with 64-bit integers")
    way, integers, _, _, file = said(WHICH)
    assert (way, integers) == ("numpy", "64")
    # the very file that NumPy's module calls, and no second one
    (count,) = said(WAY + "print(len(_core._blas_all()))")
    assert count == "1" and "openblas" in file


def test_the_wheel_is_loaded_for_us_alone():
    if not blas._wheel_file():
        pytest.skip("scipy-openblas64 is not installed")
    code = WAY + (
        "import sys, os, ctypes\n"
        "assert 'scipy_openblas64' not in sys.modules and _blas.way == 'wheel'\n"
        "assert 'OPENBLAS_THREAD_TIMEOUT' not in os.environ\n"
        "libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p\n"
        "assert libc.getenv(b'OPENBLAS_THREAD_TIMEOUT') is None\n"
        "everyone = ctypes.CDLL(None)\n"
        "assert not hasattr(everyone, 'scipy_cblas_dgemm64_')\n"
        "import numpy as np; a = np.eye(40) * 3 + 1\n"
        "print(abs(pl.solve(pl.Dense(a), a) - np.eye(40)).max() < 1e-12)\n"
    )
    assert said(code, wish="wheel") == ["True"]


def test_a_timeout_of_the_users_stays():
    if not blas._wheel_file():
        pytest.skip("scipy-openblas64 is not installed")
    code = WAY + (
        "import ctypes; libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p\n"
        "print(libc.getenv(b'OPENBLAS_THREAD_TIMEOUT').decode())"
    )
    mine = {"OPENBLAS_THREAD_TIMEOUT": "20"}
    assert said(code, wish="wheel", environment=mine) == ["20"]


def test_a_path_is_taken():
    for name, path in libraries().items():
        way, integers, spelling, _, file = said(WHICH, wish=path)
        assert (way, integers, spelling) == ("path", "64", "scipy_*64_"), name
        assert os.path.realpath(file) == os.path.realpath(path)


# A NumPy without a BLAS of its own is a module of that name with another file.
NO_BLAS = "import numpy._core._multiarray_umath as m, math, sys\nm.__file__ = {file!r}\n"


def other_module():
    """An extension module without BLAS that the interpreter has loaded."""
    import _ctypes

    return _ctypes.__file__


def without_numpys(rest=""):
    return f"import _ctypes\n{NO_BLAS.format(file=other_module())}{rest}"


def test_numpy_without_openblas_leads_to_the_wheel():
    if not blas._wheel_file():
        pytest.skip("scipy-openblas64 is not installed")
    assert said(without_numpys(WHICH))[0] == "wheel"


HIDDEN = """
import importlib.util as u
found = u.find_spec
u.find_spec = lambda name, *a: None if name.startswith("scipy_openblas") else found(name, *a)
"""


def test_neither_is_an_error_that_says_what_to_install():
    done = python(without_numpys(HIDDEN + "import pylinop"))
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: ")
    for words in (
        "NumPy's own library: it has no OpenBLAS",
        "scipy-openblas64: it is not installed for this Python",
        "pip install scipy-openblas64",
        "PYLINOP_BLAS=/path/to",
    ):
        assert words in last


def test_numpys_alone_is_enough():
    if not usable_numpy():
        pytest.skip("this NumPy has no OpenBLAS with 64-bit integers")
    assert said(HIDDEN + WHICH)[0] == "numpy"


def test_what_is_asked_for_is_not_replaced(tmp_path):
    if blas._wheel_file():
        folder = tmp_path / "scipy_openblas64"  # a package of the name without a library
        folder.mkdir()
        (folder / "__init__.py").write_text("raise RuntimeError('imported')")
        assert "it is not installed for this Python" in refused(wish="wheel", path=[tmp_path])
    assert "'nonsense' is not understood" in refused(wish="nonsense")
    assert "cannot be loaded" in refused(wish=str(tmp_path / "libopenblas.so"))
    assert "was not linked with the system's" in refused(wish="system")


def test_libraries_of_the_wrong_kind(tmp_path):
    assert "it has no OpenBLAS" in refused(wish=other_module())
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")

    def library(name, text):
        source, made = tmp_path / f"{name}.c", tmp_path / f"lib{name}.so"
        source.write_text(text)
        subprocess.run([compiler, "-shared", "-fPIC", source, "-o", made], check=True)
        return str(made)

    plain = library("plain", "void cblas_dgemm(void) {}\n")
    assert "it is a BLAS, but not OpenBLAS" in refused(wish=plain)
    own = (
        'const char *openblas_get_config(void) { return "OpenBLAS 0.3.99 USE64BITINT"; }\n'
        'const char *openblas_get_corename(void) { return "none"; }\n'
        "int openblas_get_num_threads(void) { return 1; }\n"
        "void openblas_set_num_threads(int n) { (void)n; }\n"
    )
    few = library("few", own + "void cblas_dgemm(void) {}\n")
    last = refused(wish=few)
    lacks = f"it lacks {len(names()) - 5} of {len(names())} functions: cblas_sgemv, cblas_dgemv, "
    assert lacks in last and len(last) < 700, last
    almost = [n for n in names() if n.startswith(("cblas_", "LAPACKE_"))][:-1]
    text = own + "".join(f"void {n}(void) {{}}\n" for n in almost)
    assert "it lacks 1 of" in refused(wish=library("almost", text))
    narrow = text.replace(" USE64BITINT", "") + "void LAPACKE_ztrsyl_work(void) {}\n"
    # such a one is taken when asked for; unasked, NumPy's own has to have 64 bits
    assert said(WHICH, wish=library("narrow", narrow))[:2] == ["path", "32"]


def test_show_config_says_which(capsys):
    pl.show_config()
    out = capsys.readouterr().out
    info = _core._blas()
    assert f"{info['integers']}-bit integers, core {info['core']}" in out
    assert info["config"] in out and os.path.normpath(info["file"]) in out
    others = [f for f, _, _ in _core._blas_all() if f != info["file"]]
    assert out.count("another BLAS in this process") == len(others)


# ---- 32-bit integers behind the same functions

NARROW = """
import numpy as np, pylinop as pl
from pylinop import _core
rng = np.random.default_rng(3)
for dt in "fdFD":
    for n in (5, 90):
        a = rng.standard_normal((n, n)).astype(dt)
        a = a if dt in "fd" else a + 1j * rng.standard_normal((n, n)).astype(a.real.dtype)
        b = rng.standard_normal((n, 3)).astype(dt)
        h = a + a.conj().T
        p = a @ a.conj().T + n * np.eye(n, dtype=dt)
        tol = 2e-2 if dt in "fF" else 1e-9
        for m, kind in ((a, "gen"), (h, "her" if dt in "FD" else "sym"), (p, "pos")):
            A = pl.Dense(m, kind) if kind != "gen" else pl.Dense(m)
            x = pl.solve(A, b)
            most = tol * np.abs(m).max() * max(1, np.abs(x).max())
            assert np.abs(m @ x - b).max() < most, (dt, n, kind)
            s, l = pl.slogdet(A)
            t, k = np.linalg.slogdet(m.astype("D" if dt in "FD" else "d"))
            assert abs(l - k) < tol * n and abs(s - t) < tol, (dt, n, kind)
            assert np.abs(m @ pl.inv(A).toarray() - np.eye(n)).max() < tol * n * np.linalg.cond(m)
        P, L, U = pl.lu(pl.Dense(a))
        assert np.abs((P @ L @ U).toarray() - a).max() < tol
        band = np.zeros((5, n), dt); band[:] = rng.standard_normal((5, n)); band[2] += 6
        B = pl.Banded((2, 2), band)
        x = pl.solve(B, b); assert np.abs(B @ x - b).max() < tol
        q, r = np.linalg.qr(a); y = pl.lstsq(pl.Dense(np.vstack([a, a])), np.vstack([b, b]))
        w, v = pl.eigh(pl.Dense(h, "her" if dt in "FD" else "sym"))
print("ok", _core._blas()["integers"])
"""


def narrow_library():
    spec = find_spec("scipy_openblas32")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(folder).glob("lib/libscipy_openblas*.so")):
            return str(file)
    for file in ("/usr/lib/x86_64-linux-gnu/libopenblas.so.0",):
        lapacke = file.replace("openblas.so.0", "lapacke.so.3")
        if os.path.exists(file) and os.path.exists(lapacke):
            return f"{file}:{lapacke}"
    return None


def test_a_library_of_32_bit_integers_gives_the_same():
    path = narrow_library()
    if path is None:
        pytest.skip("no OpenBLAS with 32-bit integers is here")
    done = python(NARROW, wish=path, environment={"OPENBLAS_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ok", "32"]


def test_the_same_programme_on_the_library_in_use():
    done = python(NARROW, wish=ASKED, environment={"OPENBLAS_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr


# ---- threads


@pytest.fixture
def threads():
    before = _core._blas()["threads"]
    yield before
    pl.config(threads=before)


def test_one_setting_rules_both(threads):
    pool = pytest.importorskip("threadpoolctl")
    pl.config(threads=1)
    file = os.path.realpath(_core._blas()["file"])

    def seen():
        # NumPy's own and ours are one entry
        return [p["num_threads"] for p in pool.threadpool_info() if p["filepath"] == file]

    assert seen() == [1] or ASKED
    pl.config(threads=2)
    assert seen() == [2] or ASKED
    with pool.threadpool_limits(1, "blas"):
        assert _core._blas()["threads"] == 1
    assert _core._blas()["threads"] == 2


def test_counts_changed_from_outside_between_calls(threads, rng):
    a = rng.standard_normal((400, 400)) + 40 * np.eye(400)
    b = rng.standard_normal((400, 40))
    library = ctypes.CDLL(_core._blas()["file"], mode=os.RTLD_LOCAL)
    change = getattr(library, _core._blas()["spelling"].replace("*", "openblas_set_num_threads"))
    want = np.linalg.solve(a, b)
    for n in (1, 3, 2, 1, 4):
        change(n)
        assert _core._blas()["threads"] == n
        np.testing.assert_allclose(pl.solve(pl.Dense(a), b), want, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(pl.Dense(a) @ b, a @ b, rtol=1e-11, atol=1e-9)


def work(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((150, 150)) + 30 * np.eye(150)
    x = pl.solve(pl.Dense(a), a @ np.ones(150))
    return float(np.abs(x - 1).max())


def test_threads_that_call_numpy_and_us_at_once():
    out, failed = [], []

    def run(seed):
        try:
            out.extend(work(seed + i) for i in range(10))
        except BaseException as error:
            failed.append(error)

    all_of_them = [threading.Thread(target=run, args=(100 * i,)) for i in range(6)]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join(120)
        assert not t.is_alive()
    assert not failed and len(out) == 60 and max(out) < 1e-10


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_children(how):
    assert work(0) < 1e-10  # the threads are there
    with multiprocessing.get_context(how).Pool(2) as pool:
        assert max(pool.map_async(work, range(4)).get(120)) < 1e-10
