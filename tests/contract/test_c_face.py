"""The C face by ctypes: what it refuses, and what it hands on."""

import ctypes
import threading

import numpy as np
import pytest
from contract.c_face import as_c, c_face, last_error, run_program

from pylinop._programs import entry


@pytest.fixture
def owner(monkeypatch):
    """Programs of an owner of this test's: their text says what is added."""

    class Owner:
        @staticmethod
        def written_into(program, arrays, outs):
            for out in outs:
                out[...] = sum(a.sum() for a in arrays) + float(program)

    monkeypatch.setitem(entry.OWNERS, "test", "a module that is not imported")
    monkeypatch.setattr(entry.importlib, "import_module", lambda name: Owner)
    entry._owner.cache_clear()
    yield
    entry._owner.cache_clear()


def called(text, args, outs):
    return run_program()(text, len(text), len(args), as_c(args), len(outs), as_c(outs), 0)


def test_version():
    assert c_face("lop_capi_version", ctypes.c_int32)() == 2


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8", "u1"])
def test_arrays_of_any_strides(owner, dtype):
    a = np.arange(24, dtype=dtype).reshape(4, 6)[::2, ::-1]
    out, other = np.zeros((3, 2), dtype).T[:, 1:], np.zeros((), dtype)
    assert called(b"test\n3", [a, a.T, np.zeros((0, 3), dtype)], [out, other]) == 0
    assert (out == 2 * a.sum() + 3).all() and other == out.flat[0]


def test_errors_have_their_text(owner):
    number = [np.zeros(())]
    assert called(b"nobody\n()", [], number) == 2
    assert last_error()[1].startswith("ValueError: a program of 'nobody'")
    assert called(b"test\nnot a number", [], number) == 2
    length, text = last_error()
    assert "could not convert" in text and length == len(text)
    assert last_error(8) == (length, text[:7]) and last_error(1) == (length, "")
    assert called(b"\xff\xfe", [], number) == 2 and "utf-8" in last_error()[1]
    assert called(b"test\n1", [], number) == 0 and number[0] == 1


def test_wrong_arrays(owner):
    a = as_c([np.zeros(3)])
    for field, wrong in (("typecode", 1000), ("typecode", 0), ("typecode", ord("O")), ("ndim", -1)):
        given = as_c([np.zeros(3)])
        setattr(given[0], field, wrong)
        assert run_program()(b"test\n1", 6, 1, given, 1, a, 0) == 1
        assert "an array of typecode" in last_error()[1]


def test_arguments_are_read_only(owner, monkeypatch):
    class Writes:
        @staticmethod
        def written_into(program, arrays, outs):
            arrays[0][...] = 1

    monkeypatch.setattr(entry.importlib, "import_module", lambda name: Writes)
    entry._owner.cache_clear()
    assert called(b"test\n1", [np.zeros(2)], []) == 2 and "read-only" in last_error()[1]


def test_each_thread_has_its_own_error(owner):
    assert called(b"nobody\n()", [], []) == 2
    seen = []
    thread = threading.Thread(target=lambda: seen.append(last_error()))
    thread.start()
    thread.join()
    assert seen == [(0, "")] and last_error()[0] > 0
