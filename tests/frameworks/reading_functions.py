"""Functions that read a number besides their arguments, in each way that is seen, and how to change
it: `WAYS[name]()` gives (f, write). f(d, number of d's) is the log-determinant of c diag(d)."""

import functools

import numpy as np

import pylinop as pl

SHARED = 1.0


def _formula(c, d):
    return pl.logdet(c * pl.Diag(d))


def _closure():
    c = 1.0

    def write(x):
        nonlocal c
        c = x

    return lambda d: _formula(c, d), write


def _global():
    return lambda d: _formula(SHARED, d), lambda x: globals().update(SHARED=x)


def _of_a_helper():
    def helper(d):
        return SHARED * pl.Diag(d)

    return lambda d: pl.logdet(helper(d)), lambda x: globals().update(SHARED=x)


def _default():
    def f(d, c=1.0):
        return _formula(c, d)

    return f, lambda x: setattr(f, "__defaults__", (x,))


def _attribute():
    class Settings:
        c = 1.0

    settings = Settings()
    return lambda d: _formula(settings.c, d), lambda x: setattr(settings, "c", x)


def _attribute_of_a_class():
    class Settings:
        c = 1.0

    return lambda d: _formula(Settings().c, d), lambda x: setattr(Settings, "c", x)


def _items():
    c = [1.0, {"c": 1.0}]
    return lambda d: _formula(c[1]["c"], d), lambda x: c[1].update(c=x)


def _numpy():
    c = np.float64(1.0)

    def write(x):
        nonlocal c
        c = np.float64(x)

    return lambda d: _formula(c, d), write


def _method():
    class Model:
        c = 1.0

        def f(self, d):
            return _formula(self.c, d)

        __call__ = f

    model = Model()
    return model.f, lambda x: setattr(model, "c", x)


def _callable():
    f, write = _method()
    return f.__self__, write


def _partial():
    settings = {"c": 1.0}
    f = functools.partial(lambda settings, d: _formula(settings["c"], d), settings)
    return f, lambda x: settings.update(c=x)


def _operator():
    """Another object in the same place."""
    held = pl.Identity(3)

    def write(x):
        nonlocal held
        held = x * pl.Identity(3)

    return lambda d: pl.logdet(held @ pl.Diag(d)), write


WAYS = {
    "closure": _closure,
    "global": _global,
    "helper": _of_a_helper,
    "default": _default,
    "attribute": _attribute,
    "class": _attribute_of_a_class,
    "items": _items,
    "numpy": _numpy,
    "method": _method,
    "callable": _callable,
    "partial": _partial,
    "operator": _operator,
}
