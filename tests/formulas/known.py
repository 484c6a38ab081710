"""Faults that are known and being mended: what they say. A failing formula that says so is not
counted. Each has its date and its fault's name; the list is emptied when they are mended."""

import re

KNOWN: list[tuple[str, str, str]] = []


def known(said):
    """The name of the known fault that a message shows, or None."""
    return next((name for _, name, pattern in KNOWN if re.search(pattern, said)), None)
