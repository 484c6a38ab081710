/* py_plans.c: plans and the arrays they are run on.
 *
 * A plan is kept with the operator per action, dtype and shape of x; the leaves' arrays with it, so
 * that a call reads only their pointers, strides, shapes and dtypes anew. An operator built anew
 * finds the plan of one built the same way (plan/plan_cache.h), and only looks up its arrays. */
#include "py/module/py.h"

#include "rewrite/assumptions.h"

/* -- leaves */

/* A walk with a stack. */
int py_collect(py_op *self, PyObject *found) {
    PyObject *seen = PySet_New(NULL), *stack = PyList_New(0);
    int rc = seen && stack ? PyList_Append(stack, (PyObject *)self) : -1;
    while (rc == 0 && PyList_GET_SIZE(stack) > 0) {
        Py_ssize_t top = PyList_GET_SIZE(stack) - 1;
        PyObject *o = Py_NewRef(PyList_GET_ITEM(stack, top));
        rc = PyList_SetSlice(stack, top, top + 1, NULL);
        PyObject *id = PyLong_FromVoidPtr(o);
        int known = id ? PySet_Contains(seen, id) : -1;
        if (known == 0)
            known = PySet_Add(seen, id);
        else if (known == 1)
            known = 2;
        Py_XDECREF(id);
        py_op *op = (py_op *)o;
        if (known < 0) rc = -1;
        for (Py_ssize_t i = 0;
             rc == 0 && known == 0 && op->arrays && i < PyTuple_GET_SIZE(op->arrays); i++) {
            PyObject *key = PyLong_FromUnsignedLongLong(op->serial + (uint64_t)i);
            rc = key ? PyDict_SetItem(found, key, PyTuple_GET_ITEM(op->arrays, i)) : -1;
            Py_XDECREF(key);
        }
        PyObject *two[2] = {op->a, op->b};
        for (int i = 0; rc == 0 && known == 0 && i < 2; i++)
            if (two[i] && PyObject_TypeCheck(two[i], py_state_of(o)->base))
                rc = PyList_Append(stack, two[i]);
        for (Py_ssize_t i = 0; rc == 0 && known == 0 && op->init && i < PyTuple_GET_SIZE(op->init);
             i++) {
            PyObject *arg = PyTuple_GET_ITEM(op->init, i);
            if (PyObject_TypeCheck(arg, py_state_of(o)->base)) rc = PyList_Append(stack, arg);
        }
        Py_DECREF(o);
    }
    Py_XDECREF(seen);
    Py_XDECREF(stack);
    return rc;
}

static PyObject *leaves_of(py_state *s, py_op *self, const lop_plan *plan, uint64_t rhs, int *at) {
    PyObject *found = PyDict_New(), *leaves = PyTuple_New(plan->nleaf);
    *at = -1;
    if (!found || !leaves || py_collect(self, found) < 0) goto fail;
    for (int i = 0; i < plan->nleaf; i++) {
        if (rhs && plan->leaf[i].serial == rhs) {
            *at = i;
            PyTuple_SET_ITEM(leaves, i, Py_NewRef(Py_None));
            continue;
        }
        PyObject *key = PyLong_FromUnsignedLongLong(plan->leaf[i].serial);
        PyObject *array = key ? PyDict_GetItemWithError(found, key) : NULL;
        Py_XDECREF(key);
        if (!array) {
            if (!PyErr_Occurred()) py_raise(s, LOP_INTERNAL, NULL, (PyObject *)self, "bind");
            goto fail;
        }
        PyTuple_SET_ITEM(leaves, i, Py_NewRef(array));
    }
    Py_DECREF(found);
    return leaves;
fail:
    Py_XDECREF(found);
    Py_XDECREF(leaves);
    return NULL;
}

/* -- plans kept with the operator */

static void entry_clear(py_plan *e) {
    lop_plan_unref(e->plan);
    Py_CLEAR(e->leaves);
    Py_CLEAR(e->keys);
    e->plan = NULL;
}

void py_cache_clear(py_state *s, py_op *self) {
    py_plan *cache = self->cache;
    int n = self->ncache;
    if (!cache) return;
    self->cache = NULL;
    self->ncache = 0;
    for (int i = 0; i < n; i++) entry_clear(&cache[i]);
    lop_free(&s->ctx, cache);
}

static bool entry_fits(const py_plan *e, const py_plan *want) {
    if (!e->plan || e->act != want->act || e->dt != want->dt || e->nd != want->nd ||
        e->i != want->i || e->j != want->j || e->version != want->version)
        return false;
    for (int i = 0; i < want->nd; i++)
        if (e->dim[i] != want->dim[i]) return false;
    return true;
}

/* Takes the entry over as the most recent one; of more than PY_CACHE the last goes. */
static py_plan *keep(py_state *s, py_op *self, py_plan *e) {
    int n = self->ncache, room = n == 0 ? 1 : n == 1 ? PY_CACHE : 0;
    py_plan *more = room ? lop_realloc(&s->ctx, self->cache, (size_t)room * sizeof *more) : NULL;
    if (room && !more) {
        entry_clear(e);
        PyErr_NoMemory();
        return NULL;
    }
    if (more) self->cache = more;
    if (n == PY_CACHE) entry_clear(&self->cache[--n]);
    memmove(self->cache + 1, self->cache, (size_t)n * sizeof *e);
    self->ncache = n + 1;
    self->cache[0] = *e;
    return &self->cache[0];
}

/* -- plans by structure */

/* Operators that were looked at, by address: of those whose places collide the later one counts. */
enum { LOOKED_AT = 256 };
static bool looked_at(PyObject **table, PyObject *o) {
    PyObject **place = &table[((uintptr_t)o >> 5) % LOOKED_AT];
    const bool known = *place == o;
    *place = o;
    return known;
}

/* A walk over the operators that ends when all are found; from some steps on it does not go where
 * it has been. */
bool py_find_arrays(py_op *self, const lop_sign *sign, PyObject **array) {
    enum { DEEP = 256, LOOKED = 4096, FEW = 24 };
    PyObject *stack[DEEP], *table[LOOKED_AT];
    int top = 0, missing = sign->leaves;
    memset(array, 0, (size_t)sign->leaves * sizeof *array);
    stack[top++] = (PyObject *)self;
    for (int looked = 0; top > 0 && missing > 0 && looked < LOOKED; looked++) {
        py_op *o = (py_op *)stack[--top];
        if (looked == FEW) memset(table, 0, sizeof table);
        if (looked >= FEW && looked_at(table, (PyObject *)o)) continue;
        for (Py_ssize_t i = 0; o->arrays && i < PyTuple_GET_SIZE(o->arrays); i++)
            for (int k = 0; k < sign->leaves; k++)
                if (sign->serial[k] == o->serial + (uint64_t)i && !array[k]) {
                    array[k] = PyTuple_GET_ITEM(o->arrays, i);
                    missing--;
                }
        Py_ssize_t n = o->init ? PyTuple_GET_SIZE(o->init) : 0;
        if (top + 2 + n > DEEP) return false;
        if (o->b && py_is_op(o->s, o->b)) stack[top++] = o->b;
        if (o->a && py_is_op(o->s, o->a)) stack[top++] = o->a;
        for (Py_ssize_t i = 0; i < n; i++)
            if (py_is_op(o->s, PyTuple_GET_ITEM(o->init, i)))
                stack[top++] = PyTuple_GET_ITEM(o->init, i);
    }
    return missing == 0;
}

/* What is asked for and of which expression; false: too large to be looked up. */
static bool sign(const lop_node *node, const py_plan *want, lop_sign *g) {
    lop_sign_open(g);
    const lop_node *a = node->op == &lop_op_results ? node : NULL;
    bool floats = a || lop_is_blas(node->dtype);
    for (; floats && a; a = lop_results_before(a)) floats = lop_is_blas(a->child[0]->dtype);
    g->by_class = floats && (!want->nd || lop_is_blas((lop_dtype)want->dt));
    bool fits = lop_sign_word(g, (uint64_t)want->act | (uint64_t)want->dt << 8 |
                                     (uint64_t)want->nd << 16) &&
                lop_sign_word(g, (uint64_t)want->i) && lop_sign_word(g, (uint64_t)want->j) &&
                lop_sign_word(g, (uint64_t)want->version);
    for (int i = 0; i < want->nd; i++) fits = fits && lop_sign_word(g, (uint64_t)want->dim[i]);
    return fits && lop_sign_node(g, node);
}

/* The arrays of the plan just made for `self`, whose signature is `g`: new; NULL without an
 * exception: not all are found in a bounded walk. */
static PyObject *leaves_found(py_op *self, const lop_sign *g, const lop_plan *p, uint64_t rhs,
                              int *at) {
    PyObject *array[LOP_SIGN_LEAVES];
    *at = -1;
    if (!py_find_arrays(self, g, array)) return NULL;
    PyObject *leaves = PyTuple_New(p->nleaf);
    for (int i = 0; leaves && i < p->nleaf; i++) {
        int k = 0;
        while (k < g->leaves && g->serial[k] != p->leaf[i].serial) k++;
        bool x = rhs && p->leaf[i].serial == rhs;
        if (x)
            *at = i;
        else if (k == g->leaves)
            Py_CLEAR(leaves);
        if (leaves) PyTuple_SET_ITEM(leaves, i, Py_NewRef(x ? Py_None : array[k]));
    }
    return leaves;
}

/* Fills `want` from a plan of the same structure: 1 done, 0 there is none, -1 exception. */
static int from_shared(py_state *s, py_op *self, py_plan *want, const lop_sign *g) {
    PyObject *array[LOP_SIGN_LEAVES];
    uint64_t serial[LOP_SIGN_LEAVES + 1];
    lop_number value[LOP_ENTRIES];
    const lop_shared *known = lop_plans_get(&s->plans, g, value);
    if (!known || !py_find_arrays(self, g, array)) return 0;
    const lop_plan *p = known->plan;
    PyObject *leaves = PyTuple_New(p->nleaf);
    const int nkeys = lop_plan_nkeys(p), numbers = p->coefs ? p->coefs->entries : 0;
    const size_t bytes = (size_t)nkeys * 8 + (size_t)numbers * sizeof *value;
    PyObject *keys = bytes ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes) : NULL;
    if (!leaves || (bytes && !keys)) goto fail;
    want->rhs = -1;
    for (int i = 0; i < p->nleaf; i++) {
        int k = known->number[i];
        if (k < 0) want->rhs = i;
        serial[i] = k < 0 ? 0 : g->serial[k];
        PyTuple_SET_ITEM(leaves, i, Py_NewRef(k < 0 ? Py_None : array[k]));
    }
    uint64_t *key = keys ? (uint64_t *)(void *)PyBytes_AS_STRING(keys) : NULL;
    if (numbers) memcpy(key + nkeys, value, (size_t)numbers * sizeof *value);
    if (nkeys && lop_plan_keys(p, serial, numbers ? value : NULL, key) != LOP_OK) goto fail;
    want->plan = known->plan;
    want->plan->refs++;
    want->leaves = leaves;
    want->keys = keys;
    return 1;
fail:
    Py_XDECREF(leaves);
    Py_XDECREF(keys);
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return -1;
}

/* The action as a node over self's node: owned. The right-hand side's serial in *rhs. */
static lop_status action(py_state *s, const lop_node *node, const py_plan *want, const lop_shape *x,
                         uint64_t *rhs, const lop_node **out, lop_err *err) {
    lop_status st = LOP_OK;
    *rhs = 0;
    if (want->act == ACT_FACTOR) return py_factor_node(node, want->i, out, err);
    if (want->act >= ACT_DENSE) {
        static const lop_op *const ops[] = {&lop_op_todense, &lop_op_diagonal, &lop_op_trace,
                                            &lop_op_element, &lop_op_scaledet};
        lop_attr a = {.i = {want->i, want->j, 0, (int64_t)node->dtype + 1}};
        return lop_node_make(&s->ctx, ops[want->act - ACT_DENSE], &a, 1, &node, NULL, out, err);
    }
    const lop_node *leaf = NULL, *seen = NULL;
    int mode = (want->act & 3) ^ (want->act & 4 ? LOP_T : 0);
    lop_attr a = {.i = {mode, 0, 0, 0}};
    st = lop_node_leaf(&s->ctx, (lop_dtype)want->dt, 2, x, &leaf, err);
    if (st == LOP_OK && mode)
        st = lop_node_make(&s->ctx, &lop_op_view, &a, 1, &node, NULL, &seen, err);
    if (st == LOP_OK && !mode) seen = lop_node_ref(node);
    if (st == LOP_OK) {
        const lop_node *child[2] = {seen, leaf};
        st = lop_node_make(&s->ctx, &lop_op_apply, NULL, 2, child, NULL, out, err);
        *rhs = leaf->serial;
    }
    lop_node_unref(leaf);
    lop_node_unref(seen);
    return st;
}

lop_status py_action(py_state *s, const lop_node *node, const py_plan *want, const lop_shape *x,
                     uint64_t *rhs, const lop_node **out, lop_err *err) {
    if (s->ctx.check != LOP_CHECK_FULL) return action(s, node, want, x, rhs, out, err);
    const lop_node *tested;
    lop_status st = lop_assumptions_tested(node, &tested, err);
    if (st != LOP_OK) return st;
    st = action(s, tested, want, x, rhs, out, err);
    lop_node_unref(tested);
    return st;
}

/* What a run takes beside its operands, and the result where that is `given`. */
static int64_t bytes_of(const lop_plan *plan, bool given) {
    return lop_plan_memory(plan) - (given ? lop_plan_result(plan) : 0);
}

static bool passes(py_state *s, const lop_plan *plan, bool given) {
    return s->ctx.memory_limit < INT64_MAX && bytes_of(plan, given) > s->ctx.memory_limit;
}

static int refuse(py_state *s, py_op *self, const lop_plan *plan, bool given) {
    const int64_t result = given ? 0 : lop_plan_result(plan), kept = lop_plan_kept(plan);
    PyObject *sizes =
        Py_BuildValue("LLL", (long long)bytes_of(plan, given), (long long)result, (long long)kept);
    PyObject *args[2] = {(PyObject *)self, sizes};
    PyObject *r = sizes ? py_call_hook(s, "passes_limit", args, 2) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

/* A word about so many bytes of a dense form. */
static int announce(py_state *s, py_op *self, const lop_plan *plan, const py_plan *want,
                    int64_t bytes, bool asked) {
    if (bytes < (1 << 16) && (want->act != ACT_FACTOR || bytes == 0)) return 0; /* not worth it */
    PyObject *all = Py_BuildValue("LOdiL", (long long)bytes, asked ? Py_True : Py_False,
                                  plan->seconds, want->act, (long long)lop_plan_memory(plan));
    PyObject *args[6] = {(PyObject *)self}, *r = NULL;
    for (int i = 0; all && i < 5; i++) args[i + 1] = PyTuple_GET_ITEM(all, i);
    if (all) r = py_call_hook(s, "materialising", args, 6);
    Py_XDECREF(all);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

/* A word about a plan that takes long, less what it finds from a call before. */
static int announce_slow(py_state *s, py_op *self, const lop_plan *plan, PyObject *keys, int act) {
    const uint64_t *key =
        keys ? (const uint64_t *)(const void *)PyBytes_AS_STRING(keys) : plan->key;
    uint64_t there = 0;
    for (int i = 0; i < plan->nderive && i < LOP_KEEP; i++) {
        lop_blob *b = lop_store_get(&s->store, key[i]);
        if (b) there |= (uint64_t)1 << i;
        lop_blob_unref(&s->ctx, b);
    }
    PyObject *all = Py_BuildValue("OdLi", (PyObject *)self, lop_plan_seconds_left(plan, there),
                                  (long long)lop_plan_memory(plan), act);
    PyObject *r = all ? py_call_hook(s, "slow", &PyTuple_GET_ITEM(all, 0), 4) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

/* The result, where it is the dense form; what is made on the way, if that is much more. */
static int announce_all(py_state *s, py_op *self, const lop_plan *plan, const py_plan *want) {
    if (want->act == ACT_FACTOR)
        return announce(s, self, plan, want, py_factor_bytes(py_node(s, self)), false);
    if (want->act == ACT_DENSE && announce(s, self, plan, want, lop_plan_result(plan), true) < 0)
        return -1;
    const bool much = want->act != ACT_DENSE || plan->dense / 2 > lop_plan_result(plan);
    return much ? announce(s, self, plan, want, plan->dense, false) : 0;
}

/* -- operators too large for a signature: the plans of what is written as views, inverses and
 * multiples of A stay with A, so that solve(A, b), A.T @ b and y @ inv(A), which build these anew
 * at each call, find them */

enum { LENT = 64 /* times the steps, added to `act` */, STEP = 8, STEPS = 4 };
enum { INVERTED = 4, TIMES_FLOAT = 5, TIMES_INT = 6 }; /* 1 to 3: a view's mode */

/* From self to the operator that it is a view, an inverse or a multiple of; 0: it is none. The
 * multiple's bits in *number. */
static int step_of(const py_state *s, const py_op *self, int64_t *number) {
    const py_op *a = (py_op *)self->a;
    if (!self->by || !a || !py_is_op(s, self->a) || !a->node || a->shape || a->dtype) return 0;
    if (self->by == &lop_op_inverse) return INVERTED;
    if (self->by == &lop_op_view) return self->mode;
    if (self->by != &lop_op_scaled || !self->b) return 0;
    if (PyFloat_CheckExact(self->b)) {
        const double v = PyFloat_AS_DOUBLE(self->b);
        memcpy(number, &v, sizeof v);
        return TIMES_FLOAT;
    }
    int over = 0;
    if (PyLong_CheckExact(self->b)) *number = PyLong_AsLongLongAndOverflow(self->b, &over);
    return PyLong_CheckExact(self->b) && !over ? TIMES_INT : 0;
}

/* Where self's plans are kept beside its own, and what `want` is called there; NULL: nowhere. */
static py_op *lender_of(const py_state *s, py_op *self, const py_plan *want, py_plan *lent) {
    int word = 0;
    *lent = *want;
    for (int i = 0; i < STEPS; i++) {
        int64_t number = 0;
        const int step = step_of(s, self, &number);
        if (step == 0) break;
        if (step >= TIMES_FLOAT) {
            if (lent->j != 0) return NULL; /* an element's column, or another multiple's number */
            lent->j = number;
        }
        word = word * STEP + step;
        self = (py_op *)self->a;
    }
    lent->act += LENT * word;
    return word ? self : NULL;
}

static bool borrow(const py_op *from, const py_plan *lent, py_plan *want) {
    for (int i = 0; i < from->ncache; i++) {
        const py_plan *e = &from->cache[i];
        if (!entry_fits(e, lent)) continue;
        const int act = want->act;
        const int64_t j = want->j;
        *want = *e;
        want->act = act;
        want->j = j;
        want->plan->refs++;
        Py_XINCREF(want->leaves);
        Py_XINCREF(want->keys);
        return true;
    }
    return false;
}

/* As the last entry, which keeps the first where the direct road looks; where there is no memory
 * for it, none. */
static void lend(py_state *s, py_op *to, const py_plan *lent, const py_plan *e) {
    const int n = to->ncache, room = n == 0 ? 1 : n == 1 ? PY_CACHE : 0;
    py_plan *more = room ? lop_realloc(&s->ctx, to->cache, (size_t)room * sizeof *more) : NULL;
    if (room && !more) return;
    if (more) to->cache = more;
    if (n == PY_CACHE)
        entry_clear(&to->cache[n - 1]);
    else
        to->ncache = n + 1;
    py_plan *own = &to->cache[to->ncache - 1];
    *own = *e;
    own->act = lent->act;
    own->j = lent->j;
    own->plan->refs++;
    Py_XINCREF(own->leaves);
    Py_XINCREF(own->keys);
}

static py_plan *make_plan(py_state *s, py_op *self, py_plan *want, const lop_shape *x) {
    lop_err err;
    lop_err_open(&err);
    const lop_node *node = py_node(s, self), *root = NULL;
    uint64_t rhs;
    lop_sign g;
    if (!node) return NULL;
    bool known = sign(node, want, &g);
    int found = known ? from_shared(s, self, want, &g) : 0;
    if (found < 0) return NULL;
    py_plan lent;
    py_op *lender = known ? NULL : lender_of(s, self, want, &lent);
    if (found || (lender && borrow(lender, &lent, want))) goto done;
    lop_status st = py_action(s, node, want, x, &rhs, &root, &err);
    if (st == LOP_OK && known)
        st = lop_plans_make(&s->plans, &g, s->rules, &s->options, root, &want->plan, &err);
    else if (st == LOP_OK)
        st = lop_plan_make(&s->ctx, s->rules, &s->options, root, &want->plan, &err);
    lop_node_unref(root);
    if (st != LOP_OK) {
        py_raise(s, st, &err, (PyObject *)self, want->act >= ACT_DENSE ? "compute" : "apply");
        return NULL;
    }
    want->leaves = known ? leaves_found(self, &g, want->plan, rhs, &want->rhs) : NULL;
    if (!want->leaves && !PyErr_Occurred())
        want->leaves = leaves_of(s, self, want->plan, rhs, &want->rhs);
    if (!want->leaves) {
        entry_clear(want);
        return NULL;
    }
    if (known) lop_plans_put(&s->plans, &g, want->plan);
    if (lender) lend(s, lender, &lent, want);
done:
    want->direct = py_is_direct(want->plan) && !(want->keys && want->plan->coefs);
    return keep(s, self, want);
}

py_plan *py_plan_of(py_state *s, py_op *self, py_plan *want, const lop_shape *x) {
    py_config_here(s);
    want->version = s->options_version;
    for (int i = 0; i < self->ncache; i++) {
        if (!entry_fits(&self->cache[i], want)) continue;
        if (i) {
            py_plan hit = self->cache[i];
            memmove(self->cache + 1, self->cache, (size_t)i * sizeof hit);
            self->cache[0] = hit;
        }
        return &self->cache[0];
    }
    return make_plan(s, self, want, x);
}

/* Borrowed: the plan, after a word about dense forms on its way and a look at the memory limit. */
py_plan *py_find_plan(py_state *s, py_op *self, py_plan *want, const lop_shape *x, bool given) {
    py_plan *e = py_plan_of(s, self, want, x);
    const bool whole = want->act == ACT_DENSE || want->act == ACT_FACTOR;
    const bool slow = e && e->plan->seconds > PY_SLOW;
    if (!e || (!whole && !slow && !e->plan->dense && !passes(s, e->plan, given))) return e;
    lop_plan *plan = e->plan;
    PyObject *keys = Py_XNewRef(e->keys);
    plan->refs++; /* the hook may run anything, also this operator */
    int rc = announce_all(s, self, plan, want);
    if (rc == 0 && passes(s, plan, given)) rc = refuse(s, self, plan, given);
    if (rc == 0 && slow) rc = announce_slow(s, self, plan, keys, want->act);
    Py_XDECREF(keys);
    lop_plan_unref(plan);
    return rc < 0 ? NULL : py_plan_of(s, self, want, x);
}

PyObject *py_in_blocks(PyObject *self, PyObject *offset) {
    PyObject *args[3] = {self, offset, NULL};
    return py_instead(py_state_of(self), "in_blocks", args, 3);
}
