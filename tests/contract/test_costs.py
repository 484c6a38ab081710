"""The cost table: shipped, measured, used only where it is asked for."""

import json
import os
import stat

import numpy as np
import pytest

import pylinop as pl
from pylinop import _core
from pylinop._base import calibration, config, cost_table

FIGURES = {"flop_rate": 2e9, "gemm_rate": 4e10, "bandwidth": 1.2e10, "overhead": 2e-8}


@pytest.fixture(autouse=True)
def put_back():
    yield
    pl.config(costs=None)
    assert not config._local.get()


def write(path, version=cost_table.VERSION, **figures):
    path.write_text(json.dumps({"version": version, "figures": {**FIGURES, **figures}}))
    return str(path)


def test_the_shipped_table_is_what_the_core_has():
    assert cost_table.shipped().figures == FIGURES
    assert _core._costs()["version"] == cost_table.shipped().version


def test_estimates_follow_the_table(tmp_path, rng):
    A = pl.Dense(rng.standard_normal((200, 200)))
    x = rng.standard_normal((200, 50))
    before = A.explain("apply", x).seconds
    with pl.config(costs=write(tmp_path / "a", gemm_rate=4e9)):
        slow = A.explain("apply", x).seconds
        assert slow == pytest.approx(2 * 200 * 200 * 50 / 4e9 + 2e-8)
    assert A.explain("apply", x).seconds == before == pytest.approx(2e6 * 2 / 4e10 + 2e-8)


def cheapest(sizes, bandwidth):
    """The order of a chain of dense factors by the table's formula, over all orders."""

    def best(i, j):
        if i == j:
            return 0.0, "ABCD"[i]
        found = []
        for k in range(i, j):
            (a, s), (b, t) = best(i, k), best(k + 1, j)
            m, n, p = sizes[i], sizes[k + 1], sizes[j + 1]
            work = 2 * m * n * p * (1 + 8 / min(m, n, p)) / 4e10
            step = max(work, 8 * (m * n + n * p + m * p) / bandwidth) + 2e-8
            found.append((a + b + step, f"({s} {t})"))
        return min(found)

    return best(0, 3)[1]


def test_plans_follow_the_table_and_are_kept_apart(tmp_path, rng):
    """Where memory is slow, another order of a chain is the cheapest."""
    slow, differ = 1e8, []
    while len(differ) < 4:
        sizes = rng.integers(2, 60, 5).tolist()
        if sizes[0] > sizes[4] and cheapest(sizes, slow) != cheapest(sizes, 1.2e10):
            differ.append(sizes)
    path = write(tmp_path / "a", bandwidth=slow)
    for sizes in differ:
        F = [pl.Dense(rng.standard_normal(s)) for s in zip(sizes, sizes[1:], strict=False)]

        def order(op):
            with pl.explaining() as e:
                op.toarray()
            return e.plans[0]._data["order"]

        P = F[0] @ F[1] @ F[2] @ F[3]
        P.toarray()
        assert order(P) == cheapest(sizes, 1.2e10)
        with pl.config(costs=path):
            P.toarray()
            assert order(P) == order(F[0] @ F[1] @ F[2] @ F[3]) == cheapest(sizes, slow)
        assert order(P) == cheapest(sizes, 1.2e10)
        pl.config(costs=path)
        assert order(P) == cheapest(sizes, slow)
        pl.config(costs=None)
        assert order(P) == cheapest(sizes, 1.2e10)


@pytest.fixture
def timed(monkeypatch):
    """What is measured is run once, and its seconds are these, in this order."""
    asked = []
    seconds = [6e-3, 2e-5, 4e-5, 8e-3, 9e-6, 1e-6]

    def stand_in(run, *_, **__):
        run()
        asked.append(run)
        return seconds[len(asked) - 1]

    monkeypatch.setattr(calibration, "_seconds", stand_in)
    yield asked
    assert len(asked) == len(seconds)


def test_seconds_are_the_median_of_tries_long_enough(monkeypatch):
    """By a clock of the test's: a machine with other work to do changes nothing."""
    now, runs = [0.0], [0]
    monkeypatch.setattr(calibration.time, "perf_counter", lambda: now[0])

    def run():
        runs[0] += 1
        now[0] += 0.5 if runs[0] in (1, 60) else 0.001  # the first call, and one of the tries'

    assert calibration._seconds(run) == pytest.approx(0.001)
    assert runs[0] == 1 + (1 + 2 + 4 + 8 + 16 + 32) + 5 * 32


def test_calibrate_writes_a_file_and_changes_nothing(tmp_path, monkeypatch, timed):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    before = pl.Dense(np.ones((50, 50))).explain("apply", np.ones(50))
    path = pl.calibrate()
    assert path == str(tmp_path / "pylinop" / "costs.json")
    assert pl.Dense(np.ones((50, 50))).explain("apply", np.ones(50)).seconds == before.seconds
    data = json.loads((tmp_path / "pylinop" / "costs.json").read_text())
    assert data["version"] == cost_table.VERSION
    assert data["figures"] == {
        "gemm_rate": 2 * 512**3 / 6e-3,
        "flop_rate": max(5 * 2000 * 8 / 2e-5, 2 * 256**2 / 4e-5),
        "bandwidth": 3 * 8 * 4_000_000 / 8e-3,
        "overhead": (9e-6 - 1e-6) / 16,
    }
    with pl.config(costs=path):
        assert pl.Dense(np.ones((50, 50))).explain("apply", np.ones(50)).seconds > 0
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert calibration._own_file() == os.path.join("~", ".config", "pylinop", "costs.json")
    assert list((tmp_path / "pylinop").iterdir()) == [tmp_path / "pylinop" / "costs.json"]


def test_show_config_shows_the_tables(tmp_path, capsys):
    pl.show_config()
    text = capsys.readouterr().out
    assert "gemm_rate" in text and "4e+10" in text and "in use: shipped" in text
    path = write(tmp_path / "mine", gemm_rate=7e10)
    with pl.config(costs=path):
        pl.show_config()
    text = capsys.readouterr().out
    assert "4e+10 / 7e+10" in text and f"shipped / in use: {path}" in text


def test_another_version_raises(tmp_path):
    path = write(tmp_path / "old", version=cost_table.VERSION + 1)
    with pytest.raises(ValueError, match=r"version 2, this pylinop reads version 1.*calibrate"):
        pl.config(costs=path)
    with pytest.raises(ValueError, match="version"), pl.config(costs=path):
        pass
    assert config.get("costs") is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"version": 1}', '{"version": 1, "figures": {"flop_rate": 1}}', "{"]
)
def test_what_is_no_table(tmp_path, text):
    (tmp_path / "x").write_text(text)
    with pytest.raises(ValueError, match=r"is no file of pl.calibrate\(\)"):
        pl.config(costs=tmp_path / "x")


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_figures_must_make_sense(tmp_path, value):
    with pytest.raises(ValueError, match="overhead must be above 0"):
        pl.config(costs=write(tmp_path / "x", overhead=value))


def test_other_wrong_values(tmp_path):
    for wrong in (3, True, [1], b"x"):
        with pytest.raises(TypeError, match="path of a file"):
            pl.config(costs=wrong)
    with pytest.raises(ValueError, match="cannot be read"):
        pl.config(costs=tmp_path / "missing")
    with pytest.raises(ValueError, match="cannot be read"):
        pl.config(costs=tmp_path)
    assert stat.S_ISDIR(tmp_path.stat().st_mode) and config.get("costs") is None
