"""pylinop under the names SciPy's test_interface.py reaches as `interface.<name>`.

Two constructors differ: SciPy's identity takes a shape, and 1.18's classes a namespace `xp`."""

from pylinop import Dense, Identity, LinearOperator, Power, Product, Scaled, Sum, aslinearoperator

_ScaledLinearOperator = Scaled
_SumLinearOperator = Sum
_ProductLinearOperator = Product
_PowerLinearOperator = Power

__all__ = ["LinearOperator", "aslinearoperator", "IdentityOperator", "MatrixLinearOperator"]


def IdentityOperator(shape, dtype=None, xp=None):
    m, n = shape
    assert m == n
    return Identity(n, dtype)


def MatrixLinearOperator(a, xp=None):
    return Dense(a)
