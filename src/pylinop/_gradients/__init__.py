"""Derivatives of LazyArrays, as LazyArrays: one sweep back through the graph of an expression.

    transforms.py   grad, value_and_grad, vjp, jvp, hvp, jacobian, hessian: of functions
    expressions.py  gradients: of expressions
    sweep.py        the sweep: the order, and what is added up
    rules.py        the cotangents of the arguments of one LazyArray, by its head
    functions.py    those of NumPy's element-wise functions, sums and shapes
    matrices.py     those of an operator's parameters and operands
    multiples.py    that of the number of a multiple, by the parameters of the matrix
    markov_jets.py, likelihoods.py  likelihoods of Matern processes, which one sweep finds
    decompositions.py  those of the matrix of a Cholesky factor, of eigenvalues, ...
    pseudo_inverses.py  what a tolerance adds to that of a pseudo-inverse
    pieces.py, trees.py  what the others are written with: pairs, nested arguments
    contents.py     arrays must not change between a value and its pullback
    unchanged.py    nor between a value that is known and its gradient
    roundings.py    how far the rounding of another plan may go
    watched.py      arguments whose values must not be asked for while a function is traced

The cotangent of an operator is an operator: a product ``A @ x`` gives the pair ``g x^H`` as a
product of a column and a row, a solve one with ``inv(A)``, a determinant ``inv(A).H``. What it
means for a kind's parameters the core makes of it (src/c/expr/vjp.h), in the kind's structure.
"""
