"""The errors that a newcomer meets first, collected by trying: each says what, where, what to do,
and begins with what matters, so that it reads in one glance."""

import re

import numpy as np
import pytest

import pylinop as pl

A = np.array([[4.0, 1.0], [1.0, 3.0]])
b = np.ones(2)
BUILT = r"(?s:.*)\n  in: (?s:.*)built at .*test_first_errors\.py:\d+: "


def D():
    return pl.Dense(A)


def flat():
    return pl.LinearOperator((2, 2), matvec=lambda x: x[:1], dtype=float)


FIRST = [
    (lambda: D() @ np.ones(3), ValueError,
     r"Dimension mismatch: @ of an operator of shape \(2, 2\) takes \(2,\) or \(..., 2, k\), got "
     r"shape \(3,\)" + BUILT),
    (lambda: D() @ pl.Identity(3), ValueError,
     r"cannot multiply operators of shapes \(2, 2\) and \(3, 3\): shape mismatch, 2 columns meet 3 "
     r"rows"),
    (lambda: D() + pl.Identity(3), ValueError,
     r"cannot add operators of shapes \(2, 2\) and \(3, 3\): shape mismatch, rows and columns must "
     r"agree"),
    (lambda: pl.solve(D(), np.ones(3)), ValueError,
     r"solve of an operator of shape \(2, 2\) takes \(2,\) or \(..., 2, k\), got shape \(3,\)"
     + BUILT),
    (lambda: pl.solve(pl.Zeros((2, 3)), b), pl.LinAlgError, r"must be square: \(2, 3\)" + BUILT),
    (lambda: pl.solve(np.ones((2, 2)), b), pl.LinAlgError,
     r"Singular matrix: pivot 2 of 2 is exactly zero; pl\.lstsq\(A, b\) and pl\.pinv\(A\) @ b give "
     r"a solution of least norm" + BUILT),
    (lambda: pl.cholesky(-A), pl.LinAlgError,
     r"not positive definite; pl\.ldl takes indefinite matrices, jitter= adds to the diagonal"
     + BUILT),
    (lambda: pl.logdet(pl.Dense(-A, "pos")), pl.LinAlgError,
     r"assumed positive definite \(assume_a='pos'\) and is not: (?s:.*)Leave assume_a out" + BUILT),
    (lambda: pl.Dense(b), ValueError,
     r"Dense\(a=...\): expected 2 dimensions .*, got 1; x\[:, None\] is a vector as a column"),
    (lambda: pl.Kernel("rbf", b), ValueError,
     r"Kernel\(x=...\): expected 2 dimensions .*, got 1; x\[:, None\]"),
    (lambda: pl.Kernel("gaussian", b[:, None]), ValueError, "expected one of: rbf matern12"),
    (lambda: pl.Kernel("rbf", b[:, None], lengthscale=2), TypeError, "did you mean length_scale?"),
    (lambda: pl.Dense(A, assume_a="spd"), ValueError,
     r"'pos' \(positive definite\), 'lower triangular', .*, or 'orthogonal'"),
    (lambda: pl.LowRank(np.ones((3, 2)), np.ones((2, 4))), ValueError,
     r"does not fit: U \(3, 2\), C none, V \(2, 4\); V has the rows of U V\^H's columns: give V.T"),
    (lambda: pl.Block([[A, np.ones((3, 1))]]), ValueError,
     r"block \(0, 1\) of shape \(3, 1\) has not as many rows as block \(0, 0\) of shape \(2, 2\)"),
    (lambda: pl.Block([A, A]), TypeError, r"\[\[A, B\]\] puts blocks side by side"),
    (lambda: pl.Selection(np.array([True, False]), 2), TypeError, r"np\.flatnonzero\(mask\)"),
    (lambda: pl.Sparse(A), TypeError, "takes a scipy.sparse matrix, got ndarray; arrays go"),
    (lambda: D() @ ["a", "b"], TypeError, "an array of dtype <U1 is not multiplied: give numbers"),
    (lambda: D() @ None, TypeError, "None is not multiplied: give numbers"),
    (lambda: D() @ np.array([1, 2], object), TypeError, r"dtype object .* x\.astype\(float\)"),
    (lambda: D() + 1, TypeError, r"c \* pl\.Identity\(2\) adds c to the diagonal"),
    (lambda: D() ** -1, ValueError, r"A\.inv\(\) is the inverse"),
    (lambda: D().to_numpy(), AttributeError, r"write A\.toarray\(\)"),
    (lambda: D()[5, 0], IndexError, "index 5 is out of bounds for axis 0 with size 2"),
    (lambda: pl.lazy(A) * D(), TypeError, "write @ for the product, pl.multiply for element-wise"),
    (lambda: bool(pl.lazy(A) > 1), ValueError, r"Use a\.any\(\) or a\.all\(\)"),
    (lambda: pl.lazy(A).flags, AttributeError, r"np\.asarray\(x\)\.flags is that of its value"),
    (lambda: pl.lazy(A).__setitem__(0, 1), TypeError, r"np\.where\(mask, a, x\) is a new one"),
    (lambda: pl.solve(D(), b, method="gc"), ValueError, "no method 'gc'; .*did you mean cg"),
    (lambda: pl.solve(pl.Toeplitz(np.r_[2.0, -1, np.zeros(98)]), np.ones(100), method="cg",
                      maxiter=3), pl.ConvergenceError,
     r"did not converge in 3 iterations: (?s:.*)Try more iterations \(maxiter=\), a pre"),
    (lambda: pl.eigsh(D(), k=5), TypeError, r"\(k=5, N=2\): use pl\.eigh\(A\)"),
    (lambda: pl.sample(-A), pl.LinAlgError, "not positive semidefinite: its least eigenv"),
    (lambda: pl.Diag(np.ones(400_000)).toarray(), pl.MaterializationError,
     r"\(400000, 400000\) needs 1,280,000,000,000 bytes" + "(?s:.*)" + BUILT),
    (lambda: pl.LinearOperator((2, 2), matvec=lambda x: x, dtype=float).T @ b, NotImplementedError,
     r"give rmatvec="),
    (lambda: flat() @ b, ValueError,
     r"returned an array of shape \(1,\) where \(2,\) was due" + BUILT),
    (lambda: pl.grad(lambda x: 2 * x)(b), ValueError, "sum it up, or use pl.vjp or pl.jacobian"),
    (lambda: pl.grad(lambda x: float(x.sum()))(b), TypeError, "what is made of values has no"),
    (lambda: pl.config(memory_limit="1GB"), TypeError,
     r"a number of bytes \(10\*\*9 for 1 GB\), got '1GB'"),
    (lambda: pl.eye(3), AttributeError, r"has no attribute 'eye': write pl\.Identity\(n\)"),
    (lambda: pl.Kronecker(A, A), AttributeError, "did you mean Kron or KronSum"),
    (lambda: pl.explain(D(), "slove"), ValueError, "did you mean solve"),
    (lambda: pl.Kernel("rbf", b[:, None], sigma=2), TypeError,
     r"unexpected keyword argument 'sigma'; there are function, x, y, variance, length_scale, al"),
    (lambda: pl.Identity(3, 3), TypeError, r"dtype=3\): a dtype is due; a shape is one tuple"),
    (lambda: pl.DFT(b), TypeError, r"DFT\(n=array.*: expected a size, or a tuple of sizes"),
    (lambda: pl.solve(b, D()), pl.LinAlgError,
     r"must be square: \(1, 2\); a vector counts as one row, and a matrix goes here"),
    (lambda: pl.cholesky(b), pl.LinAlgError, r"\(1, 2\); a vector counts as one row"),
    (lambda: D().qr(), AttributeError, r"'Dense' object has no attribute 'qr': write pl\.qr\(A\)"),
    (lambda: D().sum(), AttributeError, r"write A @ np\.ones\(A\.shape\[1\]\) for the sums"),
    (lambda: D().max(), AttributeError, r"A\.toarray\(\)\.max\(\), or pl\.lazy\(A\)\.max\(\)"),
    (lambda: pl.MultivariateNormal(b, covariance=A), TypeError,
     r"^MultivariateNormal\(\) got an .* 'covariance'; there are mean, cov, precision$"),
    (lambda: pl.MultivariateNormal(b, A).log_prob(b), AttributeError, r"write d\.logpdf\(x\)"),
    (lambda: pl.MultivariateNormal(b, A).logcdf(b), AttributeError, "did you mean logpdf"),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(FIRST)))
def test_it_reads_in_one_glance(k):
    call, error, says = FIRST[k]
    with pytest.raises(error) as seen:
        call()
    text = str(seen.value)
    assert re.search(says, text), text
    first = text.split("\n", 1)[0]
    assert len(first) < 480 and not first.endswith((" ", ","))
    # What IPython and pytest show: frames that do not hide, and the last one.
    chain = [e for e in seen.traceback if "/pylinop/" in str(e.path)]
    shown = [e for e in chain[:-1] if not e.frame.f_locals.get("__tracebackhide__")]
    assert len(shown) <= 3, "a long chain of frames hides what was built where"


@pytest.mark.parametrize("name", sorted(pl._base.names._CALLED))
def test_names_of_other_libraries(name):
    assert not hasattr(pl, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': write "):
        getattr(pl, name)
    for word in re.findall(r"pl\.(\w+)", pl._base.names._CALLED[name]):
        assert hasattr(pl, word), word


@pytest.mark.parametrize("name", sorted(pl._operators.refusals.ELSEWHERE))
def test_attributes_that_are_functions_here(name):
    """What an attribute's error says to write is there."""
    instead = pl._operators.refusals.ELSEWHERE[name]
    assert not hasattr(D(), name) and name not in dir(D())
    for word in re.findall(r"pl\.(\w+)", instead):
        assert hasattr(pl, word), word
    for word in re.findall(r"(?<!\w)A\.(\w+)", instead):
        assert hasattr(D(), word), word


def test_other_names():
    with pytest.raises(AttributeError, match="has no attribute '_nothing'$"):
        pl._nothing
    with pytest.raises(AttributeError, match="has no attribute 'zzzzzz'$"):
        pl.zzzzzz
    with pytest.raises(ImportError):
        from pylinop import nothing_at_all  # noqa: F401
