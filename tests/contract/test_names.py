"""What the package shows: names, signatures, copy=."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl


def test_all_is_what_dir_shows():
    code = "import pylinop as pl; print(*[n for n in dir(pl) if n[0] != '_'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(pl.__all__) == sorted(done.stdout.split())
    assert len(set(pl.__all__)) == len(pl.__all__)
    for name in pl.__all__:
        value = getattr(pl, name)
        assert value.__doc__, name
        if isinstance(value, type) and issubclass(value, pl.LinearOperator):
            assert value.__module__ == "pylinop", name


@pytest.mark.parametrize("row", [r for r in pl.kinds() if r["signature"]], ids=lambda r: r["name"])
def test_signatures_say_copy_where_arrays_are_taken(row):
    roles = {p["role"] for p in row["params"]}
    takes = bool(roles & {"array", "index", "operator", "operators", "foreign"})
    signature = inspect.signature(getattr(pl, row["name"]))
    assert ("copy" in signature.parameters) == takes == ("copy : bool" in row["doc"])
    if takes:
        copy = signature.parameters["copy"]
        assert copy.kind is copy.KEYWORD_ONLY and copy.default is False
    else:
        with pytest.raises(TypeError, match="unexpected keyword argument 'copy'"):
            getattr(pl, row["name"])(3, copy=True)


def test_kron_copies_what_it_wraps():
    a, d = np.arange(4.0).reshape(2, 2), np.array([1.0, 2.0])
    D = pl.Diag(d)
    K, B = pl.Kron(a, D, copy=True), pl.Kron(a, D, copy=False)
    want = np.kron(a, np.diag(d))
    a[0, 0], d[1] = 50.0, 60.0
    np.testing.assert_array_equal(K.toarray(), want)
    np.testing.assert_array_equal(B.toarray(), np.kron(a, np.diag(d)))
    assert K.ops[1] is not D and B.ops[1] is D and type(K.ops[1]) is pl.Diag
    lists = pl.Kron([[1, 2], [3, 4]], [[1.0]], copy=True)
    np.testing.assert_array_equal(lists.toarray(), [[1, 2], [3, 4]])
    assert pl.Kron(a, a).ops[0].a is a  # borrowed is the default


@pytest.mark.parametrize(
    "build",
    [
        lambda a, **k: pl.Dense(a, **k),
        lambda a, **k: pl.Diag(a[0], **k),
        lambda a, **k: pl.Toeplitz(a[0], a[:, 0], **k),
        lambda a, **k: pl.LowRank(a, a, **k),
        lambda a, **k: pl.Kron(a, pl.Dense(a), **k),
        lambda a, **k: pl.LowRank(a, C=a, **k),
    ],
)
@pytest.mark.parametrize("copy", [False, True])
def test_copies_are_copies(build, copy):
    a = np.arange(9.0).reshape(3, 3)
    A = build(a, copy=copy)
    before = A.toarray()
    a += 1
    assert np.array_equal(A.toarray(), before) == copy


def test_copies_of_index_arrays_and_sparse():
    index, S = np.array([0, 2]), sp.csr_array(np.eye(3))
    P, A = pl.Selection(index, 3, copy=True), pl.Sparse(S, copy=True)
    index[0] = 1
    S.data[:] = 7
    np.testing.assert_array_equal(P @ np.arange(3.0), [0, 2])
    np.testing.assert_array_equal(A.toarray(), np.eye(3))


def test_other_keywords_are_refused():
    with pytest.raises(
        TypeError, match=r"Kron\(\) takes operators and copy=, got a keyword 'dtype'"
    ):
        pl.Kron(np.eye(2), dtype=float)
    with pytest.raises(TypeError, match="unexpected keyword argument 'copies'"):
        pl.Diag([1.0], copies=True)

    class No:
        def __bool__(self):
            raise RuntimeError("no truth")

    for build in (lambda: pl.Kron(np.eye(2), copy=No()), lambda: pl.Diag([1.0], copy=No())):
        with pytest.raises(RuntimeError, match="no truth"):
            build()
