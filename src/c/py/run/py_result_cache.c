/* py_result_cache.c: derived values that Python makes (factors, spectra, functions of matrices) in
 * the same store as the plans' own, under the same fingerprints.
 *
 * The key says what was asked, how the operator is built, from which leaves (by serial) and with
 * which options; the fingerprint is that of the leaves' bytes and layout. A hit costs no more than
 * reading them. */
#include "py/module/py.h"

#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <string.h>

/* What _kept gives and _keep takes back. */
typedef struct token {
    uint64_t key, mask, owner;
    lop_fingerprint fingerprint;
} token;

static void release(void *object) { Py_DECREF((PyObject *)object); }

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ (v + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    return h ^ (h >> 31);
}

/* One array's matrices, each with all its bytes; the shape too. */
static lop_fingerprint fingerprint_of(const lop_buf *b, lop_fingerprint fingerprint) {
    int nd = b->shape.ndim, nb = nd > 2 ? nd - 2 : 0;
    int64_t at[LOP_MAXDIM] = {0}, size = (int64_t)lop_dtype_size(b->dt);
    lop_mat m = {b->p, 1, 1, 1, 1, b->dt};
    if (nd > 0) m.n = b->shape.dim[nd - 1], m.cs = b->stride[nd - 1];
    if (nd > 1) m.m = b->shape.dim[nd - 2], m.rs = b->stride[nd - 2];
    fingerprint.lo = mix(fingerprint.lo, (uint64_t)nd);
    for (int d = 0; d < nd; d++) fingerprint.lo = mix(fingerprint.lo, (uint64_t)b->shape.dim[d]);
    for (int d = 0; d < nd; d++)
        if (b->shape.dim[d] == 0) return fingerprint;
    for (;;) {
        lop_mat one = m;
        int64_t offset = 0;
        for (int d = 0; d < nb; d++) offset += at[d] * b->stride[d];
        one.p = (char *)m.p + offset * size;
        fingerprint = lopk_fingerprint(fingerprint, &one);
        int d = nb - 1;
        while (d >= 0 && ++at[d] == b->shape.dim[d]) at[d--] = 0;
        if (d < 0) return fingerprint;
    }
}

/* Of memory that cannot change: where it lies, and how. */
static lop_fingerprint fingerprint_layout(const lop_buf *b, lop_fingerprint print) {
    print.hi = mix(print.hi, (uint64_t)(uintptr_t)b->p);
    for (int d = 0; d < b->shape.ndim; d++) {
        print.lo = mix(print.lo, (uint64_t)b->shape.dim[d]);
        print.hi = mix(print.hi, (uint64_t)b->stride[d]);
    }
    return print;
}

/* An array, held while the lock is not. */
typedef struct leaf {
    PyArrayObject *held;
    lop_buf buf;
    bool frozen;
} leaf;

/* The fingerprint of all leaves, into at[n]. 1, or 0: one of them cannot be read; -1 with an
 * exception. */
static int fingerprint_at(const py_state *s, PyObject *const *array, int n, leaf *at, token *t) {
    uint64_t owner;
    int count = 0, rc = 1;
    for (; rc == 1 && count < n; count++) {
        PyArrayObject *a = (PyArrayObject *)array[count];
        const lop_dtype dt = py_dtype(a);
        at[count].held = NULL;
        if (dt == LOP_NO_DTYPE || PyArray_NDIM(a) > LOP_MAXDIM)
            rc = 0;
        else if (!(at[count].held = py_normal(a, PyArray_NDIM(a) < 2 ? PyArray_NDIM(a) : 2, false)))
            rc = -1;
        else
            py_buf(at[count].held, dt, &at[count].buf);
        at[count].frozen = py_frozen(s, a, &owner) && at[count].held == a;
        t->owner = count == 0 || t->owner == owner ? owner : 0;
    }
    const uint64_t holder = py_holder();
    if (holder) {
        t->owner = holder;
        py_derives(1); /* it has no price: factors and spectra that Python asks for */
    }
    if (rc == 1) {
        Py_BEGIN_ALLOW_THREADS;
        for (int i = 0; i < n; i++)
            t->fingerprint = at[i].frozen ? fingerprint_layout(&at[i].buf, t->fingerprint)
                                          : fingerprint_of(&at[i].buf, t->fingerprint);
        Py_END_ALLOW_THREADS;
    }
    for (int i = 0; i < count; i++) Py_XDECREF(at[i].held);
    return rc;
}

static int fingerprint_all(const py_state *s, PyObject *const *array, int n, token *t) {
    leaf few[LOP_SIGN_FEW], *at = n <= LOP_SIGN_FEW ? few : PyMem_Malloc((size_t)n * sizeof *at);
    if (!at) return PyErr_NoMemory(), -1;
    const int rc = fingerprint_at(s, array, n, at, t);
    if (at != few) PyMem_Free(at);
    return rc;
}

/* The key of what is asked, before the leaves are read. False: it is not kept. */
static bool name(py_state *s, py_op *op, const char *asked, lop_sign *g, token *t) {
    const lop_node *node = py_node(s, op);
    if (!node || node->opaque) return false;
    py_config_here(s);
    uint64_t words = 1;
    for (const char *c = asked; *c; c++) words = mix(words, (uint64_t)*c);
    if (!lop_sign_word(g, words) || !lop_sign_word(g, (uint64_t)s->options_version) ||
        !lop_sign_word(g, (uint64_t)lopk_threads()) || !lop_sign_node(g, node))
        return false;
    *t = (token){.key = mix(g->hash, 2), .fingerprint = {mix(g->hash, 3), g->hash}};
    for (int i = 0; i < g->leaves; i++) {
        t->key = mix(t->key, g->serial[i]);
        t->mask |= lop_leaf_bit(lop_leaf_key(g->serial[i]));
    }
    return g->leaves > 0;
}

/* The token of what is asked, with the fingerprint of the leaves. 1, or 0: nothing is kept of such
 * an operator; -1 with an exception. */
static int token_of(py_state *s, py_op *op, const char *asked, token *t) {
    PyObject *few[LOP_SIGN_FEW], **array = few;
    lop_sign g;
    lop_sign_open(&g, &s->ctx);
    int rc = name(s, op, asked, &g, t);
    if (rc && !(array = py_room_for(few, g.leaves))) rc = 0;
    if (rc) rc = py_find_arrays(op, &g, array);
    if (rc) rc = fingerprint_all(s, array, g.leaves, t);
    if (array != few) PyMem_Free(array);
    lop_sign_close(&g);
    return PyErr_Occurred() ? -1 : rc;
}

/* (op, asked) -> (token, object or None); None: nothing is kept of such an operator. */
PyObject *py_kept(py_state *s, PyObject *args) {
    PyObject *op;
    const char *asked;
    token t;
    if (!PyArg_ParseTuple(args, "O!s:_kept", s->base, &op, &asked)) return NULL;
    const int rc = token_of(s, (py_op *)op, asked, &t);
    if (rc < 0) return NULL;
    if (rc == 0) Py_RETURN_NONE;
    lop_blob *b = lop_store_get(&s->store, t.key);
    PyObject *found = Py_None;
    if (b && b->foreign && b->fingerprint.lo == t.fingerprint.lo &&
        b->fingerprint.hi == t.fingerprint.hi) {
        const lop_foreign *f = b->data;
        if (f->release == release) found = f->object;
    }
    if (found != Py_None) s->store.hits++;
    Py_INCREF(found);
    lop_blob_unref(&s->ctx, b);
    return Py_BuildValue("y#N", (const char *)&t, (Py_ssize_t)sizeof t, found);
}

/* (token, object, bytes): keeps it, within the bound of the store. */
PyObject *py_keep(py_state *s, PyObject *args) {
    Py_buffer text;
    PyObject *object;
    long long bytes;
    token t;
    if (!PyArg_ParseTuple(args, "y*OL:_keep", &text, &object, &bytes)) return NULL;
    const bool fits = text.len == (Py_ssize_t)sizeof t && bytes >= 0;
    if (fits) memcpy(&t, text.buf, sizeof t);
    PyBuffer_Release(&text);
    if (!fits) return PyErr_Format(PyExc_ValueError, "_keep takes what _kept gave"), NULL;
    lop_blob *b = lop_calloc(&s->ctx, 1, sizeof *b);
    lop_foreign *f = b ? lop_alloc(&s->ctx, sizeof *f) : NULL;
    if (!f) {
        lop_free(&s->ctx, b);
        return PyErr_NoMemory();
    }
    *f = (lop_foreign){Py_NewRef(object), bytes, release};
    *b = (lop_blob){.refs = 1,
                    .bytes = bytes > INT64_MAX - 256 ? bytes : bytes + 256,
                    .key = t.key,
                    .mask = t.mask,
                    .owner = t.owner,
                    .foreign = true,
                    .fingerprint = t.fingerprint,
                    .data = f};
    s->store.misses++;
    lop_store_put(&s->store, b);
    lop_blob_unref(&s->ctx, b);
    Py_RETURN_NONE;
}

/* Drops what was derived of the operator's leaves. */
PyObject *py_forget(py_state *s, PyObject *o) {
    if (!py_is_op(s, o)) return PyErr_Format(PyExc_TypeError, "_forget takes an operator"), NULL;
    PyObject *found = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    uint64_t mask = 0;
    if (!found || py_collect((py_op *)o, found) < 0) {
        Py_XDECREF(found);
        return NULL;
    }
    while (PyDict_Next(found, &at, &key, &value))
        mask |= lop_leaf_bit(lop_leaf_key(PyLong_AsUnsignedLongLong(key)));
    Py_DECREF(found);
    lop_store_drop(&s->store, mask);
    Py_RETURN_NONE;
}

int py_kept_traverse(py_state *s, visitproc visit, void *arg) {
    for (lop_blob *b = s->store.oldest; b; b = b->newer)
        if (b->foreign) Py_VISIT(((const lop_foreign *)b->data)->object);
    return 0;
}
