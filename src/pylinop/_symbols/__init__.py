"""Formulas over sizes that are not known yet: templates, which replay onto LazyArrays.

expressions.py   sizes: integer expressions in symbols
provenance.py    equations between sizes, and the lines that made them
system.py        equations as rows over unknowns; integer elimination
bounds.py        bounds and divisibility to a fixpoint, and a search for the exact ends, counted
unify.py         `unify`: sizes of what is known, and the fewest equations in conflict
placeholder.py   arrays of symbolic shapes, and NumPy's protocols on them
shapes.py, elements.py, linear.py, contract.py    what NumPy's functions do to symbolic shapes
template.py      `function`: binds, checks, replays"""

from . import template  # noqa: F401, with whichever module comes the rules of all
