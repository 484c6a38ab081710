"""The plans of the C batteries, walked on the arrays of other libraries, against C.

    PYLINOP_RECORD=FILE build/venv/tests/battery_rules   (battery_kinds: PYLINOP_RECORD_EACH=100)
    python -m formulas.batteries FILE numpy torch jax strict    (in tests/; libraries)

`make namespaces` does it. A line of the file is a plan that C has run, and the dense interpreter of
the C tests has agreed with: its canonical form, the leaves' numbers, the result. What a library
has no form for raises NotImplementedError, and is counted by its head."""

import collections
import json
import sys
import warnings

import numpy as np

from pylinop._namespace import walk

from . import elsewhere

SINGLE = ("float32", "complex64")


def array_of(written):
    dtype, shape, numbers = written
    return np.frombuffer(bytes.fromhex(numbers), dtype).reshape(shape)


def rows_of(plan):
    """As `_canonical` gives them."""
    return [
        (head, tuple(below), tuple(i), complex(*map(float.fromhex, c)), dtype, tuple(shape), core,
         serial, 0)
        for head, below, i, c, dtype, shape, core, serial in plan["rows"]
    ]  # fmt: skip


def answer(library, found, due):
    """The walk's, as C has it: a determinant is one number and 0."""
    if not isinstance(found, tuple):
        return library.back(found)
    sign, log = map(library.back, found)
    value = sign * np.exp(log.astype(np.float64))
    return np.stack([value, np.zeros_like(value)], -1).astype(due.dtype)


def fails_alone(rows, due):
    """May the fast way fail where C, which looks at it, takes the safe one (of what is not definite
    LU), or finds a determinant of 0? That is NaN or LinAlgError, as the pages say, and no number.
    """
    heads = {row[0] for row in rows}
    checked = any(head.startswith("checked") for head in heads)
    return checked or "cholesky_solve" in heads or ("cholesky_det" in heads and not due.any())


def compared(library, plan, count):
    """What is wrong, in words; None where nothing is."""
    rows, due = rows_of(plan), array_of(plan["result"])
    leaves = {int(k): library.put(array_of(a).copy()) for k, a in plan["leaves"].items()}
    try:
        got = answer(library, walk.run(library.namespace, (rows, None, None, ()), leaves), due)
    except NotImplementedError as error:
        count[f"no form: {str(error).partition(' (')[0].partition(' of shape')[0]}"] += 1
        return None
    except Exception as error:
        if "promoted together" in str(error) or "Only numeric dtypes" in str(error):
            count["refused by strict"] += (
                1  # integers and bools beside floats, which it does not mix
            )
            return None
        if isinstance(error, np.linalg.LinAlgError) and fails_alone(rows, due):
            count["singular"] += 1
            return None
        return f"{type(error).__name__}: {error}"
    count["walked"] += 1
    if got.shape != due.shape or got.dtype != due.dtype:
        return f"{got.dtype} {got.shape}, due {due.dtype} {due.shape}"
    if np.isnan(got).any() and fails_alone(rows, due):
        count["singular"] += 1
        return None
    single = any(r[4] in SINGLE for r in rows)
    with np.errstate(all="ignore"):
        size = max(1.0, float(np.max(np.abs(due), initial=0)))
        off = float(np.max(np.abs(got - due), initial=0)) / size
    return None if off <= (1e-2 if single else 1e-6) else f"off by {off:.1e}"


def main():
    """Prints what is wrong, and counts."""
    path, *names = sys.argv[1:]
    bad = 0
    for name in names or ["numpy"]:
        library, count = elsewhere.Library(name), collections.Counter()
        wrong = collections.Counter()
        with open(path) as lines, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for at, line in enumerate(lines, 1):
                plan = json.loads(line)
                if plan["result"][0] not in (*SINGLE, "float64", "complex128"):
                    count["integers"] += 1
                    continue
                said = compared(library, plan, count)
                if said is not None:
                    wrong[plan["who"]] += 1
                    if wrong[plan["who"]] <= 2:
                        print(f"{name}, line {at}, {plan['who']}: {said}")
        bad += wrong.total()
        print(f"{name}: {dict(count)}, {wrong.total()} wrong: {dict(wrong)}", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
