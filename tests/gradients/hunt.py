"""Compares gradients and Hessian-vector products of random programs with sixth-order differences:
`python -m gradients.hunt [seconds] [first seed]`, from tests/. Prints what differs."""

import collections
import sys
import time

import numpy as np
from gradients.drawn_programs import drawn

import pylinop as pl

WEIGHTS = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}


def along(f, x, d, h):
    """The derivative of f along d."""
    total = 0.0
    for k, w in WEIGHTS.items():
        more, less = ([a + s * k * h * t for a, t in zip(x, d, strict=True)] for s in (1, -1))
        total = total + w * (f(more) - f(less))
    return total / h


def inner(a, b):
    return float(sum(np.sum(np.conj(p) * q).real for p, q in zip(a, b, strict=True)))


def verdict(f, x, d, found, size):
    """None where they agree, or how they differ; "unsure" where the differences do not settle."""
    near, far = along(f, x, d, 4e-3), along(f, x, d, 8e-3)
    scale = max(abs(near), abs(found), size)
    if not np.isfinite(near) or abs(near - far) > 1e-6 * scale:
        return "unsure"
    return (
        None if abs(found - near) <= 1e-6 * scale else f"{found:.10g}, by differences {near:.10g}"
    )


def again(program, x, grads):
    """What is wrong with gradients of a function that has been called some times before, when it
    may run from C, with parameters that have moved apart since: numbers were whole ones before."""
    both = pl.value_and_grad(lambda *a: program.run(list(a)), tuple(range(len(x))))
    whole = [np.where(a == 0, a, np.round(2 * a + np.sign(a)) / 2) if a.ndim < 2 else a for a in x]
    try:
        for _ in range(3):
            both(*whole)
    except pl.LinAlgError:
        return None
    for k in (1, 2):
        moved = [a * (1 + 0.01 * k / (1 + np.arange(a.size)).reshape(a.shape)) for a in whole]
        if any(a.ndim > 1 for a in x):
            moved = [b if a.ndim < 2 else a * (1 + 0.01 * k) for a, b in zip(x, moved, strict=True)]
        try:
            total, *due = grads(moved)
        except pl.LinAlgError:
            return None
        value, found = both(*moved)
        size = 1 + sum(float(np.abs(g).sum()) for g in due)
        for g, h in zip(due, found, strict=True):
            if np.abs(g - h).max(initial=0) > 1e-7 * size or abs(total - value) > 1e-8 * size:
                return f"called again {value}, {found}; by itself {total}, {due}"
    return None


def compared(seed, second=False):
    """What is wrong with the gradients of a seed's program, and the program."""
    program = drawn(seed)
    rng = np.random.default_rng(seed + 10**9)
    x = program.leaves
    d = [np.asarray(rng.standard_normal(a.shape)) / (1 + a.size**0.5) for a in x]
    d = [
        t + 1j * t[::-1] if a.dtype.kind == "c" and t.ndim else t for a, t in zip(x, d, strict=True)
    ]

    def value(leaves):
        return float(np.asarray(program.run([pl.lazy(np.asarray(a)) for a in leaves])))

    def grads(leaves):
        lazies = [pl.lazy(np.asarray(a)) for a in leaves]
        total = program.run(lazies)
        found = pl.gradients(total, lazies, allow_unused=True)
        return pl.evaluate(total, *found)

    total, *g = grads(x)
    wrong = verdict(value, x, d, inner(g, d), abs(float(total)))
    if wrong is None and not second:
        both = pl.value_and_grad(lambda *a: program.run(list(a)), tuple(range(len(x))))(*x)
        if not np.isclose(inner(both[1], d), inner(g, d), rtol=1e-8, atol=1e-8 * (1 + abs(total))):
            wrong = f"value_and_grad {inner(both[1], d)}, gradients {inner(g, d)}"
    if wrong is None and not second:
        wrong = again(program, x, grads)
    if second and wrong is None:
        e = [np.asarray(rng.standard_normal(a.shape)) / (1 + a.size**0.5) for a in x]
        e = [t.astype(a.dtype) for a, t in zip(x, e, strict=True)]
        h = pl.hvp(lambda *a: program.run(list(a)), tuple(range(len(x))))(*x, tuple(e))
        slope = lambda leaves: inner(grads(leaves)[1:], e)  # noqa: E731
        wrong = verdict(slope, x, d, inner(h, d), abs(float(total)) + abs(inner(g, e)))
        wrong = wrong and (wrong if wrong == "unsure" else "hvp " + wrong)
    return wrong, program


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    end, tally = time.time() + seconds, collections.Counter()
    while time.time() < end:
        seed += 1
        try:
            wrong, program = compared(seed, second=seed % 3 == 0)
        except NotImplementedError as error:
            tally["refused: " + str(error).split("\n")[0][:90]] += 1
            continue
        except Exception as error:  # all are shown, whatever they are
            print(
                f"seed {seed}: {type(error).__name__}: {str(error)[:600]}",
                drawn(seed),
                sep="\n",
                flush=True,
            )
            tally[type(error).__name__] += 1
            continue
        tally[wrong if wrong in (None, "unsure") else "WRONG"] += 1
        if wrong not in (None, "unsure"):
            print(f"seed {seed}: {wrong}\n{program}", flush=True)
    for what, count in tally.most_common():
        print(f"{count:6d} {what or 'agree'}")


if __name__ == "__main__":
    main()
