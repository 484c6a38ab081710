/* support.h: what the C tests share: counting, an allocator that fails on demand, a world (context,
 * rules, store, random leaves), plans run on leaves and results of any legal memory layout.
 *
 * A check that fails prints its line at once (the first few of a group); t_end prints "N passed, M
 * failed" and gives main's exit status. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include "exec/exec.h"
#include "expr/random_instance.h"
#include "expr/sexpr.h"
#include "interp.h"

/* -- counting */

bool t_check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
void t_group(const char *name); /* closes the group of checks since the last call: one line */
int t_end(void);
double t_seconds(void); /* CPU time of the process */
/* argv[i] as a number, or `fallback`. */
double t_number(int argc, char **argv, int i, double fallback);

/* -- the world */

/* Allocations are counted; the one with number `fail_at` fails (-1: none), and with `all` every
 * later one too. */
typedef struct failing {
    int64_t count, fail_at;
    bool all;
} failing;

typedef struct world {
    failing memory;
    lop_ctx ctx;
    lop_err err;
    lop_rules *rules;
    lop_store store;
    lop_options options;
    lop_rand rand;
} world;

void world_open(world *w, uint64_t seed);
/* Checks that nothing is alive. */
void world_close(world *w, const char *who);
/* What is sparse goes outside whatever its size, to a solver that declines. */
void world_sparse(world *w);
/* Frees the random leaves and starts their counting anew. */
void world_leaves(world *w);
lop_rng *world_rng(world *w);
int64_t world_pick(world *w, int64_t lo, int64_t hi); /* lo <= . < hi */

/* Owned nodes; NULL with w->err filled on failure. Children are borrowed. */
const lop_node *t_node(world *w, const char *op, const lop_attr *attr, int n,
                       const lop_node *const *child);
const lop_node *t_one(world *w, const char *op, const lop_attr *attr, const lop_node *a);
const lop_node *t_two(world *w, const char *op, const lop_node *a, const lop_node *b);
/* As above, taking over the children (NULL passes through). */
const lop_node *t_one_of(world *w, const char *op, const lop_attr *attr, const lop_node *a);
const lop_node *t_two_of(world *w, const char *op, const lop_node *a, const lop_node *b);
/* A stack of positive definite 4 x 4 matrices; `kind` of element 1: 0 the same, 1 indefinite, 2
 * singular. */
const lop_node *t_stack(world *w, int kind);
const lop_node *t_array(world *w, lop_dtype dt, int core, int ndim, const int64_t *dim);
lop_attr t_ints(int64_t a, int64_t b, int64_t c, int64_t d);
const lop_op *t_op(const char *name);

/* -- running */

/* How leaves and the result lie in memory: 0 C order; 1 Fortran order; 2 padded C, 3 padded
 * Fortran, both at an odd address; 4 batch dimensions innermost first; 5 batch dimensions
 * backwards. */
enum { LAYOUTS = 6 };

/* An array in its own memory, a copy of `from` (C order) or poisoned where that is NULL. */
typedef struct placed {
    lop_buf buf;
    unsigned char *block;
    size_t bytes;
} placed;
placed place_array(const lop_buf *from, lop_dtype dt, int core, const lop_shape *shape, int layout);
/* Only the elements of the array differ from poison. */
bool placed_intact(const placed *a);
void placed_free(placed *a);

/* Binds the leaves from w->rand in that layout, runs, gives the result in *out (the caller frees it
 * with placed_free, also on failure). */
lop_status t_exec(world *w, const lop_plan *plan, int layout, placed *out, int64_t *fallbacks);
/* Plans and runs. */
lop_status t_run(world *w, const lop_node *root, int layout, placed *out);
/* Runs and compares with the interpreter; a check. `factor` times u is allowed on |A| |B|. */
bool t_agrees(world *w, const lop_node *root, int layout, double factor, const char *who);
/* Does this expression's product promise a normwise bound only? */
bool t_may_fft(const lop_node *node);

#endif
