/* chain.h: products and sums as the planner sees them; for chain*.c alone.
 *
 *   action on a product or sum --read--> groups (sums) of terms (coefficient, factors)
 *                              --search--> the cheapest equivalent groups: like terms merged, spans
 *                                          shared, factors taken out; each chain by dynamic program
 *                              --build--> nodes: (apply (dense (apply ...)) (apply ...))
 *
 * A factor is a symbol: number of an atom or of a group, inverted or not, and a view. Symbols are
 * canonical (no conjugate of what is real, no transpose of what is symmetric), so that equal
 * factors are equal symbols. Everything is bounded by counts: the same input gives the same plan.
 */
#ifndef LOP_CHAIN_H
#define LOP_CHAIN_H

#include "rewrite/costs.h"
#include "rewrite/rewrite.h"

enum {
    LOP_CH_FACTORS = 24, /* of one term; more: as written */
    LOP_CH_GROUP = 16,   /* terms of one sum */
    LOP_CH_TERMS = 48,   /* of all sums of a state */
    LOP_CH_GROUPS = 20,
    LOP_CH_ATOMS = 64,
    LOP_CH_NEST = 6,    /* sums within sums */
    LOP_CH_DEPTH = 40,  /* nodes above a factor */
    LOP_CH_STATES = 64, /* states priced in one search */
    LOP_CH_THIN = 16,   /* rows a column, or columns a row, of what is thin */
    LOP_CH_ITEMS = LOP_CH_FACTORS + 2,
};

typedef uint16_t lop_sym; /* number << 3 | inverse << 2 | view; groups count from LOP_CH_ATOMS */
#define LOP_CH_PROXY                                                                               \
    ((lop_sym)0xffff) /* a dense array that is there: what a group is applied to                   \
                       */

static inline int lop_sym_number(lop_sym s) { return s >> 3; }
static inline bool lop_sym_inverse(lop_sym s) { return (s & 4) != 0; }
static inline int lop_sym_mode(lop_sym s) { return s & 3; }
static inline lop_sym lop_sym_make(int number, bool inverse, int mode) {
    return (lop_sym)(number << 3 | (inverse ? 4 : 0) | mode);
}
static inline bool lop_sym_is_group(lop_sym s) {
    return s != LOP_CH_PROXY && lop_sym_number(s) >= LOP_CH_ATOMS;
}
static inline int lop_sym_group(lop_sym s) { return lop_sym_number(s) - LOP_CH_ATOMS; }

typedef struct lop_atom {
    const lop_node *node; /* borrowed: an operator, or an array (x) */
    bool array, real, symmetric, hermitian, positive;
    uint8_t triangle; /* 1 upper, 2 lower, of a Triangular, or a Dense that is assumed to be one */
} lop_atom;

typedef struct lop_chterm {
    lop_coef c;
    int n;
    lop_sym f[LOP_CH_FACTORS];
} lop_chterm;

typedef struct lop_chgroup {
    int64_t rows, cols;
    int16_t n, term[LOP_CH_GROUP];
    bool shared; /* computed once as a dense array, wherever it stands */
    bool real;
    /* Of an inverse that was opened: one plus the atom whose sum this group is. It stands inverted.
     */
    int16_t opened;
} lop_chgroup;

/* Groups 0 to nroot - 1 of the chain are the roots. */
typedef struct lop_chstate {
    int nterm, ngroup;
    lop_chgroup group[LOP_CH_GROUPS];
    lop_chterm term[LOP_CH_TERMS];
} lop_chstate;

/* The dynamic program of one chain: sizes p[i] x p[i + 1], the least seconds to have span i..j as a
 * dense array, how, and split after which factor. */
typedef enum lop_chhow {
    LOP_CH_LEAF,
    LOP_CH_LEFT,  /* factor i applied to the rest */
    LOP_CH_RIGHT, /* factor j from the right: transposed, applied, transposed */
    LOP_CH_GEMM,
    LOP_CH_GRAM_T, /* R^T R */
    LOP_CH_GRAM_H,
    LOP_CH_HALF,   /* R^H A^-1 R, A positive definite: half a solve, half a product */
    LOP_CH_MIRROR, /* R^H M R, M Hermitian: one triangle of the last product */
} lop_chhow;
typedef struct lop_chdp {
    int n;
    lop_sym s[LOP_CH_ITEMS];
    int64_t p[LOP_CH_ITEMS + 1];
    uint8_t lean[LOP_CH_ITEMS + 1]; /* how many before are structured, and stay so */
    bool matrix[LOP_CH_ITEMS];      /* a Dense: applied for gemm's price at most */
    bool solved[LOP_CH_ITEMS];      /* an inverse that takes a factor to solve with */
    bool light[LOP_CH_ITEMS];       /* chooses, orders or scales rows */
    bool ring;      /* the factors twice in a row, of which any n / 2 in a row are the whole */
    bool by_solves; /* no span of that ring with an inverse at either end is multiplied by */
    bool loose;     /* structured factors may be made dense wherever that is cheap */
    double cost[LOP_CH_ITEMS][LOP_CH_ITEMS];
    uint8_t how[LOP_CH_ITEMS][LOP_CH_ITEMS], at[LOP_CH_ITEMS][LOP_CH_ITEMS];
} lop_chdp;

typedef struct lop_chain {
    lop_ctx *ctx;
    const lop_costs *costs;
    lop_trail *trail; /* NULL, or the list that gets the states that were not taken */
    lop_dtype dt;     /* in which all is computed */
    bool batched;
    lop_shape batch; /* of the whole */
    int nroot;
    int natom;
    lop_atom atom[LOP_CH_ATOMS];
    lop_chstate state; /* as read; after the search, the best */
    int states;        /* priced so far */
    bool known;        /* the root is one chain as read, and this is its program */
    lop_chdp root;
} lop_chain;

/* What has been priced of one state. */
enum { LOP_CH_MEMO = 32 };
typedef struct lop_chmemo {
    const lop_chain *ch;
    const lop_chstate *st;
    int n, depth;
    lop_chdp *keep; /* NULL, or where the root's program goes */
    double dense[LOP_CH_GROUPS];
    struct {
        int key;
        int64_t k;
        double cost;
    } apply[LOP_CH_MEMO];
} lop_chmemo;

/* chain_read.c. False: not for the planner (too long, integers): as written. `x`: NULL, or what the
 * operator is applied to. */
bool lop_chain_read(lop_chain *ch, lop_ctx *ctx, lop_dtype dt, const lop_node *op,
                    const lop_node *x);
/* Reads several operators that are computed together. */
bool lop_chain_read_several(lop_chain *ch, lop_ctx *ctx, lop_dtype dt, int n,
                            const lop_node *const *op);
/* Appends the factors of one more operator, or of its inverse, to a term. */
bool lop_chain_term(lop_chain *ch, const lop_node *op, bool inverse, lop_chterm *t);
/* Makes a shared group of the sum or product that an atom is; -1: there is no room, or nothing in
 * it. May add atoms. */
int lop_chain_open(lop_chain *ch, lop_chstate *st, int atom);
/* The atom whose properties a symbol has; NULL for a sum. */
static inline const lop_atom *lop_chain_atom(const lop_chain *ch, const lop_chstate *st,
                                             lop_sym s) {
    if (s == LOP_CH_PROXY) return NULL;
    if (!lop_sym_is_group(s)) return &ch->atom[lop_sym_number(s)];
    int opened = st->group[lop_sym_group(s)].opened;
    return opened ? &ch->atom[opened - 1] : NULL;
}
lop_sym lop_chain_canon(const lop_chain *ch, const lop_chstate *st, lop_sym s);
lop_sym lop_chain_seen(const lop_chain *ch, const lop_chstate *st, lop_sym s, int mode);
int64_t lop_chain_rows(const lop_chain *ch, const lop_chstate *st, lop_sym s);
int64_t lop_chain_cols(const lop_chain *ch, const lop_chstate *st, lop_sym s);
/* An array as a new atom; false: no room. */
bool lop_chain_array(lop_chain *ch, const lop_node *x, lop_sym *out);
/* Flops of the formula with the parentheses it came with. */
double lop_chain_written(lop_dtype dt, const lop_node *op, const lop_node *x);

/* chain_cost.c */
/* Would its dense form be a matrix that nobody asked for? True of structured kinds, of inverses,
 * and of sums of one term for which it is true. */
bool lop_chain_lean(const lop_chain *ch, const lop_chstate *st, lop_sym s);
void lop_chmemo_open(lop_chmemo *m, const lop_chain *ch, const lop_chstate *st);
/* Fills cost, how, at for m->st; `d` holds n and s. */
/* Is the span one triangle: 1 upper, 2 lower as it is seen; 0: no. */
int lop_chain_triangle(const lop_chain *ch, const lop_chdp *d, int i, int j);
void lop_chain_dp(lop_chmemo *m, lop_chdp *d);
/* Is the dense form of the inverse at i to be made by its rows, X A = I? By columns, A X = I. */
bool lop_chain_by_rows(const lop_chdp *d, int i);
/* The term's factors under a view, and a proxy of k columns where k >= 0. */
void lop_chain_items(const lop_chmemo *m, const lop_chterm *t, int mode, int64_t k, lop_chdp *d);
/* Seconds of the whole state. `keep`, unless NULL, gets the program where the root is one chain. */
double lop_chain_cost(const lop_chain *ch, const lop_chstate *st, lop_chdp *keep);
/* Other orders of the same chain, cheapest first: one span of the tree split elsewhere, all below
 * it at its best. The cheapest of all other orders is among them. At most `room`; their number. */
typedef struct lop_chother {
    double cost;
    int i, j, at;
} lop_chother;
int lop_chain_others(lop_chmemo *m, const lop_chdp *d, lop_chother *out, int room);
/* Seconds for the diagonal of the whole where it is R^H A^-1 R with a positive definite A; else
 * inf. */
double lop_chain_half(const lop_chmemo *m, const lop_chdp *d);
/* What the step that joins span i..j costs by itself: for the tests. */
lop_price lop_chain_step(lop_chmemo *m, const lop_chdp *d, int i, int j);

/* chain_search.c */
void lop_chain_search(lop_chain *ch);
void lop_chain_tidy(const lop_chain *ch, lop_chstate *st); /* merges like terms */

#endif
