"""What is deprecated warns at the caller's line, and leaves when it was to."""

import warnings

import pytest

import pylinop as pl
from pylinop._base import deprecation


@pytest.fixture
def marked(monkeypatch):
    monkeypatch.setattr(deprecation, "MARKED", {})
    return deprecation.MARKED


def test_a_deprecated_function_warns_where_it_is_called(marked):
    @deprecation.deprecated(since="0.2", gone="0.4", instead="pl.inv(A)")
    def invert(a, *, twice=False):
        """Inverts."""
        return (a, twice)

    with pytest.warns(DeprecationWarning, match=r"since pylinop 0\.2 .* 0\.4: use pl\.inv") as w:
        assert invert(3, twice=True) == (3, True)
    assert w[0].filename == __file__
    assert "Inverts." in invert.__doc__ and ".. deprecated:: 0.2" in invert.__doc__
    assert list(deprecation.MARKED.values()) == ["0.4"]


def test_a_renamed_keyword_goes_on_under_its_new_name(marked):
    @deprecation.renamed({"lengthscale": "length_scale"}, since="0.2", gone="0.4")
    def kernel(x, length_scale=1.0):
        return x * length_scale

    with pytest.warns(
        DeprecationWarning, match=r"lengthscale=\) is deprecated .* use length_scale="
    ) as w:
        assert kernel(2.0, lengthscale=3.0) == 6.0
    assert w[0].filename == __file__
    with pytest.raises(TypeError, match="both lengthscale= and length_scale="):
        kernel(2.0, lengthscale=3.0, length_scale=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernel(2.0, length_scale=3.0) == 6.0


def number(version):
    return [int(part) for part in version.split(".")[:2]]


def overdue(marked, version):
    return [name for name, gone in marked.items() if number(gone) <= number(version)]


def test_nothing_deprecated_stays_by_forgetting():
    assert overdue({"pl.a": "0.4", "pl.b": "1.0", "pl.c": "0.5"}, "0.5.0") == ["pl.a", "pl.c"]
    assert not overdue(deprecation.MARKED, pl.__version__)
