"""gpytorch's own test case of kernels, on kernels with our mix-in."""

import unittest

import pytest

torch = pytest.importorskip("torch")
gpytorch = pytest.importorskip("gpytorch")

from gpytorch.test.base_kernel_test_case import BaseKernelTestCase

from pylinop.torch.gpytorch import ExactKernel


class RBF(ExactKernel, gpytorch.kernels.RBFKernel):
    pass


class Matern(ExactKernel, gpytorch.kernels.MaternKernel):
    pass


class Linear(ExactKernel, gpytorch.kernels.LinearKernel):
    pass


class Scaled(ExactKernel, gpytorch.kernels.ScaleKernel):
    pass


class TestRBF(BaseKernelTestCase, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return RBF(**kwargs)

    def create_kernel_ard(self, num_dims, **kwargs):
        return RBF(ard_num_dims=num_dims, **kwargs)


class TestMatern(BaseKernelTestCase, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return Matern(nu=1.5, **kwargs)

    def create_kernel_ard(self, num_dims, **kwargs):
        return Matern(nu=1.5, ard_num_dims=num_dims, **kwargs)


class TestLinear(BaseKernelTestCase, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return Linear(**kwargs)


class TestScaled(BaseKernelTestCase, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return Scaled(gpytorch.kernels.RBFKernel(), **kwargs)
