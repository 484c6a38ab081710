"""einsum of tensors: values against torch.einsum, derivatives against differences and torch's."""

import numpy as np
import pytest

import pylinop as pl

torch = pytest.importorskip("torch")
import pylinop.torch as pt  # noqa: E402

EQUATIONS = [
    ("ij,jk,k->i", ((4, 5), (5, 3), (3,))),
    ("bhqd,bkhd->bhqk", ((2, 3, 4, 5), (2, 6, 3, 5))),
    ("aij,ajk->ik", ((3, 4, 2), (3, 2, 5))),
    ("iij->j", ((3, 3, 4),)),
    ("ki,k,kj->ij", ((6, 3), (6,), (6, 3))),
]


def some(shape, dtype=torch.float64, grad=True):
    return torch.randn(shape, dtype=dtype, requires_grad=grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("text, shapes", EQUATIONS)
def test_values_and_gradients(text, shapes, dtype):
    given = [some(s, dtype) for s in shapes]
    got, want = pt.einsum(text, *given), torch.einsum(text, *given)
    torch.testing.assert_close(got, want)
    r = torch.randn_like(want)
    ours = torch.autograd.grad(got, given, r)
    for x, y in zip(ours, torch.autograd.grad(want, given, r)):
        torch.testing.assert_close(x, y)
    if dtype is torch.float64:
        assert torch.autograd.gradcheck(lambda *a: pt.einsum(text, *a), given)
        assert torch.autograd.gradgradcheck(lambda *a: pt.einsum(text, *a), given)


def test_names_windows_and_padding():
    x, w = some((2, 9, 3)), some((3, 3, 4))
    how = {"sizes": {"o": 9}, "outside": 0}
    got = pt.einsum("b (o + i - 1) c, i c d -> b o d", x, w, **how)
    want = torch.nn.functional.conv1d(x.mT, w.permute(2, 1, 0), padding=1).mT
    torch.testing.assert_close(got, want)
    for a, b in zip(*(torch.autograd.grad(y.square().sum(), (x, w)) for y in (got, want))):
        torch.testing.assert_close(a, b)
    mapped = torch.func.vmap(lambda x: pt.einsum("(o + i) c, i c d -> o d", x, w.detach()))
    assert mapped(x.detach()).shape == (2, 7, 4)


def test_operators_in_a_contraction():
    """By their structure, with derivatives; where only such meet the result is one."""
    a, d, c, x, m = some((4, 4)), some((4,)), some((4,)), some((2, 4, 3)), some((4, 4))
    toeplitz = c[(torch.arange(4)[:, None] - torch.arange(4)).abs()]
    dense = {"d": torch.diag(d), "t": toeplitz, "k": torch.kron(a, torch.diag(d))}
    ours = {"d": pt.Diag(d), "t": pt.Toeplitz(c), "k": pt.Kron(pt.Dense(a), pt.Diag(d))}
    for text, operands in (
        ("ij,jk,ki->", ("d", m, "t")),
        ("ij,bjc->bic", ("t", x)),
        ("ii,jj->", ("k", "t")),
        ("ij,j->i", ("k", some((16,)))),
        ("b (o + i) c, i j -> b o j c", (x, "t")),
    ):

        def of(known, text=text, operands=operands):
            return [known[y] if isinstance(y, str) else y for y in operands]

        got = pt.einsum(text, *of(ours))
        want = pl.einsum(text, *(y.detach().numpy() for y in of(dense)))
        torch.testing.assert_close(got.detach(), torch.as_tensor(want))
        assert torch.autograd.gradcheck(
            lambda a, d, c, text=text, operands=operands: pt.einsum(
                text,
                *[
                    {"d": pt.Diag(d), "t": pt.Toeplitz(c), "k": pt.Kron(pt.Dense(a), pt.Diag(d))}[y]
                    if isinstance(y, str) else y.detach() for y in operands
                ],
            ),
            (a, d, c),
        )  # fmt: skip
    got = pt.einsum("ij,jk->ik", ours["d"], ours["t"])
    assert isinstance(got, pt.Operator)
    torch.testing.assert_close(got.toarray(), dense["d"] @ toeplitz)
    compiled = torch.compile(
        lambda d, a: pt.einsum("ij,jk,ki->", pt.Diag(d), a, pt.Diag(d)),
        fullgraph=True, backend="eager",
    )  # fmt: skip
    torch.testing.assert_close(compiled(d, a), (d * d * a.diagonal()).sum())
    with pytest.raises(TypeError, match="own operators and arrays"):
        pt.einsum("ij,jk->ik", ours["d"], object())


def test_wrong_use():
    a = some((3, 4))
    with pytest.raises(TypeError, match="text first"):
        pt.einsum(a, a)
    with pytest.raises(TypeError, match="tensors and numbers"):
        pt.einsum("ij,jk->ik", a, object())
    with pytest.raises(ValueError, match="size 4"):
        pt.einsum("ij,jk->ik", a, some((3, 2)))


def test_the_plain_einsum_takes_memory_of_the_cpu_alone():
    a, b = some((3, 4), grad=False), np.ones((4, 2))
    got = pl.einsum("ij,jk->ik", a, b)
    assert type(got) is np.ndarray
    np.testing.assert_allclose(got, a.numpy() @ b)
    assert pl.einsum_path("ij,jk->ik", a, b)[0] == ["einsum_path", (0, 1)]
    with pytest.raises(TypeError, match="grad"):
        pl.einsum("ij,jk->ik", some((3, 4)), b)
    with pytest.raises(TypeError):
        pl.einsum("ij,jk->ik", torch.ones((3, 4), device="meta"), b)
