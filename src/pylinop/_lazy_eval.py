"""LazyArray computed: linear parts as one operator expression each, the rest by NumPy on values.

    LazyArray --form--> operator expression --planner--> array        (linear heads)
              --value-> NumPy's function on the values of its arguments (all others)

Both are found in one walk with a stack, so formulas may be deep. What is computed is kept with the
node; a form made of kept values is a `Dense` of them."""

import numpy as np

from . import _core, _explain
from ._lazy import LazyArray

_LINEAR = {"leaf", "operator", "matmul", "add", "scale", "over", "view", "inverse"}

_LEAST = 2.0**-100  # whose reciprocal is in range in float32 too


def _known(a, want):
    return a._value is not None if want == "value" else a._form is not None


def _by_value(a):
    """Is a's value to be indexed, not its form?"""
    return a.ndim < 2 or a._value is not None or a._head == "leaf" or not _has_form(a)


def _is_product(a):
    """A product of two matrices (or stacks of them)."""
    return a._head == "matmul" and a._args[0].ndim >= 2 and a._args[1].ndim >= 2


def _has_form(a):
    """Does a have an operator form of its own, not only one made of its value?"""
    if a.ndim < 2 or a._head not in _LINEAR:
        return False
    return _is_product(a) if a._head == "matmul" else True


def _needs(a, want):
    """What must be known of which arguments before a's value or form can be made."""
    if want == "form" and not _has_form(a):
        if a._head == "index" and a._value is None and not _by_value(a._args[0]):
            return [(a._args[0], "form")]
        return [(a, "value")]
    if want == "form" and a._value is not None:
        return []
    head = a._head
    if head in ("leaf", "operator"):
        return []
    if head == "matmul":
        if want == "form":
            return [(x, "form") for x in a._args]
        if _is_product(a):
            return [(a, "form")]
        return [(x, "form" if x.ndim >= 2 else "value") for x in a._args]
    if head in ("add", "view", "inverse"):
        return [(x, "form") for x in a._args] if want == "form" else [(a, "form")]
    if head in ("scale", "over"):
        if want == "value":
            return [(a, "form")] if a.ndim >= 2 else [(x, "value") for x in _lazies(a)]
        return [(a._args[0], "form")] + [(x, "value") for x in _lazies(a)[1:]]
    if head == "index":
        return [(a._args[0], "value" if _by_value(a._args[0]) else "form")]
    if head == "of form":
        return [(a._args[0], "form")]
    return [(x, "value") for x in _lazies(a)]


def _lazies(a):
    return [x for x in a._args if isinstance(x, LazyArray)]


def _array(x):
    """The value of an argument, for NumPy's functions."""
    if not isinstance(x, LazyArray):
        return x
    if x._value is None and x._head == "leaf":
        return x._args[0]
    return x._value


def _number(x):
    return x._value[()] if isinstance(x, LazyArray) else x


def _form(a):
    """The operator form, its arguments' being known."""
    head, args = a._head, a._args
    if head == "index" and a._value is None:
        part = args[0]._form[a._more]
        return part if isinstance(part, _core.Operator) else _core.Dense(part)
    if a._value is not None or not _has_form(a):
        return _core.Dense(a._value)
    if head == "leaf":
        return _core.Dense(args[0])
    if head == "operator":
        return args[0]
    if head == "matmul":
        return args[0]._form @ args[1]._form
    if head == "add":
        return args[0]._form + args[1]._form
    if head == "scale":
        return args[0]._form * _number(args[1])
    if head == "over":
        c = _number(args[1])
        if _LEAST < abs(c) < 1 / _LEAST:
            return args[0]._form * (1 / (a.dtype.type(c) if hasattr(c, "dtype") else c))
        return _core.Dense(args[0]._form.toarray() / c)
    if head == "view":
        A = args[0]._form
        return (A, A.T, A.conj(), A.H)[a._more]
    return _core._build("inverse", args[0]._form)


def _value(a):
    """The value, its arguments' being known."""
    head, args = a._head, a._args
    if head == "leaf":
        return args[0].copy()
    if head == "matmul" and not _is_product(a):
        x, y = args
        if x.ndim >= 2:
            return x._form @ _array(y)
        return y._form.T @ _array(x) if y.ndim >= 2 else _array(x) @ _array(y)
    if head == "index":
        child = _array(args[0]) if _by_value(args[0]) else args[0]._form
        part = child[a._more]
        return part.toarray() if isinstance(part, _core.Operator) else part
    if head == "of form":
        f, kwargs = a._more
        return f(args[0]._form, **kwargs)
    if head == "call":
        f, kwargs = a._more
        return f(*map(_array, args), **kwargs)
    if head == "scale" and a.ndim < 2:
        return _array(args[0]) * _array(args[1])
    return a._form.toarray()


def _keep(a, value):
    """The value as what is handed out: read-only, nobody else's memory."""
    value = np.asarray(value)
    if value.base is not None or any(value is _array(x) for x in a._args):
        value = value.copy()
    if value.dtype is not a._dtype and value.dtype != a._dtype:
        value = value.astype(a._dtype)
    value.setflags(write=False)
    a._value = value


# -- formulas that are not deep: the same by recursion --

_LOW = 100  # nodes above each other


def _low_form(a):
    form = a._form
    if form is not None:
        return form
    head, args = a._head, a._args
    if a._value is not None or len(a._shape) < 2 or head not in _LINEAR:
        if head == "index" and a._value is None and not _by_value(args[0]):
            _low_form(args[0])
        else:
            _low_value(a)
        form = _form(a)
    elif head == "matmul":
        if len(args[0]._shape) < 2 or len(args[1]._shape) < 2:
            _low_value(a)
            form = _form(a)
        else:
            form = _low_form(args[0]) @ _low_form(args[1])
    elif head == "leaf":
        form = _core.Dense(args[0])
    elif head == "view":
        inner, mode = _low_form(args[0]), a._more
        form = inner.T if mode == 1 else inner.H if mode == 3 else inner.conj()
    elif head == "add":
        form = _low_form(args[0]) + _low_form(args[1])
    elif head == "inverse":
        form = _core._build("inverse", _low_form(args[0]))
    else:
        for x in args[1:]:
            if type(x) is LazyArray:
                _low_value(x)
        if head != "operator":
            _low_form(args[0])
        form = _form(a)
    a._form = form
    return form


def _low_value(a):
    """The value, as an array."""
    if a._value is not None:
        return a._value
    head, args = a._head, a._args
    if head == "leaf":
        return args[0]
    if head == "matmul":
        x, y = args
        if len(x._shape) < 2:
            left = _low_value(x)
            value = _low_form(y).T @ left if len(y._shape) >= 2 else left @ _low_value(y)
        elif len(y._shape) < 2:
            value = _low_form(x) @ _low_value(y)
        else:
            value = _low_form(a).toarray()
    else:
        for x, want in _needs(a, "value"):
            if x is a or want == "form":
                _low_form(x)
            else:
                _low_value(x)
        value = _value(a)
    _keep(a, value)
    if head != "operator":
        a._form = None  # a later use takes the value
    return a._value


def compute(*roots):
    """Fills ``_value`` of the roots; what several of them use is computed once, first."""
    if len(roots) == 1 and roots[0]._height < _LOW and roots[0]._head != "leaf":
        _low_value(roots[0])
        return
    stack = [(r, "value", False) for r in reversed(roots)]
    stack += [(a, "value", False) for a in _shared(roots)]
    _run(stack, lambda a: _keep(a, _value(a)))


def _run(stack, give_value):
    while stack:
        a, want, ready = stack.pop()
        if _known(a, want):
            continue
        if not ready:
            stack.append((a, want, True))
            stack += [(x, w, False) for x, w in reversed(_needs(a, want)) if not _known(x, w)]
        elif want == "form":
            a._form = _form(a)
        else:
            give_value(a)
            if a._head not in ("leaf", "operator"):
                a._form = None  # a later use takes the value


def _shared(roots):
    """Products, inverses and calls below more than one root."""
    first, shared = {}, {}
    for i, root in enumerate(roots):
        stack = [root] if len(roots) > 1 else []
        while stack:
            a = stack.pop()
            if first.setdefault(id(a), i) == i and id(a) not in shared:
                stack += _lazies(a)
            elif first[id(a)] != i and a._head in ("matmul", "call", "of form"):
                shared[id(a)] = a
    return list(shared.values())


# -- explain ---------------------------------------------------------------------------------------


def explain(root, run=False):
    """How the value of root is computed, on a copy whose values are arrays without memory; with
    ``run`` on a copy that is computed."""
    from . import _lazy_text

    parts = []

    def title(a):
        return f"{_lazy_text.formula(a)}  {a.shape} {a.dtype}"

    def pretend(a):
        if a._head != "leaf":
            parts.append((title(a), _plan(a) or "by NumPy"))
        a._value = np.broadcast_to(np.ones((), a.dtype), a.shape)

    def compute_(a):
        with _explain.explaining() as e:
            _keep(a, _value(a))
        if a._head != "leaf":
            parts.append((title(a), e.explanation if e.plans else "by NumPy"))

    copy = _lazy_text.rebuild(_lazy_text.program(root))
    _run([(copy, "value", False)], compute_ if run else pretend)
    return _explain.Explanation._joined(parts)


def _plan(a):
    """The plan of one linear part; None where NumPy runs."""
    if a._head == "matmul" and not _is_product(a):
        x, y = a._args
        if x.ndim >= 2:
            return x._form.explain("apply", _array(y))
        return y._form.T.explain("apply", _array(x)) if y.ndim >= 2 else None
    if _has_form(a) and a._head != "leaf":
        return a._form.explain("dense")
    return None
