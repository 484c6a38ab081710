"""Operators that are larger than memory or lie on several machines: blocks in files, fused
iterations.

    A = pld.open_blocks("folder", memory_limit=2 << 30)   # threads; engine=client: a cluster
    x, istop, itn, *_ = pld.lsmr(A, "b.npy", checkpoint="run.npz")

dask itself is imported only where its collections or its cluster are used.

Examples
--------
>>> import numpy as np
>>> import pylinop.dask as pld
>>> A = pld.BlockOperator([np.eye(2), np.ones((1, 2))], engine="serial")
>>> A
<3x2 BlockOperator with dtype=float64>
"""

from .blocks import Block, Call, Csr, CsrFiles, InMemory, Npy, Npz, Zarr, as_block
from .cg import cg, cgls
from .engines import MPI, Engine, Serial, Threads, WorkerLost
from .files import from_array, from_triplets, open_blocks, write_blocks
from .gram import Estimate, gram, norm_squared, qr, trace_estimate
from .lsmr import lsmr
from .operator import BlockOperator, Plan
from .record import Record, Result

__all__ = [
    "Block",
    "BlockOperator",
    "Call",
    "Csr",
    "CsrFiles",
    "Engine",
    "Estimate",
    "InMemory",
    "MPI",
    "Npy",
    "Npz",
    "Plan",
    "Record",
    "Result",
    "Serial",
    "Threads",
    "WorkerLost",
    "Zarr",
    "as_block",
    "cg",
    "cgls",
    "from_array",
    "from_triplets",
    "gram",
    "lsmr",
    "norm_squared",
    "open_blocks",
    "qr",
    "trace_estimate",
    "write_blocks",
]
