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
pl.Identity(3).solve()  # wrong
pl.Identity(3).solve([1.0, 2.0, 3.0], assume="pos")  # wrong
pl.Identity(3).I  # wrong
print(pl.Identity(3) > 0)  # wrong
pl.Identity(3)[0, 0] = 1  # wrong
