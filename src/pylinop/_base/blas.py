"""Which BLAS library the core calls: NumPy's own where possible, so that a process has only one.

Two OpenBLAS libraries in one process have two sets of threads, which wait for work by spinning and
keep each other off the CPUs. NumPy's wheels carry an OpenBLAS with 64-bit integers that has every
function we call; the core takes its functions from there. Otherwise the wheel scipy-openblas64 is
loaded by path, for the core alone: importing that package would put its symbols before SciPy's own.
A package built for the system's library (PYLINOP_SYSTEM_BLAS=1) is linked with it. The environment
variable PYLINOP_BLAS overrides this: ``numpy``, ``wheel``, ``system``, or the path of a library
(several with ":")."""

import os
import sys
from importlib.util import find_spec
from typing import Any

VARIABLE = "PYLINOP_BLAS"
WHEEL = "scipy-openblas64"
way = ""  # how the library was found: numpy, wheel, system, path


def _numpy(core: Any, wide: bool) -> str | None:
    """Binds the library that NumPy calls; returns None, or the reason why it cannot."""
    module = sys.modules.get("numpy._core._multiarray_umath")
    path = getattr(module, "__file__", None)
    if not path:
        return "NumPy's own module is not a file"
    why: str | None = core._blas_bind(True, path, wide)
    return why


def _wheel_file() -> str | None:
    """The library of the wheel, found without importing it."""
    spec = find_spec(WHEEL.replace("-", "_"))
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        lib = os.path.join(folder, "lib")
        for name in sorted(os.listdir(lib)) if os.path.isdir(lib) else ():
            if name.startswith("libscipy_openblas") and name.endswith((".so", ".dylib")):
                return os.path.join(lib, name)
    return None


def _wheel(core: Any, wide: bool) -> str | None:
    path = _wheel_file()
    if path is None:
        return "it is not installed for this Python"
    why: str | None = core._blas_bind(False, path, wide)
    return why


def _system(core: Any, wide: bool) -> str | None:
    if not core._blas_linked():
        return "this build of pylinop was not linked with the system's library"
    why: str | None = core._blas_bind(True, core.__file__, wide)
    return why


_WAYS = {"numpy": _numpy, "wheel": _wheel, "system": _system}
_NAMES = {
    "numpy": "NumPy's own library",
    "wheel": f"The package {WHEEL}",
    "system": "The system's library",
}


def _asked(core: Any, wish: str) -> str:
    """Binds the library that PYLINOP_BLAS names, with integers of any size; says how it was
    found."""
    if wish in _WAYS:
        why = _WAYS[wish](core, False)
        name = _NAMES[wish]
    elif os.sep in wish or ".so" in wish or wish.endswith(".dylib"):
        why, name = core._blas_bind(False, wish, False), "That library"
    else:
        raise ImportError(
            f"{VARIABLE}={wish!r} is not understood: it can be {', '.join(_WAYS)}, "
            "or the path of an OpenBLAS library"
        )
    if why is not None:
        raise ImportError(
            f"pylinop cannot use the BLAS that {VARIABLE}={wish!r} asks for. {name}: {why}. "
            f"Without {VARIABLE} NumPy's own is taken, or that of the package {WHEEL} "
            f"(pip install {WHEEL})."
        )
    return wish if wish in _WAYS else "path"


def bind(core: Any) -> None:
    """Finds the library and fills the core's table; ImportError where there is none."""
    global way
    wish = os.environ.get(VARIABLE, "")
    if wish:
        way = _asked(core, wish)
        return
    linked = core._blas_linked()
    said = []
    for name in ("system",) if linked else ("numpy", "wheel"):
        why = _WAYS[name](core, not linked)
        if why is None:
            way = name
            return
        said.append(f"{_NAMES[name]}: {why}.")
    need = "the OpenBLAS and LAPACKE it was built with" if linked else "an OpenBLAS"
    raise ImportError(
        f"pylinop needs {need}, with 64-bit integers unless {VARIABLE} names it, and finds none. "
        f"{' '.join(said)} Install the package {WHEEL} (pip install {WHEEL}), or name a library "
        f"of your own: {VARIABLE}=/path/to/libopenblas.so"
    )


def lines(core: Any) -> list[str]:
    """The lines of `pylinop.show_config` about the library."""
    info = core._blas()
    shown = {"numpy": "NumPy's own", "wheel": WHEEL, "system": "the system's", "path": VARIABLE}
    file = os.path.normpath(info["file"])
    out = [
        f"{'blas':14} {info['threads']:>12}  threads in use; {shown[way]}: {info['config']}",
        f"{'':27}  {info['integers']}-bit integers, core {info['core']}, {file}",
    ]
    out += [f"{'':27}  a known fault of this version is gone around: {r}" for r in info["remedies"]]
    for other, config, threads in core._blas_all():
        if other != info["file"]:
            said = f"{config or 'not OpenBLAS'}, {threads or '?'} threads"
            where = os.path.normpath(other)
            out.append(f"{'':27}  another BLAS in this process: {said}, {where}")
    return out
