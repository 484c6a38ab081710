/* py_constructor_leaves.c: one leaf for each array, however often a Dense, or a kind of one array
 * as Diag is, is made of it, so that pl.lazy(a) @ pl.lazy(a).T and np.diag(s) @ K @ np.diag(s) are
 * known to have twice the same factor. A table of weak references by address: an array lies in one
 * of PROBES places, and takes that of one that is gone before that of one that lives. */
#include "py_constructor.h"

enum { PROBES = 8 };

/* The array behind it (borrowed; it lives while the caller's own reference does), NULL: gone. */
static PyObject *behind(PyObject *weak) {
#if PY_VERSION_HEX >= 0x030d0000
    PyObject *o = NULL;
    if (!weak || PyWeakref_GetRef(weak, &o) != 1) return NULL;
    Py_DECREF(o);
    return o;
#else
    PyObject *o = weak ? PyWeakref_GetObject(weak) : NULL;
    return o == Py_None ? NULL : o;
#endif
}

const lop_node *py_array_leaf(py_state *s, PyArrayObject *a, lop_dtype dt, int core,
                              const lop_shape *shape, lop_status *st, lop_err *err) {
    const size_t home = (uintptr_t)a >> 4;
    size_t at = home % PY_MATRICES;
    bool free = false;
    const lop_node *leaf;
    *st = LOP_OK;
    for (size_t i = 0; i < PROBES; i++) {
        const size_t k = (home + i) % PY_MATRICES;
        const PyObject *o = behind(s->matrix[k].weak);
        leaf = s->matrix[k].leaf;
        if (o == (PyObject *)a && leaf->dtype == dt && leaf->core == core &&
            lop_shape_equal(&leaf->shape, shape))
            return lop_node_ref(leaf);
        if (!free && (!o || o == (PyObject *)a)) at = k;
        free = free || !o || o == (PyObject *)a;
    }
    *st = lop_node_leaf(&s->ctx, dt, core, shape, &leaf, err);
    if (*st != LOP_OK) return NULL;
    PyObject *weak = PyWeakref_NewRef((PyObject *)a, NULL);
    if (!weak) { /* of no consequence: it is another operand then */
        PyErr_Clear();
        return leaf;
    }
    const lop_node *was = s->matrix[at].leaf;
    s->matrix[at].leaf = lop_node_ref(leaf);
    lop_node_unref(was);
    Py_XSETREF(s->matrix[at].weak, weak);
    return leaf;
}
