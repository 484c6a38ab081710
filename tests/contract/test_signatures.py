"""What completion and `inspect` show, and what a misspelt keyword is answered with."""

import inspect
import pydoc

import numpy as np
import pytest

import pylinop as pl

# Public callables whose positional arguments are a list by nature, or go on to another library.
MANY = {
    *("Kron", "KronSum", "BlockDiag", "block_diag", "Contraction", "einsum", "einsum_path"),
    *("evaluate", "vjp", "explain"),
}


def parameters(f):
    return inspect.signature(f).parameters


@pytest.mark.parametrize("name", [n for n in pl.__all__ if callable(getattr(pl, n))])
def test_no_parameter_is_hidden(name):
    f = getattr(pl, name)
    try:
        found = parameters(f)
    except ValueError:  # what appears by itself, and exceptions
        assert isinstance(f, type) and not f.__init__.__text_signature__ == ""
        return
    kinds = {p.kind for p in found.values()}
    if name in MANY:
        assert inspect.Parameter.VAR_POSITIONAL in kinds
    else:
        assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


@pytest.mark.parametrize(
    "f, names",
    [
        (pl.solve, "A b assume_a method rtol atol maxiter M x0 callback progress precision"),
        (pl.Diag([1.0]).solve, "b assume_a method rtol atol maxiter M x0 callback progress"),
        (pl.trace, "A method num_samples rtol atol rng confidence max_samples callback progress"),
        (pl.diagonal, "A offset method num_samples rtol"),
        (pl.logdet, "A method num_samples rtol bounds steps"),
        (pl.estimate_trace, "A function method bounds steps num_samples rtol"),
        (pl.eigh, "A UPLO method k which sigma tol"),
        (pl.eigvalsh, "A UPLO method k which sigma tol"),
        (pl.pinv, "A rcond hermitian rtol"),
        (pl.PseudoInverse, "A rcond hermitian rtol"),
        (pl.preconditioner, "A kind block omega drop fill shift rank rtol noise mu rng"),
        (pl.quasiseparable, "kernel t x variance length_scale frequency quality a b c d"),
        (pl.config, "fft provenance cache_limit memory_limit threads check verify"),
        (pl.LinearOperator, "shape matvec rmatvec matmat dtype rmatmat"),
        (pl.MatVec, "shape matvec rmatvec matmat dtype rmatmat"),
        (pl.LowRank, "U V C copy"),
        (pl.cg, "A b x0 rtol atol maxiter M callback progress"),
        (pl.MultivariateNormal, "mean cov precision"),
        (pl.Estimate, "value error confidence error_kind bias samples"),
    ],
)
def test_parameters(f, names):
    found = list(parameters(f))
    wanted = names.split()
    assert [n for n in found if n in wanted] == [n for n in found if n in set(wanted)]
    assert set(wanted) <= set(found)


def test_a_class_of_a_user_has_its_own():
    class Mine(pl.LinearOperator):
        def __init__(self, a, scale=2.0):
            super().__init__(float, (2, 2))

        def _matvec(self, x):
            return x

    assert list(parameters(Mine)) == ["a", "scale"]
    assert list(parameters(Mine(1))) == ["x"]  # of its __call__

    class Plain(Mine):
        pass

    assert inspect.signature(Plain) is not None


FOUND_BY_TAB = [
    *("T", "H", "mT", "shape", "dtype", "ndim", "size", "nbytes", "args", "real", "imag"),
    *("matvec", "matmat", "rmatvec", "rmatmat", "dot", "adjoint", "transpose", "conj", "astype"),
    *("toarray", "todense", "tosparse", "diagonal", "trace", "copy", "explain", "spy", "to_dot"),
    *("solve", "inv", "logdet", "slogdet", "det", "cholesky", "eigh", "eigvalsh", "svd", "pinv"),
    *("norm", "sample", "factorized", "clear_cache"),
]


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.Dense(np.eye(2)),
        lambda: pl.Kron(np.eye(2), np.eye(2)),
        lambda: pl.Diag([1.0]) + pl.LowRank(np.ones((1, 1))),
        lambda: pl.MatVec((2, 2), lambda x: x, dtype=float),
    ],
)
def test_completion(make):
    A = make()
    shown = [n for n in dir(A) if not n.startswith("_")]
    missing = [n for n in FOUND_BY_TAB if n not in shown]
    assert missing in ([], ["mT"])
    assert all(hasattr(A, n) for n in shown if n not in ("base", "U", "V", "C"))
    for name in ("MultivariateNormal", "factorized", "solve", "Kron", "kinds", "norm", "multi_dot"):
        assert name in dir(pl)


@pytest.mark.parametrize("kind", ["LowRank", "Kron", "Toeplitz", "MultivariateNormal"])
def test_help_begins_with_the_kind(kind):
    text = pydoc.plain(pydoc.render_doc(getattr(pl, kind)))
    doc = inspect.getdoc(getattr(pl, kind)).splitlines()
    head = text.splitlines()[:6]
    assert any(line.endswith(doc[0]) for line in head)
    assert text.index("Examples") < text.index("Methods defined here")


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda A, x: pl.Kernel("rbf", x, lengthscale=2.0), "Kernel.*'lengthscale'.*length_scale"),
        (lambda A, x: pl.Diag([1.0], shpae=(1, 1)), "did you mean shape"),
        (lambda A, x: pl.Dense(x, assume="pos"), "mean assume_a"),
        (lambda A, x: pl.Toeplitz([1.0], row=[1.0]), "mean r"),
        (lambda A, x: pl.LowRank(x, c=x), "mean C"),
        (lambda A, x: pl.Identity(3, dtyp=float), "mean dtype"),
        (lambda A, x: pl.quasiseparable("matern32", [0.0], lengthscale=2), "mean length_scale"),
        (lambda A, x: pl.cg(A, x, tol=1), "cg.. got an unexpected .* 'tol'.*mean rtol or atol"),
        (lambda A, x: pl.lsmr(A, x, dampp=1), "mean damp"),
        (lambda A, x: pl.eigsh(A, wich="LM"), "mean which"),
        (lambda A, x: pl.lstsq(A, x, rcon=1), "mean rcond"),
        (lambda A, x: pl.sample(A, sise=1), "mean size"),
        (lambda A, x: A.sample(sise=1), "mean size"),
        (lambda A, x: pl.trace(A, num_sample=3), "trace.*mean num_samples"),
        (lambda A, x: pl.eigh(A, K=2), "mean k"),
    ],
)
def test_misspelt_keywords(call, says):
    with pytest.raises(TypeError, match=f"{says}"):
        call(pl.Dense(np.eye(2)), np.ones((2, 1)))


def test_errors_within_a_function_are_its_own():
    with pytest.raises(TypeError, match="size must be an integer"):
        pl.sample(pl.Identity(2), size="x")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        pl.cg(pl.Identity(2))
