"""lineax's own tests on our operators and our solver, from a checkout of its repository (its wheel
has no tests):

    cd CHECKOUT
    PYTHONPATH=.../tests python -m pytest -o addopts= -p frameworks.lineax_suite tests/test_solve.py

A plugin of pytest: it puts operators of `pylinop.jax.lineax` in the place of lineax's, and
`Structured` among the solvers. What it has found is in docs/jax.md."""

import importlib

import jax.numpy as jnp
import lineax as lx
import pytest

import pylinop.jax as pj
import pylinop.jax.lineax as pjl


def make_pylinop_matrix(getkey, matrix, tags):
    return pjl.LinearOperator(pj.Dense(matrix), tags)


def make_pylinop_sum(getkey, matrix, tags):
    """Of a triangle and what is left."""
    lower = jnp.tril(matrix)
    return pjl.LinearOperator(pj.Dense(lower) + pj.Dense(matrix - lower), tags)


def make_pylinop_product(getkey, matrix, tags):
    """Of the matrix and a diagonal that is none."""
    ones = 2 * jnp.ones(matrix.shape[1], matrix.dtype)
    return pjl.LinearOperator(0.5 * (pj.Dense(matrix) @ pj.Diag(ones)), tags)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    helpers = importlib.import_module("tests.helpers")  # its own, after its conftest
    helpers.make_operators[:] = [make_pylinop_matrix, make_pylinop_sum, make_pylinop_product]
    helpers.make_jac_operator = make_pylinop_sum  # in the files that take two by name
    row = (pjl.Structured(), (), False)
    helpers.solvers_tags_pseudoinverse.append(row)
    helpers.solvers_tags.append(row[:2])
    helpers.solvers.append(row[0])
    assert lx.__file__
