/* gen.h: random expressions for the batteries and the fuzzer. Everything follows from the world's
 * seed; the leaves' memory goes to the world's lop_rand. */
#ifndef GEN_H
#define GEN_H

#include "support.h"

/* Operators made so far, to be met again: expressions share their parts. */
enum { GEN_POOL = 12 };
typedef struct gen_pool {
    const lop_node *node[GEN_POOL];
    int n;
} gen_pool;

typedef struct gen {
    world *w;
    lop_dtype dtype; /* of the leaves; LOP_NO_DTYPE: any float or integer, leaf by leaf */
    lop_shape batch; /* leaves have parts of it */
    bool solves;     /* inverses may occur */
    bool views;      /* views may occur */
    int exprs;       /* one in so many array parameters is an expression; 0: none */
    int64_t largest; /* of inner dimensions */
    gen_pool *pool;  /* NULL: nothing is shared; gen_value brings its own */
} gen;

/* Owned nodes; NULL when a draw did not work out (out of leaves). */
const lop_node *gen_operator(gen *g, int64_t m, int64_t n, int depth);
/* A kind alone, possibly with array expressions as parameters. */
const lop_node *gen_kind(gen *g, int64_t m, int64_t n);
const lop_node *gen_instance(gen *g, const lop_op *op, int64_t m, int64_t n, lop_status *st);
/* A Dense that is what it is assumed to be. */
const lop_node *gen_assumed(gen *g, int64_t n);
/* An array of that core and those sizes: a leaf, or an expression of leaves. */
const lop_node *gen_array(gen *g, int core, int64_t m, int64_t n);
/* An action on a random operator, or arithmetic on such. */
const lop_node *gen_value(gen *g, int depth);
const lop_node *gen_sizes(gen *g, int64_t n);           /* of a kind with levels */
const lop_node *gen_pair(gen *g, int64_t m, int64_t n); /* two sizes */
lop_attr gen_coef(gen *g);
lop_dtype gen_dtype(gen *g);
/* 2^29 when an f32 or c64 value stands anywhere below a wider root, else 1: what the error may grow
 * by. */
double gen_slack(const lop_node *root);
/* gen_more.c: a composite of several operands with that head, of random operators; NULL where there
 * is none of that shape. */
const lop_node *gen_composite(gen *g, const lop_op *op, int64_t m, int64_t n, int depth);
/* (b B + c U M V)^-1 x with x made by U, M: what solve-thin-sum is for. */
const lop_node *gen_thin_solve(gen *g);
const lop_node *gen_thin_det(gen *g, const char *rule);
/* gen_identities.c: formulas that spell out an inverse, for the rows named spelled, parallel,
 * beside-, circulants and dense-inverse-. */
const lop_node *gen_identity_of_inverses(gen *g, const char *rule);
/* (R^H R)^-1 b for a tall R, b made by R^H or not. */
const lop_node *gen_normal(gen *g);
/* An action on A B or A D B of sparse matrices, for the rows named sparse-pair. */
const lop_node *gen_sparse_pair(gen *g, const char *rule);
/* The results of a program, as one column. */
const lop_node *gen_results(gen *g);
/* gen_blocktri.c: traces of, and blocks of, inverses of BlockTridiagonals. */
const lop_node *gen_blocktri_trace(gen *g, const char *rule);
const lop_node *gen_blocktri_blocks(gen *g, const char *rule);
const lop_node *gen_own_blocks(gen *g, const char *rule);
const lop_node *gen_at_places(gen *g, int64_t triangle, const lop_node *a);
const lop_node *gen_band_product(gen *g, const char *rule);
const lop_node *gen_beside_circulant(gen *g, const char *rule);
const lop_node *gen_beside_deficient(gen *g, const char *rule);
/* gen_blocks.c: sums and products that are block diagonal as written, for the rows named of-blocks.
 */
const lop_node *gen_of_blocks(gen *g, const char *rule);
/* BlockDiags of the matrices of a stack, for those named blockdiag-alike. */
const lop_node *gen_stack_blocks(gen *g, const char *rule);
/* gen_sparse.c: for the rows named sparse-update, sparse-rows and covered-inverse. */
const lop_node *gen_sparse_update(gen *g, const char *rule);
/* For those named pushed. */
const lop_node *gen_pushed(gen *g, const char *rule);
const lop_node *gen_pushed_pair(gen *g, const char *rule); /* and distributed */
const lop_node *gen_field(gen *g, const char *rule);       /* field-pushed */
const lop_node *gen_views_opened(gen *g, const char *rule);
const lop_node *gen_between_sparse(gen *g, const char *rule);
const lop_node *gen_sparse_product(gen *g, const char *rule);
/* gen_products.c: for the rows named picked, of-rows, of-terms and turned. */
const lop_node *gen_product_value(gen *g, const char *rule);
const lop_node *gen_column(gen *g, const char *rule);
/* gen_kron_places.c: products with sums of Krons around windows of two rows. */
const lop_node *gen_kron_places(gen *g);
/* gen_partials.c: for the rows named partial, but those by spectra. */
const lop_node *gen_partial(gen *g, const char *rule);
const lop_node *gen_between_expanded(gen *g, const char *rule);
const lop_node *gen_diagonal_of_partial(gen *g);
const lop_node *gen_sums_expanded(gen *g);
const lop_node *gen_toeplitz_words(gen *g, const char *rule);
const lop_node *gen_between_weights(gen *g, const char *rule);
/* a + c I, of arrays, either way round. */
const lop_node *gen_shift(gen *g);
/* A composite on x of fewer digits, for the rows of that name. */
const lop_node *gen_digits(gen *g, const char *rule);
/* diag(A^-1, B^-1, ...), all of one size, and actions on it: for the rows of inverses alike. */
const lop_node *gen_inverse_blocks(gen *g, const char *rule);
/* V(D + u v^H)^-1 x, V a view: what solve-view-update is for. */
const lop_node *gen_view_update(gen *g);
/* diag(A, B, ...) x of Denses of floats, or of one view of them. */
const lop_node *gen_plain_blocks(gen *g);
/* Solves and determinants of Kron + c I and kin, for the rows named spectral-sum and kronsum. */
const lop_node *gen_spectral(gen *g, const char *rule);
/* Actions on Matern kernels of points on a line, and on Circulant + c I, for rows of these names.
 */
const lop_node *gen_line(gen *g, const char *rule);
const lop_node *gen_settled(gen *g, const char *rule);
/* A Block for the rows named bordered. */
const lop_node *gen_bordered(gen *g, const char *rule);
const lop_node *gen_some_composite(gen *g, int64_t m, int64_t n, int depth);

/* Entries of a narrow band; of a view of a product. */
const lop_node *gen_entries(gen *g, const char *rule);
/* For the rows named between, and those of blocks of inverses. */
const lop_node *gen_between(gen *g, const char *rule);
const lop_node *gen_between_alike(gen *g, const char *rule);
const lop_node *gen_between_bands(gen *g, const char *rule);
/* Of D + U U^H by its generators; (C^-1 - (C + I)^-1)^-1 x of a Circulant. */
const lop_node *gen_of_generators(world *w, int which);
const lop_node *gen_circulant_fraction(world *w);
const lop_node *gen_inverse_band(gen *g);
const lop_node *gen_near_band_inverse(gen *g);
/* Which sums along diagonals: often plain ones, over i + j, modulo n, the other way round. */
lop_attr gen_lines(gen *g);

#endif
