/* py_by_price.c: solves that may go by iteration.
 *
 * inverse(A), or a view or multiple of it, applied to an array, whose plan makes a dense form that
 * nobody asked for and is not cheap: Python compares the plan's price with that of A's products,
 * and where iterating is the cheaper way tries it, within a bounded number of them. So do products
 * with such a factor, and sums with such a term, part by part. Entries, rows,
 * columns and corners of such an inverse are products with unit vectors, and go the same way. All
 * others pay for two comparisons. */
#include "py/module/py.h"

/* bytes; of a product; nodes */
enum { LEAST_DENSE = 1 << 20, LEAST_ROWS = 363, MOST_FACTORS = 16, LOOKED = 64 };
static const double least_seconds = 5e-3; /* a try takes 1 ms at the least */

/* An inverse under views and multiples, with a dense form that is worth to be left out. */
static bool is_large_inverse(const lop_node *a) {
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) a = a->child[0];
    return a->op == &lop_op_inverse && a->shape.ndim == 2 && lop_rows(a) >= LEAST_ROWS;
}

/* A product with such a factor, or a sum with such a term, among the first: what is shared is met
 * again. */
static bool is_product_with_inverse(const lop_node *a) {
    const lop_node *at[MOST_FACTORS] = {a};
    if (a->shape.ndim != 2 || is_large_inverse(a)) return false;
    for (int n = 1, looked = 0; n > 0 && looked < LOOKED; looked++) {
        const lop_node *f = at[--n];
        if (is_large_inverse(f)) return true;
        while (f->op == &lop_op_view) f = f->child[0];
        if ((f->op == &lop_op_prod || f->op == &lop_op_sum) && n + 2 <= MOST_FACTORS) {
            at[n++] = f->child[0];
            at[n++] = f->child[1];
        }
    }
    return false;
}

bool py_holds_large_inverse(const lop_node *a) {
    const lop_node *at[LOOKED] = {a};
    for (int n = 1, looked = 0; n > 0 && looked < LOOKED; looked++) {
        const lop_node *f = at[--n];
        if (is_large_inverse(f)) return true;
        for (int i = 0; i < f->n && n < LOOKED; i++) at[n++] = f->child[i];
    }
    return false;
}

/* What Python makes of the plan's price; None where the plan makes little dense or is quick. */
static PyObject *asked_of(py_state *s, const char *hook, const py_plan *e, PyObject *op,
                          PyObject *x, int act) {
    if (!e) return NULL;
    if (e->plan->dense < LEAST_DENSE || e->plan->seconds < least_seconds) Py_RETURN_NONE;
    PyObject *args = Py_BuildValue("OOid", op, x, act, e->plan->seconds);
    PyObject *made =
        args ? py_call_hook(s, hook, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args)) : NULL;
    Py_XDECREF(args);
    py_config_here(s); /* Python has run */
    return made;
}

PyObject *py_iterated(py_state *s, py_op *self, PyArrayObject *x, const py_plan *want,
                      const lop_shape *shape) {
    const bool whole = is_large_inverse(self->node);
    if (shape->ndim != 2 || (!whole && (want->act != 0 || !is_product_with_inverse(self->node))))
        Py_RETURN_NONE;
    py_plan asked = *want;
    return asked_of(s, whole ? "iterated" : "product_iterated", py_plan_of(s, self, &asked, shape),
                    (PyObject *)self, (PyObject *)x, want->act);
}

PyObject *py_part_iterated(py_state *s, py_op *self, const py_plan *want) {
    const lop_node *node = self->node, *of = node;
    while (of->op == &lop_op_sliced) of = of->child[0];
    const bool part = want->act == ACT_ELEMENT || (want->act == ACT_DENSE && of != node);
    py_plan asked = *want;
    if (want->act == ACT_DENSE && is_product_with_inverse(node))
        return asked_of(s, "product_iterated", py_plan_of(s, self, &asked, NULL), (PyObject *)self,
                        Py_None, want->act);
    if (!part || node->shape.ndim != 2 || !is_large_inverse(of)) Py_RETURN_NONE;
    const py_plan *e = py_plan_of(s, self, &asked, NULL);
    if (!e) return NULL;
    if (e->plan->dense < LEAST_DENSE || e->plan->seconds < least_seconds) Py_RETURN_NONE;
    PyObject *args = Py_BuildValue("OiLL", (PyObject *)self, want->act == ACT_ELEMENT,
                                   (long long)want->i, (long long)want->j);
    PyObject *made =
        args ? py_call_hook(s, "part_iterated", &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args))
             : NULL;
    Py_XDECREF(args);
    py_config_here(s); /* Python has run */
    return made;
}
