"""Words by which functions and kinds are looked for, beside their names: entries of the index, so
that the search of the site leads to their pages. Those of textbooks and of other libraries."""

WORDS = """
solve: linear system, system of equations, linear equations, backslash
inv: inverse, matrix inverse
logdet: log determinant, log-determinant, logarithm of the determinant
slogdet: sign and log determinant
det: determinant
factorized: keep a factor, factor once, prefactorization, lu_factor, cho_factor
cholesky: Cholesky factor, Cholesky decomposition, square root of a covariance
cholesky_update: rank-one update, update a Cholesky factor
ldl: LDL, indefinite factorization
lu: LU, Gaussian elimination, pivoting
qr: QR, orthogonal factor
eigh: eigenvectors, eigenvalues, eigendecomposition, spectral decomposition
eigvalsh: eigenvalues, spectrum
eig: eigenvectors of a general matrix, nonsymmetric eigenvalues
eigvals: eigenvalues
eigsh: a few eigenvalues, largest eigenvalues, smallest eigenvalues, Lanczos, ARPACK
svd: singular value decomposition, singular values, principal components
svds: singular values, a few singular values, truncated SVD, randomized SVD, PCA
svdvals: singular values
lstsq: least squares, regression, overdetermined system, minimum norm
lsqr: LSQR, iterative least squares
lsmr: LSMR, sparse least squares
pinv: pseudoinverse, pseudo-inverse, Moore-Penrose inverse
PseudoInverse: lazy pseudoinverse
cond: condition number, ill-conditioned
norm: norm, Frobenius norm
matrix_norm: operator norm, spectral norm
matrix_rank: rank
trace: trace
diagonal: diagonal, diagonal of a matrix
expm: matrix exponential, exponential of a matrix
expm_multiply: matrix exponential times a vector, heat equation
logm: matrix logarithm
sqrtm: square root, matrix square root
funm: matrix function
matrix_power: power of a matrix
Kron: Kronecker product, tensor product
KronSum: Kronecker sum, separable Laplacian
Toeplitz: constant diagonals, stationary covariance
Circulant: circulant matrix, periodic convolution
Hankel: constant antidiagonals
BlockDiag: block diagonal, direct sum
Block: block matrix
LowRank: low rank, outer product, rank-one matrix
LowRankUpdate: Woodbury, low rank plus diagonal, Sherman-Morrison, FITC
Diag: diagonal matrix
Identity: identity matrix, eye
Tridiagonal: tridiagonal matrix
Banded: banded matrix, band matrix
Triangular: triangular matrix, forward substitution, back substitution
Sparse: sparse matrix, CSR, CSC, scipy.sparse
Selection: choose rows, row selection, mask, indexing matrix, missing data
Permutation: permutation matrix, reorder rows
Kernel: covariance function, RBF, Matern, Gaussian process, squared exponential, kernel matrix
quasiseparable: Kalman filter, state space, irregular times, celerite
DFT: Fourier transform, FFT, discrete Fourier transform
DCT: cosine transform
Convolution: convolution, filter, blur
Laplacian: Laplacian, Poisson equation, graph Laplacian of a grid
FiniteDifference: finite differences, derivative, gradient of a grid
MatVec: function as operator, matrix-free, callable
LinearOperator: own operator, subclass
cg: conjugate gradients, conjugate gradient method
gmres: GMRES, nonsymmetric iterative solver
minres: MINRES, indefinite iterative solver
bicgstab: BiCGSTAB
preconditioner: preconditioner, incomplete Cholesky, Jacobi, ILU
estimate_trace: stochastic trace, trace estimation, Hutchinson
estimate_logdet: stochastic Lanczos quadrature, log determinant estimate
estimate_diagonal: diagonal estimation
spectral_density: density of states, eigenvalue distribution
sample: random draws, draw samples, sampling from a covariance
MultivariateNormal: normal distribution, Gaussian distribution, logpdf, conditioning, posterior
inv_quad_logdet: Gaussian likelihood, marginal likelihood, quadratic form
grad: gradient, automatic differentiation, derivative
value_and_grad: gradient of a likelihood, value and gradient
program: compiled function, tracing, jit, call from C, pullback later
jacobian: Jacobian
hessian: Hessian
lazy: lazy array, deferred computation, formula
evaluate: compute several results at once
explain: explain, plan, why is it slow, cost
explaining: record what is computed, profiling
config: memory limit, options, settings, tolerance, threads, verify
rules: rewrite rules
kinds: list of operators
einsum: einsum, Einstein summation, tensor contraction
multi_dot: chain of products, order of multiplication
hstack: stack, side by side
vstack: stack, one above the other
block: block matrix
freeze: arrays that do not change
aslinearoperator: convert, scipy LinearOperator, PyLops
MaterializationError: too large, out of memory
"""


def words():
    """{name: [word, ...]}."""
    rows = (line.partition(": ") for line in WORDS.strip().splitlines())
    return {name: [word.strip() for word in said.split(",")] for name, _, said in rows}
