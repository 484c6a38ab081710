"""What a run of a Krylov method in C is asked for: the fields of Run, each taken by its name."""

import dataclasses

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._iterative.krylov_run import Run, run

FIELDS = [f.name for f in dataclasses.fields(Run)]


def asked(**more):
    A = pl.Diag([1.0, 2.0, 4.0])
    given = {"name": "cg", "op": A, "M": None, "b": np.ones(3), "x": np.zeros(3), "maxiter": 10}
    return Run(**{**given, "rtol": 1e-12, **more})


def test_a_run_writes_to_x():
    one = asked()
    info, iterations, *_ = run(one)
    assert (info, iterations) == (0, 3)
    np.testing.assert_allclose(one.x, [1, 0.5, 0.25], rtol=1e-12)


@pytest.mark.parametrize("name", FIELDS)
def test_no_field_may_be_missing(name):
    fields = vars(asked())
    del fields[name]
    with pytest.raises(TypeError, match=f"_krylov: there is no field {name}$"):
        _core._krylov(fields)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("name", 3, TypeError),
        ("name", "magic", ValueError),
        ("op", np.eye(3), TypeError),
        ("M", np.eye(3), TypeError),
        ("b", [1.0, 1.0, 1.0], TypeError),
        ("x", None, TypeError),
        ("x", np.zeros(4), ValueError),
        ("b", np.zeros(3, "f4"), ValueError),
        ("maxiter", 2.5, TypeError),
        ("maxiter", 1 << 70, OverflowError),
        ("rtol", "small", TypeError),
        ("conlim", None, TypeError),
        ("restart", None, TypeError),
        ("var", np.zeros(2), ValueError),
        ("goals", np.zeros(2), ValueError),
    ],
)
def test_fields_of_another_type_are_refused(name, value, error):
    one = asked(**{name: value})
    with pytest.raises(error):
        _core._krylov({**vars(one), "style": 0})


def test_the_fields_are_a_dict():
    with pytest.raises(TypeError, match="takes a dict"):
        _core._krylov(asked())


@pytest.mark.parametrize(("inner", "steps"), [(True, 4), (False, 8)])
def test_what_inner_counts(inner, steps):
    A = pl.Dense(np.diag(np.arange(1.0, 21)) + np.tri(20))
    one = asked(
        name="gmres", op=A, b=np.ones(20), x=np.zeros(20), maxiter=4, restart=2, inner=inner
    )
    assert run(one)[2] >= steps
    assert len(run(asked(**{**vars(one), "x": np.zeros(20)}))[4]) == steps + 1
