"""Random formulas walked on the arrays of other libraries, against C: what C plans, the walk does
by other code (`pylinop._namespace`).

    python -m formulas.elsewhere 60 numpy torch jax strict      (in tests/; seconds, libraries)

`make namespaces` runs it. Of each formula's operator: products from both sides, the dense form,
diagonals, traces, and of square matrices that are not near to singular solves and determinants.
What a library has no form for raises NotImplementedError, and is counted."""

import collections
import importlib
import sys
import time
import warnings

import numpy as np

import pylinop as pl
from pylinop._namespace import arrays, walk

from . import generate, reference, run

APPLY, DENSE, DIAGONAL, TRACE, DET = 0, 8, 9, 10, 12
LIBRARIES = {
    "numpy": ("numpy", lambda m, a: a, lambda x: x),
    "torch": ("torch", lambda m, a: m.from_numpy(np.array(a)), lambda x: x.resolve_conj().numpy()),
    "jax": ("jax.numpy", lambda m, a: m.asarray(a), np.asarray),
    "strict": ("array_api_strict", lambda m, a: m.asarray(a), np.asarray),
    "cuda": (
        "torch",
        lambda m, a: m.from_numpy(np.array(a)).cuda(),
        lambda x: x.resolve_conj().cpu(),
    ),
    "cupy": ("cupy", lambda m, a: m.asarray(a), lambda x: x.get()),
}  # the last two, and JAX, are on a GPU where there is one


def native(a):
    """In an order, of entries and of bytes, that all of them take."""
    return np.ascontiguousarray(a, a.dtype.newbyteorder("=")).reshape(a.shape)


def tolerance(op, action, x):
    """Of answers: single precision is not met by both in the same places."""
    leaves = dict(op._canonical(action, x, 0, 0)[1]).values()
    return 1e-2 if any(np.asarray(a).dtype.char in "fF" for a in leaves) else 1e-7


class Library:
    """How arrays come in and out."""

    def __init__(self, name):
        module, self._put, self._back = LIBRARIES[name]
        self.name, self.module = name, importlib.import_module(module)
        if name == "jax":
            importlib.import_module("jax").config.update("jax_enable_x64", True)
        self.namespace = arrays.namespace_of(self.put(np.zeros(1)))

    def put(self, a):
        return self._put(self.module, a)

    def back(self, x):
        return np.asarray(self._back(x))

    def walked(self, op, action, x=None):
        canonical = op._canonical(action, x, 0, 0)
        leaves = {k: self.put(native(a)) for k, a in dict(canonical[1]).items()}
        if x is not None:
            leaves[canonical[2]] = self.put(x)
        found = walk.run(self.namespace, canonical, leaves)
        return self.back(found[1] if action == DET else found)


def refused(op, action, x):
    """Is there a fast way that is looked at, for which C takes a safe one, and a walk NaN?"""
    return any(row[0].startswith("checked") for row in op._canonical(action, x, 0, 0)[0])


def questions(A, rng):
    """(what is asked, of which operator, action, array, C's answer)."""
    dense = A.toarray()
    if not np.all(np.abs(dense) < 1e5):  # by inverses of what is near to singular
        return
    if 0 < np.max(np.abs(dense), initial=0) < 1e-12:  # digits that were left where all cancels
        return
    x, y = (rng.standard_normal((n, 2)).astype(A.dtype) for n in A.shape[:-3:-1])
    yield "product", A, APPLY, x, A @ x
    yield "product of the adjoint", A, APPLY + 3, y, A.H @ y
    yield "dense form", A, DENSE, None, dense
    yield "diagonal", A, DIAGONAL, None, A.diagonal()
    if A.shape[-1] != A.shape[-2] or not np.all(np.linalg.cond(dense) < 1e4):
        return
    yield "trace", A, TRACE, None, A.trace()
    yield "solution", pl.inv(A), APPLY, y, pl.solve(A, y)
    yield "determinant", A, DET, None, pl.slogdet(A)[1]


def operators(seed):
    """Those that a formula's questions are of."""
    program = generate.program(seed)
    if program.lazy or "integer" in program.options or program.options.get("config"):
        return
    operands = reference.operands_of(program)
    nodes = None if operands is None else reference.evaluate(program, operands)[0]
    made = None if nodes is None else run.built(program, operands, nodes)
    for i in {over[0] for _, over, _ in program.asks} if made else ():
        A = made[i]
        if isinstance(A, pl._core.Operator) and A.dtype in ("float64", "complex128"):
            yield A


def compared(library, seed, count):
    """What was wrong, of a seed; `count` gets what was asked, and why not."""
    wrong = []
    for A in operators(seed):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pl.IllConditionedWarning)
                asked = list(questions(A, np.random.default_rng(seed)))
        except pl.IllConditionedWarning:  # a way of its own has other digits
            count["ill-conditioned"] += 1
            continue
        except (np.linalg.LinAlgError, NotImplementedError, TypeError, MemoryError) as e:
            count[f"not in C: {type(e).__name__}"] += 1
            continue
        for what, op, action, x, due in asked:
            try:
                got = library.walked(op, action, x)
                if np.isnan(got).any() and refused(op, action, x):
                    count["refused by a check"] += 1
                    continue
            except NotImplementedError as e:
                count[f"no form: {str(e).partition(' of shape')[0]}"] += 1
                continue
            except Exception as e:
                if "promoted together" in str(e) or "Only numeric dtypes" in str(e):
                    # of small integers and of bools, which strict's do not mix or multiply
                    count["refused by strict"] += 1
                    continue
                got, raised = np.empty((0,) * 9), f" ({type(e).__name__}: {e})"
            else:
                raised = ""
            count[what] += 1
            size = max(1.0, float(np.max(np.abs(due), initial=0)))
            off = float(np.max(np.abs(got - due), initial=0)) if got.shape == due.shape else np.inf
            if not off <= tolerance(op, action, x) * size:
                wrong.append(
                    f"{library.name}, seed {seed}: {what} of {A!r} is off by {off:.1e}{raised}"
                )
    return wrong


def main():
    """Prints what is wrong, and counts."""
    names, bad = sys.argv[2:] or ["numpy"], []
    first = int(np.random.default_rng().integers(1 << 60))
    for name in names:
        library, count, seed = Library(name), collections.Counter(), first
        end = time.monotonic() + float(sys.argv[1])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            while time.monotonic() < end:
                bad += compared(library, seed, count)
                seed += 1
        print(f"{name}: {seed - first} formulas, {dict(count)}", flush=True)
    print("\n".join(bad), f"\n{len(bad)} wrong", sep="")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
