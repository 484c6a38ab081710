"""Mistakes that mypy must find, one on each line that says so."""

import pylinop as pl

pl.config(ftt=False)  # wrong
pl.config(fft="no")  # wrong
pl.Diag()  # wrong
pl.Identity("3")  # wrong
pl.inv(3, 4)  # wrong
pl.LinearOperator((2, 2), matvec=3)  # wrong
pl.diagonal([[1.0]], offset="a")  # wrong
pl.no_such_name  # wrong
