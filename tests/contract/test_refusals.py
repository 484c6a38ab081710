"""What operators refuse, each error with the spelling that works, and that this one works."""

import copy
import fractions
import operator
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pylinop as pl

D = np.array([[4.0, 1.0], [1.0, 3.0]])
OPERATORS = [
    lambda: pl.Dense(D),
    lambda: pl.Diag([1.0, 2.0]),
    lambda: pl.Dense(D) + pl.Identity(2),
    lambda: pl.MatVec((2, 2), lambda x: D @ x, dtype=float),
]


@pytest.mark.parametrize("make", OPERATORS)
@pytest.mark.parametrize(
    "p, says",
    [
        (-1, r"got -1: A\.inv\(\) is the inverse"),
        (-1.0, r"A\.inv\(\) is the inverse"),
        (np.int64(-3), r"pl\.matrix_power\(A, -3\) is a power of the inverse"),
        (0.5, r"got 0\.5: pl\.sqrtm\(A\) is the square root"),
        (np.float32(0.5), r"pl\.sqrtm\(A\)"),
        (-0.5, r"pl\.fractional_matrix_power\(A, -0\.5\) takes real powers"),
        (2.0, r"write A \*\* 2"),
        (-(2**1100), r"pl\.matrix_power\(A, -\d+\)"),
        (np.inf, "non-negative integer, got inf$"),
        (np.nan, "non-negative integer, got nan$"),
        (fractions.Fraction(1, 2), "non-negative integer, got Fraction"),
        ("x", "non-negative integer, got 'x'"),
    ],
)
def test_powers(make, p, says):
    with pytest.raises(ValueError, match=says):
        make() ** p


def test_powers_that_there_are():
    A = pl.Dense(D)
    for p in (0, 1, 3, np.int8(2), np.array(2), True):
        np.testing.assert_allclose((A**p).toarray(), np.linalg.matrix_power(D, int(p)))
    np.testing.assert_allclose(pl.matrix_power(A, -3).toarray(), np.linalg.matrix_power(D, -3))
    np.testing.assert_allclose((pl.sqrtm(A) @ pl.sqrtm(A)).toarray(), D)
    for bad in (lambda: pow(A, 2, 3), lambda: 2**A):
        with pytest.raises(TypeError, match="unsupported operand"):
            bad()


@pytest.mark.parametrize("make", OPERATORS)
@pytest.mark.parametrize("act", [operator.add, operator.sub, operator.iadd])
@pytest.mark.parametrize("number", [1, 0, 2.5, 1j, True])
def test_numbers_are_not_added(make, act, number):
    A = make()
    says = r"\(2, 2\): c \* pl\.Identity\(2\) adds c to the diagonal, pl\.Full\(\(2, 2\), c\) to e"
    with pytest.raises(TypeError, match=says):
        act(A, number)
    with pytest.raises(TypeError, match=says):
        act(number, A)


def test_numbers_that_are_added_in_other_words():
    A = pl.Dense(D)
    np.testing.assert_array_equal((A + 2 * pl.Identity(2)).toarray(), D + 2 * np.eye(2))
    np.testing.assert_array_equal((A + pl.Full((2, 2), 2.0)).toarray(), D + 2)
    with pytest.raises(TypeError, match=r"operator of shape \(2, 3\): pl\.Full\(\(2, 3\), c\)"):
        pl.Zeros((2, 3)) + 1
    with pytest.raises(TypeError, match=r"start=operators\[0\]"):
        sum([A, A])
    np.testing.assert_array_equal(sum([A, A][1:], start=A).toarray(), 2 * D)
    with pytest.warns(pl.MaterializationWarning):  # as NumPy adds
        np.testing.assert_array_equal(np.float64(1) + A, 1 + D)
    with pytest.warns(pl.MaterializationWarning):
        np.testing.assert_array_equal(np.subtract(1, A), 1 - D)

    class Number(int):
        def __radd__(self, other):
            return "mine"

    assert A + Number(1) == "mine"


@pytest.mark.parametrize("make", OPERATORS)
def test_operators_are_not_written_to(make):
    A = make()
    with pytest.raises(TypeError, match="does not support item assignment: write to the arrays"):
        A[0, 0] = 1
    with pytest.raises(TypeError, match=r"A\.toarray\(\)"):
        del A[0]


@pytest.mark.parametrize("make", OPERATORS)
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_operators_are_not_compared(make, sign):
    A = make()
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign]
    with pytest.raises(TypeError, match=rf"A\.toarray\(\) {sign} 0 compares every entry, pl\.lazy"):
        compare(A, 0)
    with pytest.raises(TypeError, match="not supported between instances"):
        compare(A, A)
    with pytest.raises(TypeError, match="not supported between instances"):
        compare(A, "x")


def test_comparisons_that_there_are():
    A = pl.Dense(D)
    assert A == A and A != pl.Dense(D) and not (A == 0) and len({A, A}) == 1
    np.testing.assert_array_equal(np.asarray(A > pl.lazy(D)), D > D)
    np.testing.assert_array_equal(np.asarray(pl.lazy(A) > 1), D > 1)
    with pytest.warns(pl.MaterializationWarning):
        np.testing.assert_array_equal(np.ones((2, 2)) < A, D > 1)


def test_abs():
    A = pl.Dense(-D)
    with pytest.raises(TypeError, match=r"abs\(A\.toarray\(\)\).*abs\(pl\.lazy\(A\)\)"):
        abs(A)
    np.testing.assert_array_equal(np.asarray(abs(pl.lazy(A))), D)


NAMES = {
    "I": "A.inv()",
    "inverse": "A.inv()",
    "numpy": "A.toarray()",
    "to_dense": "A.todense()",
    "to_numpy": "A.toarray()",
    "to_sparse": "A.tosparse()",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_other_libraries(name):
    A = pl.Dense(D)
    with pytest.raises(AttributeError) as error:
        getattr(A, name)
    text = f"'Dense' object has no attribute '{name}': write {NAMES[name]}"
    assert str(error.value) == text and error.value.name == name
    assert eval(NAMES[name]).shape == (2, 2)
    assert not hasattr(A, name) and name not in dir(A) and not hasattr(pl.Dense, name)
    for again in (pickle.loads(pickle.dumps(A)), copy.deepcopy(A), copy.copy(A)):
        assert not hasattr(again, name)


def test_subclasses_may_have_these_names():
    class Mine(pl.MatVec):
        I = property(lambda self: "mine")

        def __getattr__(self, name):
            return name

    A = Mine((2, 2), lambda x: x, dtype=float)
    assert A.I == "mine" and A.to_dense == "to_dense" and "I" in dir(A)
    A.numpy = 1
    assert A.numpy == 1


def test_misspelt_attributes():
    code = "import pylinop as pl; pl.Identity(2).sovle"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "has no attribute 'sovle'. Did you mean: 'solve'?" in done.stderr


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda A, b: pl.solve(A, b, asume_a="pos"), "mean assume_a"),
        (lambda A, b: pl.solve(A, b, method="cg", rtoll=0.1), "mean rtol or atol"),
        (lambda A, b: pl.logdet(A, method="slq", num_sample=3), "mean num_samples"),
        (lambda A, b: pl.estimate_trace(A, num_sampels=3), "mean num_samples"),
        (lambda A, b: pl.pinv(A, rcon=0.1), "mean rcond"),
        (lambda A, b: pl.config(memory_limt=3), "mean memory_limit"),
        (lambda A, b: pl.preconditioner(A, "nystrom", rnk=1), "mean rank"),
    ],
)
def test_misspelt_keywords(call, says):
    with pytest.raises(TypeError, match=f"did you {says}"):
        call(pl.Dense(D), np.ones(2))


def test_misspelt_methods():
    with pytest.raises(ValueError, match="no method 'gc'; .*did you mean cg"):
        pl.solve(pl.Dense(D), np.ones(2), method="gc")
