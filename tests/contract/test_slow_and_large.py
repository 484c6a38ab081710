"""What takes long says so before it begins, and dense forms have a bound where none was set."""

import warnings

import numpy as np
import pytest

import pylinop as pl
from pylinop._base import config

N = 15_000
T = pl.Toeplitz(0.5 ** np.arange(N)) + pl.Diag(np.linspace(-1, 2, N))  # no structured way

QUESTIONS = {
    "solve": (lambda A: pl.solve(A, np.ones(A.shape[0]), method="direct"), 'method="cg"'),
    "columns": (lambda A: pl.inv(A) @ np.ones((A.shape[0], 100)), 'method="cg"'),
    "logdet": (pl.logdet, 'method="slq"'),
    "variances": (lambda A: pl.inv(A).diagonal(), 'pl.diagonal(..., method="hutch++")'),
    "trace": (lambda A: pl.inv(A).trace(), 'pl.trace(..., method="hutch++")'),
    "eigh": (pl.eigh, "pl.eigh(A, k=6)"),
    "eigvalsh": (pl.eigvalsh, "pl.eigsh"),
    "svd": (pl.svd, "pl.svds"),
    "svdvals": (pl.svdvals, "pl.svds"),
    "eigvals": (pl.eigvals, "pl.eigs"),
    "cholesky": (pl.cholesky, "15000, 15000"),
    "lu": (pl.lu, "15000, 15000"),
    "qr": (pl.qr, "15000, 15000"),
    "lstsq": (lambda A: pl.lstsq(A, np.ones(A.shape[0])), 'method="lsmr"'),
    "a norm": (lambda A: pl.norm(A, 2), "15000, 15000"),
    "null space": (pl.null_space, "15000, 15000"),
    "range": (pl.orth, "15000, 15000"),
}


def machine(monkeypatch, whole, free=1 << 49):
    """A machine with so many bytes, none of them asked for before; counts how often it is asked."""
    asked = []
    monkeypatch.setattr(config, "machine_memory", lambda: asked.append(whole) or whole)
    monkeypatch.setattr(config, "free_memory", lambda: free)
    monkeypatch.setattr(config, "_seen", (0.0, 0))
    return asked


@pytest.fixture
def large_machine(monkeypatch):
    """Memory is no matter: nothing is computed."""
    machine(monkeypatch, 1 << 50)


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_warns_before_it_begins(name, large_machine):
    """As an error, it ends what would take minutes: so nothing has begun."""
    ask, instead = QUESTIONS[name]
    with pl.config(warn_limit=1 << 50), warnings.catch_warnings():
        warnings.simplefilter("error", pl.SlowComputationWarning)
        with pytest.raises(pl.SlowComputationWarning) as caught:
            ask(T)
    text = str(caught.value)
    assert instead in text and " s and " in text and " bytes" in text and "slow_limit" in text
    assert "built at" in text and "test_slow_and_large.py" in text


@pytest.mark.parametrize(
    "ask, instead",
    [
        (pl.pinv, 'pl.lstsq(A, b, method="lsmr")'),
        (pl.expm, "pl.expm_multiply"),
        (pl.logm, "pl.funm_multiply(A, np.log, v)"),
        (pl.sqrtm, "pl.funm_multiply(A, np.sqrt, v)"),
    ],
)
def test_functions_of_matrices_name_their_products(ask, instead, large_machine):
    S = T + pl.Diag(np.ones(N - 1), k=1)  # not Hermitian
    with pl.config(warn_limit=1 << 50), warnings.catch_warnings():
        warnings.simplefilter("error", pl.SlowComputationWarning)
        with pytest.raises(pl.SlowComputationWarning) as caught:
            ask(S)
    assert f"; {instead}" in str(caught.value)


@pytest.mark.parametrize("limit, warns", [(None, False), (10.0, True), (1e9, False)])
def test_it_is_an_option(limit, warns, large_machine):
    class Begun(Exception):
        pass

    def ask():
        with warnings.catch_warnings():
            warnings.simplefilter("error", pl.SlowComputationWarning)
            warnings.simplefilter("error", pl.MaterializationWarning)
            with pl.config(slow_limit=limit):
                pl.eigvalsh(T)

    # the dense form's warning comes next where this one does not
    with pytest.raises(pl.SlowComputationWarning if warns else pl.MaterializationWarning):
        ask()


def test_a_small_limit_is_obeyed(rng):
    """Plans in C ask from 0.01 s on; the second call has the factor, and nothing to say."""
    A = pl.Dense(rng.standard_normal((1500, 1500)))
    b = rng.standard_normal(1500)
    with pl.config(slow_limit=0.02):
        with pytest.warns(pl.SlowComputationWarning, match=r"product or solve .* take 0\.0\d+ s"):
            pl.solve(A, b)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pl.SlowComputationWarning)
            pl.solve(A, b)
    with pl.config(slow_limit=0.2), warnings.catch_warnings():
        warnings.simplefilter("error", pl.SlowComputationWarning)
        pl.logdet(pl.Dense(rng.standard_normal((1500, 1500))))


@pytest.mark.parametrize("assumed", [None, "pos"])
def test_what_is_kept_is_no_reason_to_be_silent(assumed, rng):
    """Of a plan that finds the factor only that is not counted: the inverse takes as long again."""
    a = rng.standard_normal((1200, 1200))
    A = pl.Dense(a @ a.T + np.eye(1200), assumed)
    with pl.config(slow_limit=None):
        pl.logdet(A)
    for ask in (lambda: pl.inv(A).diagonal(), lambda: pl.inv(A).toarray()):
        with pl.config(slow_limit=0.01), pytest.warns(pl.SlowComputationWarning) as caught:
            ask()
        assert len(caught) == 1
        with pl.config(slow_limit=1e9), warnings.catch_warnings():
            warnings.simplefilter("error", pl.SlowComputationWarning)
            ask()
    with pl.config(slow_limit=0.005), warnings.catch_warnings():
        warnings.simplefilter("error", pl.SlowComputationWarning)
        pl.logdet(A)


@pytest.mark.parametrize("shift", [0, 0.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_hermitian_toeplitz_is_priced_by_gradients(dtype, shift):
    """A million rows take a second by these, and 1000 s were told of, the recursion's. On both
    sides of the size from which they are tried; a determinant, and what is not Hermitian by how it
    is written, are the recursion's."""
    c = (0.5 ** np.arange(1_000_000.0)).astype(dtype)
    b = np.ones(len(c))
    T = pl.Toeplitz(c) + shift * pl.Identity(len(c))
    assert T.explain("solve", b).seconds < 10
    assert T.explain("logdet").seconds > 100
    assert pl.Toeplitz(c, c.copy()).explain("solve", b).seconds > 100
    by = [pl.Toeplitz(c[:n]).explain("solve", b[:n]).seconds for n in (200, 400, 2000, 4000)]
    assert by[1] > 3 * by[0] and by[3] < 3 * by[2]


@pytest.mark.parametrize("name", ["eig", "expm", "logm", "sqrtm", "pinv", "eigh"])
def test_it_warns_once(name):
    """Also where one decomposition is a part of another, as that of a symmetric sum."""
    a = np.random.default_rng(0).standard_normal((300, 300))
    A = pl.Dense(a) + pl.Dense(a.T.copy()) + 100 * pl.Identity(300)
    for limit, many in ((0.0101, 1), (None, 0), (1e9, 0)):
        with warnings.catch_warnings(record=True) as caught, pl.config(slow_limit=limit):
            warnings.simplefilter("always")
            getattr(pl, name)(2 * A if many else A)
        assert [w.category for w in caught] == [pl.SlowComputationWarning] * many


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,jk,kl->il"])
@pytest.mark.parametrize("lazily", [False, True])
def test_contractions_warn(equation, lazily):
    A = np.ones((800, 800))  # 0.026 s a product, by price
    operands = [pl.lazy(A) if lazily else A] + [A] * equation.count(",")
    for limit in (0.011, 10):
        with warnings.catch_warnings(record=True) as caught, pl.config(slow_limit=limit):
            warnings.simplefilter("always")
            np.asarray(pl.einsum(equation, *operands))
        assert [w.category for w in caught] == [pl.SlowComputationWarning] * (limit < 1)
        assert all(w.filename == __file__ for w in caught)


def test_products_with_kernels_are_not_said_to_be_slow():
    """A second and less, by any of our loops; the price was that of numbers one by one, 13 s."""
    x = np.linspace(0, 1, 75_000).reshape(25_000, 3)
    steps = pl.Kernel("rbf", x).explain("apply", np.ones(25_000)).steps
    assert sum(s["seconds"] for s in steps) < 2


def test_what_is_wrong_of_the_option():
    for value in ("10", True, [1]):
        with pytest.raises(TypeError, match="slow_limit must be a number of seconds"):
            pl.config(slow_limit=value)
    for value in (-1, np.nan):
        with pytest.raises(ValueError, match="slow_limit must be 0 seconds or more"):
            pl.config(slow_limit=value)


def test_small_ones_do_not_warn(recwarn):
    A = pl.Toeplitz(0.5 ** np.arange(300)) + pl.Diag(np.linspace(-1, 2, 300))
    for ask, _ in list(QUESTIONS.values())[:8]:
        ask(A)
    assert not [w for w in recwarn if w.category is pl.SlowComputationWarning]


def test_half_of_the_machine_is_what_dense_forms_may_take(monkeypatch):
    machine(monkeypatch, 40 << 20)
    A = pl.Toeplitz(0.5 ** np.arange(2000)) + pl.Diag(np.linspace(-1, 2, 2000))  # 32 MB
    small = pl.Toeplitz(0.5 ** np.arange(600)) + pl.Diag(np.linspace(1, 2, 600))
    words = "half of this machine's memory, as no pl.config"
    for ask in (pl.cholesky, pl.eigvalsh, pl.logdet, lambda A: A.toarray()):
        with pytest.raises(pl.MaterializationError, match=words):
            ask(A)
        ask(small)
    with pl.config(memory_limit=1 << 40, warn_limit=1 << 40):
        assert A.toarray().nbytes == 32_000_000


def test_all_that_is_made_of_a_dense_form_counts(monkeypatch):
    """The dense form alone would fit, and its factor beside it would not."""
    machine(monkeypatch, 80 << 20)
    A = pl.Toeplitz(0.5 ** np.arange(2000)) + pl.Diag(np.linspace(-1, 2, 2000))
    with pytest.raises(pl.MaterializationError, match="with all that is made of it"):
        pl.logdet(A)


def test_free_memory_bounds_too(monkeypatch):
    machine(monkeypatch, 1 << 50, free=1 << 20)
    A = pl.Toeplitz(0.5 ** np.arange(1000)) + pl.Diag(np.linspace(-1, 2, 1000))
    with pytest.raises(pl.MaterializationError, match="are free"):
        pl.logdet(A)


def test_small_parts_of_what_is_free_are_given_without_asking_again(monkeypatch):
    """What is given is taken off; a large part, and a later moment, ask the system."""
    asked = machine(monkeypatch, 1 << 50, free=640 << 20)
    monkeypatch.setattr(config, "_HOLDS", 3600.0)
    for _ in range(3):
        assert config.room_by_default(9 << 20) <= 640 << 20
    assert len(asked) == 1
    assert config.room_by_default(10 << 20) == 640 << 20  # more than a part of 64 of what is left
    assert len(asked) == 2
    assert config.room_by_default() == 640 << 20
    assert len(asked) == 3
    until, left = config._seen
    monkeypatch.setattr(config, "_seen", (until - 7200.0, left))
    config.room_by_default(1 << 20)
    assert len(asked) == 4
    for _ in range(100):  # of 640 MB no more than 576 are given unasked
        config.room_by_default(9 << 20)
    assert len(asked) > 4


def test_what_was_given_dense_is_the_users(monkeypatch):
    machine(monkeypatch, 1 << 20)
    a = np.random.default_rng(0).standard_normal((600, 600))
    assert np.isfinite(pl.solve(a, np.ones(600))).all()


def test_what_the_machine_has():
    assert config.machine_memory() is None or config.machine_memory() > 1 << 28
    assert config.room_by_default() is None or config.room_by_default() > 0
