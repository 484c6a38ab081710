/* node.h: expression nodes.
 *
 * A node is immutable: an op (a row of kinds.def), attributes, children, and what follows from them
 * at once: shape, dtype, core rank. Nothing is computed. Three classes: *arrays* (values: leaves,
 * element- wise expressions, reshapes), *operators* (kinds and composites), *actions* (arrays that
 * come from an operator: apply, dense, diagonal, trace, element, solve). Written nodes are made as
 * the user wrote them; canonical nodes are made by rewrite.c and interned in a plan's table.
 *
 * Nodes are counted without atomics: only under the caller's lock (the GIL). They own no foreign
 * objects: an array leaf is a serial number, bound to memory when a plan runs. */
#ifndef LOP_NODE_H
#define LOP_NODE_H

#include "base/buf.h"

typedef struct lop_op lop_op;
typedef struct lop_node lop_node;

/* How an operator or a kernel's matrix is seen: bit 0 transposed, bit 1 conjugated. */
typedef enum lop_mode { LOP_N = 0, LOP_T = 1, LOP_C = 2, LOP_H = 3 } lop_mode;

/* How strongly a dtype binds: 0 as said; else a Python scalar's or an adopting kind's (Identity
 * without dtype): 1 adopts all, 2 at least an integer, 3 at least a float, 4 at least complex. */
enum { LOP_STRONG = 0, LOP_WEAK = 1, LOP_WEAK_INT = 2, LOP_WEAK_FLOAT = 3, LOP_WEAK_COMPLEX = 4 };

/* Attributes; each op says in its file which it uses. A coefficient uses re, im, i[0] (its integer
 * value), i[1] (weakness), i[2] (dtype when strong). */
typedef struct lop_attr {
    int64_t i[4];
    double re, im;
    int num; /* of a coefficient that is an argument of the plan (coefficients.h); else 0 */
} lop_attr;

struct lop_node {
    lop_ctx *ctx;
    const lop_op *op;
    int64_t refs;
    uint64_t serial; /* leaves: never used again; else 0 */
    lop_attr attr;
    lop_shape shape; /* operators: (..., m, n) */
    lop_dtype dtype;
    uint8_t weak, core; /* core: how many trailing dimensions are not batch (arrays: 0, 1, 2) */
    bool opaque;        /* holds a callable or a foreign dtype: cannot run in C */
    bool declared;      /* holds a Dense that is assumed to be of another kind */
    int n;
    const lop_node *child[];
};

/* Owned node. Children are retained. For ops without children `like` gives shape, dtype, weak, core
 * and (array leaves) serial; NULL otherwise. Closes nothing: see lop_close in rewrite.h. */
lop_status lop_node_make(lop_ctx *ctx, const lop_op *op, const lop_attr *attr, int n,
                         const lop_node *const *child, const lop_node *like, const lop_node **out,
                         lop_err *err) LOP_MUST_CHECK;
/* Owned array leaf with a new serial. */
lop_status lop_node_leaf(lop_ctx *ctx, lop_dtype dt, int core, const lop_shape *shape,
                         const lop_node **out, lop_err *err) LOP_MUST_CHECK;
const lop_node *lop_node_ref(const lop_node *node); /* retained; takes NULL */
void lop_node_unref(const lop_node *node);          /* takes NULL; no recursion */

static inline int64_t lop_rows(const lop_node *a) { return a->shape.dim[a->shape.ndim - 2]; }
static inline int64_t lop_cols(const lop_node *a) { return a->shape.dim[a->shape.ndim - 1]; }
static inline int lop_nbatch(const lop_node *a) { return a->shape.ndim - a->core; }
static inline bool lop_is_square(const lop_node *a) { return lop_rows(a) == lop_cols(a); }

/* Length of the diagonal of an m x n matrix at offset k; 0 where it lies outside. */
int64_t lop_diag_length(int64_t m, int64_t n, int64_t k);
bool lop_attr_equal(const lop_attr *a, const lop_attr *b);
lop_attr lop_attr_coef(double re, double im); /* a weak float or complex coefficient */

/* dtype of `a` and `b` together, with weakness; fills dtype and weak of *n. */
void lop_node_promote(lop_node *n, const lop_node *a, const lop_node *b);
/* dtype, weak and batch dimensions of all children together, into *n; `own` dimensions of its own
 * are to follow. */
lop_status lop_node_batches(lop_node *n, int own, lop_err *err) LOP_MUST_CHECK;
/* The same, of an operator of so many rows and columns. */
lop_status lop_node_over(lop_node *n, int64_t rows, int64_t cols, lop_err *err) LOP_MUST_CHECK;
/* Likewise for a^-1 b: integers in `a` are float64 there, as inv(a) is. */
void lop_node_promote_inverse(lop_node *n, const lop_node *a, const lop_node *b);
/* dtype and weak of a multiple: those of *n (its operand's) with its coefficient's. */
void lop_node_scale(lop_node *n);
lop_dtype lop_promote_weak(int weak, lop_dtype other); /* a weak value meets a strong dtype */

/* Three-valued properties, computed on demand, no memory. A kind answers from its own facts and its
 * direct children, so a query costs O(1) but for Kron (its factors). */
typedef enum lop_trait {
    LOP_SYMMETRIC,
    LOP_HERMITIAN,
    LOP_POSITIVE,
    LOP_DIAGONAL,
    LOP_ORTHOGONAL,
    LOP_REAL,
    LOP_ZERO,
    LOP_IDENTITY
} lop_trait;
lop_truth lop_node_trait(const lop_node *node, lop_trait trait);

#endif
