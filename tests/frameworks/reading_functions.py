"""Functions that read a number besides their arguments, in each way that is seen, and how to change
it: `WAYS[name]()` gives (f, write). f(d, number of d's) is the log-determinant of c diag(d)."""

import functools
import types

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


def _of_a_maker():
    """Two functions of the same code."""

    def times(c):
        return lambda d: c * d

    one, other = times(2.0), times(0.5)

    def write(x):
        nonlocal other
        other = times(x / 2)

    return lambda d: pl.logdet(pl.Diag(one(other(d)))), write


def _new_item():
    c = {}
    return lambda d: _formula(c.get("c", 1.0), d), lambda x: c.update(c=x)


def _length():
    c = [1.0]

    def write(x):
        del c[1:]
        if x != 1.0:
            c.append(x - 1.0)

    return lambda d: _formula(sum(c), d), write


class _Owner:
    pass


def _new_attribute():
    owner = _Owner()
    return lambda d: _formula(getattr(owner, "c", 1.0), d), lambda x: setattr(owner, "c", x)


def _attribute_of_an_attribute():
    owner = _Owner()
    owner.kernel = _Owner()
    owner.kernel.c = 1.0
    return lambda d: _formula(owner.kernel.c, d), lambda x: setattr(owner.kernel, "c", x)


def _array_of_an_object():
    """Another array in its place."""
    owner = _Owner()

    def write(x):
        owner.c = np.array([x, x, x])

    write(1.0)
    return lambda d: pl.logdet(pl.Diag(d * owner.c)), write


def _base_class():
    class Base:
        c = 1.0

        def times(self, d):
            return self.c * d

    class Model(Base):
        def f(self, d):
            return pl.logdet(pl.Diag(self.times(d)))

    return Model().f, lambda x: setattr(Base, "c", x)


def _slots():
    class Model:
        __slots__ = ("inner",)

        @property
        def c(self):
            return self.inner

        def f(self, d):
            return _formula(self.c, d)

    model = Model()
    return model.f, lambda x: setattr(model, "inner", x)


def _module():
    module = types.ModuleType("a_module_of_ones_own")
    module.c = 1.0
    return lambda d: _formula(module.c, d), lambda x: setattr(module, "c", x)


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
    "maker": _of_a_maker,
    "new item": _new_item,
    "length": _length,
    "new attribute": _new_attribute,
    "attribute of an attribute": _attribute_of_an_attribute,
    "array of an object": _array_of_an_object,
    "base class": _base_class,
    "slots": _slots,
    "module": _module,
}
