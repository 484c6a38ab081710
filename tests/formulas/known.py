"""Faults that are known and being mended: what they say. A failing formula that says so is not
counted. Each has its date and its fault's name; the list is emptied when they are mended."""

import re

KNOWN = [
    ("2026-11-22", "E1: functions of aligned slices of a Kron",
     r"'tuple' object has no attribute '_init'"),
    ("2026-11-22", "E3: slices and multiples of a Kernel refuse complex neighbours",
     r"Kernel: points and parameters are real"),
]  # fmt: skip


def known(said):
    """The name of the known fault that a message shows, or None."""
    return next((name for _, name, pattern in KNOWN if re.search(pattern, said)), None)
