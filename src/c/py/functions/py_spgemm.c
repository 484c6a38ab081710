/* py_spgemm.c: kernels for products of sparse matrices, for _sparse/spgemm.py, which says what
 * they mean. A matrix comes as (indptr, indices, data, rows, columns): contiguous arrays, the two
 * of indices of one dtype, int32 or int64. The GIL is released around the work. */
#include "py/run/py_bound_product.h"

#include "kernels/dense/k_blas.h"
#include "kernels/sparse/k_spgemm.h"
#include "kernels/common/kernels.h"

/* What a call holds: borrowed arrays, seen as a product. */
typedef struct matrix {
    PyArrayObject *ptr, *index, *data;
    long long m, n;
} matrix;

static bool plain(PyArrayObject *a, lop_dtype dt, int64_t least) {
    return PyArray_NDIM(a) == 1 && PyArray_ISCARRAY_RO(a) && py_dtype(a) == dt &&
           PyArray_DIM(a, 0) >= least;
}

static bool is_matrix(const matrix *x, lop_dtype dt, lop_dtype ix, lopk_csr *out) {
    if (x->m < 0 || x->n < 0 || x->m == INT64_MAX || !plain(x->ptr, ix, x->m + 1) ||
        !plain(x->index, ix, 0) || !plain(x->data, dt, 0))
        return PyErr_Format(PyExc_ValueError, "these arrays do not make a CSR matrix"), false;
    const lop_mat begin = {PyArray_DATA(x->ptr), x->m + 1, 1, 1, 1, ix};
    if (!lopk_indptr_begins(&begin))
        return PyErr_Format(PyExc_IndexError, "indptr does not begin with 0"), false;
    const npy_intp ni = PyArray_DIM(x->index, 0), nd = PyArray_DIM(x->data, 0);
    *out =
        (lopk_csr){PyArray_DATA(x->ptr), PyArray_DATA(x->index), PyArray_DATA(x->data), x->m, x->n,
                   ni < nd ? ni : nd};
    return true;
}

static bool product_of(const matrix *a, const matrix *b, int upper, lopk_spgemm *g) {
    g->dt = py_dtype(a->data);
    g->ix = py_dtype(a->index);
    g->upper = upper != 0;
    if (g->dt == LOP_NO_DTYPE || (g->ix != LOP_i32 && g->ix != LOP_i64))
        return PyErr_Format(PyExc_TypeError, "no such dtypes in a sparse product"), false;
    return is_matrix(a, g->dt, g->ix, &g->a) && is_matrix(b, g->dt, g->ix, &g->b);
}

static bool rows_fit(const lopk_csr *a, long long lo, long long hi) {
    if (0 <= lo && lo <= hi && hi <= a->m) return true;
    return PyErr_Format(PyExc_ValueError, "no rows %lld to %lld of %lld", lo, hi, (long long)a->m),
           false;
}

/* NULL with an exception, or None. */
static PyObject *done(lop_status st) {
    if (st == LOP_OK) Py_RETURN_NONE;
    if (st == LOP_NOMEM) return PyErr_NoMemory();
    if (st == LOP_CALLBACK) return NULL; /* a signal's handler raised */
    if (st == LOP_OVERFLOW)
        return PyErr_Format(PyExc_ValueError, "the sizes of a sparse product pass 64 bits");
    return PyErr_Format(PyExc_IndexError,
                        "a sparse index is out of bounds, indptr is not increasing, or the arrays "
                        "changed while they were read");
}

/* `made` (taken over), or NULL with the exception of `st`. */
static PyObject *given(PyObject *made, lop_status st) {
    if (st == LOP_OK) return made;
    Py_DECREF(made);
    return done(st);
}

static PyObject *numbers(int64_t n) {
    npy_intp dim = (npy_intp)n;
    return PyArray_SimpleNew(1, &dim, NPY_INT64);
}

static void *data_of(PyObject *a) { return PyArray_DATA((PyArrayObject *)a); }

#define MATRIX "O!O!O!LL"
#define TO_MATRIX(x)                                                                               \
    &PyArray_Type, &(x).ptr, &PyArray_Type, &(x).index, &PyArray_Type, &(x).data, &(x).m, &(x).n

/* (a, b, upper, lo, hi): products of each row. */
PyObject *py_spgemm_bound(PyObject *module, PyObject *args) {
    matrix a, b;
    int upper;
    long long lo, hi;
    lopk_spgemm g;
    lop_status st;
    (void)module;
    if (!PyArg_ParseTuple(args, "(" MATRIX ")(" MATRIX ")pLL:_spgemm_bound", TO_MATRIX(a),
                          TO_MATRIX(b), &upper, &lo, &hi) ||
        !product_of(&a, &b, upper, &g) || !rows_fit(&g.a, lo, hi))
        return NULL;
    PyObject *bound = numbers(hi - lo);
    if (!bound) return NULL;
    int64_t *to = data_of(bound);
    Py_BEGIN_ALLOW_THREADS;
    st = g.a.n == g.b.m ? lopk_spgemm_bound(&g, lo, hi, to) : LOP_INDEX;
    Py_END_ALLOW_THREADS;
    return given(bound, st);
}

/* Rows in parts, with memory for them; the GIL is let go from open to close. */
typedef struct parted {
    lopk_spgemm_rows rows;
    py_gil gil;
    lopk_team team;
    void *work;
} parted;

/* `held`: several threads need room for entries. */
static lop_status open_parts(parted *p, const lopk_spgemm *g, int64_t lo, PyArrayObject *bound,
                             int threads, bool held) {
    int64_t bytes;
    *p = (parted){.rows = {.lo = lo, .rows = PyArray_DIM(bound, 0), .bound = PyArray_DATA(bound)}};
    py_gil_open(&p->gil);
    py_gil_leave(&p->gil);
    p->team = (lopk_team){threads ? lopk_threads() : 1, py_gil_stop, &p->gil};
    p->rows.edge = PyMem_RawMalloc(((size_t)p->rows.rows + 1) * sizeof *p->rows.edge);
    if (!p->rows.edge) return LOP_NOMEM;
    lopk_spgemm_cut(g, &p->rows);
    if (p->rows.enough < 2) p->team.threads = 1;
    if (!lopk_spgemm_work(g, &p->rows, held && p->team.threads > 1, &bytes)) return LOP_OVERFLOW;
    p->work = PyMem_RawCalloc((size_t)bytes + 1, 1);
    return p->work ? LOP_OK : LOP_NOMEM;
}

static void close_parts(parted *p) {
    PyMem_RawFree(p->work);
    PyMem_RawFree(p->rows.edge);
    py_gil_enter(&p->gil);
}

/* (a, b, upper, lo, hi, bound, threads=False): entries of each row; on all threads, or on one. */
PyObject *py_spgemm_count(PyObject *module, PyObject *args) {
    matrix a, b;
    int upper, threads = 0;
    long long lo, hi;
    lopk_spgemm g;
    PyArrayObject *bound;
    parted p;
    (void)module;
    if (!PyArg_ParseTuple(args, "(" MATRIX ")(" MATRIX ")pLLO!|p:_spgemm_count", TO_MATRIX(a),
                          TO_MATRIX(b), &upper, &lo, &hi, &PyArray_Type, &bound, &threads) ||
        !product_of(&a, &b, upper, &g) || !rows_fit(&g.a, lo, hi))
        return NULL;
    if (g.a.n != g.b.m || !plain(bound, LOP_i64, hi - lo) || PyArray_DIM(bound, 0) != hi - lo)
        return done(LOP_INDEX);
    PyObject *count = numbers(hi - lo);
    if (!count) return NULL;
    lop_status st = open_parts(&p, &g, lo, bound, threads, false);
    if (st == LOP_OK) st = lopk_spgemm_count(&g, &p.rows, &p.team, p.work, data_of(count));
    close_parts(&p);
    return given(count, st);
}

/* Do the places at[0] .. at[rows] lie in index and data, which are of these dtypes? */
static bool places(PyArrayObject *at, PyArrayObject *index, PyArrayObject *data, int64_t rows,
                   lop_dtype dt, lop_dtype ix) {
    if (rows < 0 || !plain(at, LOP_i64, rows + 1) || !plain(index, ix, 0) || !plain(data, dt, 0) ||
        !PyArray_ISWRITEABLE(index) || !PyArray_ISWRITEABLE(data))
        return false;
    const int64_t *p = PyArray_DATA(at);
    const npy_intp room =
        PyArray_DIM(index, 0) < PyArray_DIM(data, 0) ? PyArray_DIM(index, 0) : PyArray_DIM(data, 0);
    for (int64_t i = 0; i < rows; i++)
        if (p[i] < 0 || p[i + 1] < p[i]) return false;
    return p[0] >= 0 && p[rows] <= room;
}

/* Is there room for rows with these bounds from `at` on? */
static bool holds(const int64_t *bound, int64_t rows, int64_t n, int64_t at, PyArrayObject *index,
                  PyArrayObject *data) {
    for (int64_t i = 0; i < rows; i++)
        if (bound[i] > 0 && !lop_add_ok(at, bound[i] < n ? bound[i] : n, &at)) return false;
    return at <= PyArray_DIM(index, 0) && at <= PyArray_DIM(data, 0);
}

/* (a, b, upper, lo, hi, bound, at, index, data, threads=False): the rows themselves at their
 * places; where `at` has one number alone, one after the other from there on, and how long each is.
 */
PyObject *py_spgemm_fill(PyObject *module, PyObject *args) {
    matrix a, b;
    int upper, threads = 0;
    long long lo, hi;
    lopk_spgemm g;
    PyArrayObject *bound, *at, *index, *data;
    parted p;
    (void)module;
    if (!PyArg_ParseTuple(args, "(" MATRIX ")(" MATRIX ")pLLO!O!O!O!|p:_spgemm_fill", TO_MATRIX(a),
                          TO_MATRIX(b), &upper, &lo, &hi, &PyArray_Type, &bound, &PyArray_Type, &at,
                          &PyArray_Type, &index, &PyArray_Type, &data, &threads) ||
        !product_of(&a, &b, upper, &g) || !rows_fit(&g.a, lo, hi))
        return NULL;
    const bool loose = PyArray_NDIM(at) == 1 && PyArray_DIM(at, 0) == 1;
    if (g.a.n != g.b.m || !plain(bound, LOP_i64, hi - lo) || PyArray_DIM(bound, 0) != hi - lo ||
        !places(at, index, data, loose ? 0 : hi - lo, g.dt, g.ix))
        return done(LOP_INDEX);
    const int64_t *most = PyArray_DATA(bound), *from = PyArray_DATA(at);
    if (loose && !holds(most, hi - lo, g.b.n, from[0], index, data)) return done(LOP_INDEX);
    PyObject *count = numbers(loose ? hi - lo : 0);
    if (!count) return NULL;
    lop_status st = open_parts(&p, &g, lo, bound, threads, loose);
    if (st == LOP_OK)
        st = lopk_spgemm_fill(&g, &p.rows, &p.team, p.work, from, PyArray_DATA(index),
                              PyArray_DATA(data), loose ? data_of(count) : NULL);
    close_parts(&p);
    return given(count, st);
}

/* (a, bt, mask, lo, hi, at, index, data): entries of A B at a mask's places; how many a row. */
PyObject *py_spgemm_sampled(PyObject *module, PyObject *args) {
    matrix a, b, c;
    long long lo, hi;
    lopk_spgemm g;
    lopk_csr mask;
    PyArrayObject *at, *index, *data;
    lop_status st = LOP_OVERFLOW;
    (void)module;
    if (!PyArg_ParseTuple(args, "(" MATRIX ")(" MATRIX ")(" MATRIX ")LLO!O!O!:_spgemm_sampled",
                          TO_MATRIX(a), TO_MATRIX(b), TO_MATRIX(c), &lo, &hi, &PyArray_Type, &at,
                          &PyArray_Type, &index, &PyArray_Type, &data) ||
        !product_of(&a, &b, 0, &g) || !is_matrix(&c, g.dt, g.ix, &mask) || !rows_fit(&g.a, lo, hi))
        return NULL;
    if (g.a.n != g.b.n || mask.m != g.a.m || !places(at, index, data, hi - lo, g.dt, g.ix))
        return done(LOP_INDEX);
    PyObject *count = numbers(hi - lo);
    if (!count) return NULL;
    int64_t *to = data_of(count), bytes = 0;
    const int64_t *from = PyArray_DATA(at);
    void *ix = PyArray_DATA(index), *el = PyArray_DATA(data);
    Py_BEGIN_ALLOW_THREADS;
    if (lopk_sampled_work(&g, &bytes)) {
        void *work = PyMem_RawCalloc((size_t)bytes + 1, 1);
        st = work ? lopk_spgemm_sampled(&g, &mask, lo, hi, work, from, ix, el, to) : LOP_NOMEM;
        PyMem_RawFree(work);
    }
    Py_END_ALLOW_THREADS;
    return given(count, st);
}

/* (a, conj): (indptr, indices, data) of A^T or A^H. */
PyObject *py_csr_transpose(PyObject *module, PyObject *args) {
    matrix a;
    lopk_csr s;
    int conj;
    lop_status st;
    (void)module;
    if (!PyArg_ParseTuple(args, "(" MATRIX ")p:_csr_transpose", TO_MATRIX(a), &conj)) return NULL;
    const lop_dtype dt = py_dtype(a.data), ix = py_dtype(a.index);
    if (dt == LOP_NO_DTYPE || (ix != LOP_i32 && ix != LOP_i64)) return done(LOP_INDEX);
    if (!is_matrix(&a, dt, ix, &s)) return NULL;
    npy_intp n = (npy_intp)s.n + 1, nnz = (npy_intp)s.nnz;
    PyObject *ptr = PyArray_SimpleNew(1, &n, py_typenum(ix)),
             *index = PyArray_SimpleNew(1, &nnz, py_typenum(ix)),
             *data = PyArray_SimpleNew(1, &nnz, py_typenum(dt));
    PyObject *all = ptr && index && data ? PyTuple_Pack(3, ptr, index, data) : NULL;
    Py_XDECREF(ptr);
    Py_XDECREF(index);
    Py_XDECREF(data);
    if (!all) return NULL;
    void *p = data_of(ptr), *i = data_of(index), *d = data_of(data);
    Py_BEGIN_ALLOW_THREADS;
    st = lopk_csr_transpose(&s, dt, ix, conj, p, i, d);
    Py_END_ALLOW_THREADS;
    return given(all, st);
}

/* (at, index, data, least, most): rows shortened in place; what stays of each. */
PyObject *py_csr_keep(PyObject *module, PyObject *args) {
    PyArrayObject *at, *index, *data;
    double least;
    long long most;
    lop_status st = LOP_NOMEM;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!dL:_csr_keep", &PyArray_Type, &at, &PyArray_Type, &index,
                          &PyArray_Type, &data, &least, &most))
        return NULL;
    const lop_dtype dt = py_dtype(data), ix = py_dtype(index);
    const int64_t rows = PyArray_NDIM(at) == 1 ? PyArray_DIM(at, 0) - 1 : -1;
    if (dt == LOP_NO_DTYPE || !places(at, index, data, rows, dt, ix)) return done(LOP_INDEX);
    PyObject *count = numbers(rows);
    if (!count) return NULL;
    const int64_t *from = PyArray_DATA(at);
    int64_t *to = data_of(count), longest = 0;
    void *i = PyArray_DATA(index), *d = PyArray_DATA(data);
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t r = 0; r < rows; r++)
        if (from[r + 1] - from[r] > longest) longest = from[r + 1] - from[r];
    if (most > longest) most = -1;
    double *work = PyMem_RawMalloc(((size_t)(most > 0 ? most : 0) + 1) * sizeof *work);
    if (work) st = lopk_csr_keep(dt, ix, rows, from, i, d, least, most, work, to);
    PyMem_RawFree(work);
    Py_END_ALLOW_THREADS;
    return given(count, st);
}

/* (at, index, data, mask, lo): likewise what rows lo .. of a mask have too. */
PyObject *py_csr_meet(PyObject *module, PyObject *args) {
    PyArrayObject *at, *index, *data;
    matrix c;
    lopk_csr mask;
    long long lo;
    lop_status st;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!(" MATRIX ")L:_csr_meet", &PyArray_Type, &at, &PyArray_Type,
                          &index, &PyArray_Type, &data, TO_MATRIX(c), &lo))
        return NULL;
    const lop_dtype dt = py_dtype(data), ix = py_dtype(index);
    const int64_t rows = PyArray_NDIM(at) == 1 ? PyArray_DIM(at, 0) - 1 : -1;
    if (dt == LOP_NO_DTYPE || !places(at, index, data, rows, dt, ix)) return done(LOP_INDEX);
    if (!is_matrix(&c, dt, ix, &mask) || !rows_fit(&mask, lo, lo + rows)) return NULL;
    PyObject *count = numbers(rows);
    if (!count) return NULL;
    const int64_t *from = PyArray_DATA(at);
    int64_t *to = data_of(count);
    void *i = PyArray_DATA(index), *d = PyArray_DATA(data);
    Py_BEGIN_ALLOW_THREADS;
    st = lopk_csr_meet(dt, ix, rows, from, i, d, &mask, lo, to);
    Py_END_ALLOW_THREADS;
    return given(count, st);
}

/* (conj, at, index, data): (at, index, data) of the whole matrix of an upper triangle. */
PyObject *py_csr_mirror(PyObject *module, PyObject *args) {
    PyArrayObject *at, *index, *data;
    int conj;
    lop_status st;
    (void)module;
    if (!PyArg_ParseTuple(args, "pO!O!O!:_csr_mirror", &conj, &PyArray_Type, &at, &PyArray_Type,
                          &index, &PyArray_Type, &data))
        return NULL;
    const lop_dtype dt = py_dtype(data), ix = py_dtype(index);
    const int64_t m = PyArray_NDIM(at) == 1 ? PyArray_DIM(at, 0) - 1 : -1;
    if (dt == LOP_NO_DTYPE || !places(at, index, data, m, dt, ix)) return done(LOP_INDEX);
    PyObject *to = numbers(m + 1);
    int64_t *work = PyMem_Calloc((size_t)m + 1, 2 * sizeof *work);
    if (!to || !work) {
        Py_XDECREF(to);
        PyMem_Free(work);
        return PyErr_NoMemory();
    }
    const int64_t *from = PyArray_DATA(at);
    int64_t *start = data_of(to), *lower = work, *next = work + m + 1;
    st = lopk_mirror_count(ix, m, from, PyArray_DATA(index), lower);
    start[0] = 0;
    for (int64_t i = 0; st == LOP_OK && i < m; i++)
        start[i + 1] = start[i] + lower[i] + from[i + 1] - from[i];
    npy_intp nnz = st == LOP_OK ? (npy_intp)start[m] : 0;
    PyObject *ti = PyArray_SimpleNew(1, &nnz, py_typenum(ix)),
             *td = PyArray_SimpleNew(1, &nnz, py_typenum(dt));
    PyObject *all = ti && td ? PyTuple_Pack(3, to, ti, td) : NULL;
    Py_XDECREF(ti);
    Py_XDECREF(td);
    Py_DECREF(to);
    if (!all) {
        PyMem_Free(work);
        return NULL;
    }
    void *i = PyArray_DATA(index), *d = PyArray_DATA(data), *oi = data_of(ti), *od = data_of(td);
    Py_BEGIN_ALLOW_THREADS;
    if (st == LOP_OK) st = lopk_mirror(dt, ix, m, conj, from, i, d, lower, start, next, oi, od);
    Py_END_ALLOW_THREADS;
    PyMem_Free(work);
    return given(all, st);
}
