"""Constructors of kinds and of their subclasses, in turns: each finds its own kind."""

import gc

import numpy as np

import pylinop as pl


def test_kinds_and_subclasses_in_turns(rng):
    d = rng.random(5) + 1
    a = rng.random((5, 5))
    made = [
        (pl.Diag, d, np.diag(d)),
        (pl.Dense, a, a),
        (pl.Circulant, d, pl.Circulant(d).toarray()),
    ]
    for _ in range(200):
        kind, arg, dense = made[rng.integers(len(made))]
        own = type("Own" + kind.__name__, (kind,), {})
        for cls in rng.permutation([kind, own, own, kind]):
            A = cls(arg)
            assert type(A) is cls
            np.testing.assert_allclose(A.toarray(), dense)
            assert (A.T if kind is pl.Diag else kind(arg)).shape == (5, 5)
        del own, cls, A
        gc.collect(0)  # another class may come to stand where this one was
