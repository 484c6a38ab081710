/* node.c: making, counting and releasing nodes; dtype promotion with weakness; property queries.
 * Cost of a node: one allocation of about 150 + 8 n bytes. Release is a loop: a dying node is its
 * own work-list entry (linked through `serial`), so chains of any length die without recursion. */
#include "node.h"

#include "op.h"

#include <string.h>

int64_t lop_diag_length(int64_t m, int64_t n, int64_t k) {
    int64_t rows = k < 0 ? (k < -m ? 0 : m + k) : m, cols = k > 0 ? (k > n ? 0 : n - k) : n;
    return rows < cols ? rows : cols;
}

bool lop_attr_equal(const lop_attr *a, const lop_attr *b) {
    for (int i = 0; i < 4; i++)
        if (a->i[i] != b->i[i]) return false;
    if (a->num != b->num) return false;
    return memcmp(&a->re, &b->re, sizeof a->re) == 0 && memcmp(&a->im, &b->im, sizeof a->im) == 0;
}

lop_attr lop_attr_coef(double re, double im) {
    lop_attr a = {.re = re, .im = im};
    a.i[0] = (re > -9e18 && re < 9e18) ? (int64_t)re : 0;
    a.i[1] = im != 0 ? LOP_WEAK_COMPLEX : LOP_WEAK_FLOAT;
    return a;
}

lop_dtype lop_promote_weak(int weak, lop_dtype other) {
    if (other >= LOP_NDTYPE) return LOP_NO_DTYPE;
    switch (weak) {
    case LOP_WEAK_INT: return other == LOP_b8 ? LOP_i64 : other;
    case LOP_WEAK_FLOAT: return lop_is_blas(other) ? other : LOP_f64;
    case LOP_WEAK_COMPLEX:
        if (lop_is_complex(other)) return other;
        return other == LOP_f32 ? LOP_c64 : LOP_c128;
    default: return other;
    }
}

void lop_node_promote(lop_node *n, const lop_node *a, const lop_node *b) {
    if (a->weak && b->weak) {
        n->weak = a->weak > b->weak ? a->weak : b->weak;
        n->dtype = n->weak == LOP_WEAK_COMPLEX ? LOP_c128 : LOP_f64;
    } else if (a->weak || b->weak) {
        const lop_node *w = a->weak ? a : b, *s = a->weak ? b : a;
        n->weak = LOP_STRONG;
        n->dtype = lop_promote_weak(w->weak, s->dtype);
    } else {
        n->weak = LOP_STRONG;
        n->dtype = lop_promote(a->dtype, b->dtype);
    }
}
/* Floats first, then integers, what is weak last, as np.result_type does: a view has its children
 * in another order, and int16 beside uint16 is int32, which makes float64 of a float32. */
static void promote_children(lop_node *n) {
    bool any = false;
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < n->n; i++) {
            const lop_node *a = n->child[i], so_far = {.dtype = n->dtype, .weak = n->weak};
            if ((a->weak ? 2 : lop_is_blas(a->dtype) ? 0 : 1) != turn) continue;
            n->dtype = a->dtype;
            n->weak = a->weak;
            if (any) lop_node_promote(n, &so_far, a);
            any = true;
        }
}
lop_status lop_node_batches(lop_node *n, int own, lop_err *err) {
    lop_shape batch = {0}, both;
    for (int i = 0; i < n->n; i++) {
        const lop_node *a = n->child[i];
        lop_status st = lop_shape_batch(&batch, 0, &a->shape, a->core, &both, err);
        if (st != LOP_OK) return st;
        batch = both;
    }
    promote_children(n);
    if (batch.ndim + own > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape = batch;
    return LOP_OK;
}
lop_status lop_node_over(lop_node *n, int64_t rows, int64_t cols, lop_err *err) {
    lop_status st = lop_node_batches(n, 2, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = rows;
    n->shape.dim[n->shape.ndim++] = cols;
    return LOP_OK;
}

void lop_node_promote_inverse(lop_node *n, const lop_node *a, const lop_node *b) {
    const lop_node inverse = {
        .dtype = a->weak ? a->dtype : lop_promote_weak(LOP_WEAK_FLOAT, a->dtype), .weak = a->weak};
    lop_node_promote(n, &inverse, b);
    n->dtype = lop_promote_weak(LOP_WEAK_FLOAT, n->dtype);
}

/* Arrays are made from arrays, actions from operators and arrays; operators check their own. */
static bool roles_fit(const lop_op *op, int n, const lop_node *const *child) {
    const int first = op->cls != LOP_ACTION ? 0 : op->operators ? op->operators : 1;
    for (int i = 0; i < n && op->cls != LOP_OPERATOR; i++)
        if ((child[i]->op->cls == LOP_OPERATOR) != (i < first)) return false;
    return true;
}

void lop_node_scale(lop_node *n) {
    int weak = (int)n->attr.i[1];
    if (!weak) {
        lop_dtype c = (lop_dtype)n->attr.i[2];
        n->dtype = n->weak ? lop_promote_weak(n->weak, c) : lop_promote(n->dtype, c);
        n->weak = LOP_STRONG;
    } else if (n->weak) {
        n->weak = (uint8_t)(weak > n->weak ? weak : n->weak);
        n->dtype = n->weak == LOP_WEAK_COMPLEX ? LOP_c128 : LOP_f64;
    } else {
        n->dtype = lop_promote_weak(weak, n->dtype);
    }
}

lop_status lop_node_make(lop_ctx *ctx, const lop_op *op, const lop_attr *attr, int n,
                         const lop_node *const *child, const lop_node *like, const lop_node **out,
                         lop_err *err) {
    *out = NULL;
    if (n < op->min || (op->max >= 0 && n > op->max))
        return lop_fail(err, LOP_DIM, "%s takes %d to %d operands, got %d", op->name, op->min,
                        op->max, n);
    if (like && op->cls == LOP_OPERATOR && (like->core != 2 || like->shape.ndim < 2))
        return lop_fail(err, LOP_DIM, "%s is an operator: it has two dimensions of its own",
                        op->name);
    if (!roles_fit(op, n, child))
        return lop_fail(err, LOP_DIM, "%s mixes up operators and arrays", op->name);
    lop_node *self = lop_alloc(ctx, sizeof *self + (size_t)n * sizeof self->child[0]);
    if (!self) return lop_fail(err, LOP_NOMEM, NULL);
    self->ctx = ctx;
    self->op = op;
    self->refs = 1;
    self->serial = 0;
    self->opaque = false;
    self->declared = false;
    self->weak = LOP_STRONG;
    self->core = 2;
    self->n = n;
    if (attr)
        self->attr = *attr;
    else
        memset(&self->attr, 0, sizeof self->attr);
    if (like) {
        self->shape = like->shape;
        self->dtype = like->dtype;
        self->weak = like->weak;
        self->core = like->core;
        self->serial = like->serial;
        self->opaque = like->opaque;
    } else {
        self->shape.ndim = 0; /* infer finds it, or says that there is none */
        self->dtype = LOP_f64;
    }
    for (int i = 0; i < n; i++) {
        self->child[i] = lop_node_ref(child[i]);
        self->opaque |= child[i]->opaque;
        self->declared |= child[i]->declared;
    }
    lop_status st = op->infer ? op->infer(self, err) : LOP_OK;
    if (st != LOP_OK) {
        self->serial = 0;
        lop_node_unref(self);
        return st;
    }
    *out = self;
    return LOP_OK;
}

lop_status lop_node_leaf(lop_ctx *ctx, lop_dtype dt, int core, const lop_shape *shape,
                         const lop_node **out, lop_err *err) {
    lop_node like = {
        .shape = *shape, .dtype = dt, .core = (uint8_t)core, .serial = ctx->next_serial++};
    like.opaque = dt >= LOP_NDTYPE;
    return lop_node_make(ctx, &lop_op_array, NULL, 0, NULL, &like, out, err);
}

const lop_node *lop_node_ref(const lop_node *node) {
    if (node) ((lop_node *)(uintptr_t)node)->refs++;
    return node;
}

void lop_node_unref(const lop_node *node) {
    if (!node || --((lop_node *)(uintptr_t)node)->refs > 0) return;
    lop_node *dead = (lop_node *)(uintptr_t)node, *next = NULL;
    for (;;) {
        for (int i = 0; i < dead->n; i++) {
            lop_node *child = (lop_node *)(uintptr_t)dead->child[i];
            if (--child->refs > 0) continue;
            child->serial = (uint64_t)(uintptr_t)next;
            next = child;
        }
        lop_free(dead->ctx, dead);
        if (!next) return;
        dead = next;
        next = (lop_node *)(uintptr_t)dead->serial;
    }
}

lop_truth lop_node_trait(const lop_node *node, lop_trait trait) {
    if (trait == LOP_REAL) return lop_is_complex(node->dtype) ? LOP_UNKNOWN : LOP_TRUE;
    if (!node->op->trait) return LOP_UNKNOWN;
    return node->op->trait(node, trait);
}
