"""Signatures that `inspect` and completion see where a function takes its options as ``**how``, and
what comes close to a misspelt keyword.

A function that takes ``**how`` can say what a misspelt option is near to; a TypedDict is its type.
`listed` shows these options one by one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from . import config

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Parameter = inspect.Parameter


def _annotation(x: Any) -> Any:
    return getattr(x, "__forward_arg__", x)


def whole(f: Any, options: Any, default: Any = None, **defaults: Any) -> inspect.Signature:
    """f's signature with the options of a TypedDict, or of some names, in place of ``**how``."""
    signature = inspect.signature(f)
    held = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    taken = {p.name for p in held}
    known = getattr(options, "__annotations__", None) or dict.fromkeys(options, "Any")
    more = [
        _Parameter(
            name,
            _Parameter.KEYWORD_ONLY,
            default=defaults.get(name, default),
            annotation=_annotation(kind),
        )
        for name, kind in known.items()
        if name not in taken
    ]
    return signature.replace(parameters=[*held, *more])


def listed(f: Any, options: Any, default: Any = None, **defaults: Any) -> None:
    """Shows the options of a function; ``default`` is that of those not named."""
    f.__signature__ = whole(f, options, default, **defaults)


def hinted(f: _Function) -> _Function:
    """A misspelt keyword of what it decorates is answered with the names that come close."""
    names = tuple(inspect.signature(f).parameters)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return f(*args, **kwargs)
        except TypeError as error:
            word = next((k for k in kwargs if k not in names), None)
            trace = error.__traceback__
            if word is None or (trace is not None and trace.tb_next is not None):
                raise
        title = f.__qualname__.removesuffix(".__init__")
        known = [name for name in names if name != "self"]
        raise TypeError(
            f"{title}() got an unexpected keyword argument {word!r}{config.there_are(word, known)}"
        )

    return call  # type: ignore[return-value]


class OfInit:
    """``__signature__`` of a class whose ``__new__`` takes anything: that of its ``__init__``, or
    of another class's."""

    def __init__(self) -> None:
        self.like: dict[type, type] = {}

    def __get__(self, x: Any, owner: Any) -> inspect.Signature:
        init: Any = vars(self.like.get(owner, owner)).get("__init__")
        code = getattr(vars(owner).get("__new__"), "__code__", None)
        named = code is not None and code.co_argcount > 1
        if x is not None or named or not hasattr(init, "__code__"):
            raise AttributeError("__signature__")
        own = inspect.signature(init)
        return own.replace(
            parameters=list(own.parameters.values())[1:], return_annotation=own.empty
        )


# Options that are left out stay as they are.
config.config.__init__.__signature__ = whole(  # type: ignore[attr-defined]
    config.config.__init__, config._Options, ...
)
