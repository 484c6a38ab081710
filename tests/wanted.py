"""What a first-time reader looks for, and how: the letters before Tab, the words in the site's
search box, and the name that is to be found. The words are those of textbooks and of NumPy and
SciPy. Used by tests/contract/test_completion.py and tools/site_check.py."""

from typing import NamedTuple


class Wanted(NamedTuple):
    """`typed` and Tab after ``pl.`` or ``A.``, or `words` in the search box, find `name`."""

    task: str
    typed: str
    words: str
    name: str


WANTED = [
    Wanted(*(part.strip() for part in line.split("|")))
    for line in """\
solve a system of equations      | solve    | linear system          | solve
the inverse                      | inv      | inverse                | inv
the log-determinant              | log      | log determinant        | logdet
the determinant                  | det      | determinant            | det
a Cholesky factor                | chol     | cholesky               | cholesky
eigenvalues and eigenvectors     | eig      | eigenvectors           | eigh
a few singular values            | sv       | singular values        | svds
least squares                    | lst      | least squares          | lstsq
a pseudo-inverse                 | pinv     | pseudoinverse          | pinv
the condition number             | cond     | condition number       | cond
a norm                           | norm     | norm                   | norm
the trace                        | tr       | trace                  | trace
the exponential of a matrix      | exp      | matrix exponential     | expm
a square root of a matrix        | sqrt     | square root            | sqrtm
a Kronecker product              | kron     | kronecker product      | Kron
a Toeplitz matrix                | toep     | toeplitz               | Toeplitz
blocks on the diagonal           | block    | block diagonal         | BlockDiag
low rank plus a diagonal         | low      | low rank               | LowRank
a tridiagonal matrix             | tri      | tridiagonal            | Tridiagonal
a matrix with a band             | band     | banded matrix          | Banded
a scipy.sparse matrix            | sparse   | sparse matrix          | Sparse
choose some rows                 | select   | choose rows            | Selection
reorder rows                     | perm     | permutation matrix     | Permutation
the covariance of a process      | kern     | covariance function    | Kernel
a Fourier transform              | fft      | fourier transform      | DFT
a filter                         | filter   | convolution            | Convolution
the Laplacian of a grid          | lap      | laplacian              | Laplacian
a matrix given by a function     | matv     | function as operator   | MatVec
conjugate gradients              | cg       | conjugate gradients    | cg
a preconditioner                 | prec     | preconditioner         | preconditioner
the trace from random vectors    | est      | stochastic trace       | estimate_trace
draws of a normal distribution   | sample   | random draws           | sample
a Gaussian log-density           | multi    | normal distribution    | MultivariateNormal
gradients of a likelihood        | grad     | gradient               | grad
keep a factor for later          | factor   | keep a factor          | factorized
arrays that are computed late    | lazy     | lazy array             | lazy
how something is computed        | expl     | explain                | explain
a limit of memory                | conf     | memory limit           | config
einsum                           | ein      | einsum                 | einsum
matrices side by side            | hst      | stack                  | hstack
""".splitlines()
]
