"""What is written takes the place of a file of its own sort, and of nothing else."""

import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import pylinop as pl
import pylinop.dask as pld
from pylinop._base import replace_file


@pytest.fixture
def problem(rng):
    a = rng.standard_normal((40, 6))
    return pld.from_array(a, engine="serial"), rng.standard_normal(40)


def solve(problem, path, **options):
    A, b = problem
    return pld.lsmr(A, b, checkpoint=path, checkpoint_every=1, atol=0, btol=0, **options)


@pytest.mark.parametrize("what", ["text", "npz", "npy", "folder", "pipe", "device", "dangling"])
def test_a_checkpoint_replaces_no_other_thing(what, problem, tmp_path):
    path = tmp_path / "c.npz"
    if what == "text":
        path.write_text("my thesis")
    elif what == "npz":
        np.savez(path, data=np.ones(3))
    elif what == "npy":
        with open(path, "wb") as f:
            np.save(f, np.ones(3))
    elif what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/null")
    else:
        path.symlink_to(tmp_path / "nowhere")
    before = path.read_bytes() if what in ("text", "npz", "npy") else os.lstat(path).st_ino
    for method in (pld.lsmr, pld.cgls):
        with pytest.raises(FileExistsError, match=r"c\.npz"):
            method(problem[0], problem[1], checkpoint=path)
    after = path.read_bytes() if what in ("text", "npz", "npy") else os.lstat(path).st_ino
    assert after == before and len(os.listdir(tmp_path)) == 1


def test_a_checkpoint_replaces_its_own_and_empty_files(problem, tmp_path):
    path = tmp_path / "c.npz"
    path.touch()
    solve(problem, path, maxiter=2)
    first = path.read_bytes()
    solve(problem, path, maxiter=3)
    assert path.read_bytes() != first and os.listdir(tmp_path) == ["c.npz"]
    link = tmp_path / "link.npz"
    link.symlink_to(path)
    solve(problem, link, maxiter=2)
    assert link.is_symlink() and path.read_bytes() == first  # what it points to was replaced


def test_a_file_that_comes_up_meanwhile(problem, tmp_path):
    path = tmp_path / "c.npz"
    with pytest.raises(FileExistsError, match="is no checkpoint"):
        solve(problem, path, callback=lambda x: path.write_text("mine"))
    assert path.read_text() == "mine" and os.listdir(tmp_path) == ["c.npz"]


def test_writers_side_by_side(tmp_path):
    """One path, several threads: each part file is one writer's own."""
    path, done = str(tmp_path / "f"), []
    barrier = threading.Barrier(4)

    def write(i):
        for _ in range(20):
            barrier.wait(60)
            with replace_file.replacing(path) as f:
                for _ in range(50):
                    f.write(bytes([i]) * 1000)
        done.append(i)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    whole = (tmp_path / "f").read_bytes()
    assert sorted(done) == [0, 1, 2, 3] and len(whole) == 50_000 and len(set(whole)) == 1
    assert os.listdir(tmp_path) == ["f"]


def test_what_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "f"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), replace_file.replacing(str(path)) as f:
        f.write(b"half")
        1 / 0
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["f"]


def test_a_product_written_over_the_files_it_is_read_from(tmp_path):
    """The operands are mapped from the very folder: that ended the process."""
    folder = tmp_path / "S"
    S = sp.csr_array(sp.random_array((300, 300), density=0.05, rng=0, format="csr"))
    pl.sparse_matmul(S, sp.eye_array(300), out=folder)
    for _ in range(2):
        A = pl.load_sparse(folder, mmap_mode="r")
        want = A.toarray() @ A.toarray()
        found = pl.sparse_matmul(A, A, out=folder)
        np.testing.assert_allclose(found.toarray(), want, atol=1e-12)
    assert sorted(os.listdir(folder)) == ["data.npy", "indices.npy", "indptr.npy", "sparse.json"]


def test_blocks_written_over_the_files_they_are_read_from(tmp_path, rng):
    a = rng.standard_normal((50, 4))
    pld.write_blocks(a, tmp_path, block_bytes=400)
    first = np.load(tmp_path / "000000.npy", mmap_mode="r")
    pld.write_blocks([first, first], tmp_path)
    A = pld.open_blocks(tmp_path, engine="serial")
    np.testing.assert_allclose(A @ np.eye(4), np.vstack([a[: len(first)]] * 2))


def test_folders_with_a_device_in_it(tmp_path):
    (tmp_path / "data.npy").symlink_to("/dev/null")
    with pytest.raises(FileExistsError, match="no regular file"):
        pl.sparse_matmul(sp.eye_array(3), sp.eye_array(3), out=tmp_path)
