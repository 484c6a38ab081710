"""What a step of a tape does, as src/c/exec/tape.h counts it."""

from __future__ import annotations

import enum

__all__ = ["What"]


class What(enum.IntEnum):
    """`lop_tape_what`, word for word."""

    PLAN = 0
    COPY = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    DIVIDE = 5
    NEGATIVE = 6
    CONJ = 7
    SUM = 8
    LOGDET = 9
    LOGABS = 10
    HALVES = 11
    LOOP = 12
    CHOOSE = 13
    SUMS = 14
    REDUCE = 15
    RUN = 16
