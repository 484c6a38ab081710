"""A Gaussian process on a grid in JAX: a Kronecker product of two kernels plus noise, fitted by
gradient descent in one compiled step.

The value goes by the eigenvalues of the two small factors, its gradient by the factors by their
eigenvectors (docs/gradients.md). The grid is small for the sake of the dense check.

    python examples/jax_kron_gp.py
"""

import sys

import _needs  # noqa: F401
import jax
import jax.numpy as jnp

import pylinop.jax as pj

jax.config.update("jax_enable_x64", True)

ROWS, COLUMNS = 20, 15


def data(key):
    """A smooth field on the grid with noise of standard deviation 0.1."""
    t, s = jnp.linspace(0, 6, ROWS), jnp.linspace(0, 4, COLUMNS)
    field = jnp.sin(t)[:, None] * jnp.cos(2 * s)[None, :]
    noise = 0.1 * jax.random.normal(key, field.shape)
    return t[:, None], s[:, None], (field + noise).ravel()


def loss(theta, t, s, y):
    """The negative log likelihood, an operator at a time."""
    length_t, length_s, variance, noise = jnp.exp(theta)
    K = pj.Kron(
        pj.Kernel("rbf", t, variance=variance, length_scale=length_t).toarray(),
        pj.Kernel("rbf", s, length_scale=length_s).toarray(),
    ) + noise * pj.Identity(len(y))
    quad, logdet = pj.inv_quad_logdet(K, y)
    return 0.5 * (quad + logdet + len(y) * jnp.log(2 * jnp.pi)) / len(y)


def loss_dense(theta, t, s, y):
    """The same by the dense form, in JAX alone: what it is checked against."""
    length_t, length_s, variance, noise = jnp.exp(theta)

    def kernel(x, length):
        return jnp.exp(-0.5 * ((x - x.T) / length) ** 2)

    K = variance * jnp.kron(kernel(t, length_t), kernel(s, length_s)) + noise * jnp.eye(len(y))
    quad, logdet = y @ jnp.linalg.solve(K, y), jnp.linalg.slogdet(K)[1]
    return 0.5 * (quad + logdet + len(y) * jnp.log(2 * jnp.pi)) / len(y)


@jax.jit
def step(theta, momentum, t, s, y):
    """One step of gradient descent with momentum."""
    value, g = jax.value_and_grad(loss)(theta, t, s, y)
    momentum = 0.8 * momentum - 0.05 * g
    return theta + momentum, momentum, value


def fit(steps=100):
    """The parameters found, and the values on the way."""
    t, s, y = data(jax.random.key(0))
    theta, momentum, values = jnp.zeros(4).at[3].set(-2.0), jnp.zeros(4), []
    for _ in range(steps):
        theta, momentum, value = step(theta, momentum, t, s, y)
        values.append(float(value))
    return theta, values


if __name__ == "__main__":
    theta, values = fit()
    print(f"loss a point: {values[0]:.4f} at first, {values[-1]:.4f} after {len(values)} steps")
    names = ("length in t", "length in s", "variance", "noise variance")
    for name, value in zip(names, jnp.exp(theta), strict=True):
        print(f"{name:15s} {float(value):.4f}")
    given = data(jax.random.key(0))
    ours, dense = (jax.value_and_grad(f)(theta, *given) for f in (loss, loss_dense))
    off = max(abs(ours[0] - dense[0]), jnp.max(jnp.abs(ours[1] - dense[1])))
    print(f"off the dense form by {float(off):.1e}, value and gradient")
    sys.exit(not (off < 1e-8 and values[-1] < values[0]))
