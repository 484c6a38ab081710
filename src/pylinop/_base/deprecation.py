"""What will go away says so, once a place, for two minor versions; see docs/versions.md.

``@deprecated(since="1.2", gone="1.4", instead="pl.inv(A)")`` marks a function or a method;
``renamed({"lengthscale": "length_scale"}, since=..., gone=...)`` takes a keyword by its old name.
A test fails when a version is reached in which something marked was to be gone, so that nothing
stays by forgetting.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MARKED: dict[str, str] = {}  # what is marked, and the version in which it is gone


def _warn(what: str, since: str, gone: str, instead: str) -> None:
    warnings.warn(
        f"{what} is deprecated since pylinop {since} and will be gone in {gone}: use {instead}",
        DeprecationWarning,
        stacklevel=3,
    )


def deprecated(
    *, since: str, gone: str, instead: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: each call warns at the caller's line, and does what it did."""

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__qualname__
        MARKED[name] = gone

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            _warn(name, since, gone, instead)
            return function(*args, **kwargs)

        note = f".. deprecated:: {since}\n    Gone in {gone}: use {instead}."
        call.__doc__ = f"{function.__doc__ or ''}\n\n{note}\n"
        return call

    return mark


def renamed(
    names: Mapping[str, str], *, since: str, gone: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: keywords under their old names go to the new ones, with a warning.

    Raises
    ------
    TypeError
        When a call gives both names.
    """

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        for old in names:
            MARKED[f"{function.__qualname__}({old}=)"] = gone

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in names.items():
                if old not in kwargs:
                    continue
                if new in kwargs:
                    raise TypeError(
                        f"{function.__qualname__} was given both {old}= and {new}=, which are one "
                        f"parameter: {new}= alone will do"
                    )
                _warn(f"{function.__qualname__}({old}=)", since, gone, f"{new}=")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return mark
