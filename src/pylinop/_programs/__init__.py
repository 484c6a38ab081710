"""Programs on the arrays of other libraries (pylinop.jax, pylinop.torch): what one call computes.

    table.py     what nodes compute, by name
    formulas.py  formulas over arrays that are not there yet: nodes, and their flat form
    programs.py  programs and their derivatives, which are programs again
    replay.py    a formula that was built once, for other arrays

A library's face has arrays.py (what it takes as an array), operators.py and functions.py (nodes
behind its users' names), and one way to run a program: JAX's primitive, torch's Function."""
