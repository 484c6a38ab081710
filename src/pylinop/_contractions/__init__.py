"""Contractions over named axes: how an equation is read (`grammar.py`), what its axes' sizes are
(`sizes.py`), which views of the arrays it means (`views.py`), and the plans in C that compute it
(`equations.py`)."""
