"""Looks for failing formulas: python -m formulas.hunt SECONDS [FILE]; PYLINOP_SEED=... repeats one.
FILE holds the seed at hand, for when the interpreter dies. python -m formulas.hunt seeds FIRST
COUNT: the kept formulas and those of these seeds, until one is wrong, which is not made small."""

import contextlib
import faulthandler
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from . import generate, run, shrink
from .kept import KEPT
from .known import known
from .program import written

# Seconds by the clock on the wall; the largest formulas take one or two. (The process's own time
# counts each of BLAS's waiting threads: thirty of them use up a minute of it in two seconds.)
LONGEST = 300


@contextlib.contextmanager
def limited():
    """What runs for ever is wrong."""

    def stop(number, frame):
        raise run.Wrong(f"more than {LONGEST} s: Timeout")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def one(seed):
    """None, or (what was wrong, the program) of a seed."""
    program = generate.program(seed)
    try:
        with limited():
            run.check(program)
    except run.Wrong as e:
        if known(str(e)) is None:
            return str(e), program
    return None


def report(seed, said, program):
    small, message = (program, said) if "Timeout" in said else shrink.smallest(program, said)
    return "\n".join(
        [
            f"formula {seed}: {said}",
            f"again: PYLINOP_SEED={seed} python -m formulas.hunt   (in tests/)",
            f"smallest: {message}",
            written(small),
            f"# kept as: {small!r}",
        ]
    )


def until_one_is_wrong(first, count):
    """What is said of the first that is wrong, or None."""
    for what, kept in KEPT:
        try:
            run.check(kept)
        except run.Wrong as e:
            return f"{what}: {e}"
    for seed in range(first, first + count):
        if found := one(seed):
            return f"formula {seed}: {found[0]}"
    return None


def main():
    if sys.argv[1:2] == ["seeds"]:
        sys.exit(until_one_is_wrong(int(sys.argv[2]), int(sys.argv[3])))
    if "PYLINOP_SEED" in os.environ:
        seed = int(os.environ["PYLINOP_SEED"])
        found = one(seed)
        print(report(seed, *found) if found else f"formula {seed} is right")
        return
    until = time.monotonic() + float(sys.argv[1])
    rng, done, bad = np.random.default_rng(), 0, 0
    faulthandler.enable()
    while time.monotonic() < until:
        seed = int(rng.integers(1 << 62))
        if len(sys.argv) > 2:
            Path(sys.argv[2]).write_text(f"{seed}\n")
        try:
            found = one(seed)
        except Exception:
            print(f"formula {seed}: no fault of the library", flush=True)
            raise
        done += 1
        if found:
            bad += 1
            print(report(seed, *found), "\n", flush=True)
    print(f"{done} formulas, {bad} wrong")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
