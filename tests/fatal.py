"""Blocks that kill the process that reads them. Alone in a file, so that workers import little."""

import os


class Fatal:
    """A block that kills the process that reads it for the third time, once."""

    mapped = False

    def __init__(self, block, flag):
        self.block, self.flag = block, str(flag)
        self.shape, self.dtype, self.nbytes = block.shape, block.dtype, block.nbytes

    def load(self):
        with open(self.flag, "a") as f:
            f.write("x")
        if os.path.getsize(self.flag) == 3:
            os.kill(os.getpid(), 9)
        return self.block.load()


class AlwaysFatal(Fatal):
    def load(self):
        os.kill(os.getpid(), 9)
