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

/* Operators to look at, and those that were, by address: of those whose places collide the later
 * one counts. */
enum { DEEP = 256, LOOKED_AT = 256 };
typedef struct walk {
    PyObject **stack, **table, *few[DEEP], *places[LOOKED_AT];
    size_t top, room, mask;
} walk;

static bool looked_at(walk *w, PyObject *o) {
    PyObject **place = &w->table[((uintptr_t)o >> 5) & w->mask];
    const bool known = *place == o;
    *place = o;
    return known;
}

/* A table for so many operators; false: no memory. */
static bool open_table(walk *w, size_t n) {
    size_t room = LOOKED_AT;
    while (room < 2 * n) room *= 2;
    w->table = w->places;
    w->mask = room - 1;
    if (room == LOOKED_AT)
        memset(w->places, 0, sizeof w->places);
    else
        w->table = PyMem_Calloc(room, sizeof *w->table);
    return w->table != NULL;
}

/* Room for n more on the stack; false: no memory. */
static bool make_way(walk *w, size_t n) {
    if (n <= w->room - w->top) return true;
    const bool own = w->stack != w->few;
    size_t room = w->room;
    while (room - w->top < n) room *= 2;
    PyObject **more = PyMem_Realloc(own ? w->stack : NULL, room * sizeof *more);
    if (!more) return false;
    if (!own) memcpy(more, w->few, w->top * sizeof *more);
    w->stack = more;
    w->room = room;
    return true;
}

/* Its arrays that are in the signature: how many of them were not found before. */
static int take_arrays(const py_op *o, const lop_sign *sign, PyObject **array) {
    int found = 0;
    for (Py_ssize_t i = 0; o->arrays && i < PyTuple_GET_SIZE(o->arrays); i++) {
        const int k = lop_sign_leaf(sign, o->serial + (uint64_t)i);
        if (k < 0 || array[k]) continue;
        array[k] = PyTuple_GET_ITEM(o->arrays, i);
        found++;
    }
    return found;
}

/* A walk over the operators that ends when all are found; from some steps on it does not go where
 * it has been. No operator is without words in the signature, but for some that close at once. */
bool py_find_arrays(py_op *self, const lop_sign *sign, PyObject **array) {
    enum { LOOKED = 4096, FEW = 24 };
    walk w;
    int missing = sign->leaves;
    const int most = LOOKED + 4 * sign->n;
    memset(array, 0, (size_t)sign->leaves * sizeof *array);
    w.stack = w.few;
    w.table = NULL;
    w.room = DEEP;
    w.top = 1;
    w.stack[0] = (PyObject *)self;
    for (int looked = 0; w.top > 0 && missing > 0 && looked < most; looked++) {
        py_op *o = (py_op *)w.stack[--w.top];
        if (looked == FEW && !open_table(&w, (size_t)sign->n)) break;
        if (looked >= FEW && looked_at(&w, (PyObject *)o)) continue;
        missing -= take_arrays(o, sign, array);
        Py_ssize_t n = o->init ? PyTuple_GET_SIZE(o->init) : 0;
        if (!make_way(&w, (size_t)n + 2)) break;
        if (o->b && py_is_op(o->s, o->b)) w.stack[w.top++] = o->b;
        if (o->a && py_is_op(o->s, o->a)) w.stack[w.top++] = o->a;
        for (Py_ssize_t i = 0; i < n; i++)
            if (py_is_op(o->s, PyTuple_GET_ITEM(o->init, i)))
                w.stack[w.top++] = PyTuple_GET_ITEM(o->init, i);
    }
    if (w.stack != w.few) PyMem_Free(w.stack);
    if (w.table && w.table != w.places) PyMem_Free(w.table);
    return missing == 0;
}

/* What is asked for and of which expression; false: too large to be looked up. */
static bool sign(const lop_node *node, const py_plan *want, lop_sign *g) {
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
    PyObject *few[LOP_SIGN_FEW], **array = py_room_for(few, g->leaves), *leaves = NULL;
    *at = -1;
    if (array && py_find_arrays(self, g, array)) leaves = PyTuple_New(p->nleaf);
    for (int i = 0; leaves && i < p->nleaf; i++) {
        const int k = lop_sign_leaf(g, p->leaf[i].serial);
        const bool x = rhs && p->leaf[i].serial == rhs;
        if (x)
            *at = i;
        else if (k < 0)
            Py_CLEAR(leaves);
        if (leaves) PyTuple_SET_ITEM(leaves, i, Py_NewRef(x ? Py_None : array[k]));
    }
    if (array != few) PyMem_Free(array);
    return leaves;
}

/* The keys of a plan for the leaves of these numbers in `g`, and its numbers: bytes (new), None
 * where it has none; NULL with an exception. */
static PyObject *keys_for(const lop_plan *p, const lop_sign *g, const int *number) {
    const int nkeys = lop_plan_nkeys(p), numbers = p->coefs ? p->coefs->entries : 0;
    const size_t bytes = (size_t)nkeys * 8 + (size_t)numbers * sizeof *g->value;
    uint64_t few[LOP_SIGN_FEW], *serial = few;
    if (!bytes) return Py_NewRef(Py_None);
    PyObject *keys = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (!keys) return NULL;
    uint64_t *key = (uint64_t *)(void *)PyBytes_AS_STRING(keys);
    if (numbers) memcpy(key + nkeys, g->value, (size_t)numbers * sizeof *g->value);
    if (!nkeys) return keys;
    if (p->nleaf > LOP_SIGN_FEW) serial = PyMem_Malloc((size_t)p->nleaf * sizeof *serial);
    for (int i = 0; serial && i < p->nleaf; i++)
        serial[i] = number[i] < 0 ? 0 : g->serial[number[i]];
    if (!serial || lop_plan_keys(p, serial, numbers ? g->value : NULL, key) != LOP_OK) {
        Py_CLEAR(keys);
        PyErr_NoMemory();
    }
    if (serial != few) PyMem_Free(serial);
    return keys;
}

/* Fills `want` with this plan, whose leaves have these numbers in `g`: 1, or -1 with an exception.
 * `array`: found, borrowed. */
static int take_shared(py_plan *want, lop_plan *p, const lop_sign *g, const int *number,
                       PyObject *const *array) {
    PyObject *leaves = PyTuple_New(p->nleaf), *keys = leaves ? keys_for(p, g, number) : NULL;
    if (!keys) {
        Py_XDECREF(leaves);
        return -1;
    }
    want->rhs = -1;
    for (int i = 0; i < p->nleaf; i++) {
        const int k = number[i];
        if (k < 0) want->rhs = i;
        PyTuple_SET_ITEM(leaves, i, Py_NewRef(k < 0 ? Py_None : array[k]));
    }
    want->plan = p;
    p->refs++;
    want->leaves = leaves;
    want->keys = keys == Py_None ? NULL : keys;
    if (keys == Py_None) Py_DECREF(keys);
    return 1;
}

/* Fills `want` from a plan of the same structure: 1 done, 0 there is none, -1 exception. */
static int from_shared(py_state *s, py_op *self, py_plan *want, lop_sign *g) {
    const lop_shared *known = lop_plans_get(&s->plans, g);
    if (!known) return 0;
    PyObject *few[LOP_SIGN_FEW], **array = py_room_for(few, g->leaves);
    int own[LOP_SIGN_FEW], *number = own, rc = 0;
    lop_plan *p = known->plan;
    if (p->nleaf > LOP_SIGN_FEW) number = PyMem_Malloc((size_t)p->nleaf * sizeof *number);
    if (array && number && py_find_arrays(self, g, array)) {
        if (p->nleaf) memcpy(number, known->number, (size_t)p->nleaf * sizeof *number);
        p->refs++; /* an allocation may run anything, and the plan be dropped from the table */
        rc = take_shared(want, p, g, number, array);
        lop_plan_unref(p);
    }
    if (array != few) PyMem_Free(array);
    if (number != own) PyMem_Free(number);
    return rc;
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

/* As a new plan, by the signature `g` where it is known. 0, or -1 with an exception. */
static int fresh_plan(py_state *s, py_op *self, py_plan *want, const lop_shape *x,
                      const lop_node *node, const lop_sign *g, bool known) {
    lop_err err;
    lop_err_open(&err);
    const lop_node *root = NULL;
    uint64_t rhs;
    lop_status st = py_action(s, node, want, x, &rhs, &root, &err);
    if (st == LOP_OK && known)
        st = lop_plans_make(&s->plans, g, s->rules, &s->options, root, &want->plan, &err);
    else if (st == LOP_OK)
        st = lop_plan_make(&s->ctx, s->rules, &s->options, root, &want->plan, &err);
    lop_node_unref(root);
    if (st != LOP_OK) {
        py_raise(s, st, &err, (PyObject *)self, want->act >= ACT_DENSE ? "compute" : "apply");
        return -1;
    }
    want->leaves = known ? leaves_found(self, g, want->plan, rhs, &want->rhs) : NULL;
    if (!want->leaves && !PyErr_Occurred())
        want->leaves = leaves_of(s, self, want->plan, rhs, &want->rhs);
    if (!want->leaves) {
        entry_clear(want);
        return -1;
    }
    if (known) lop_plans_put(&s->plans, g, want->plan);
    return 0;
}

static py_plan *make_plan(py_state *s, py_op *self, py_plan *want, const lop_shape *x) {
    const lop_node *node = py_node(s, self);
    lop_sign g;
    if (!node) return NULL;
    lop_sign_open(&g, &s->ctx);
    const bool known = sign(node, want, &g);
    int found = known ? from_shared(s, self, want, &g) : 0;
    if (found == 0) found = fresh_plan(s, self, want, x, node, &g, known);
    lop_sign_close(&g);
    if (found < 0) return NULL;
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
