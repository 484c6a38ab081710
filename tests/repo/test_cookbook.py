"""Every recipe of the cookbook runs, is short, warns of nothing, and gives what the way by hand
gives."""

import warnings

import cookbook
import pytest

# Each is compared with its way by hand, at sizes whose dense forms would take minutes.
pytestmark = pytest.mark.no_verify("compared by hand")
RECIPES = cookbook.recipes()
ITERATED = 1e-6  # the stopping rules of the recipes are 1e-9 and less, of matrices of condition 1e3
DIRECT = 1e-9  # 1e-16 times the largest condition among the recipes


def test_there_are_forty():
    assert len(RECIPES) >= 40
    assert len({recipe.id for recipe in RECIPES}) == len(RECIPES)


def named_before(recipe):
    """A page's names when a reader comes to the recipe: it may go on with the data of those before,
    whichever of the tests are run, and where."""
    names = {}
    recipe.run("opening", names)
    for other in RECIPES[: RECIPES.index(recipe)]:
        if other.page == recipe.page:
            other.run("data", names)
    return names


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_recipe(recipe):
    pytest.importorskip("scipy")
    names = named_before(recipe)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in ("data", "ours"):
            recipe.run(part, names)
    written = [line for line in recipe.ours.splitlines() if line.strip()]
    assert len(written) <= 7, f"{len(written)} lines where about five were meant"
    if not recipe.hand:
        return
    recipe.run("hand", names)
    iterated = any(
        word in recipe.ours for word in ("method=", "eigsh", "svds", "lsqr", "least_squares")
    )
    compared = list(cookbook.pairs(names))
    assert compared or "pl.sample" in recipe.ours, "nothing is compared with the way by hand"
    for name, ours, hand in compared:
        far = cookbook.distance(ours, hand)
        assert far <= (ITERATED if iterated else DIRECT), (
            f"{name} and {name}_hand differ by {far:.1e}"
        )
