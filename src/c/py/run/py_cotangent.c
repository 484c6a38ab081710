/* py_cotangent.c: cotangents of a kind's children as operators (expr/vjp.h). */
#include "py/module/py.h"

#include "expr/vjp.h"

/* An operator that shows an array: the dense form of a matrix, the diagonal of a vector. */
static lop_status shown(py_state *s, const lop_node *array, const lop_node **out, lop_err *err) {
    if (array->op == &lop_op_todense) {
        *out = lop_node_ref(array->child[0]);
        return LOP_OK;
    }
    const lop_op *op = array->core == 2 ? &lop_op_dense : &lop_op_diag;
    if (array->core != 1 && array->core != 2) return LOP_UNABLE;
    return lop_node_make(&s->ctx, op, NULL, 1, &array, NULL, out, err);
}

/* What was written, also where it closed to a kind: owned. */
static lop_status written(py_state *s, py_op *op, const lop_node **out, lop_err *err) {
    const lop_op *by = op->by;
    const lop_node *child[2] = {0};
    lop_attr attr = {.i = {op->mode, 0, 0, 0}};
    int n = 0;
    if (!by || op->node->op == by) {
        *out = lop_node_ref(op->node);
        return LOP_OK;
    }
    PyObject *const operand[2] = {op->a, op->b};
    for (int i = 0; i < 2; i++)
        if (operand[i] && py_is_op(s, operand[i])) child[n++] = ((py_op *)operand[i])->node;
    const bool number = by == &lop_op_scaled && op->b && py_coefficient(op->b, &attr) == 1,
               plain = by == &lop_op_sum || by == &lop_op_prod || by == &lop_op_inverse ||
                       by == &lop_op_view || by == &lop_op_part || by == &lop_op_power;
    if (!(number || plain) || n < by->min || n > by->max || !child[n - 1]) return LOP_UNABLE;
    return lop_node_make(&s->ctx, by, &attr, n, child, NULL, out, err);
}

PyObject *py_cotangent(py_state *s, PyObject *args) {
    PyObject *op, *g;
    int child;
    lop_err err;
    lop_err_open(&err);
    if (!PyArg_ParseTuple(args, "OOi:_cotangent", &op, &g, &child)) return NULL;
    if (!py_is_op(s, op) || !py_is_op(s, g))
        return PyErr_Format(PyExc_TypeError, "two operators are due");
    const lop_node *self = py_node(s, (py_op *)op),
                   *cotangent = self ? py_node(s, (py_op *)g) : NULL, *root = NULL, *made = NULL,
                   *whole = NULL;
    if (!cotangent) return NULL;
    lop_status st =
        self->opaque || cotangent->opaque ? LOP_UNABLE : written(s, (py_op *)op, &root, &err);
    if (PyErr_Occurred()) {
        lop_node_unref(root);
        return NULL;
    }
    if (st == LOP_OK) st = lop_cotangent(&s->ctx, root, child, cotangent, &made, &err);
    lop_node_unref(root);
    if (st == LOP_OK && made->op->cls == LOP_OPERATOR)
        whole = lop_node_ref(made);
    else if (st == LOP_OK)
        st = shown(s, made, &whole, &err);
    lop_node_unref(made);
    if (st == LOP_UNABLE) Py_RETURN_NOTIMPLEMENTED;
    if (st != LOP_OK) return py_raise(s, st, &err, op, "differentiate");
    return py_wrap(s, whole, NULL, 0, op, g);
}
