"""pl.config: process-wide as a statement, one context's as `with`, for every option."""

import asyncio
import contextlib
import contextvars
import subprocess
import sys
import threading

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._base import config

N = 1000


def product():
    """1e-20 beside large values: only the direct loops have it right."""
    T = pl.Toeplitz(np.array([1.0, 1e-20] + [0.0] * (N - 2)))
    x = np.zeros(N)
    x[0] = 1.0
    return T, x


def direct(T, x):
    return (T @ x)[1] == 1e-20


@pytest.fixture(autouse=True)
def put_back():
    before = dict(config._process)
    yield
    assert not config._local.get()
    pl.config(**{k: v for k, v in before.items() if k != "threads"})


def test_a_statement_holds_for_the_process():
    T, x = product()
    assert not direct(T, x)
    pl.config(fft=False)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(direct(T, x)))
    thread.start()
    thread.join()
    assert seen == [True] and direct(T, x)
    pl.config(fft=True)
    assert not direct(T, x)


def test_with_holds_for_one_thread_only():
    T, x = product()
    inside, looked, seen = threading.Event(), threading.Event(), []

    def other():
        inside.wait()
        seen.append(direct(T, x))
        seen.append(pl.Identity(2)._origin is not None)
        looked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with pl.config(fft=False, provenance=False):
        inside.set()
        assert looked.wait(10)
        assert direct(T, x) and pl.Identity(2)._origin is None
    thread.join()
    assert seen == [False, True] and not direct(T, x)
    assert pl.Identity(2)._origin is not None


@pytest.mark.parametrize("how", ["@", "matvec", "matmat", "rmatvec", "out", "strided", "ufunc"])
def test_every_way_to_a_product_asks_the_context(how):
    T, x = product()
    T = T if how != "rmatvec" else T.T
    out, wide = np.empty(N), np.zeros(2 * N)
    wide[0] = 1.0
    ways = {
        "@": lambda: T @ x,
        "matvec": lambda: T.matvec(x),
        "matmat": lambda: T.matmat(x[:, None])[:, 0],
        "rmatvec": lambda: T.rmatvec(x),
        "out": lambda: np.matmul(T, x, out=out),
        "strided": lambda: T @ wide[::2],
        "ufunc": lambda: np.matmul(T, x),
    }
    plain = ways[how]()[1]
    assert plain != 1e-20
    with pl.config(fft=False):
        assert ways[how]()[1] == 1e-20
        with pl.config(fft=True):
            assert ways[how]()[1] == plain
        with pl.config(warn_limit=3):  # says nothing of fft
            assert ways[how]()[1] == 1e-20
        assert "fft" not in T.explain()
    assert ways[how]()[1] == plain
    assert "fft" in T.explain()


def test_inside_a_block_its_options_win_over_a_statement():
    T, x = product()
    with pl.config(fft=False):
        pl.config(fft=True)
        assert direct(T, x)
        pl.config(fft=False)
        pl.config(provenance=False)
        assert pl.Identity(2)._origin is None
    assert direct(T, x)  # the statement stays


def test_threads_that_race_keep_their_own_setting():
    """Also in the moment between making the options and entering the block."""
    T, x = product()
    stop, wrong = threading.Event(), []

    def flips():
        while not stop.is_set():
            with pl.config(fft=False):
                if not direct(T, x):
                    wrong.append("inside")

    def reads():
        y = T @ x
        while not stop.is_set():
            if (T @ x)[1] != y[1]:
                wrong.append("outside")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=f) for f in (flips, reads, flips, reads)]
        for t in threads:
            t.start()
        stop.wait(1.0)
        stop.set()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong, (len(wrong), wrong[:3])


def test_tasks_and_copied_contexts_keep_what_they_were_made_in():
    T, x = product()

    async def look():
        await asyncio.sleep(0.001)
        return direct(T, x)

    async def main():
        with pl.config(fft=False):
            task = asyncio.create_task(look())
        return await task, direct(T, x)

    assert asyncio.run(main()) == (True, False)
    with pl.config(fft=False):
        context = contextvars.copy_context()
    assert context.run(direct, T, x) and not direct(T, x)
    before = _core_locals()
    del context
    assert _core_locals() <= before


def _core_locals():
    import gc

    gc.collect()
    return sum(isinstance(o, config._Local) for o in gc.get_objects())


def test_exit_stack_and_reuse():
    T, x = product()
    options = pl.config(fft=False)  # a statement, until it is entered
    assert direct(T, x)
    with options:
        assert direct(T, x) and config._process["fft"] is True
        with options:
            assert direct(T, x)
        assert direct(T, x)
    assert not direct(T, x)
    with contextlib.ExitStack() as stack:
        stack.enter_context(pl.config(fft=False))
        assert direct(T, x) and config._process["fft"] is True
    assert not direct(T, x)
    with pl.config(fft=False) as one, pl.config(fft=True):
        assert not direct(T, x) and isinstance(one, pl.config)
    with pytest.raises(ZeroDivisionError), pl.config(fft=False):
        1 / 0
    assert not direct(T, x)


@pytest.mark.parametrize("option", [{"cache_limit": 10}, {"threads": 1}])
def test_what_is_the_process_s_raises_in_a_block(option):
    (name,) = option
    before, threads = dict(config._process), _core._blas()["threads"]
    limit = _core._store()["limit"]
    with pytest.raises(ValueError, match=f"{name} holds for the whole process"):
        with pl.config(fft=False, **option):
            pass
    with contextlib.ExitStack() as stack, pytest.raises(ValueError, match=name):
        stack.enter_context(pl.config(**option))
    assert config._process == before and not config._local.get()
    assert _core._blas()["threads"] == threads and _core._store()["limit"] == limit


def test_the_process_s_options_as_statements():
    threads = _core._blas()["threads"]
    pl.config(cache_limit=12345)
    assert _core._store()["limit"] == 12345
    pl.config(threads=1)
    assert _core._blas()["threads"] == 1
    pl.config(threads=None)  # as they are
    assert _core._blas()["threads"] == 1
    pl.config(threads=np.int64(threads))
    assert _core._blas()["threads"] == threads


@pytest.mark.parametrize(
    "option, error",
    [
        ({"fft": "no"}, TypeError),
        ({"fft": 0}, TypeError),
        ({"fft": None}, TypeError),
        ({"provenance": [1]}, TypeError),
        ({"cache_limit": 2**70}, ValueError),
        ({"cache_limit": -1}, ValueError),
        ({"cache_limit": None}, TypeError),
        ({"cache_limit": 1e6}, TypeError),
        ({"cache_limit": True}, TypeError),
        ({"warn_limit": -5}, ValueError),
        ({"warn_limit": None}, TypeError),
        ({"memory_limit": "1 GB"}, TypeError),
        ({"memory_limit": 2**64}, ValueError),
        ({"threads": 0}, ValueError),
        ({"threads": 2.0}, TypeError),
    ],
)
def test_wrong_values_say_what_they_are_and_change_nothing(option, error):
    ((name, value),) = option.items()
    before, limit = dict(config._process), _core._store()["limit"]
    for build in (
        lambda: pl.config(**option),
        lambda: pl.config(warn_limit=17, **option) if name != "warn_limit" else pl.config(**option),
    ):
        with pytest.raises(error) as seen:
            build()
        assert name in str(seen.value) and repr(value) in str(seen.value)
        with pytest.raises(error), build():
            pass
    assert config._process == before and _core._store()["limit"] == limit
    assert pl.Identity(2)._origin is not None


def test_numpy_s_numbers_are_taken():
    with pl.config(fft=np.False_, warn_limit=np.int32(7), memory_limit=None):
        assert config.get("fft") is False and config.get("warn_limit") == 7
    with pytest.raises(TypeError, match="no option"):
        pl.config(ftt=False)


def test_show_config_shows_what_holds_here(capsys):
    with pl.config(fft=False):
        pl.show_config()
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if line.startswith("fft ")][0].split()[1] == "False"
    for name in config._DEFAULTS:
        assert name in text


def test_the_interpreter_ends_inside_a_block():
    code = (
        "import pylinop as pl, numpy as np\n"
        "c = pl.config(fft=False, provenance=False)\n"
        "c.__enter__()\n"
        "T = pl.Toeplitz(np.ones(500)); T @ np.ones(500)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_a_rule_that_is_gone_cannot_be_switched_off():
    """Names are remembered, as listing all rules takes a millisecond: those of users' rules not."""
    for _ in range(2):
        pl.register_rule("mine", "(view:1 (prod ?a ?b))", "(prod (view:1 ?b) (view:1 ?a))")
        try:
            with pl.config(disable_rules=["mine", "solve-circulant"]):
                pass
        finally:
            pl.unregister_rule("mine")
        with pytest.raises(ValueError, match="no rule 'mine'"), pl.config(disable_rules=["mine"]):
            pass
