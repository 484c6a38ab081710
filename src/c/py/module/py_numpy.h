/* py_numpy.h: the one door to NumPy's C API; py_array.c owns the table, the others use it. */
#ifndef LOP_PY_NUMPY_H
#define LOP_PY_NUMPY_H

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL pylinop_ARRAY_API
#ifndef LOP_PY_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#endif
