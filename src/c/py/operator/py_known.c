/* py_known.c: what follows from how an operator is written, whatever its numbers are: the answers
 * of expr/properties.h for Python. Nothing is computed. */
#include "py/module/py.h"

#include "expr/properties.h"

/* TRUE where it is inferred; FALSE of what is not square; else not known. */
static lop_truth square_and(const lop_node *a, bool inferred) {
    if (inferred) return LOP_TRUE;
    return lop_is_square(a) ? LOP_UNKNOWN : LOP_FALSE;
}

static lop_truth hermitian(const lop_node *a) {
    if (lop_is_square(a) && lop_node_trait(a, LOP_HERMITIAN) == LOP_FALSE) return LOP_FALSE;
    return square_and(a, lop_infer_hermitian(a));
}
static lop_truth written(const lop_node *a) {
    return square_and(a, lop_infer_hermitian_written(a));
}
static lop_truth semidefinite(const lop_node *a) {
    return square_and(a, lop_infer_semidefinite(a));
}
static lop_truth unitary(const lop_node *a) { return square_and(a, lop_infer_unitary(a)); }
static lop_truth real(const lop_node *a) { return lop_node_trait(a, LOP_REAL); }
static lop_truth diagonal(const lop_node *a) {
    const lop_band band = lop_infer_bands(a);
    return band.l == 0 && band.u == 0 ? LOP_TRUE : LOP_UNKNOWN;
}

static const struct {
    const char *name;
    lop_truth (*of)(const lop_node *a);
} properties[] = {{"hermitian", hermitian},
                  {"semidefinite", semidefinite},
                  {"unitary", unitary},
                  {"regular", lop_infer_regular},
                  {"real", real},
                  {"diagonal", diagonal},
                  {"hermitian as written", written}};
enum { PROPERTIES = sizeof properties / sizeof *properties };

/* The pairs Y, C of those I + Y C Y^H whose numbers decide whether it is unitary, none where it is
 * known to be, over the arrays of self; None where it is not, or nothing is known. */
static PyObject *unitary_but(py_state *s, PyObject *self, const lop_node *node) {
    lop_infer_thin thin;
    if (!lop_infer_unitary_but(node, &thin)) Py_RETURN_NONE;
    PyObject *made = PyTuple_New(thin.n);
    for (int i = 0; made && i < thin.n; i++) {
        const lop_node *y = thin.of[i]->child[1], *c = thin.of[i]->child[3];
        PyObject *pair = Py_BuildValue("NN", py_wrap(s, lop_node_ref(y), NULL, 0, self, NULL),
                                       py_wrap(s, lop_node_ref(c), NULL, 0, self, NULL));
        if (!pair)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, pair);
    }
    return made;
}

/* _known(name): True, False or None (not known), "band" a pair and "rank" a number, both bounds
 * from above; "unitary but" as above; "large inverse": may solves within it be iterated? None of
 * what C cannot look into. */
PyObject *py_known(PyObject *self, PyObject *arg) {
    const char *name = PyUnicode_AsUTF8(arg);
    const lop_node *node = name ? py_node(py_state_of(self), (py_op *)self) : NULL;
    if (!node) return NULL;
    if (!strcmp(name, "rank")) return PyLong_FromLongLong(lop_infer_rank(node));
    if (!strcmp(name, "large inverse")) return PyBool_FromLong(py_holds_large_inverse(node));
    if (!strcmp(name, "unitary but")) return unitary_but(py_state_of(self), self, node);
    if (!strcmp(name, "band")) {
        const lop_band band = lop_infer_bands(node);
        return Py_BuildValue("LL", (long long)band.l, (long long)band.u);
    }
    for (int i = 0; i < PROPERTIES; i++) {
        if (strcmp(name, properties[i].name) != 0) continue;
        const lop_truth truth = properties[i].of(node);
        if (truth == LOP_UNKNOWN) Py_RETURN_NONE;
        return PyBool_FromLong(truth == LOP_TRUE);
    }
    return PyErr_Format(PyExc_ValueError, "no property '%s'", name);
}
