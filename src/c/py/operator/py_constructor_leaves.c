/* py_constructor_leaves.c: one leaf for each array, however often a Dense, or a kind of one array
 * as Diag is, is made of it, so that pl.lazy(a) @ pl.lazy(a).T and np.diag(s) @ K @ np.diag(s) are
 * known to have twice the same factor. A table of weak references by address, to matrices and to
 * the operators that hold other arrays (NumPy resizes no array that is weakly referenced): an array
 * lies in one of PROBES places, and takes that of one that is gone before that of one that lives.
 */
#include "py_constructor.h"

enum { PROBES = 8, FEW = 32 }; /* of FEW numbers the look, 0.1 us, costs more than it saves */

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

static bool is_short(const lop_shape *shape) { return shape->ndim == 1 && shape->dim[0] < FEW; }

/* Is the array behind what the table refers to this one? */
static bool is_of(const PyObject *o, const PyArrayObject *a) {
    if (!o || o == (const PyObject *)a) return o != NULL;
    if (PyArray_CheckExact(o)) return false;
    const PyObject *arrays = ((const py_op *)(const void *)o)->arrays;
    return arrays && PyTuple_GET_SIZE(arrays) == 1 &&
           PyTuple_GET_ITEM(arrays, 0) == (const PyObject *)a;
}

/* The leaf of an array, borrowed; NULL, and the place for it: it is not known. */
static const lop_node *known_leaf(py_state *s, const PyArrayObject *a, lop_dtype dt, int core,
                                  const lop_shape *shape, size_t *place) {
    const size_t home = (uintptr_t)a >> 4;
    bool free = false;
    *place = home % PY_MATRICES;
    for (size_t i = 0; i < PROBES; i++) {
        const size_t k = (home + i) % PY_MATRICES;
        const PyObject *o = behind(s->matrix[k].weak);
        const lop_node *leaf = s->matrix[k].leaf;
        const bool same = is_of(o, a);
        if (same && leaf->dtype == dt && leaf->core == core && lop_shape_equal(&leaf->shape, shape))
            return leaf;
        if (!free && (!o || same)) *place = k;
        free = free || !o || same;
    }
    return NULL;
}

/* If there is no weak reference, it is of no consequence: it is another operand then. */
static void keep(py_state *s, size_t place, PyObject *o, const lop_node *leaf) {
    PyObject *weak = PyWeakref_NewRef(o, NULL);
    if (!weak) {
        PyErr_Clear();
        return;
    }
    const lop_node *was = s->matrix[place].leaf;
    s->matrix[place].leaf = lop_node_ref(leaf);
    lop_node_unref(was);
    Py_XSETREF(s->matrix[place].weak, weak);
}

const lop_node *py_array_leaf(py_state *s, PyArrayObject *a, lop_dtype dt, int core,
                              const lop_shape *shape, bool dense, lop_status *st, lop_err *err) {
    size_t place = 0;
    const lop_node *leaf = is_short(shape) ? NULL : known_leaf(s, a, dt, core, shape, &place);
    *st = LOP_OK;
    if (leaf) return lop_node_ref(leaf);
    *st = lop_node_leaf(&s->ctx, dt, core, shape, &leaf, err);
    if (*st != LOP_OK) return NULL;
    if (dense) keep(s, place, (PyObject *)a, leaf);
    return leaf;
}

void py_hold_leaf(py_op *self) {
    const lop_node *leaf = self->node && self->node->n > 0 ? self->node->child[0] : NULL;
    size_t place = 0;
    if (!leaf || self->node->op == &lop_op_dense || leaf->op != &lop_op_array ||
        is_short(&leaf->shape) || leaf->serial != self->serial || !self->arrays ||
        PyTuple_GET_SIZE(self->arrays) != 1)
        return;
    PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(self->arrays, 0);
    if (!known_leaf(self->s, a, leaf->dtype, leaf->core, &leaf->shape, &place))
        keep(self->s, place, (PyObject *)self, leaf);
}
