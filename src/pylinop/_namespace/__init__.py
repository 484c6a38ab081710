"""Runs formulas on the arrays of other libraries, where they lie: on GPUs, on meta devices, and on
NumPy's arrays as an oracle for C.

    arrays.py      what a library's namespace of arrays can do, by one set of names
    walk.py        the canonical expression of an operator's action, node by node
    heads.py       element-wise nodes, pieces and joins of arrays
    solves.py      solves and determinants of dense matrices and of kinds with formulas of their own
    projections.py sums of entries along diagonals and at places: what gradients are made of
    kinds.py       the kinds: dense forms
    kernels.py     matrices of kernel functions, and their derivatives
    products.py    the kinds: products
    functions.py   NumPy's functions within formulas
    told.py        what was computed, for explaining()
    formulas.py    LazyArrays: their operators by walk.py, other functions by name

What is walked is the canonical expression, not the steps: rules have been applied, each node is a
function of values. Where C tests a fast way and falls back on a safe one, the fast way is taken,
refined once where C refines it once: no value is looked at, nothing is moved between devices."""
