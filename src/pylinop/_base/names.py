"""Names that people look for in ``pylinop`` and that are called otherwise here."""

from __future__ import annotations

from typing import NoReturn

from .config import near

_CALLED = {
    "eye": "pl.Identity(n)",
    "Eye": "pl.Identity(n)",
    "identity": "pl.Identity(n)",
    "zeros": "pl.Zeros(shape)",
    "ones": "pl.Full(shape, 1.0)",
    "full": "pl.Full(shape, c)",
    "diag": "pl.Diag(d); pl.diagonal(A) is the diagonal of A",
    "diags": "pl.Diag(d, k) and pl.Banded((l, u), ab)",
    "kron": "pl.Kron(A, B)",
    "kronsum": "pl.KronSum(A, B)",
    "tri": "pl.Triangular(a)",
    "tril": "pl.Triangular(a)",
    "triu": "pl.Triangular(a, lower=False)",
    "toeplitz": "pl.Toeplitz(c)",
    "circulant": "pl.Circulant(c)",
    "hankel": "pl.Hankel(c)",
    "convolve": "pl.Convolution(kernel, n) @ x",
    "filter": "pl.Convolution(kernel, n) @ x",
    "laplacian": "pl.Laplacian(shape)",
    "permutation": "pl.Permutation(p)",
    "select": "pl.Selection(index, n)",
    "csr_array": "pl.Sparse(S)",
    "csr_matrix": "pl.Sparse(S)",
    "dft": "pl.DFT(n)",
    "fft": "pl.DFT(n) @ x",
    "dct": "pl.DCT(n) @ x",
    "array": "pl.Dense(a), or pl.lazy(a)",
    "Array": "pl.lazy(a)",
    "matrix": "pl.Dense(a), or pl.lazy(a)",
    "Matrix": "pl.Dense(a), or pl.lazy(a)",
    "asarray": "pl.Dense(a), or pl.lazy(a)",
    "matmul": "A @ B",
    "dot": "A @ B",
    "transpose": "A.T",
    "inverse": "pl.inv(A)",
    "determinant": "pl.det(A), or pl.slogdet(A)",
    "logabsdet": "pl.logdet(A)",
    "eigenvalues": "pl.eigvalsh(A) if A is Hermitian, else pl.eigvals(A)",
    "singular_values": "pl.svdvals(A)",
    "least_squares": "pl.lstsq(A, b)",
    "rank": "pl.matrix_rank(A)",
    "exp": "pl.expm(A), or np.exp(pl.lazy(a))",
    "sqrt": "pl.sqrtm(A), or np.sqrt(pl.lazy(a))",
    "conjugate_gradient": "pl.cg(A, b), or pl.solve(A, b, method='cg')",
    "conjugate_gradients": "pl.cg(A, b), or pl.solve(A, b, method='cg')",
    "GP": "pl.MultivariateNormal(mean, pl.Kernel('rbf', x))",
    "GaussianProcess": "pl.MultivariateNormal(mean, pl.Kernel('rbf', x))",
    "MVN": "pl.MultivariateNormal(mean, cov)",
    "Normal": "pl.MultivariateNormal(mean, cov)",
    "multivariate_normal": "pl.MultivariateNormal(mean, cov)",
    "DiagonalOperator": "pl.Diag(d)",
    "Diagonal": "pl.Diag(d)",
    "AddedDiag": "A + pl.Diag(d)",
    "BlockDiagonal": "pl.BlockDiag(A, B)",
    "DenseOperator": "pl.Dense(a)",
    "solve_triangular": "pl.Triangular(a).solve(b)",
    "solve_banded": "pl.Banded((l, u), ab).solve(b)",
    "solve_toeplitz": "pl.Toeplitz(c).solve(b)",
    "cho_factor": "pl.factorized(A, assume_a='pos')",
    "lu_factor": "pl.factorized(A)",
    "splu": "pl.factorized(pl.Sparse(S))",
    "LinearOperators": "pl.LinearOperator",
    "from_function": "pl.MatVec(shape, matvec)",
    "from_scipy": "pl.Sparse(S), or pl.aslinearoperator(A)",
    "mask": "pl.Selection(np.flatnonzero(mask), n)",
    "matern": "pl.Kernel('matern32', x), or at sorted times pl.quasiseparable('matern32', t)",
    "conditional": "pl.MultivariateNormal(mean, cov).condition(y, index)",
    "posterior": "pl.MultivariateNormal(mean, cov).condition(y, H=H, noise=r)",
    "log_likelihood": "pl.MultivariateNormal(mean, cov).logpdf(x)",
    "randomized_svd": "pl.svds(A, k)",
    "verify": "pl.config(verify=True)",
    "memory_limit": "pl.config(memory_limit=bytes)",
}


def elsewhere(module: str, names: list[str], name: str) -> NoReturn:
    """The error of a name that the package does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    if name in _CALLED:
        text += f": write {_CALLED[name]}"
    elif not name.startswith("_"):
        text += near(name, names)
    raise AttributeError(text, name=name)
