"""linear_operator's own tests of its kinds on what we make of them, from a checkout of its
repository (its wheel has no tests of kinds):

    cd CHECKOUT
    PYTHONPATH=.../tests python -m pytest -p frameworks.linear_operator_suite test/operators

A plugin of pytest: each test's operator is taken as one of pylinop.torch and given back as one of
linear_operator; what is due is made of their operator, of the same tensors. Kinds that we have not
are skipped. Gradients of solves are compared with those of a matrix of which nothing is assumed
(theirs are symmetrized), and gradients by a triangle with those by the half that is read. What it
has found is in docs/torch.md."""

import functools
import unittest

import pytest
import torch
from linear_operator import LinearOperator
from linear_operator.operators import TriangularLinearOperator
from linear_operator.test.linear_operator_test_case import (
    LinearOperatorTestCase,
    RectangularLinearOperatorTestCase,
)

from pylinop.torch.linear_operator import (
    PylinopLinearOperator,
    as_linear_operator,
    from_linear_operator,
)

rebuilt = {True: 0, False: 0}  # how often what is due was made by their code, and by ours


def created(case, create):
    own = create(case)
    if isinstance(own, PylinopLinearOperator):
        return own
    try:
        made = as_linear_operator(from_linear_operator(own))
    except NotImplementedError as e:
        raise unittest.SkipTest(str(e)) from e
    places = [
        next((k for k, a in enumerate(made._args) if a is t), None) for t in own.representation()
    ]
    if None not in places:
        case.theirs_of[made._kwargs["parts"]] = own.representation_tree(), places, halves(own)
    return made


def halves(own):
    """Of each tensor of an operator: which half is read, where it is that of a triangle."""
    found = {}

    def look(A):
        if isinstance(A, TriangularLinearOperator) and hasattr(
            getattr(A, "_tensor", None), "tensor"
        ):
            found[id(A._tensor.tensor)] = torch.triu if A.upper else torch.tril
        for x in (*A._args, *A._kwargs.values()):
            if isinstance(x, LinearOperator):
                look(x)

    look(own)
    return [found.get(id(t), lambda x: x) for t in own.representation()]


def evaluated(case, evaluate, operator):
    """Their operator's dense form, of our tensors."""
    if not isinstance(operator, PylinopLinearOperator):
        return evaluate(case, operator)
    found = case.theirs_of.get(operator._kwargs["parts"])
    rebuilt[found is not None] += 1
    if found is None:
        return operator.to_dense()
    tree, places, read = found
    return evaluate(case, tree(*[f(operator._args[k]) for f, k in zip(read, places, strict=True)]))


def _test_solve(self, rhs, lhs=None, cholesky=False):
    A = self.create_linear_op().detach().requires_grad_(True)
    B = torch.clone(A).detach().requires_grad_(True)
    dense = self.evaluate_linear_op(B)
    batch = torch.broadcast_shapes(A.shape[:-2], rhs.shape[:-2])
    right = rhs if rhs.ndim < 2 else rhs.expand(*batch, *rhs.shape[-2:])
    due = torch.linalg.solve(dense.expand(*batch, *A.shape[-2:]), right)
    due = due if lhs is None else lhs @ due
    got = A.solve(rhs) if lhs is None else A.solve(rhs, lhs)
    self.assertAllClose(got, due, **self.tolerances["solve"])
    g = torch.randn_like(due)
    got.backward(g)
    due.backward(g)
    for a, b in zip(A.representation(), B.representation(), strict=True):
        if b.requires_grad and b.is_leaf and b.grad is not None:
            self.assertAllClose(a.grad, b.grad, **self.tolerances["grad"])


def test_half(self):
    with self.assertRaisesRegex(TypeError, "float16"):
        self.create_linear_op().half().to_dense()


RectangularLinearOperatorTestCase.test_half = LinearOperatorTestCase.test_half = test_half


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for cls in {c for item in items if item.cls for c in item.cls.__mro__}:
        bases = LinearOperatorTestCase, RectangularLinearOperatorTestCase
        if cls in bases or not issubclass(cls, bases):
            continue
        for name, wrapped in (("create_linear_op", created), ("evaluate_linear_op", evaluated)):
            if name in vars(cls):
                own = vars(cls)[name]
                made = lambda self, *args, own=own, wrapped=wrapped: wrapped(self, own, *args)
                setattr(cls, name, functools.wraps(own)(made))
        cls.theirs_of = {}
        cls.should_call_cg = cls.should_call_lanczos = False
        cls.should_call_lanczos_diagonalization = True
        cls._test_solve = _test_solve


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"due by their code {rebuilt[True]}, by ours {rebuilt[False]}")
