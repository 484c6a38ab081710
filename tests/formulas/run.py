"""Runs a program with pylinop, asks what it asks, and compares each answer with the reference."""

import contextvars
import pickle
import re
import threading
import warnings

import numpy as np

import pylinop as pl

from . import parameters, reference, tangents
from .asks import ASKS, EXACT, VALUES, Asked, Wrong, agree, tiny
from .more_asks import MORE
from .program import Program, text
from .reference import Node, Unsure

ASKS.update(MORE)
__all__ = ["ASKS", "EXACT", "Wrong", "agree", "attempt", "build", "check"]


def build(program, operands):
    """What pylinop makes of the lines."""
    made = []
    for i, line in enumerate(program.lines):
        if line[0] == "leaf":
            made.append(operands[i].build())
        elif line[0] == "array":
            made.append(operands[i])
        else:
            names = {f"v{j}": made[j] for j in line[1]}
            lazy = program.lazy
            code = text(
                line,
                list(names) if len(names) == len(line[1]) else [f"v{j}" for j in line[1]],
                program.sizes,
                lazy,
            )
            made.append(eval(code, {"pl": pl, "np": np, **names, **NUMBERS}))
    return made


NUMBERS = {"inf": np.inf, "nan": np.nan, "points": parameters.points}


def same_bits(a, b):
    if isinstance(a, tuple):
        return all(same_bits(x, y) for x, y in zip(a, b, strict=True))
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def repeated(call, first, how, what):
    """The same again: at once, or from several threads."""
    got = []
    if how == "again":
        got.append(call())
    elif how == "threads":
        contexts = [contextvars.copy_context() for _ in range(3)]  # options are a context's
        threads = [threading.Thread(target=lambda c=c: got.append(c.run(call))) for c in contexts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(got) < 3:
            raise Wrong(f"{what}: {3 - len(got)} of 3 threads raised")
    for one in got:
        if not same_bits(first, one):
            raise Wrong(f"{what}: other bits {how}")


def write(of):
    """New contents for an operand's arrays, of the same structure; None where it cannot be."""
    arrays = of.arrays if hasattr(of, "arrays") else [of]
    for a in arrays:
        if a.dtype.kind in "fc" and a.flags.writeable:
            part = a[: (len(a) + 1) // 2] if of_free_entries(of) and a.ndim else a
            part *= a.dtype.type(1.25)


def of_free_entries(of):
    return getattr(of, "kind", None) in ("Dense", "Diag", "Toeplitz", "Sparse", "LowRank")


QUIET = (pl.MaterializationWarning, RuntimeWarning, FutureWarning)


# On in every program, as far as the library has them.
WATCHED = {k: True for k in ("verify", "check_plans") if k in pl._base.config._DEFAULTS}
MAY_REFUSE = ("disable_rules", "memory_limit")  # under these what cannot be done is refused


def check(program: Program):
    """Runs all of it; raises Wrong. Returns how many answers were compared."""
    config = program.options.get("config", {})
    with pl.config(**WATCHED, **config):
        try:
            return checked(program)
        except Wrong as e:
            refused = any(k in config for k in MAY_REFUSE) and re.search(r"\w+Error: ", str(e))
            if refused and not re.search("IndexError|AttributeError|SystemError", str(e)):
                return 0
            raise


def checked(program):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        for kind in QUIET:
            warnings.simplefilter("ignore", kind)
        warnings.simplefilter("ignore", pl.FallbackWarning)
        operands = reference.operands_of(program)
        if operands is None:
            return 0
        return check_lazy(program, operands) if program.lazy else check_operators(program, operands)


def check_operators(program, operands):
    nodes = Nodes(program, operands)
    made = built(program, operands, nodes.of(None))
    if made is None:
        return 0
    if program.options.get("pickle"):
        made = [pickle.loads(pickle.dumps(v)) for v in made]
    done = 0
    for head, over, p in program.asks:
        (i,) = over
        if head == "write":
            write(operands[i])
            nodes = Nodes(program, operands)
            if program.options.get("pickle") or program.options.get("anew"):
                made = built(program, operands, nodes.of(None))
                if made is None:
                    return done
            continue
        node, exact = nodes.asked(i, head, p)
        if isinstance(node, Unsure):
            continue
        rng = np.random.default_rng(p[0])
        q = Asked(made[i], node, rng, p, exact, nodes.loose)
        try:
            call, compare = ASKS[head](q)
        except Unsure:
            continue
        what = f"{head} of v{i}"
        got = attempt(call, what)
        try:
            compare(got)
        except Wrong as e:
            raise Wrong(f"{head} of v{i}: {e}") from None
        if p[5]:
            attempt(lambda c=call, g=got, h=p[5], w=what: repeated(c, g, h, w), what)
        done += 1
    return done


class Nodes:
    """The program's Nodes, in floats and in each dtype of integers that a result has: all of an
    expression is computed in that."""

    def __init__(self, program, operands):
        self.program, self.operands, self.known = program, operands, {}
        calls = any(getattr(of, "kind", None) == "MatVec" for of in operands.values())
        self.loose = reference.evaluate(program, operands)[1] if calls else None  # in their dtypes

    def of(self, dtype):
        if dtype not in self.known:
            self.known[dtype] = reference.evaluate(self.program, self.operands, dtype)[0]
        return self.known[dtype]

    def asked(self, i, head, p):
        """(Node, is it exact?) for a question about line i."""
        node = self.of(None)[i]
        if self.loose is not None and np.dtype(p[2]).kind in "biu":
            return Unsure("callables are applied as written"), False
        if isinstance(node, Unsure) or head not in EXACT:
            return node, False
        given = [] if head in VALUES else [np.dtype(p[2])]
        dtype = reference.dtype_of([*node.types, *given])
        if head == "sums":  # a product with ones of that dtype
            dtype = np.zeros(1, dtype).sum().dtype
        if dtype.kind == "b" or (dtype.kind in "iu" and reference.EITHER in node.types):
            return Unsure("of truth values, or of an inverse that may be of integers"), True
        return (self.of(dtype)[i], True) if dtype.kind in "iu" else (node, False)


def built(program, operands, nodes):
    """All lines, or None where one that has no verdict is singular."""
    try:
        return build(program, operands)
    except pl.LinAlgError as e:
        if any(isinstance(node, Unsure) for node in nodes):
            return None
        raise Wrong(f"building: {e}") from e
    except Exception as e:
        raise Wrong(f"building: {type(e).__name__}: {e}") from e


def attempt(call, what):
    try:
        return call()
    except Wrong:
        raise
    except Exception as e:
        raise Wrong(f"{what}: {type(e).__name__}: {e}") from e


def check_lazy(program, operands):
    nodes, u = reference.evaluate(program, operands)
    made = built(program, operands, nodes)
    if made is None:
        return 0
    wanted = [over[0] for head, over, _ in program.asks if head == "value"]
    wanted = [i for i in wanted if isinstance(nodes[i], Node)]
    if not wanted:
        return 0
    values = [made[i] for i in wanted]
    if program.options.get("together"):
        got = attempt(lambda: pl.evaluate(*values), "evaluate")
        got = got if isinstance(got, (tuple, list)) else (got,)
    else:
        got = [attempt(lambda v=v: np.asarray(v), "value") for v in values]
    dtypes = native(program, operands)
    for i, g in zip(wanted, got, strict=True):
        node = nodes[i]
        tol = 8 * node.s * (u * node.M + tiny(u))
        try:
            agree(g, node.V, tol, f"value of v{i}", dtypes.get(i))
        except Wrong as e:
            raise e from None
    if program.options.get("again"):
        other = attempt(lambda: build(program, operands), "building")
        anew = attempt(lambda: pl.evaluate(*[other[i] for i in wanted]), "evaluate anew")
        anew = anew if isinstance(anew, (tuple, list)) else (anew,)
        if program.options.get("together") and not all(map(same_bits, got, anew)):
            raise Wrong("other bits when built anew")
    return len(wanted) + sum(
        check_gradient(program, operands, made, nodes, u, over[0], *p)
        for head, over, p in program.asks
        if head == "gradient"
    )


def check_gradient(program, operands, made, nodes, u, i, seed):
    """Gradients of the value of line i, paired with random numbers, by all lazy arrays, against its
    tangent in a random direction."""
    rng = np.random.default_rng(seed)
    away = tangents.directions(program, operands, rng)
    at_once = [j for j, v in enumerate(made) if not isinstance(v, pl.LazyArray)]
    tangent = tangents.evaluate(program, nodes, away, u, at_once)[i]
    leaves = [j for j, line in enumerate(program.lines) if line[0] == "lazy"]
    if isinstance(tangent, Unsure) or not leaves or not tangent.V.size:
        return 0
    pair = rng.standard_normal(tangent.V.shape)
    what = f"gradient of v{i}"

    def call():
        found = pl.gradients(made[i], [made[j] for j in leaves], pair, allow_unused=True)
        return pl.evaluate(made[i], *found)[1:]

    try:
        found = attempt(call, what)
    except Wrong as e:
        if "NotImplementedError" in str(e):
            return 0
        raise
    got = size = 0.0
    for j, g in zip(leaves, found, strict=True):
        of = operands[program.lines[j][1][0]]
        if g.shape != of.shape or (g.dtype.kind == "c") > (of.dtype.kind == "c"):
            raise Wrong(f"{what}: shape {g.shape}, {g.dtype} for {of.shape}, {of.dtype}")
        got += float(np.sum(np.conj(g) * away[j]).real)
        size += float(np.sum(np.abs(g) * np.abs(away[j])))
    want = float(np.sum(pair * tangent.V).real)
    bound = float(np.sum(np.abs(pair) * tangent.M)) + size
    tol = 64 * (nodes[i].s + sum(d.size for d in away.values())) * (u * bound + tiny(u))
    agree(np.asarray(got), np.asarray(want), tol, what)
    return 1


def native(program, operands):
    """The dtypes that NumPy gives, by line; of lines that hold no operator."""
    out, values = {}, {}
    for i, line in enumerate(program.lines):
        try:
            if line[0] == "array":
                a = operands[i]
                few = tuple(slice(0, max(2, 0)) for _ in a.shape)
                values[i] = np.ones([min(s, 2) for s in a.shape], a[few].dtype.newbyteorder("="))
                values[i] = operands[i].astype(operands[i].dtype.newbyteorder("="))
            elif line[0] == "lazy":
                values[i] = values[line[1][0]]
            elif line[0] == "leaf":
                continue
            else:
                names = {f"v{j}": values[j] for j in line[1]}
                code = text(line, [f"v{j}" for j in line[1]], program.sizes, True)
                values[i] = eval(code, {"np": np, **names, **NUMBERS})
            out[i] = np.asarray(values[i]).dtype
        except (KeyError, NameError, np.linalg.LinAlgError):  # beside operators
            continue
    return out
