"""linear_operator's operators as pylinop's, and pylinop's as linear_operator's.

    A = from_linear_operator(their_operator)      # an operator of pylinop.torch, kind by kind
    B = as_linear_operator(A)                     # one of theirs: for gpytorch, botorch, ...

What is asked of B is computed by pylinop, exactly at any size: no probes, iteration or jitter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import linear_operator.operators as theirs
import torch

import pylinop.torch

from .._base import config
from .._programs import formulas

__all__ = ["PylinopLinearOperator", "as_linear_operator", "from_linear_operator"]

pt: Any = pylinop.torch
_LinearOperator: Any = theirs.LinearOperator


class PylinopLinearOperator(_LinearOperator):  # type: ignore[misc]
    """An operator of pylinop.torch as one of linear_operator; `as_linear_operator` makes it."""

    def __init__(self, *tensors: Any, parts: Any) -> None:
        super().__init__(*tensors, parts=parts)
        self.operator = pt.Operator(formulas.nodes_of(parts, tensors)[0])

    def _definite(self) -> Any:
        """linear_operator's matrices are positive definite. On a GPU that is not found out, so that
        Cholesky is asked for, and NaN where it fails."""
        if self.device.type == "cpu":
            return contextlib.nullcontext()
        return config.config(not_definite="nan")

    # -- what linear_operator asks of a subclass

    def _size(self) -> Any:
        return torch.Size(self.operator.shape)

    @property
    def dtype(self) -> Any:
        return self.operator.dtype

    @property
    def device(self) -> Any:
        return self._args[0].device if self._args else torch.device("cpu")

    def _matmul(self, rhs: Any) -> Any:
        return self.operator @ rhs

    def _t_matmul(self, rhs: Any) -> Any:
        return self.operator.T @ rhs

    def _transpose_nonbatch(self) -> Any:
        return as_linear_operator(self.operator.T)

    def _diagonal(self) -> Any:
        return self.operator.diagonal()

    def to_dense(self) -> Any:
        """The dense form, a tensor."""
        return self.operator.toarray()

    def _getitem(self, row_index: Any, col_index: Any, *batch_indices: Any) -> Any:
        op = self.operator
        if any(not _is_all(k) for k in batch_indices):
            op = op[batch_indices]
        if not _is_all(row_index):
            op = op[..., row_index, :]
        if not _is_all(col_index):
            op = op[..., :, col_index]
        return as_linear_operator(op)

    def _of_dense(self, changed: Callable[[Any], Any]) -> Any:
        return as_linear_operator(pt.Dense(changed(self.to_dense())))

    def _unsqueeze_batch(self, dim: int) -> Any:
        return self._of_dense(lambda a: a.unsqueeze(dim))

    def _permute_batch(self, *dims: int) -> Any:
        return self._of_dense(lambda a: a.permute(*dims, -2, -1))

    def _sum_batch(self, dim: int) -> Any:
        return self._of_dense(lambda a: a.sum(dim))

    def _prod_batch(self, dim: int) -> Any:
        return self._of_dense(lambda a: a.prod(dim))

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """On another device, or of another dtype; indices stay integers."""
        return as_linear_operator(self.operator.to(*args, **kwargs))

    # -- sums and products stay formulas

    def __add__(self, other: Any) -> Any:
        if isinstance(other, theirs.ZeroLinearOperator) or (
            isinstance(other, (int, float)) and other == 0
        ):
            return self
        if not isinstance(other, (_LinearOperator, torch.Tensor)):
            return super().__add__(other)
        return as_linear_operator(self.operator + _either(other))

    def __radd__(self, other: Any) -> Any:
        return self + other

    def add_diagonal(self, diag: Any) -> Any:
        """The sum with a diagonal: a number, one for each row, or batches of them."""
        return as_linear_operator(self.operator + _diagonal(diag, self.shape))

    def add_low_rank(self, low_rank_mat: Any, *args: Any, **kwargs: Any) -> Any:
        """The sum with U U^T; nothing is updated."""
        return self + theirs.RootLinearOperator(low_rank_mat)

    def _mul_constant(self, other: Any) -> Any:
        if torch.is_tensor(other) and other.numel() != 1:
            return super()._mul_constant(other)
        c = other.reshape(()) if torch.is_tensor(other) else other
        return as_linear_operator(c * self.operator)

    def matmul(self, other: Any) -> Any:
        """The product: a tensor with a tensor, else an operator."""
        if isinstance(other, _LinearOperator):
            return as_linear_operator(self.operator @ from_linear_operator(other))
        return self.operator @ other

    __matmul__ = matmul

    # -- what is computed, exactly

    def solve(self, right_tensor: Any, left_tensor: Any = None) -> Any:
        """``A^-1 right``, or ``left A^-1 right``."""
        if not self.is_square:
            raise RuntimeError(f"solve takes a square operator, got shape {tuple(self.shape)}")
        if right_tensor.ndim > 1 and right_tensor.shape[:-2] != self.batch_shape:
            batch = torch.broadcast_shapes(right_tensor.shape[:-2], self.batch_shape)
            right_tensor = right_tensor.expand(*batch, *right_tensor.shape[-2:])
        with self._definite():
            found = pt.solve(self.operator, right_tensor)
        return found if left_tensor is None else left_tensor @ found

    def _solve(self, rhs: Any, preconditioner: Any = None, num_tridiag: int | None = 0) -> Any:
        if num_tridiag:
            return super()._solve(rhs, preconditioner, num_tridiag)
        return self.solve(rhs)

    def inv_quad_logdet(
        self, inv_quad_rhs: Any = None, logdet: Any = False, reduce_inv_quad: Any = True
    ) -> Any:
        """``b^T A^-1 b`` and ``log det A`` by one plan, with gradients."""
        if inv_quad_rhs is None and not logdet:
            raise RuntimeError("inv_quad_logdet was asked for neither of the two")
        zero = torch.zeros(self.batch_shape, dtype=self.dtype, device=self.device)
        if inv_quad_rhs is None:
            return zero, self.logdet()
        if not logdet:
            return self.inv_quad(inv_quad_rhs, reduce_inv_quad), zero
        one = inv_quad_rhs.ndim == 2 and inv_quad_rhs.shape[-1] == 1 and self.dim() == 2
        # of a vector both are numbers, whose values and gradients are one plan's
        b = inv_quad_rhs[:, 0] if one else inv_quad_rhs
        with self._definite():
            quad, log = pt.inv_quad_logdet(self.operator, b)
        if one:
            return (quad if reduce_inv_quad else quad.reshape(1)), log
        return (quad.sum(-1) if reduce_inv_quad and inv_quad_rhs.ndim > 1 else quad), log

    def inv_quad(self, inv_quad_rhs: Any, reduce_inv_quad: Any = True) -> Any:
        """``b^T A^-1 b`` of each column, or their sum."""
        quad = (inv_quad_rhs * self.solve(inv_quad_rhs)).sum(-2 if inv_quad_rhs.ndim > 1 else -1)
        return quad.sum(-1) if reduce_inv_quad and inv_quad_rhs.ndim > 1 else quad

    def sqrt_inv_matmul(self, rhs: Any, lhs: Any = None) -> Any:
        """``A^-1/2 rhs``; of a `lhs` that on its left, and the diagonal of ``lhs A^-1 lhs^T``."""
        found = pt.inv(pt.sqrtm(self.operator)) @ rhs
        if torch.is_grad_enabled() and self.operator.requires_grad:  # by what is symmetric
            found = 0.5 * (found + pt.inv(pt.sqrtm(self.operator.T)) @ rhs)
        if lhs is None:
            return found
        return lhs @ found, (lhs * self.solve(lhs.mT).mT).sum(-1)

    def logdet(self) -> Any:
        """The logarithm of the determinant."""
        with self._definite():
            return pt.logdet(self.operator)

    def _cholesky(self, upper: bool | None = False) -> Any:
        factor = pt.cholesky(self.operator).toarray()
        factor = factor.mT.contiguous() if upper else factor
        return theirs.TriangularLinearOperator(factor, upper=bool(upper))

    def _choose_root_method(self) -> str:
        return "cholesky"


def _is_all(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)


def as_linear_operator(A: Any) -> Any:
    """An operator of pylinop.torch as one of linear_operator.

    Parameters
    ----------
    A : pylinop.torch.Operator

    Returns
    -------
    PylinopLinearOperator
        Of A's tensors. Its products, solves, determinants, quadratic forms and Cholesky factors
        are pylinop's, by A's structure; sums, multiples and products with other operators of
        linear_operator stay formulas. What linear_operator computes on its own
        (`root_decomposition` by Lanczos, where it is asked for by name) is as ever.

    Raises
    ------
    TypeError
        A is no operator of pylinop.torch.

    Notes
    -----
    Changes of batch dimensions (`unsqueeze`, `permute`, sums over a batch) take the dense form.

    Examples
    --------
    >>> import torch, pylinop.torch as pt
    >>> from pylinop.torch.linear_operator import as_linear_operator
    >>> A = as_linear_operator(pt.Diag(torch.tensor([1.0, 2.0])) + pt.LowRank(torch.ones(2, 1)))
    >>> A.solve(torch.tensor([3.0, 4.0]))
    tensor([1., 1.])
    """
    if isinstance(A, PylinopLinearOperator):
        return A
    if not isinstance(A, pt.Operator):
        raise TypeError(f"as_linear_operator takes an operator of pylinop.torch, not a {_name(A)}")
    parts, tensors = formulas.flat([A._node], True)
    return PylinopLinearOperator(*tensors, parts=parts)


def _name(A: Any) -> str:
    return type(A).__name__


# -- kind by kind --


def _either(x: Any) -> Any:
    return pt.Dense(x) if torch.is_tensor(x) else from_linear_operator(x)


def _diagonal(diag: Any, shape: Any) -> Any:
    """A diagonal of that shape: a multiple of the identity where it is one number."""
    if not diag.ndim or (diag.shape[-1] == 1 and shape[-1] != 1):
        if diag.numel() == 1:
            return diag.reshape(()) * pt.Identity(shape[-1])
    return pt.Diag(diag.expand(*shape[:-2], shape[-1]))


def _sum(A: Any) -> Any:
    found = None
    for part in A.linear_ops:
        term = from_linear_operator(part)
        found = term if found is None else found + term
    return found


def _constant_mul(A: Any) -> Any:
    base, c = from_linear_operator(A.base_linear_op), A._constant
    if c.numel() == 1:
        return c.reshape(()) * base
    c = c.unsqueeze(-1).expand(*A.batch_shape, A.shape[-2])
    return pt.Diag(c) @ base


def _root(A: Any) -> Any:
    root = from_linear_operator(A.root)
    upper = getattr(A, "upper", False)
    if upper:
        root = root.T
    if A.root.shape[-1] < A.root.shape[-2]:
        return pt.LowRank(A.root.to_dense())
    return pt.Root(root)


def _triangular(A: Any) -> Any:
    if not isinstance(A._tensor, theirs.DenseLinearOperator):
        return from_linear_operator(A._tensor)
    return pt.Triangular(A._tensor.tensor, lower=not A.upper)


def _block_diag(A: Any) -> Any:
    base = A.base_linear_op
    if base.dim() != 3:
        raise NotImplementedError(
            f"a BlockDiagLinearOperator of shape {tuple(A.shape)}: batches of block diagonals have "
            "no kind in pylinop; use pylinop.torch.Dense(A.to_dense())"
        )
    return pt.BlockDiag(*(from_linear_operator(base[k]) for k in range(base.shape[0])))


def _masked(A: Any) -> Any:
    rows, cols = (torch.nonzero(m).reshape(-1) for m in (A.row_mask, A.col_mask))
    return from_linear_operator(A.base)[..., rows, :][..., :, cols]


def _kinds() -> dict[type, Callable[[Any], Any]]:
    t = theirs
    return {
        t.DenseLinearOperator: lambda A: pt.Dense(A.tensor),
        t.DiagLinearOperator: lambda A: pt.Diag(A._diag),
        t.ConstantDiagLinearOperator: lambda A: _diagonal(A.diag_values, A.shape),
        t.IdentityLinearOperator: lambda A: _diagonal(A.diag_values, A.shape),
        t.ZeroLinearOperator: lambda A: pt.Zeros(tuple(A.shape), _numpy(A.dtype)),
        t.ToeplitzLinearOperator: lambda A: pt.Toeplitz(A.column),
        t.KroneckerProductLinearOperator: _kron,
        t.KroneckerProductTriangularLinearOperator: _kron,
        t.KroneckerProductDiagLinearOperator: _kron,
        t.SumLinearOperator: _sum,
        t.PsdSumLinearOperator: _sum,
        t.AddedDiagLinearOperator: _sum,
        t.KroneckerProductAddedDiagLinearOperator: _sum,
        t.LowRankRootAddedDiagLinearOperator: _sum,
        t.SumKroneckerLinearOperator: _sum,
        t.RootLinearOperator: _root,
        t.LowRankRootLinearOperator: _root,
        t.CholLinearOperator: _root,
        t.TriangularLinearOperator: _triangular,
        t.ConstantMulLinearOperator: _constant_mul,
        t.MatmulLinearOperator: lambda A: (
            from_linear_operator(A.left_linear_op) @ from_linear_operator(A.right_linear_op)
        ),
        t.MulLinearOperator: lambda A: pt.multiply(
            from_linear_operator(A.left_linear_op), from_linear_operator(A.right_linear_op)
        ),
        t.BlockDiagLinearOperator: _block_diag,
        t.MaskedLinearOperator: _masked,
        t.PermutationLinearOperator: lambda A: pt.Permutation(A.perm, _numpy(A.dtype)),
        PylinopLinearOperator: lambda A: A.operator,
    }


def _kron(A: Any) -> Any:
    return pt.Kron(*map(from_linear_operator, A.linear_ops))


def _numpy(dtype: Any) -> Any:
    return str(dtype).removeprefix("torch.")


_KINDS = _kinds()


def from_linear_operator(A: Any) -> Any:
    """An operator of linear_operator as one of pylinop.torch, with its structure.

    Parameters
    ----------
    A : linear_operator.LinearOperator
        Dense, Diag, ConstantDiag, Identity, Zero, Toeplitz, Kronecker products, sums, products,
        multiples, Root, LowRankRoot, Chol, Triangular, BlockDiag, Masked, Permutation, and what
        gpytorch has not evaluated yet.

    Returns
    -------
    pylinop.torch.Operator
        Of A's tensors; gradients flow to them.

    Raises
    ------
    NotImplementedError
        There is no kind for it (interpolated, concatenated, repeated, callables): the message
        names the dense form.

    Examples
    --------
    >>> import torch, linear_operator
    >>> from pylinop.torch.linear_operator import from_linear_operator
    >>> A = linear_operator.operators.ToeplitzLinearOperator(torch.tensor([2.0, 1.0]))
    >>> from_linear_operator(A) @ torch.ones(2)
    tensor([3., 3.])
    """
    if not isinstance(A, _LinearOperator):
        raise TypeError(
            f"from_linear_operator takes an operator of linear_operator, not a {_name(A)}"
        )
    found = _KINDS.get(type(A))
    if found is None:
        evaluated = A.evaluate_kernel()
        found = _KINDS.get(type(evaluated))
        if found is None:
            raise NotImplementedError(
                f"a {_name(A)} of shape {tuple(A.shape)} has no kind in pylinop: use "
                "pylinop.torch.Dense(A.to_dense())"
            )
        A = evaluated
    return found(A)
