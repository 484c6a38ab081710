/* blas.c: a source of each test program: the BLAS library is loaded before main, that of the
 * environment's PYLINOP_BLAS, of PYLINOP_TEST_BLAS (CMake), or what the program is linked with. */
#include "../../src/c/kernels/dense/blas_table.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void load(void) {
    const char *path = getenv("PYLINOP_BLAS");
    lop_err err;
    if (!path || !*path) path = PYLINOP_TEST_BLAS;
    lop_err_open(&err);
    const lop_status st =
        *path ? lop_blas_load(path, false, &err) : lop_blas_of_module(NULL, false, &err);
    if (st == LOP_OK) return;
    fprintf(stderr, "no BLAS library for the tests (%s): %s\n", path, err.text);
    exit(2);
}
