/* op.h: the table every kind ends in. One const lop_op a kind, one line in kinds.def; class,
 * signature, docstring, stub, docs page and test batteries are made from it. A NULL slot means the
 * generic way. */
#ifndef LOP_OP_H
#define LOP_OP_H

#include "emit.h"
#include "node.h"

typedef enum lop_class { LOP_ARRAY, LOP_OPERATOR, LOP_ACTION } lop_class;

/* What a constructor's argument is. */
typedef enum lop_role {
    LOP_P_NONE,
    LOP_P_ARRAY,     /* an array whose last `rank` dimensions are its own; -1: its levels */
    LOP_P_OPERATOR,  /* an operator; arrays are wrapped as Dense */
    LOP_P_OPERATORS, /* one or more operators: *ops */
    LOP_P_INDEX,     /* an integer array, `rank` 1 */
    LOP_P_INT,       /* a size: attr.i[rank] */
    LOP_P_OFFSET,    /* an integer of any sign: attr.i[rank] */
    LOP_P_FLAG,      /* True or False: attr.i[rank] */
    LOP_P_WORD,      /* one of `words`: attr.i[rank] is which */
    LOP_P_BANDS,     /* (l, u): attr.i[0], attr.i[1] */
    LOP_P_GRID,      /* sizes: one child a size, an identity */
    LOP_P_SCALAR,    /* a number, weak or not: attr's coefficient */
    LOP_P_SHAPE,     /* (m, n) */
    LOP_P_DTYPE,     /* a dtype or None (weak) */
    LOP_P_ASSUME,    /* scipy.linalg.solve's words: attr.i[rank] */
    LOP_P_SIZES,     /* a size or a tuple of them, the sizes of levels: a child */
    LOP_P_LEVELS,    /* how many levels an array parameter has */
    LOP_P_FOREIGN,   /* something Python takes apart (a scipy.sparse matrix, callables) */
    LOP_P_BLOCKS,    /* nested lists of operators: children row by row, attr.i = rows, columns */
} lop_role;

typedef struct lop_param {
    const char *name;
    lop_role role;
    int rank;
    const char *fallback; /* default as Python text; NULL: required */
    const char *doc;      /* one sentence */
    const char *words;    /* of LOP_P_WORD: separated by blanks */
} lop_param;

enum { LOP_MAXPARAM = 9 };

/* What assume_a says of a Dense: its attr.i[0]. */
enum {
    LOP_ASSUME_GENERAL,
    LOP_ASSUME_SYMMETRIC,
    LOP_ASSUME_HERMITIAN,
    LOP_ASSUME_POSITIVE,
    LOP_ASSUME_LOWER,
    LOP_ASSUME_UPPER,
    LOP_ASSUME_ORTHOGONAL,
    LOP_ASSUME_DIAGONAL,
    LOP_ASSUME_TRIDIAGONAL,
    LOP_ASSUME_TRIED, /* of a band_solve, a Dense: its own adjoint, a Cholesky is worth a try */
    LOP_ASSUME_ALONE  /* of a determinant: likewise, and nothing else is done where that fails */
};

/* Is a Dense, by its word, one of the kinds? Plans read it as that (rewrite/assumptions.c). */
static inline bool lop_is_declared_triangle(const lop_node *dense) {
    return dense->attr.i[0] == LOP_ASSUME_LOWER || dense->attr.i[0] == LOP_ASSUME_UPPER;
}
static inline bool lop_is_declared_kind(const lop_node *dense) {
    return dense->attr.i[0] == LOP_ASSUME_DIAGONAL || dense->attr.i[0] == LOP_ASSUME_TRIDIAGONAL ||
           lop_is_declared_triangle(dense);
}
/* Is it symmetric or Hermitian by its word? Then its upper triangle is all of it. */
static inline bool lop_is_declared_half(const lop_node *dense) {
    return dense->attr.i[0] >= LOP_ASSUME_SYMMETRIC && dense->attr.i[0] <= LOP_ASSUME_POSITIVE;
}

/* Is it a Tridiagonal, Banded or BlockTridiagonal that is symmetric or Hermitian by its word, of
 * which one half is all of it (op_named_lines.c)? */
bool lop_has_named_lines(const lop_node *n);
/* Will the half of what has these attributes be named, of which `word` is what is assumed? */
bool lop_names_lines(const lop_attr *of, int word);
/* Its parameters by that half, of what its children became: owned, as far as they came, `count`. */
lop_status lop_named_lines(const lop_node *n, const lop_node *const *child, int *count,
                           const lop_node **out, lop_err *err);

/* The array of which a product of a Dense with k columns in this dtype reads the upper triangle
 * alone, borrowed; NULL: the whole matrix is made first. */
const lop_node *lop_half_alone(const lop_node *dense, int64_t k, lop_dtype dt);
/* Likewise of an element or a diagonal of an array. */
const lop_node *lop_half_read(const lop_node *piece);

/* How many terms that were assumed positive definite are put to the test where a sum is not. */
enum { LOP_ASSUMED_TERMS = 4 };

/* What help(pl.Kind) and docs/kinds.md say; `limits` says what the kind cannot, or not yet, do. */
typedef struct lop_doc {
    const char *brief, *extended, *cost, *notes, *limits, *example;
} lop_doc;

/* How many diagonals below and above the main one may hold something other than structural zeros;
 * more than there are means all. */
typedef struct lop_band {
    int64_t l, u;
} lop_band;

/* A random instance for the batteries: a node, and the memory of its leaves by serial. */
typedef struct lop_rand lop_rand;
/* A cotangent that is being built: vjp.h. */
typedef struct lop_vjp lop_vjp;

struct lop_op {
    int id;            /* LOP_ID(name): its place in kinds.def */
    const char *name;  /* head in the text form */
    const char *title; /* Python class; NULL: none */
    lop_class cls;
    int min, max;  /* children; max -1: any number */
    int operators; /* of an action: how many children are operators, the first ones; 0: one */
    lop_param param[LOP_MAXPARAM];
    lop_doc doc;
    /* Which attributes the text form prints: number of ints, coefficient or not. */
    int ints;
    bool coef;
    unsigned flags; /* LOP_FLAG_x of kind_flags.def: what it has in common with others */
    bool real;      /* its arrays are real, and stay so beside complex ones */

    /* Shape, dtype, weak, core from children and attributes (all set before). */
    lop_status (*infer)(lop_node *self, lop_err *err);
    lop_truth (*trait)(const lop_node *self, lop_trait trait);
    /* Band of an operator, from its operator children's bands; NULL means full. */
    lop_band (*bands)(const lop_node *self, const lop_band *child);

    /* Arrays and actions: steps that put this value into slot `out`. */
    lop_status (*lower)(lop_emit *e, const lop_node *self, int out);
    /* Of those that read a child without its value being made: what `lower` needs instead of the
     * children, one by one; NULL: no more. */
    const lop_node *(*reads)(const lop_node *self, int i);
    /* Arrays with two branches: the last child is the fallback, lowered and run only where the
     * others said SINGULAR or this check of theirs does: it fills `value` and sets `mask` by
     * `fail`. */
    lop_status (*check)(lop_emit *e, const lop_node *self, int value, int mask);
    /* Of those: steps that never fail, before the branches open, so that others may share what they
     * prepare. Vectors among the first children that are made of leaves are known by then. */
    lop_status (*ready)(lop_emit *e, const lop_node *self);
    /* Operators: y[out] = mode(self) x; dense form; diagonal from offset attr.i[0]; one element;
     * solution of mode(self) y = x. UNABLE sends the rewriter's generic rows to work. */
    lop_status (*apply)(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out);
    lop_status (*dense)(lop_emit *e, const lop_node *self, int out);
    lop_status (*diagonal)(lop_emit *e, const lop_node *self, int64_t k, int out);
    lop_status (*element)(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out);
    /* Flops of one product with k columns. */
    double (*flops)(const lop_node *self, int64_t k);

    /* Operators: the cotangent of a child, borrowed from `v`; NULL: see vjp.h. */
    const lop_node *(*vjp)(lop_vjp *v, const lop_node *self, int child, const lop_node *g);
    bool vjp_by_formula; /* of LazyArrays, src/pylinop/_gradients/reflections.py, in place of vjp */
    bool vjp_together;   /* also of several at once, which cost together what one does */

    lop_status (*random)(lop_rand *r, int64_t m, int64_t n, lop_dtype dt, const lop_node **out);
};

/* op_kron.c: are all factors plain matrices, or views of plain matrices, so that `apply` in dtype
 * `dt` takes them in one step? */
bool lop_kron_is_plain(const lop_node *kron, lop_dtype dt);

/* The dtype that an array parameter of `k` is widened to where the whole is computed in `wide`. */
static inline lop_dtype lop_parameter_dtype(const lop_node *k, lop_dtype wide) {
    return k->op->real ? lop_dtype_real(wide) : wide;
}

/* op_kernel.c: how many factors a kernel has, and where the points of each one's rows are among its
 * children (those of its columns follow); 0: attributes and children do not fit. The attributes of
 * two kernels' factors one after another. */
enum { LOP_KERNELS = 5 };
int lop_kernel_points(const lop_node *kernel, int *at);
lop_attr lop_kernel_join(const lop_attr *a, const lop_attr *b);
/* Without negative eigenvalues, but for rounding: of points with themselves, and no polynomial,
 * whose offset may be negative. */
bool lop_kernel_is_covariance(const lop_node *kernel);
/* Is it a Matern kernel of smoothness `order` + 1/2 of points on a line with themselves, without
 * batch? Its points (n x 1) and numbers, borrowed; NULL: the number is 1. */
typedef struct lop_line_kernel {
    int order;
    const lop_node *points, *variance, *length;
} lop_line_kernel;
enum { LOP_MOST_POINTS = 8 }; /* sets of them in one sum */
bool lop_kernel_line(const lop_node *kernel, lop_line_kernel *line);

/* op_results.c: the action that a program's last result asks for, owned. */
lop_status lop_results_asked(const lop_node *results, const lop_node **out,
                             lop_err *err) LOP_MUST_CHECK;
/* Those before it; NULL: it is the first. */
static inline const lop_node *lop_results_before(const lop_node *results) {
    const lop_node *before = results->n > 1 ? results->child[1] : NULL;
    return before && before->op->id == results->op->id ? before : NULL;
}
/* op_difference.c: the shape that its attributes ask for; none where they are wrong. */
lop_shape lop_difference_shape(const lop_attr *a);
/* kinds.c */
int lop_nops(void);
const lop_op *lop_op_at(int id);
static inline int lop_op_id(const lop_op *op) { return op->id; }
const lop_op *lop_op_find(const char *name, size_t length);
lop_status lop_kinds_check(lop_err *err); /* the start-up self-check */

#define LOP_KIND(name) extern const lop_op lop_op_##name;
#include "kinds.def"
#undef LOP_KIND

enum lop_id {
#define LOP_KIND(name) LOP_ID_##name,
#include "kinds.def"
#undef LOP_KIND
    LOP_NKINDS
};
/* What kinds have in common (kind_flags.def), as bits of `flags`. */
enum {
#define LOP_KIND_FLAG(name, doc) LOP_FLAG_BIT_##name,
#include "kind_flags.def"
#undef LOP_KIND_FLAG
    LOP_NFLAGS
};
enum {
#define LOP_KIND_FLAG(name, doc) LOP_FLAG_##name = 1 << LOP_FLAG_BIT_##name,
#include "kind_flags.def"
#undef LOP_KIND_FLAG
};
static inline bool lop_has(const lop_node *a, unsigned flag) { return (a->op->flags & flag) != 0; }
/* kinds.c: the name of flag `i`. */
const char *lop_flag_name(int i);

#define LOP_NAMED(head) .id = LOP_ID_##head, .name = #head

#endif
