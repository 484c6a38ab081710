"""The smallest failing program near a failing one: questions, lines and sizes are taken away as
long as something is wrong still."""

import re
from dataclasses import replace

from .program import Program
from .run import Wrong, check

TRIES = 600


def fails(program):
    """What is wrong, or None. A program that makes no sense is right."""
    try:
        check(program)
    except Wrong as e:
        return str(e)
    except Exception:  # a size that fits no longer
        return None
    return None


def kind_of(said):
    """So that a wrong value does not become another error on the way."""
    error = re.search(r"\b\w+Error\b", said)
    other = re.search(r": (dtype|shape|other bits)", said)
    return error[0] if error else other[1] if other else "value"


def pruned(program):
    """Without the lines that nothing asked for depends on."""
    needed, todo = set(), [i for _, over, _ in program.asks for i in over]
    while todo:
        i = todo.pop()
        if i not in needed:
            needed.add(i)
            todo += program.lines[i][1]
    order = sorted(needed)
    place = {old: new for new, old in enumerate(order)}
    lines = [
        (head, tuple(place[j] for j in over), p)
        for head, over, p in (program.lines[i] for i in order)
    ]
    asks = [(head, tuple(place[j] for j in over), p) for head, over, p in program.asks]
    used = repr(lines)
    sizes = {k: v for k, v in program.sizes.items() if k in used}
    return replace(program, lines=lines, asks=asks, sizes=sizes)


def with_line(program, i, line):
    return replace(program, lines=[*program.lines[:i], line, *program.lines[i + 1 :]])


def instead(program, i, j):
    """Line i's uses are line j's."""
    lines = [(head, tuple(j if k == i else k for k in over), p) for head, over, p in program.lines]
    asks = [(head, tuple(j if k == i else k for k in over), p) for head, over, p in program.asks]
    return replace(program, lines=lines, asks=asks)


def candidates(program: Program):
    """Smaller programs, the boldest first."""
    asks = program.asks
    for i in range(len(asks)):
        if len(asks) > 1:
            yield replace(program, asks=asks[:i] + asks[i + 1 :])
    for key in program.options:
        if key != "integer":
            yield replace(program, options={k: v for k, v in program.options.items() if k != key})
    for i in reversed(range(len(program.lines))):
        head, over, p = program.lines[i]
        for j in over:
            yield instead(program, i, j)
    for name, n in program.sizes.items():
        for fewer in sorted({1, 2, 3, n // 2, n - 1} - {n, 0, -1}):
            if fewer < n:
                yield replace(program, sizes={**program.sizes, name: fewer})
    for name in program.sizes:
        for other, n in program.sizes.items():
            if n < program.sizes[name]:
                yield replace(program, sizes={**program.sizes, name: n})
    usual = program.options.get("integer", "float64")
    for i, (head, over, p) in enumerate(program.lines):
        if head == "leaf":
            kind, rows, cols, dtype, layout, batch, seed, good = p
            plain = "Dense" if kind != "Dense" else kind
            for q in (
                (plain, rows, cols, dtype, layout, batch, seed, good),
                (kind, rows, cols, usual, layout, batch, seed, good),
                (kind, rows, cols, dtype, "C", batch, seed, good),
                (kind, rows, cols, dtype, layout, (), seed, good),
                (kind, rows, cols, dtype, layout, batch, 0, good),
            ):
                if q != p:
                    yield with_line(program, i, (head, over, q))
        elif head == "array":
            dims, dtype, layout, batch, seed, dominant = p
            for q in (
                (dims, usual, layout, batch, seed, dominant),
                (dims, dtype, "C", batch, seed, dominant),
                (dims, dtype, layout, batch, 0, dominant),
            ):
                if q != p:
                    yield with_line(program, i, (head, over, q))
        elif head in ("scale", "divide") and p[0] != 2:
            yield with_line(program, i, (head, over, (2,)))
    for i, (head, over, p) in enumerate(asks):
        if len(p) == 6:
            for q in (
                (*p[:5], ""),
                (p[0], 2, *p[2:]),
                (*p[:2], usual, *p[3:]),
                (*p[:3], "C", *p[4:]),
                (0, *p[1:]),
            ):
                if q != p:
                    yield replace(program, asks=[*asks[:i], (head, over, q), *asks[i + 1 :]])


def smallest(program, said):
    """The program and what is wrong with it, after at most TRIES attempts."""
    kind, left = kind_of(said), TRIES
    again = True
    while again and left:
        again = False
        for other in candidates(program):
            left -= 1
            if left <= 0:
                break
            other = pruned(other)
            if repr(other) == repr(program):
                continue
            message = fails(other)
            if message and kind_of(message) == kind:
                program, said, again = other, message, True
                break
    return pruned(program), said
