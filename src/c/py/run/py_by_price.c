/* py_by_price.c: solves that may go by iteration.
 *
 * inverse(A), or a view of it, applied to an array, whose plan makes a dense form that nobody asked
 * for and is not cheap: Python compares the plan's price with that of A's products, and where
 * iterating is the cheaper way tries it, within a bounded number of them. All others pay for two
 * comparisons. */
#include "py/module/py.h"

enum { LEAST_DENSE = 1 << 20 };           /* bytes */
static const double least_seconds = 5e-3; /* a try takes 1 ms at the least */

PyObject *py_iterated(py_state *s, py_op *self, PyArrayObject *x, const py_plan *want,
                      const lop_shape *shape) {
    const lop_node *node = self->node, *solved = node;
    while (solved->op == &lop_op_view) solved = solved->child[0];
    if (solved->op != &lop_op_inverse || node->shape.ndim != 2 || shape->ndim != 2) Py_RETURN_NONE;
    if (lop_rows(node) * lop_rows(node) * 8 < LEAST_DENSE) Py_RETURN_NONE;
    py_plan asked = *want;
    const py_plan *e = py_plan_of(s, self, &asked, shape);
    if (!e) return NULL;
    if (e->plan->dense < LEAST_DENSE || e->plan->seconds < least_seconds) Py_RETURN_NONE;
    PyObject *args =
        Py_BuildValue("OOid", (PyObject *)self, (PyObject *)x, want->act, e->plan->seconds);
    PyObject *made =
        args ? py_call_hook(s, "iterated", &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args))
             : NULL;
    Py_XDECREF(args);
    py_config_here(s); /* Python has run */
    return made;
}
