"""The diagonal of the inverse of an indefinite QuasiSeparable whose band with the states is worse
conditioned than the matrix: no element may lose more digits than the matrix explains."""

import numpy as np
import pytest
from drawn import DTYPES
from test_quasiseparable import generators

import pylinop as pl


def check(A):
    wide = A.astype(np.result_type(A.dtype, np.float64)).toarray()
    inverse = np.linalg.inv(wide)
    found = pl.inv(A).diagonal()
    assert found.dtype == A.dtype
    unit = np.finfo(A.dtype).eps / 2
    allowed = 100 * len(wide) * np.linalg.norm(inverse, 2)
    allowed *= max(unit, 2.0**-53 * np.linalg.cond(wide))
    np.testing.assert_allclose(found, np.diagonal(inverse), rtol=0, atol=allowed)
    assert "quasi-band-inverse-diagonal" in str(pl.inv(A).explain("diagonal"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_units_of_coupled_states(dtype, rng):
    """p and q of very different units, which full transitions do not share."""
    reach = 4 if np.finfo(dtype).eps > 1e-10 else 8
    for _ in range(12):
        d, p, q, a = generators(rng, 129, 3, dtype, full=True)
        d[::3] = 0
        units = 10.0 ** rng.uniform(-reach, reach, 3)
        check(pl.QuasiSeparable(d, (p * units).astype(dtype), (q / units).astype(dtype), a))
