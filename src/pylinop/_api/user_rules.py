"""Users' own rewrite rules, beside the table's."""

from .. import _core
from .._base.config import near, structure_rules
from .tables import rules

__all__ = ["register_rule", "unregister_rule"]
_PHASES = ("explore", "first", "push")
_COSTS = ("cheaper", "always")


def register_rule(
    name: str,
    left: str,
    right: str,
    *,
    guard: str | None = None,
    phase: str = "explore",
    cost: str | None = None,
    source: str = "",
) -> None:
    """Add a rewrite rule of your own: ``left`` becomes ``right``.

    The rule is tried at once: the left side is filled with random operands (rectangular, complex,
    of all kinds; invertible ones where it speaks of inverses), both sides are computed and
    compared. Plans made before are not used again. The rule is responsible for accuracy: its right
    side is computed as if you had written it, without a check.

    Parameters
    ----------
    name : str
        The name of the rule in explanations, ``pl.rules()`` and ``pl.config(disable_rules=...)``.
    left, right : str
        Both sides in the notation of the table, ``"(prod (inverse ?a) ?a)"``: ``?a`` to ``?z`` are
        any operators or arrays, the same letter always the same one; ``@k`` behind a head stands
        for its attributes; ``view:1`` is the transpose, ``view:2`` the conjugate, ``view:3`` the
        adjoint.
    guard : str, optional
        A condition by name, such as ``"square"`` (of ``?a``). An unknown name lists them all.
    phase : {'explore', 'first', 'push'}
        ``'explore'``: the rule is tried on the expression as written, at every node, and each
        variant is planned and priced; at most 32 of them. ``'first'``: it acts before an action is
        taken apart; ``'push'``: it acts while the action is taken apart. Rules of these two phases
        act before those of the table, wherever they fit, and must terminate.
    cost : {'cheaper', 'always'}, optional
        With ``'explore'``: the rule is used where it makes the plan cheaper (the default), or
        wherever it fits. The other phases accept ``'always'`` only.
    source : str
        Where the identity is from.

    Raises
    ------
    ValueError
        When the texts cannot be read, a letter of the right side is not bound on the left, the name
        is taken, or the trial finds a difference of shape, dtype or value (the error shows the
        numbers).

    Examples
    --------
    >>> import pylinop as pl
    >>> pl.register_rule(
    ...     "cancel", "(prod (inverse ?a) ?a)", "(power:0 ?a)", guard="square", source="A^-1 A = I"
    ... )
    >>> pl.rules()[-1]["name"]
    'cancel'
    >>> pl.unregister_rule("cancel")
    >>> pl.register_rule("wrong", "(view:1 (prod ?a ?b))", "(prod (view:1 ?a) (view:1 ?b))")
    Traceback (most recent call last):
    ...
    ValueError: rule wrong: ...
    """
    for what, text in (("name", name), ("left", left), ("right", right), ("source", source)):
        if not isinstance(text, str):
            raise TypeError(f"{what} must be text, got {text!r}")
    if not name or any(c.isspace() for c in name) or len(name) > 60:
        raise ValueError(f"a rule's name has 1 to 60 characters and no blanks, got {name!r}")
    if phase not in _PHASES:
        raise ValueError(f"phase must be one of {', '.join(_PHASES)}, got {phase!r}")
    cost = cost or ("cheaper" if phase == "explore" else "always")
    if cost not in _COSTS or (phase != "explore" and cost != "always"):
        allowed = "cheaper or always" if phase == "explore" else "always"
        raise ValueError(f"cost of a rule of the phase {phase} must be {allowed}, got {cost!r}")
    guards = _core._guards()
    if guard is not None and guard not in guards:
        listed = "; ".join(f"{key}: {doc}" for key, doc in guards.items())
        raise ValueError(f"no guard {guard!r}{near(str(guard), guards)} There are {listed}")
    if name in structure_rules:
        raise ValueError(f"rule {name}: the name is taken, by a rule of the phase 'structure'")
    _core._add_rule(name, left, right, guard, phase, cost == "cheaper", source)


def unregister_rule(name: str) -> None:
    """Remove a rule of your own.

    Parameters
    ----------
    name : str
        The name under which it was registered.

    Raises
    ------
    ValueError
        When there is no such rule, or it belongs to the table (``pl.config(disable_rules=...)``
        switches those rules off).

    Examples
    --------
    >>> import pylinop as pl
    >>> pl.register_rule("twice", "(sum ?a ?a)", "(prod ?a ?a)")
    Traceback (most recent call last):
    ...
    ValueError: rule twice: ...
    >>> pl.unregister_rule("twice")
    Traceback (most recent call last):
    ...
    ValueError: no rule 'twice' was registered
    """
    rows = {row["name"]: row["origin"] for row in rules()}
    if rows.get(name) == "table":
        raise ValueError(
            f"{name!r} is a rule of the table: pl.config(disable_rules=[{name!r}]) switches it off"
        )
    if name not in rows:
        own = [key for key, origin in rows.items() if origin == "user"]
        raise ValueError(f"no rule {name!r} was registered{near(str(name), own)}")
    _core._remove_rule(name)
