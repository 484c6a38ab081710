"""Formulas that were wrong once, as hunt.py printed them: `# kept as: Program(...)`."""

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
]
