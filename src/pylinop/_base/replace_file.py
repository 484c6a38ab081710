"""Files that are written whole or not at all.

A new file lies beside its place, under a temporary name, until it is whole: two writers share
nothing, and a process that has mapped the old file keeps the old content."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import threading
from collections.abc import Iterator
from typing import IO, Any

_turn = itertools.count()


def regular(path: str) -> bool:
    """Is there a regular file? FileExistsError for anything else: a folder, a device, a pipe."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.islink(path):
            raise FileExistsError(f"{path} is a link to what is not there") from None
        return False
    if not stat.S_ISREG(mode):
        raise FileExistsError(f"{path} is there and no regular file: it is not replaced")
    return True


@contextlib.contextmanager
def replacing(path: str, sync: bool = False) -> Iterator[IO[Any]]:
    """A new file, open for bytes, that takes the place of ``path`` when the block ends well;
    with ``sync`` it is on the disk by then."""
    regular(path)
    path = os.path.realpath(path)  # a link stays one
    partial = f"{path}.{os.getpid()}-{threading.get_ident():x}-{next(_turn)}.part"
    file = open(partial, "xb")
    try:
        with file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
