/* py.h: what the files of this folder share: the module's state, the operator object, the few calls
 * between them. The only folder with Python.h; NumPy's API comes in through py_numpy.h.
 *
 * Ownership: Python's words (new, borrowed) for objects, the core's (owned, borrowed) for nodes.
 * Nodes, plans and the store are touched under the GIL only. */
#ifndef LOP_PY_H
#define LOP_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "py_numpy.h"

#include "exec/exec.h"
#include "plan/plan_cache.h"
#include "expr/sexpr.h"
#include "ops/shared/sparse_solver.h"

#define PY_SLOW 0.01 /* estimated seconds from which Python is asked whether to warn */
enum { PY_MAXKINDS = 256, PY_CACHE = 6, PY_UFUNCS = 24, PY_MATRICES = 512 };
enum py_option {
    PY_FFT,
    PY_PROVENANCE,
    PY_OFF,
    PY_COSTS,
    PY_RECORD,
    PY_CHECK,
    PY_MIXED,
    PY_LIMIT,
    PY_CHECK_PLANS,
    PY_VERIFY,
    PY_OPTIONS
};

/* The fields of a Run (_iterative/krylov_run.py), by their names. */
#define PY_RUN(X)                                                                                  \
    X(name), X(op), X(M), X(b), X(x), X(maxiter), X(has_x0), X(rtol), X(atol), X(restart),         \
        X(shift), X(damp), X(conlim), X(strict), X(inner), X(flexible), X(callback), X(style),     \
        X(progress), X(bnorm), X(var), X(goals)
#define PY_RUN_ID(id) PY_RUN_##id
enum { PY_RUN(PY_RUN_ID), PY_RUN_FIELDS };

/* One block a module, counted: the module and each operator hold it, so that operators alive at the
 * end of the interpreter still find the core they belong to. */
typedef struct py_state {
    int64_t refs;
    PyObject *dead, *dead_lazy; /* operators, LazyArrays waiting to be freed */
    bool freeing, freeing_lazy;
    lop_ctx ctx;
    lop_rules *rules;
    lop_store store;
    lop_plans plans;
    lop_options options;
    int64_t options_version;         /* of the options; plans are kept for each */
    PyTypeObject *base;              /* the C base type */
    PyTypeObject *root;              /* LinearOperator, the Python class over it */
    PyTypeObject *type[PY_MAXKINDS]; /* by op id */
    PyTypeObject *view[4];           /* Transpose, Conj, Adjoint by mode */
    PyObject *hooks;                 /* dict: name -> Python function */
    PyTypeObject *immutable;         /* whose arrays nobody can write to; its `owner` says whose */
    PyObject *owner_name;
    PyTypeObject *lazy;         /* LazyArray, the Python class over py_lazy.c's */
    PyObject *ufunc[PY_UFUNCS]; /* NumPy's, by place in py_lazy_arith.c */
    PyObject *call[PY_UFUNCS];  /* (ufunc, {}), what a call node holds */
    PyObject *looked;           /* list: LazyArrays with forms for one evaluation; NULL: none */
    PyObject *recipes;          /* dict: of kinds of LazyArrays (py_lazy_recipes.c) */
    bool placed;                /* the line to remember is `code`, not the caller's */
    PyCodeObject *code;         /* owned; may be NULL */
    int lasti;
    PyObject *matmul;      /* np.matmul */
    PyObject *matvec_name; /* "_matvec", interned */
    PyObject *home;        /* bytes: the package's folder, whose frames are skipped */
    bool provenance;
    bool process_fft, process_provenance, process_mixed, process_check_plans; /* outside `with` */
    bool process_verify;
    int process_check;
    int64_t process_limit;
    PyObject *config, *option_name[PY_OPTIONS]; /* context variable; keys of its value */
    PyObject *run_field[PY_RUN_FIELDS];         /* their names, interned; NULL: not asked for yet */
    PyObject *process_off, *process_costs;      /* bytes, or NULL */
    PyObject *off, *costs; /* those in use, whose memory the rules and the context read */
    lop_costs own_costs;
    int64_t generation; /* of the rules: how often users' were changed */
    PyObject *record;   /* list: what is computed is written down there; NULL: it is not */
    bool verify;        /* results are compared with the expression as written */
    PyObject *tape;     /* list: what is computed in that thread is added to it (py_tape.c); NULL */
    unsigned long tape_thread;
    bool watched;       /* a record, a tape, or verify: the direct roads are left */
    int64_t locals;     /* contexts with options of their own; 0: `options` holds for all */
    lop_sparse sparse;  /* py_sparse_solver.c */
    int sparse_ready;   /* is SciPy there? 0: not asked yet, 1: no, 2: yes */
    int64_t nogil_work; /* bytes and flops from which the GIL is released */
    struct {
        PyObject *weak;       /* to an array that a Dense was made of lately */
        const lop_node *leaf; /* its leaf: another Dense of it is the same operand */
    } matrix[PY_MATRICES];    /* by its address */
} py_state;

/* A plan made for one action and one right-hand side's shape. */
typedef struct py_plan {
    int act; /* below */
    int64_t i, j;
    int dt, nd; /* of the right-hand side */
    npy_intp dim[LOP_MAXDIM];
    int64_t version;
    lop_plan *plan;
    PyObject
        *leaves; /* tuple: the arrays of the plan's leaves, NULL at the right-hand side's place */
    PyObject *keys; /* bytes: a uint64 for each derived value; NULL: those of the plan */
    int rhs;        /* index of the right-hand side's leaf; -1 none */
    bool direct;    /* may take the direct road */
} py_plan;

enum {
    ACT_APPLY = 0 /* + mode, + 4: from the right */,
    ACT_DENSE = 8,
    ACT_DIAGONAL,
    ACT_TRACE,
    ACT_ELEMENT,
    ACT_DET,
    ACT_FACTOR /* py_factor_of.c */
};

typedef struct py_op {
    PyObject_HEAD py_state *s; /* counted */
    const lop_node *node;      /* written node; NULL: a user's instance not looked at yet */
    PyObject *a, *b;           /* operands of composites and of closed results; b may be a number */
    const lop_op *by;          /* the operation a and b went through (closed results keep it too) */
    int mode;                  /* of `by`: view, part, power */
    PyObject *init;            /* tuple: constructor arguments of a leaf kind, else NULL */
    PyObject *arrays;          /* tuple: arrays behind the leaves serial, serial + 1, ... */
    PyObject *shape, *dtype;   /* set by the user, or cached for foreign dtypes */
    uint64_t serial;
    py_plan *cache; /* at most PY_CACHE, most recent first */
    int ncache;
    PyObject *dict, *weak;
    PyCodeObject *code; /* where it was built */
    int lasti;
} py_op;

static inline py_state *py_state_of(PyObject *self) { /* borrowed; self is an operator */
    return ((py_op *)self)->s;
}

/* py_module.c */
extern struct PyModuleDef py_module_def;
py_state *
py_state_of_type(PyTypeObject *type); /* borrowed; NULL with an exception: no type of ours */
void py_state_unref(py_state *s);
/* Borrowed item of a dict; NULL: none, or with an exception where looking failed. */
PyObject *py_item(PyObject *dict, const char *name);
/* New attribute; NULL: none, or with an exception where asking failed otherwise. */
PyObject *py_attribute(PyObject *o, const char *name);
/* An exception that says no more than "not of that kind" is cleared, true. What must come out
 * (MemoryError, KeyboardInterrupt and all that is no Exception) stays, false. */
bool py_not_so(void);
PyObject *py_hook(py_state *s, const char *name); /* borrowed; NULL with an exception */
PyObject *py_call_hook(py_state *s, const char *name, PyObject *const *args,
                       Py_ssize_t n); /* new */
/* What a hook has instead of the exception that is set, which it gets as the last of its arguments
 * (left empty by the caller): new. NULL where it answers None, with that exception set again. */
PyObject *py_instead(py_state *s, const char *name, PyObject **args, Py_ssize_t n);
/* Sets the exception for `status`; `op` (may be NULL) is the offending operator. Returns NULL. */
PyObject *py_raise(py_state *s, lop_status status, const lop_err *err, PyObject *op,
                   const char *action);

/* py_operator.c */
/* op[i, j] for a key of two ints inside, an array of no dimensions: new; NotImplemented for all
 * others. */
PyObject *py_entry(py_op *self, PyObject *key);
static inline bool py_is_op(const py_state *s, PyObject *o) {
    return PyObject_TypeCheck(o, s->base);
}
/* New operator over `node` (taken over); a, b borrowed, may be NULL. */
PyObject *py_wrap(py_state *s, const lop_node *node, const lop_op *by, int mode, PyObject *a,
                  PyObject *b);
/* Borrowed node, made now for user subclasses; NULL with an exception. */
const lop_node *py_node(py_state *s, py_op *self);
/* The user's line: a new reference (NULL: not kept) and an offset in it. */
void py_here(py_state *s, PyCodeObject **code, int *lasti);
static inline void py_stamp(py_state *s, py_op *self) { /* remembers it */
    py_here(s, &self->code, &self->lasti);
}
PyObject *py_origin(PyCodeObject *code, int lasti); /* (file, line) or None; new */
extern PyType_Slot py_base_slots[];
extern PyGetSetDef py_op_getset[]; /* py_operator_attributes.c */
int py_op_traverse(py_op *self, visitproc visit, void *arg);
int py_op_clear(py_op *self);
void py_op_dealloc(py_op *self);

/* py_expressions.c: op(a, b) as written, closed where a rule says so. New. */
PyObject *py_build(py_state *s, const lop_op *op, const lop_attr *attr, PyObject *a, PyObject *b);
PyObject *py_view(py_state *s, py_op *self, int mode);
PyObject *py_matmul(PyObject *a, PyObject *b);
PyObject *py_add(PyObject *a, PyObject *b);
PyObject *py_subtract(PyObject *a, PyObject *b);
PyObject *py_multiply(PyObject *a, PyObject *b);
PyObject *py_divide(PyObject *a, PyObject *b);
PyObject *py_negative(PyObject *a);
PyObject *py_positive(PyObject *a);
PyObject *py_power(PyObject *a, PyObject *p, PyObject *mod);
PyObject *py_inverse(py_state *s, py_op *self, bool once); /* once: for one solve */
PyObject *py_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
bool py_is_number(PyObject *o); /* of Python or NumPy, of no dimensions */
/* py_index.c: rows, columns, batch elements of `op`: `key` is a tuple of steps, each (axis, start,
 * step, count) or (axis, index). New. */
PyObject *py_sliced(py_state *s, PyObject *op, PyObject *key);
/* op[key] of two slices or an open mesh; NotImplemented of any other key. New. */
PyObject *py_quick_slice(py_op *self, PyObject *key);
/* py_constructor_attributes.c: arguments that become attributes */
bool py_is_attr(lop_role role);
/* Axis sizes as identities, into a new PyMem array. */
int py_read_grid(lop_ctx *ctx, const lop_op *op, int i, PyObject *o, const lop_node ***child,
                 int *n);
int py_read_attr(const lop_op *op, int i, PyObject *o, lop_attr *attr); /* 0, or -1 */
PyObject *py_default(const lop_param *param);                           /* new */
PyObject *py_weak_number(PyObject *before, PyObject *o);
lop_status py_offset_diag(const lop_op **op, lop_attr *attr, const lop_node *d, lop_node *like,
                          bool *has_like, lop_err *err);
/* py_constructor_kernel.c: is parameter i the points of the rows once more? Then None stands in
 * init. */
bool py_kernel_same(PyObject *init, PyObject *const *arg, int i);
/* A number as an array of the points' dtype, a length scale as a vector: new; NULL without an
 * error: as it is. */
PyObject *py_kernel_number(PyObject *init, int i, PyObject *o);
/* The attributes, and y where it is x. */
lop_status py_kernel_finish(PyObject *const *arg, const lop_node **child, int *n, lop_attr *attr,
                            bool foreign, lop_err *err);
bool py_kernel_is_callable(PyObject *args, PyObject *kwargs);
PyObject *py_kernel_callable(py_state *s, PyObject *args, PyObject *kwargs); /* new */
int py_coefficient(PyObject *number, lop_attr *attr); /* 1 yes, 0 not one of ours, -1 exception */

/* py_array.c */
int py_import_numpy(void);
lop_dtype py_dtype(PyArrayObject *a); /* NO_DTYPE: not one of ours, or byte-swapped */
PyObject *py_descr(lop_dtype dt);     /* new */
int py_typenum(lop_dtype dt);
typedef void (*py_loop)(char **, const intptr_t *, const intptr_t *, void *);
/* The inner loop of a ufunc for the dtypes of n letters, arguments and one result, which lives as
 * long as the ufunc does; how many arguments, 0: there is none. */
int py_ufunc_loop(PyObject *ufunc, const char *letters, Py_ssize_t n, py_loop *run, void **data);
lop_dtype py_dtype_of_letter(int letter); /* NumPy's character; NO_DTYPE: not one of ours */
/* The array as kernels want it, `core` trailing dimensions its own: the same (new reference) or a
 * copy. */
PyArrayObject *py_normal(PyArrayObject *a, int core, bool c_order);
bool py_is_normal(PyArrayObject *a, int core, bool c_order); /* would that be no copy? */
/* Is it memory that nobody can write to (pl.freeze, copy=, JAX's)? And whose; owner may be NULL. */
bool py_frozen(const py_state *s, PyArrayObject *a, uint64_t *owner);
/* A copy that nobody can write to, of other objects what their copy() gives: new. */
PyObject *py_own_copy(py_state *s, PyObject *o);
void py_buf(PyArrayObject *a, lop_dtype dt, lop_buf *buf); /* describes; borrowed */
void py_buf_transpose(lop_buf *buf);
PyArrayObject *py_empty(const lop_shape *shape, lop_dtype dt);
/* py_memory.c: in C order, new; large ones begin where a cache line does. */
int py_memory_open(void); /* once, before: 0, or -1 with an exception */
PyArrayObject *py_new_array(int n, const npy_intp *dim, int typenum);
bool py_overlap(PyArrayObject *a, PyArrayObject *b);

/* py_foreign.c: an array on the memory of another library's: new; `keep`: for longer than a call.
 * NULL without an exception: what it is, or why it is not taken, src/pylinop/_base/dlpack.py says;
 * with one: that comes out. */
PyObject *py_foreign(PyObject *o, bool keep);
/* Arrays on the memory of a list's tensors, whether or not they have gradients, for a call: a new
 * tuple. NULL, with or without an exception: one of them is not such. */
PyObject *py_foreign_all(PyObject *list);

/* py_plans.c. Borrowed, valid until the operator is used again; a word about dense forms has been
 * said. x: shape of the right-hand side as the plan sees it. NULL with an exception. */
py_plan *py_find_plan(py_state *s, py_op *self, py_plan *want, const lop_shape *x, bool given);
/* The action as a node over `node`: owned; the right-hand side's serial in *rhs. */
lop_status py_action(py_state *s, const lop_node *node, const py_plan *want, const lop_shape *x,
                     uint64_t *rhs, const lop_node **out, lop_err *err);
void py_cache_clear(py_state *s, py_op *self);
/* The plan, with no word said. Borrowed likewise; NULL with an exception. */
py_plan *py_plan_of(py_state *s, py_op *self, py_plan *want, const lop_shape *x);
/* py_by_price.c: a solve by iteration, where that is cheaper than the plan and reaches working
 * accuracy (src/pylinop/_iterative/by_price.py). New; None: the plan is to be run; NULL with an
 * exception. */
PyObject *py_iterated(py_state *s, py_op *self, PyArrayObject *x, const py_plan *want,
                      const lop_shape *shape);
/* The same of an entry, or of the dense form of a slice, of an inverse, or of a product with one.
 */
PyObject *py_part_iterated(py_state *s, py_op *self, const py_plan *want);
/* Is an inverse that may be iterated among its nodes, as far as they are looked at? */
bool py_holds_large_inverse(const lop_node *a);
/* dict serial -> array of everything below self: 0, or -1 with an exception. */
int py_collect(py_op *self, PyObject *found);
/* The arrays of the expression's leaves, by number, sign->leaves of them. False: not all of them
 * within a bound. Borrowed. */
bool py_find_arrays(py_op *self, const lop_sign *sign, PyObject **array);
/* Room for n pointers, which may be LOP_SIGN_FEW of the caller's own; else to be freed by
 * PyMem_Free. NULL without an exception: no memory. */
static inline PyObject **py_room_for(PyObject **few, int n) {
    return n <= LOP_SIGN_FEW ? few : PyMem_Malloc((size_t)n * sizeof *few);
}
/* py_result_cache.c: derived values made by Python */
PyObject *py_kept(py_state *s, PyObject *args);
PyObject *py_keep(py_state *s, PyObject *args);
PyObject *py_forget(py_state *s, PyObject *op);
/* Shows what the store holds of Python's to the garbage collector. */
int py_kept_traverse(py_state *s, visitproc visit, void *arg);

/* py_run.c: the way from a call to a result. `mode`: see lop_mode; right: x @ op. vec: x is (...,
 * n) vectors. New array; NULL with an exception; Py_NotImplemented (new): not for C, take the slow
 * way. */
PyObject *py_apply(py_state *s, py_op *self, PyArrayObject *x, int mode, bool right, bool vec,
                   PyObject *out);
/* A plan with the arrays of its leaves; not to be moved while open. */
enum { PY_HELD = 16 };
typedef struct py_run {
    py_state *s;
    py_op *self;                              /* borrowed */
    lop_plan *plan;                           /* retained */
    PyObject *leaves, *keys;                  /* retained */
    PyArrayObject *held_few[PY_HELD], **held; /* normalised arrays, alive during the run */
    int nheld;
    int take;          /* a derived value wanted, by its number; -1: none */
    bool spoilt;       /* the result has become NaN: an assumption failed */
    PyObject *used[3]; /* borrowed: the right-hand side, the result, the former as given; or NULL */
    lop_blob *blob;    /* that one, after a run: retained */
} py_run;
void py_run_open(py_run *r, py_state *s, py_op *self, const py_plan *e);
/* Binds all leaves but the result: 0; -1 with an exception; -2 with *err. */
int py_run_bind(py_run *r, lop_frame *f, int rhs, const lop_buf *x, lop_err *err);
void py_run_close(py_run *r);
/* Executes with everything bound but the result; 0, or -1 with an exception. */
int py_run_exec(py_run *r, int rhs, const lop_buf *x, const lop_buf *out);
/* py_program.c: the values of several actions by one plan: a list of read-only arrays in one block.
 * `asked` is a list of tuples (operator, action, i, j), the action's number less ACT_DENSE. */
PyObject *py_results(py_state *s, PyObject *asked);
/* Of the same list: (bytes of dense forms on the way, estimated seconds) of the plan, which
 * is kept for py_results. */
PyObject *py_results_priced(py_state *s, PyObject *asked);
/* Likewise: the plan as a dict, as py_explain's; nothing is computed. */
PyObject *py_results_explained(py_state *s, PyObject *asked);
/* py_xla.c: from now on the handler that XLA calls calls f(a, b, arguments, results), with the two
 * numbers of a program and tuples of arrays on XLA's memory, that of the arguments read-only. A
 * capsule with the handler: new. */
PyObject *py_xla_target(PyObject *f);
/* py_capi.c: adds `__pyx_capi__`, the functions of py_capi.h as capsules; 0, or -1 with an
 * exception. */
int py_capi_add(PyObject *module);
/* py_equation.c: adds _Equation, contractions of arrays; 0, or -1 with an exception. */
int py_equation_make_type(PyObject *module);
/* py_cotangent.c: _cotangent(op, g, child): the cotangent of a child of op's node, whose own is g,
 * as an operator: that of a matrix by its dense form, of a vector by its diagonal. New;
 * Py_NotImplemented: there is none. */
PyObject *py_cotangent(py_state *s, PyObject *args);
PyObject *py_value_array(py_state *s, py_op *self, int act, int64_t i, int64_t j, PyObject *out);
/* The same, of no dimensions a number. */
PyObject *py_value(py_state *s, py_op *self, int act, int64_t i, int64_t j, PyObject *out);
/* After an exception: where it is for want of memory, the diagonal (offset None: the trace) from
 * blocks of columns; else NULL, and the exception stays. */
PyObject *py_in_blocks(PyObject *self, PyObject *offset);
/* py_verify.c: the result of a run compared with the expression as written, by Python
 * (src/pylinop/_verify/compare.py). 0, or -1 with an exception: VerificationError where they
 * differ. */
int py_verify_apply(py_state *s, py_op *self, PyArrayObject *x, int mode, bool right, bool vec,
                    PyArrayObject *made);
int py_verify_value(py_state *s, py_op *self, int act, int64_t i, int64_t j, PyArrayObject *made);
/* Of a LazyArray: with None before its value is computed, so that the results of its plans are not
 * compared by themselves; then with the array, or the drop, which keeps the exception. */
int py_verify_lazy(py_state *s, PyObject *a);
void py_verify_drop(py_state *s);
/* py_plan_data.c: a step as a dict; slots, derived values, weak references to the arrays of
 * the leaves, and the result's slot as one. New. */
PyObject *py_step_data(const lop_plan *plan, int step);
PyObject *py_plan_data(py_op *self, const lop_plan *plan);
/* py_explain.c. py_asked: the action as a node over self, owned, and the right-hand side's serial:
 * 0, or -1 with an exception. */
int py_asked(py_state *s, py_op *self, PyArrayObject *x, int act, int64_t i, int64_t j,
             uint64_t *rhs, const lop_node **root);
/* py_canonical.c: (rows, a dict serial -> array, the right-hand side's serial, entries of the
 * coefficients whose values are in the tuple `numbers`). New. */
PyObject *py_canonical(py_state *s, py_op *self, PyArrayObject *x, int act, int64_t i, int64_t j,
                       PyObject *numbers);
PyObject *py_explain(py_state *s, py_op *self, PyArrayObject *x, int act, int64_t i, int64_t j);
/* What was run, into s->record; times: seconds of each step; makers: a dict of other names that
 * steps go by; rcond: the least that its solves know of, above 1 where they know of none. 0, or -1
 * with an exception. */
int py_record(py_state *s, py_op *self, const lop_plan *plan, const double *times, PyObject *makers,
              double rcond);
/* py_rules.c */
PyObject *py_rules(py_state *s);
PyObject *py_places(py_state *s); /* name -> number, of removed rules too */
PyObject *py_guards(void);
PyObject *py_add_rule(py_state *s, PyObject *args);
PyObject *py_remove_rule(py_state *s, PyObject *args);

/* py_config.c: before `options` is read, wherever another thread may have run. */
void py_config_read(py_state *s);
static inline void py_config_here(py_state *s) {
    if (s->locals) py_config_read(s);
}
/* py_sparse_solver.c: the context gets its sparse solver */
void py_sparse_open(py_state *s);
/* What made the foreign values of a frame that has run, by the number of the step. New. */
PyObject *py_sparse_makers(const lop_frame *f);
/* py_factor_of.c: _factored(what), the factor that solves keep. */
lop_status py_factor_node(const lop_node *a, int64_t what, const lop_node **out,
                          lop_err *err) LOP_MUST_CHECK; /* owned */
int64_t py_factor_bytes(const lop_node *a); /* of the dense form to be factored; 0: it is there */
PyObject *py_factored(PyObject *self, PyObject *what);

/* py_owner.c: whose what this thread derives is; 0: as its arrays say. While it holds, it is told
 * the estimated seconds of what derives. */
uint64_t py_holder(void);
void py_derives(double seconds);
PyObject *py_printed(PyObject *module, PyObject *array);
PyObject *py_owned(PyObject *module, PyObject *owner);
PyObject *py_release(PyObject *module, PyObject *owner);
PyObject *py_hold(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *py_met(PyObject *module, PyObject *unused);
/* py_known.c: _known(property), what is known of it as it is written */
PyObject *py_known(PyObject *self, PyObject *property);
/* py_lapack.c: factors in place, as module functions */
PyObject *py_getrf(PyObject *module, PyObject *args);
PyObject *py_sterf(PyObject *module, PyObject *args);
PyObject *py_blas_bind(PyObject *self, PyObject *args);
PyObject *py_blas(PyObject *module, PyObject *unused);
PyObject *py_blas_all(PyObject *module, PyObject *unused);
PyObject *py_blas_linked(PyObject *module, PyObject *unused);
PyObject *py_band_cholesky(PyObject *module, PyObject *args);
PyObject *py_band_svd(PyObject *module, PyObject *args);
/* The dtype of NumPy's character of a float one; false of others. */
bool py_float_of(int letter, lop_dtype *dt);
PyObject *py_band_qr(PyObject *module, PyObject *args);
PyObject *py_band_places(PyObject *module, PyObject *args);
PyObject *py_cholup(PyObject *module, PyObject *args);
PyObject *py_mirrored(PyObject *module, PyObject *const *args, Py_ssize_t nargs); /* py_mirror.c */

/* py_gauss.c: _gauss(n, d, e, z), nodes and weights of quadrature. */
PyObject *py_gauss(PyObject *module, PyObject *args);
PyObject *py_ichol(PyObject *module, PyObject *args); /* py_ichol.c */
/* py_spgemm.c: products of sparse matrices, as module functions */
PyObject *py_spgemm_bound(PyObject *module, PyObject *args);
PyObject *py_spgemm_count(PyObject *module, PyObject *args);
PyObject *py_spgemm_fill(PyObject *module, PyObject *args);
PyObject *py_spgemm_sampled(PyObject *module, PyObject *args);
PyObject *py_csr_transpose(PyObject *module, PyObject *args);
PyObject *py_csr_keep(PyObject *module, PyObject *args);
PyObject *py_csr_meet(PyObject *module, PyObject *args);
PyObject *py_csr_mirror(PyObject *module, PyObject *args);
/* py_selected_inverse.c: the inverse on the pattern of a factor, as module functions */
PyObject *py_select_counts(PyObject *module, PyObject *args);
PyObject *py_select_rows(PyObject *module, PyObject *args);
PyObject *py_select(PyObject *module, PyObject *args);
PyObject *py_quasi_ldl(PyObject *module, PyObject *args);
PyObject *py_quasi_quad(PyObject *module, PyObject *args);
PyObject *py_quasi_covariance(PyObject *module, PyObject *args);
PyObject *py_quasi_matern(PyObject *module, PyObject *args);
PyObject *py_markov_jets(PyObject *module, PyObject *args);
/* py_csr_sweep.c: likewise */
PyObject *py_csr_step(PyObject *module, PyObject *args);
PyObject *py_config_options(py_state *s, PyObject *args);
PyObject *py_config_watch(py_state *s, PyObject *args);
PyObject *py_apply_here(py_state *s, py_op *self, PyArrayObject *x, int mode, bool right, bool vec,
                        PyObject *out); /* as py_apply */

/* py_fast_path.c: A x for a vector by the cached plan, when that is one step. New array; NULL
 * without an exception: take the general way; NULL with one: it failed. */
bool py_is_direct(const lop_plan *plan);
PyObject *py_direct(py_state *s, py_op *self, PyArrayObject *x);
/* Element (i, j), inside, of a sum of plain matrices: an array of no dimensions, new; NULL without
 * an exception: the general way is due. */
PyObject *py_direct_entry(py_op *self, const int64_t at[2]);
/* Two plain integers inside m x n, as indices that are not negative? */
bool py_pair(PyObject *key, int64_t m, int64_t n, int64_t at[2]);
/* py_expressions.c: likewise of a callable or a user's subclass, by its own _matvec. */
PyObject *py_call_matvec(py_state *s, py_op *self, PyArrayObject *x);

/* py_kind_types.c */
PyObject *py_kinds(py_state *s);                             /* the table as Python sees it: new */
PyObject *py_kind_flags(PyObject *module, PyObject *unused); /* _kind_flags() */
int py_make_types(py_state *s, PyObject *module, PyObject *root);
bool py_holds_arrays(const lop_op *op); /* its own or its operands': takes copy= */
/* _given(*names): what the constructor was given as the parameters of these names, one of them or a
 * tuple of several. Attributes of the same names are the user's, whose subclass may redefine them.
 */
PyObject *py_given(PyObject *self, PyObject *const *names, Py_ssize_t n); /* new */

/* py_constructors.c */
const lop_op *py_op_of_type(py_state *s, PyTypeObject *type); /* the kind whose class it is */
PyObject *py_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs);
/* The same for a call of the class itself, tp_vectorcall. */
PyObject *py_construct_fast(PyObject *type, PyObject *const *args, size_t nargs, PyObject *names);
PyObject *py_as_operator(py_state *s, PyObject *o); /* new: the operator itself, or wrapped */
PyObject *py_dense(py_state *s, PyArrayObject *a);  /* new: Dense(a) */
PyObject *py_dense_symmetric(py_state *s,
                             PyArrayObject *a); /* new: of an array that is symmetric */

/* py_constructor_levels.c: arguments of kinds with several levels. -1 with an exception set. */
int py_take_sizes(const lop_op *op, const lop_param *param, PyObject *o, int64_t *n); /* how many */
/* How many levels the array parameters of a call have: from the parameter that says so, else 1; 0:
 * all dimensions. */
int py_find_levels(const lop_op *op, PyObject *const *arg, int *levels);
int py_sizes(py_state *s, int levels, const int64_t *n, const lop_node **out); /* owned */
/* The leaf of an array becomes what a kind takes; takes the reference over. */
int py_ravel(py_state *s, int levels, const lop_node **leaf);
/* Lets go of an object, which may run anyone's code, with the exception that is set kept: NULL. */
void *py_drop(void *object);
/* Arguments where a kind of several operands was given one list of them: new; `args` itself where
 * it was not. */
PyObject *py_operands(py_state *s, const lop_op *op, PyObject *args);
/* Operand `at` of a kind as an operator, or an error that names it: new. */
PyObject *py_operand(py_state *s, const lop_op *op, Py_ssize_t at, PyObject *o);
/* Is the array `a`, of three dimensions at least, one of square blocks, of *b rows as the others?
 * The `first` says how many. */
int py_take_blocks(const lop_op *op, const lop_param *param, PyObject *a, bool first, int64_t *b);
/* After an array and its sizes: those of a square Toeplitz matrix with such diagonals. */
lop_status py_square(py_state *s, const lop_node **child, int *n, lop_err *err);

#endif
