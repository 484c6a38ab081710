"""Formulas that were wrong once, as hunt.py printed them: `# kept as: Program(...)`."""

import numpy as np

from .program import Program

KEPT = [
    (
        "2026-11-22 W1: a difference in a sum of three lost the third term",
        Program(
            {"a": 16},
            [
                ("leaf", (), ("Dense", "a", "a", "float64", "C", (), 0, False)),
                ("leaf", (), ("Diag", "a", "a", "float64", "C", (), 1, False)),
                ("leaf", (), ("Toeplitz", "a", "a", "float64", "C", (), 2, False)),
                ("sub", (0, 1), ()),
                ("add", (3, 2), ()),
            ],
            [("toarray", (4,), (0, 2, "float64", "C", 0, ""))],
        ),
    ),
    (
        "2026-11-22 element-wise products of weak kinds made their dense form in float64",
        Program(
            {"a": 14, "b": 3},
            [
                ("leaf", (), ("FiniteDifference", "a", "a*b", "uint8", "C", (), 0, False)),
                ("multiply", (0, 0), ()),
            ],
            [("transpose", (1,), (0, 2, "uint8", "C", -3, ""))],
            False,
            {"integer": "uint8"},
        ),
    ),
    (
        "2026-11-22 verified: a part in single precision that had got its value with the whole",
        Program(
            {"a": 1},
            [
                ("array", (), (("a", "a"), "float32", "C", (), 50979130, False)),
                ("lazy", (0,), ()),
                ("scale", (1,), (3.0,)),
                ("array", (), (("1", "1"), "float64", "C", (), 0, False)),
                ("times", (3, 2), ()),
            ],
            [("value", (2,), ()), ("value", (4,), ())],
            True,
            {"together": True},
        ),
    ),
    (
        "2026-11-22 a singular factor of a Kron beside one of no rows",
        Program(
            {"a": 0, "b": 1},
            [
                ("leaf", (), ("Dense", "b", "a", "float64", "C", (), 0, False)),
                ("H", (0,), ()),
                ("matmul", (0, 1), ()),
                ("leaf", (), ("Dense", "a", "a", "float64", "C", (), 0, True)),
                ("kron", (2, 3), ()),
            ],
            [("solve_adjoint", (4,), (0, 2, "float64", "C", 0, ""))],
            False,
            {},
        ),
    ),
    (
        "2026-11-22 a float64 number times a complex multiple lost its dtype",
        Program(
            {"a": 1},
            [
                ("leaf", (), ("Dense", "a", "a", "float32", "C", (), 0, False)),
                ("scale", (0,), ((1 - 2j),)),
                ("scale", (1,), (np.float64(1.5),)),
            ],
            [("apply", (2,), (0, 2, "float32", "C", -1, ""))],
            False,
            {},
        ),
    ),
    (
        "2026-11-22 what an identity adds to bands in float32 had float32's digits in float64",
        Program(
            {"a": 1, "b": 1},
            [
                ("leaf", (), ("Tridiagonal", "b", "b", "float32", "C", (), 0, False)),
                ("leaf", (), ("Identity", "b", "b", "float64", "C", (), 0, False)),
                ("divide", (1,), ((1 - 2j),)),
                ("sub", (0, 2), ()),
            ],
            [("lstsq", (3,), (0, 2, "float64", "C", -2, ""))],
            False,
            {},
        ),
    ),
    (
        "2026-11-22 squares of a norm left the range of float32",
        Program(
            {"a": 7, "b": 1},
            [
                ("leaf", (), ("FiniteDifference", "a", "a*a", "float64", "C", (), 0, False)),
                ("leaf", (), ("Dense", "a", "a*a", "float32", "C", (), 0, False)),
                ("sub", (0, 1), ()),
                ("H", (0,), ()),
                ("matmul", (2, 3), ()),
            ],
            [("norm", (4,), (0, 2, "float64", "C", -3, ""))],
            False,
            {},
        ),
    ),
    (
        "2026-11-22 the same with Python's complex in front",
        Program(
            {"b": 1},
            [
                ("leaf", (), ("Dense", "b", "b", "complex64", "C", (), 0, True)),
                ("scale", (0,), (np.float64(1.5),)),
                ("scale", (1,), ((1 - 2j),)),
            ],
            [("apply", (2,), (0, 2, "complex64", "C", -3, ""))],
            False,
            {},
        ),
    ),
    (
        "2026-11-22 a number that widens the dtype scaled what single precision had rounded",
        Program(
            {"a": 1, "b": 1, "c": 1},
            [
                ("array", (), (("c", "b"), "complex64", "C", (), 0, False)),
                ("lazy", (0,), ()),
                ("array", (), (("a",), "float64", "C", (), 0, False)),
                ("multiple", (1, 2), ()),
                ("array", (), (("c",), "complex64", "C", (), 0, False)),
                ("vecmat", (4, 3), ()),
            ],
            [("value", (5,), ())],
            True,
            {},
        ),
    ),
    (
        "2026-11-22 verified: a part's value was younger than the plan that computed it anew",
        Program(
            {"a": 1, "b": 2},
            [
                ("array", (), (("b*a", "b*a"), "float32", "C", (), 0, True)),
                ("lazy", (0,), ()),
                ("solve", (1, 1), ()),
                ("minimum", (2, 1), ()),
                ("array", (), (("1", "1"), "float64", "C", (), 0, False)),
                ("times", (4, 2), ()),
                ("add", (5, 3), ()),
            ],
            [("value", (6,), ())],
            True,
            {},
        ),
    ),
    (
        "2026-11-22 an int16 and Python's 0.5 made single precision double",
        Program(
            {"a": 1},
            [
                ("leaf", (), ("Dense", "a", "a", "complex64", "C", (), 0, False)),
                ("scale", (0,), (np.int16(-3),)),
                ("divide", (1,), (2,)),
            ],
            [("apply", (2,), (0, 2, "complex64", "C", -3, ""))],
        ),
    ),
    (
        "2026-11-22 minus an unsigned number times a matrix overflowed",
        Program(
            {"a": 1},
            [
                ("leaf", (), ("Dense", "a", "a", "float64", "C", (), 0, True)),
                ("scale", (0,), (np.uint8(3),)),
                ("sub", (0, 1), ()),
            ],
            [("slogdet", (2,), (0, 2, "float64", "C", 0, ""))],
        ),
    ),
    (
        "2026-11-22 a solve with the inverse of integers was of integers",
        Program(
            {"a": 3},
            [
                ("leaf", (), ("Dense", "a", "a", "int32", "C", (), 0, False)),
                ("inv", (0,), ()),
            ],
            [("solve", (1,), (0, 2, "int32", "C", 3, ""))],
        ),
    ),
    (
        "2026-11-22 the inverse of a sum of permutations cut its fractions off beside integers",
        Program(
            {"c": 1},
            [
                ("leaf", (), ("Permutation", "c", "c", "float64", "C", (), 0, False)),
                ("add", (0, 0), ()),
            ],
            [("solve_left", (1,), (0, 2, "uint8", "C", -3, ""))],
        ),
    ),
    (
        "2026-11-22 sums of an element-wise product with a difference asked it for uint64",
        Program(
            {"a": 1},
            [
                ("leaf", (), ("FiniteDifference", "a", "a", "uint8", "C", (), 0, False)),
                ("leaf", (), ("Dense", "a", "a", "uint8", "C", (), 0, False)),
                ("multiply", (0, 1), ()),
            ],
            [("sums", (2,), (0, 2, "uint8", "C", 3, ""))],
            False,
            {"integer": "uint8"},
        ),
    ),
    (
        "2026-11-22 a product in the sum with a wider term wrapped in int8",
        Program(
            {"a": 12},
            [
                ("leaf", (), ("Dense", "a", "a", "int8", "C", (), 0, False)),
                ("leaf", (), ("Diag", "a", "a", "int8", "C", (), 1, False)),
                ("scale", (1,), (np.int64(7),)),
                ("matmul", (0, 0), ()),
                ("matmul", (3, 2), ()),
                ("add", (4, 0), ()),
            ],
            [
                ("apply", (5,), (0, 2, "int8", "C", 3, "")),
                ("left", (5,), (1, None, "int8", "C", 3, "")),
            ],
        ),
    ),
    (
        "2026-11-23 the norm of a Block of single and double precision",
        Program(
            {"a": 1, "b": 2},
            [
                ("leaf", (), ("Dense", "b", "b", "float32", "C", (), 0, False)),
                ("leaf", (), ("Dense", "b", "b", "float64", "C", (), 0, False)),
                ("vstack", (0, 1), ()),
            ],
            [("norm", (2,), (0, 2, "float64", "C", -3, ""))],
        ),
    ),
    (
        "2026-11-23 singular values of a product of single precision beside double",
        Program(
            {"a": 2, "b": 1},
            [
                ("leaf", (), ("KhatriRao", "a", "b", "float32", "C", (), 0, False)),
                ("leaf", (), ("Dense", "a", "b", "float64", "C", (), 0, False)),
                ("lowrank", (0, 1), ()),
            ],
            [("svdvals", (2,), (0, 2, "float64", "C", -1, ""))],
            False,
            {},
        ),
    ),
    (
        "2026-11-23 columns of an inverse by getri, far less accurate than solutions",
        Program(
            {"c": 100},
            [
                ("leaf", (), ("Root", "c", "c", "float64", "C", (), 0, False)),
                ("leaf", (), ("Triangular", "c", "c", "float64", "C", (), 0, False)),
                ("sub", (0, 1), ()),
            ],
            [("inv", (2,), (0, 2, "float64", "C", 2, ""))],
        ),
    ),
    (
        "2026-11-23 the transpose of an update of which integers, a DFT and complex64 are parts",
        Program(
            {"a": 0},
            [
                ("leaf", (), ("Dense", "a", "a", "int16", "C", (), 0, True)),
                ("leaf", (), ("DFT", "a", "a", "float64", "C", (), 0, True)),
                ("leaf", (), ("Dense", "a", "a", "complex64", "C", (), 0, True)),
                ("update", (0, 1, 2), ()),
            ],
            [("rmatmat", (3,), (0, 2, "float64", "C", 3, ""))],
        ),
    ),
    (
        "2026-11-23 singular values of a difference with a multiple by an unsigned number",
        Program(
            {"b": 1},
            [
                ("leaf", (), ("Dense", "b", "b", "float64", "C", (), 0, False)),
                ("leaf", (), ("Dense", "b", "b", "float64", "C", (), 0, True)),
                ("scale", (1,), (np.uint8(3),)),
                ("sub", (0, 2), ()),
            ],
            [("svdvals", (3,), (0, 2, "float64", "C", -3, ""))],
        ),
    ),
    (
        "2026-11-23 the inverse of the inverse of a weak kind of integers wrapped beside uint8",
        Program(
            {"a": 2},
            [("leaf", (), ("Hadamard", "a", "a", "float64", "C", (), 0, True)), ("inv", (0,), ())],
            [("solve_left", (1,), (0, 2, "uint8", "C", 2, ""))],
        ),
    ),
    (
        "2026-11-23 least squares with a complex64 multiple of float64 had single precision",
        Program(
            {"a": 1},
            [
                ("leaf", (), ("BlockDiag", "a", "a", "float64", "C", (), 0, True)),
                ("scale", (0,), (np.complex64(1 + 2j),)),
            ],
            [("lstsq", (1,), (0, 2, "float64", "C", 0, ""))],
        ),
    ),
    (
        "2026-11-23 verified: a sum that has a value, of parts that have none, and cancels",
        Program(
            sizes={"a": 5},
            lines=[
                ("array", (), (("a",), "float64", "C", (), 0, False)),
                ("lazy", (0,), ()),
                ("vdot", (1, 1), ()),
                ("array", (), (("a", "a"), "float64", "C", (), 0, False)),
                ("lazy", (3,), ()),
                ("array", (), (("a", "a"), "float64", "C", (), 0, False)),
                ("lazy", (5,), ()),
                ("over", (6, 4), ()),
                ("noisy", (2, 7, 6), ("a",)),
            ],
            asks=[("value", (8,), ()), ("gradient", (8,), (330567589,))],
            lazy=True,
            options={},
        ),
    ),
    (
        "2026-11-23 a lazy number in single precision times an identity, was declared double",
        Program(
            sizes={"a": 1, "b": 1},
            lines=[
                ("array", (), (("b", "b"), "complex64", "C", (), 0, False)),
                ("lazy", (0,), ()),
                ("scale", (1,), (3.0,)),
                ("ntrace", (2,), ()),
            ],
            asks=[("value", (3,), ()), ("gradient", (3,), (503833768,))],
            lazy=True,
            options={},
        ),
    ),
    (
        "2026-11-23 integers of a Householder wrapped beside a callable of floats",
        Program(
            sizes={"a": 1},
            lines=[
                ("leaf", (), ("MatVec", "a", "a", "float64", "C", (), 0, True)),
                ("leaf", (), ("Householder", "a", "a", "uint16", "C", (), 0, False)),
                ("multiply", (0, 1), ()),
            ],
            asks=[("toarray", (2,), (0, 2, "float64", "C", 1, ""))],
            lazy=False,
            options={},
        ),
    ),
    (
        "2026-11-23 branches four deep were said to be wrong: a copy runs for nothing there",
        Program(
            sizes={"a": 2, "b": 1, "c": 1},
            lines=[
                ("array", (), (("a",), "float64", "C", (), 0, False)),
                ("lazy", (0,), ()),
                ("vdot", (1, 1), ()),
                ("array", (), (("a",), "float64", "C", (), 0, False)),
                ("lazy", (3,), ()),
                ("array", (), (("a", "b"), "float64", "C", (), 0, False)),
                ("array", (), (("a", "c"), "float64", "C", (), 0, False)),
                ("updated", (4, 5, 6), ()),
                ("array", (), (("a", "a"), "float64", "C", (), 0, False)),
                ("noisy", (2, 7, 8), ("a",)),
            ],
            asks=[("value", (9,), ()), ("gradient", (9,), (930959670,))],
            lazy=True,
            options={},
        ),
    ),
    (
        "2026-11-23 bools of a LowRank beside a product with a callable",
        Program(
            sizes={"a": 1, "b": 1, "c": 4},
            lines=[
                ("leaf", (), ("LowRank", "c", "c", "bool", "C", (), 0, False)),
                ("leaf", (), ("MatVec", "a", "c", "float64", "C", (), 0, False)),
                ("T", (1,), ()),
                ("leaf", (), ("Dense", "a", "c", "float64", "C", (), 0, False)),
                ("matmul", (2, 3), ()),
                ("multiply", (4, 0), ()),
            ],
            asks=[("sums", (5,), (0, 2, "float64", "C", 0, ""))],
            lazy=False,
            options={},
        ),
    ),
    (
        "2026-11-23 element-wise products of Tridiagonals wrapped a narrower sum of integers",
        Program(
            sizes={"a": 1, "b": 1},
            lines=[
                ("leaf", (), ("Tridiagonal", "b", "b", "bool", "C", (), 0, False)),
                ("leaf", (), ("Tridiagonal", "b", "b", "bool", "C", (), 0, False)),
                ("add", (0, 1), ()),
                ("neg", (0,), ()),
                ("multiply", (2, 3), ()),
            ],
            asks=[("apply", (4,), (0, 2, "bool", "C", 0, ""))],
            lazy=False,
            options={},
        ),
    ),
    (
        "2026-11-23 LU, which is less accurate, of a triangle that a QuasiSeparable is part of",
        Program(
            sizes={"a": 1, "b": 18},
            lines=[
                ("leaf", (), ("OffDiag", "b", "b", "float64", "C", (), 889538526, False)),
                ("leaf", (), ("QuasiSeparable", "b", "b", "float64", "C", (), 586941362, False)),
                ("add", (0, 1), ()),
            ],
            asks=[("slogdet", (2,), (0, 2, "float64", "C", 1, ""))],
            lazy=False,
            options={},
        ),
    ),
    (
        "2026-11-23 the transpose of the inverse of a Kron with a Permutation had no way",
        Program(
            sizes={"a": 1, "b": 1},
            lines=[
                ("leaf", (), ("Permutation", "b", "b", "float64", "C", (), 0, True)),
                ("leaf", (), ("Dense", "b", "b", "float64", "C", (), 0, True)),
                ("kron", (0, 1), ()),
                ("inv", (2,), ()),
            ],
            asks=[("transpose", (3,), (0, 2, "float64", "C", -1, ""))],
            lazy=False,
            options={},
        ),
    ),
    (
        "2026-11-23 verified: the size of int8 -128 beside complex64",
        Program(
            sizes={"a": 5, "b": 1},
            lines=[
                ("array", (), (("a", "a"), "complex64", "C", (), 629059863, False)),
                ("vdiagonal", (0,), ()),
                ("outer", (1, 1), ()),
                ("array", (), (("a",), "int8", "C", (), 723693298, False)),
                ("lazy", (3,), ()),
                ("array", (), (("a", "b"), "int8", "C", (), 0, False)),
                ("rowscale", (4, 5), ()),
                ("array", (), (("b", "b"), "int8", "C", (), 1003584846, False)),
                ("array", (), (("b", "a"), "int8", "C", (), 984130984, False)),
                ("matmul", (7, 8), ()),
                ("matmul", (6, 9), ()),
                ("add", (2, 10), ()),
            ],
            asks=[("value", (11,), ())],
            lazy=True,
            options={},
        ),
    ),
    (
        "2026-11-23 the inverse of a product with a sum whose terms cancel was an internal error",
        Program(
            sizes={"a": 0},
            lines=[
                ("leaf", (), ("Dense", "a", "a", "float64", "C", (), 0, True)),
                ("leaf", (), ("Dense", "a", "a", "float64", "C", (), 0, True)),
                ("sub", (0, 0), ()),
                ("leaf", (), ("Dense", "a", "a", "float64", "C", (), 0, False)),
                ("leaf", (), ("Dense", "a", "a", "float64", "C", (), 0, True)),
                ("matmul", (4, 1), ()),
                ("sub", (3, 5), ()),
                ("matmul", (2, 6), ()),
                ("inv", (7,), ()),
                ("matmul", (8, 6), ()),
            ],
            asks=[("toarray", (9,), (0, 2, "float64", "C", 0, ""))],
            lazy=False,
            options={},
        ),
    ),
    (
        "2026-11-23 the judge: the size of the least int16 within a quotient",
        Program(
            sizes={"a": 4, "b": 1},
            lines=[
                ("array", (), (("b*a", "b*a"), "float64", "C", (), 0, True)),
                ("array", (), (("a", "a"), "uint8", "C", (), 53126012, False)),
                ("nlogdet", (0,), ()),
                ("array", (), (("a", "a"), "uint8", "C", (), 458999284, False)),
                ("matmul", (3, 1), ()),
                ("vdiagonal", (4,), ()),
                ("array", (), (("a", "a"), "int8", "C", (), 0, False)),
                ("multiple", (5, 6), ()),
                ("vtimes", (5, 7), ()),
                ("array", (), (("a",), "int8", "C", (), 366335158, False)),
                ("array", (), (("a",), "int8", "C", (), 132721910, False)),
                ("matvec", (9, 10), ()),
                ("outer", (8, 11), ()),
                ("over", (12, 2), ()),
            ],
            asks=[("value", (13,), ())],
            lazy=True,
            options={},
        ),
    ),
    (
        "2026-11-24 the judge: squares of entries of 1e-199 left no tolerance",
        Program(
            {"a": 20, "b": 12},
            [
                (
                    "leaf",
                    (),
                    ("QuasiSeparable", "a*b", "a*b", "float64", "C", (), 125203664, False),
                ),
                ("cut", (0,), (("a", True), ("a", False))),
            ],
            [("eigvalsh", (1,), (0, 2, "float64", "C", 2, ""))],
        ),
    ),
    (
        "2026-11-26 a triangle less what cancels went to LU with exchanges of rows",
        Program(
            {"a": 1, "b": 1, "c": 32},
            [
                ("leaf", (), ("Assumed", "c", "c", "float64", "C", (), 956813596, False)),
                ("leaf", (), ("DCT", "c", "c", "float64", "C", (), 0, True)),
                ("sub", (1, 1), ()),
                ("sub", (0, 2), ()),
            ],
            [("slogdet", (3,), (0, 2, "float64", "C", 3, ""))],
        ),
    ),
    (
        "2026-11-26 a transform of a lazy array in single precision was declared double",
        Program(
            sizes={"a": 1, "b": 2},
            lines=[("leaf", (), ("DFT", "b", "b", "float64", "C", (), 0, True))],
            asks=[("lazy_right", (0,), (0, 2, "float32", "C", -1, ""))],
            lazy=False,
            options={},
        ),
    ),
    (
        "2026-11-29 a callable times a Diag that is the result of an expression had no dense form",
        Program(
            {"a": 2, "c": 1},
            [
                ("leaf", (), ("MatVec", "c", "c", "float64", "C", (), 0, True)),
                ("leaf", (), ("OffDiag", "c", "a", "float64", "C", (), 0, False)),
                ("H", (1,), ()),
                ("matmul", (1, 2), ()),
                ("add", (0, 3), ()),
            ],
            [("slogdet", (4,), (0, 2, "float64", "C", 0, ""))],
            lazy=False,
            options={},
        ),
    ),
]
