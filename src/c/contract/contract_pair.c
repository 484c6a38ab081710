/* contract_pair.c: two arrays, one contraction: which axes are rows, columns, terms of a product of
 * matrices, which are loops around it, and what is copied first.
 *
 * Axes are of four sorts: in both operands and kept (batch), of the left one (rows), of the right
 * one (columns), in both and summed (terms). Axes of a sort that lie behind each other in all
 * arrays are one. For each set of arrays that may be copied into an order of their own, and with
 * terms both joined and as they are, every choice of one axis of each sort is priced; beside it a
 * nest of loops without any product of matrices. */
#include "contract_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum sort { BATCH, ROW, COL, TERM, SORTS, GROUPS = SORTS, PLACES };
enum { C_, A_, B_, ARRAYS };
enum { PACK_C = 1 << C_, PACK_A = 1 << A_, PACK_B = 1 << B_ };
enum { TINY = 8, TINY_WORK = 7 * 7 * 7 };

/* Measured, EPYC, one thread: a call, a batch of tiny products among them; copies read and written
 * in the cache and beyond, their call; of whole runs of at least so many bytes, and each of these.
 */
static const double CALL = 1e-7, COPY_NEAR = 1.6e10, COPY_FAR = 7e9, NEAR = 4e6, COPY_CALL = 1e-7,
                    RUNS_NEAR = 4e10, RUNS_FAR = 1.5e10, RUN = 5e-9, SHORTEST = 32;

typedef struct axis {
    int label;
    int64_t size, s[ARRAYS]; /* strides; 0 where the array has not the label */
} axis;
typedef struct axes {
    int n[SORTS];
    axis x[SORTS][LOP_MAXAXES];
} axes;

typedef struct choice {
    double seconds;
    int packed;  /* PACK_* */
    int turned;  /* of these, the ones in the other order */
    bool joined; /* terms that lie behind each other are one */
    bool nest;
    int at[PLACES]; /* fused axes; of batch that of `each`; GROUPS: more terms; -1: none */
} choice;

/* -- axes */
static int64_t stride_in(const lop_tensor *t, int label, bool *has) {
    for (int i = 0; t && i < t->n; i++)
        if (t->label[i] == label) {
            *has = true;
            return t->stride[i];
        }
    *has = false;
    return 0;
}

/* All axes of a and b by sort; c's strides where c is there. */
static void collect(const lop_contract_work *w, const lop_tensor *a, const lop_tensor *b,
                    const lop_tensor *c, const lop_labels *kept, axes *all) {
    memset(all->n, 0, sizeof all->n);
    for (int side = 0; side < 2; side++) {
        const lop_tensor *t = side ? b : a;
        for (int i = 0; i < t->n; i++) {
            bool in_a, in_b, in_c;
            axis x = {.label = t->label[i], .size = w->size[t->label[i]]};
            x.s[A_] = stride_in(a, x.label, &in_a);
            x.s[B_] = stride_in(b, x.label, &in_b);
            x.s[C_] = stride_in(c, x.label, &in_c);
            if (side && in_a) continue;
            const bool stays = lop_labels_has(kept, x.label);
            const enum sort sort = in_a && in_b ? (stays ? BATCH : TERM) : in_a ? ROW : COL;
            all->x[sort][all->n[sort]++] = x;
        }
    }
}

/* Indices of a sort's axes, the longest stride in `by` first; stable. */
static void in_order(const axes *all, enum sort sort, int by, int *order) {
    const int n = all->n[sort];
    for (int i = 0; i < n; i++) {
        const int64_t s = llabs(all->x[sort][i].s[by]);
        int j = i;
        for (; j > 0 && llabs(all->x[sort][order[j - 1]].s[by]) < s; j--) order[j] = order[j - 1];
        order[j] = i;
    }
}

/* Array `of` in an order of its own: three sorts, each in the order it has in another array. */
static void repack(axes *all, int of, const enum sort sort[3], const int by[3]) {
    int64_t stride = 1;
    for (int i = 2; i >= 0; i--) {
        int order[LOP_MAXAXES];
        in_order(all, sort[i], by[i], order);
        for (int j = all->n[sort[i]] - 1; j >= 0; j--) {
            axis *x = &all->x[sort[i]][order[j]];
            x->s[of] = stride;
            stride *= x->size;
        }
    }
}
/* The sort of the axis of array `of` whose elements are the closest together. */
static enum sort innermost(const axes *all, int of) {
    enum sort found = TERM;
    int64_t least = INT64_MAX;
    for (int sort = SORTS - 1; sort > BATCH; sort--)
        for (int i = 0; i < all->n[sort]; i++) {
            const int64_t s = llabs(all->x[sort][i].s[of]);
            if (!s || s >= least) continue;
            least = s;
            found = (enum sort)sort;
        }
    return found;
}
/* What is `turned` has columns before rows, terms before rows, columns before terms: where it lies
 * so, a copy moves whole runs. */
static void pack(axes *all, int packed, int turned) {
    static const enum sort order[ARRAYS][2][3] = {{{BATCH, ROW, COL}, {BATCH, COL, ROW}},
                                                  {{BATCH, ROW, TERM}, {BATCH, TERM, ROW}},
                                                  {{BATCH, TERM, COL}, {BATCH, COL, TERM}}};
    /* terms of two copies lie as in the one that ends in them */
    const int terms = packed & PACK_B && innermost(all, A_) == TERM ? A_ : B_;
    const int by[ARRAYS][SORTS] = {[C_] = {[BATCH] = A_, [ROW] = A_, [COL] = B_},
                                   [A_] = {[BATCH] = C_, [ROW] = C_, [TERM] = terms},
                                   [B_] = {[BATCH] = C_, [TERM] = A_, [COL] = C_}};
    for (int of = 0; of < ARRAYS; of++) {
        const enum sort *sort = order[of][turned >> of & 1];
        const int from[3] = {by[of][sort[0]], by[of][sort[1]], by[of][sort[2]]};
        if (packed >> of & 1) repack(all, of, sort, from);
    }
}

/* Joins axes of a sort that lie behind each other in every array. */
static void fuse(const axes *all, axes *out, bool joined) {
    for (int sort = 0; sort < SORTS; sort++) {
        int order[LOP_MAXAXES], n = 0;
        in_order(all, (enum sort)sort, sort == TERM ? A_ : C_, order);
        for (int i = 0; i < all->n[sort]; i++) {
            const axis *x = &all->x[sort][order[i]];
            axis *last = n ? &out->x[sort][n - 1] : NULL;
            bool behind = last && (joined || sort != TERM);
            for (int t = 0; behind && t < ARRAYS; t++) behind = last->s[t] == x->s[t] * x->size;
            if (behind) {
                last->size *= x->size;
                memcpy(last->s, x->s, sizeof x->s);
            } else
                out->x[sort][n++] = *x;
        }
        out->n[sort] = n;
    }
}

/* -- products of matrices */
static double count_of(const axes *all, enum sort sort, int but) {
    double v = 1;
    for (int i = 0; i < all->n[sort]; i++)
        if (i != but) v *= (double)all->x[sort][i].size;
    return v;
}

static const axis *chosen(const axes *all, const int *at, enum sort sort) {
    static const axis none = {0, 1, {0, 0, 0}};
    return at[sort] >= 0 ? &all->x[sort][at[sort]] : &none;
}

static void matrices(const axes *all, const int *at, lop_contract_step *g) {
    const axis *row = chosen(all, at, ROW), *col = chosen(all, at, COL),
               *term = chosen(all, at, TERM);
    g->m = row->size;
    g->n = col->size;
    g->k = term->size;
    g->am = at[ROW] < 0 ? g->k : row->s[A_];
    g->ak = at[TERM] < 0 ? 1 : term->s[A_];
    g->bk = at[TERM] < 0 ? g->n : term->s[B_];
    g->bn = at[COL] < 0 ? 1 : col->s[B_];
    g->cm = at[ROW] < 0 ? g->n : row->s[C_];
    g->cn = at[COL] < 0 ? 1 : col->s[C_];
}

/* Terms `more` join those of g in groups, where one array is windows and the other one's lie behind
 * each other: g, and whether that is to be had. Rows within each other are none for BLAS. */
static bool in_groups(const axes *all, int term, int more, lop_dtype dt, lop_contract_step *g) {
    const axis *t = &all->x[TERM][term], *u = &all->x[TERM][more];
    const bool rows = g->n <= 1 ? g->cm != 1 : g->cn == 1, suits = lop_contract_own_loops(dt, g);
    const bool plain = rows ? lop_contract_simple(g->m, g->k, g->am, g->ak)
                            : lop_contract_simple(g->k, g->n, g->bk, g->bn);
    const int whole = rows ? B_ : A_;
    if (term == more || t->size > 128 || u->s[whole] != t->s[whole] * t->size) return false;
    g->k *= u->size;
    if (!lop_contract_own_loops(dt, g) && (!suits || plain)) return false;
    g->group = t->size;
    g->apart = u->s[rows ? A_ : B_];
    return true;
}

/* The best product of matrices over these axes: seconds without copies; `at` of it. */
static double best_gemm(const axes *all, lop_dtype dt, int *best_at) {
    double best = INFINITY;
    const int last_batch = all->n[BATCH] - 1;
    const double bytes = (double)lop_dtype_size(dt) * count_of(all, BATCH, -1) *
                         count_of(all, ROW, -1) * count_of(all, COL, -1);
    for (int i = all->n[ROW] ? 0 : -1; i < all->n[ROW]; i++)
        for (int j = all->n[COL] ? 0 : -1; j < all->n[COL]; j++)
            for (int l = all->n[TERM] ? 0 : -1; l < all->n[TERM]; l++) {
                int at[PLACES] = {-1, i, j, l, -1};
                lop_contract_step g = {0};
                matrices(all, at, &g);
                const double calls = count_of(all, BATCH, -1) * count_of(all, ROW, i) *
                                     count_of(all, COL, j) * count_of(all, TERM, l);
                double seconds = calls * lop_contract_gemm_seconds(dt, &g, all->n[TERM] > 1, bytes);
                if (g.m <= TINY && g.n <= TINY && g.k <= TINY && g.m * g.n * g.k <= TINY_WORK &&
                    last_batch >= 0 && all->n[TERM] <= 1) {
                    const double many = (double)all->x[BATCH][last_batch].size,
                                 each = calls / many * CALL +
                                        calls * lop_contract_tiny_seconds(dt, &g);
                    if (each < seconds) {
                        seconds = each;
                        at[BATCH] = last_batch;
                    }
                }
                for (int more = 0; more < all->n[TERM]; more++) {
                    lop_contract_step wide = g;
                    if (!in_groups(all, l, more, dt, &wide)) continue;
                    const double other =
                        calls / (double)all->x[TERM][more].size *
                        lop_contract_gemm_seconds(dt, &wide, all->n[TERM] > 2, bytes);
                    if (other >= seconds) continue;
                    seconds = other;
                    at[GROUPS] = more;
                }
                if (seconds < best) {
                    best = seconds;
                    memcpy(best_at, at, sizeof at);
                }
            }
    return best;
}

/* All axes as loops. */
static int loops_of(const axes *all, const int *but, lop_loop *loop) {
    int n = 0;
    static const enum sort order[SORTS] = {BATCH, ROW, COL, TERM};
    for (int o = 0; o < SORTS; o++)
        for (int i = 0; i < all->n[order[o]]; i++) {
            const axis *x = &all->x[order[o]][i];
            if (but && (but[order[o]] == i || (order[o] == TERM && but[GROUPS] == i))) continue;
            loop[n++] = (lop_loop){x->size, x->s[C_], x->s[A_], x->s[B_], order[o] == TERM};
        }
    if (but && but[BATCH] >= 0) { /* last: the loop of `each` */
        const axis *x = &all->x[BATCH][but[BATCH]];
        loop[n++] = (lop_loop){x->size, x->s[C_], x->s[A_], x->s[B_], false};
    }
    return n;
}

/* -- steps */
static int64_t elements(const lop_contract_work *w, const lop_tensor *t) {
    int64_t count = 1;
    for (int i = 0; i < t->n; i++)
        if (!lop_mul_ok(count, w->size[t->label[i]], &count)) return -1;
    return count;
}

/* A nest over loops: to = a b, or a's sums. */
static lop_status add_nest(lop_contract_work *w, int c, int a, int b, const lop_loop *all, int n,
                           const char *why) {
    lop_loop loop[2 * LOP_MAXAXES + 2];
    lop_contract_step step = {.how = LOP_BY_NEST, .a = a, .b = b, .c = c, .why = why};
    lop_contract_nest(&step, loop, all, n, w->plan->dt);
    return lop_contract_step_add(w, &step, loop);
}

/* Array `of` of the axes as a tensor: strides as they are there. */
static void tensor_of(const axes *all, int of, const lop_tensor *like, lop_tensor *t) {
    t->n = like->n;
    for (int i = 0; i < like->n; i++) {
        t->label[i] = like->label[i];
        for (int sort = 0; sort < SORTS; sort++)
            for (int j = 0; j < all->n[sort]; j++)
                if (all->x[sort][j].label == like->label[i]) t->stride[i] = all->x[sort][j].s[of];
    }
}

/* to = from, of the same labels. */
static lop_status add_copy(lop_contract_work *w, const lop_tensor *to, const lop_tensor *from,
                           const char *why) {
    lop_loop loop[LOP_MAXAXES];
    for (int i = 0; i < to->n; i++) {
        bool has;
        const int label = to->label[i];
        loop[i] = (lop_loop){w->size[label], to->stride[i], stride_in(from, label, &has), 0, false};
    }
    return add_nest(w, to->slot, from->slot, -1, loop, to->n, why);
}

static lop_status copied(lop_contract_work *w, const axes *all, int of, const lop_tensor *like,
                         lop_tensor *t) {
    tensor_of(all, of, like, t);
    const int64_t count = elements(w, like);
    if (count < 0) return lop_fail(w->err, LOP_OVERFLOW, NULL);
    const lop_status st = lop_contract_slot(w, count, &t->slot);
    t->same = t->slot;
    return st;
}

/* Array `of` from where it lies in `all` into where it lies in `packed`, or back: runs that lie
 * along both are moved whole. Turned, narrow elements take as long as those of 8 bytes. Of windows
 * a copy costs what it saves: loops find what they read again in the cache, which no price of
 * theirs says. */
static double copy_seconds(const lop_contract_work *w, const axes *all, const axes *packed,
                           int of) {
    double count = 1, reach = 1;
    int64_t run = 1;
    for (bool longer = true, first = true; longer; first = false) {
        const int64_t from = run;
        for (int sort = 0; sort < SORTS; sort++)
            for (int i = 0; i < all->n[sort]; i++) {
                const axis *x = &all->x[sort][i];
                const int64_t s = packed->x[sort][i].s[of];
                if (first && s) {
                    count *= (double)x->size;
                    reach += (double)(x->size - 1) * (double)llabs(x->s[of]);
                }
                if (s == run && x->s[of] == run && x->size > 1) run *= x->size;
            }
        longer = run > from;
    }
    const double size = (double)lop_dtype_size(w->plan->dt), bytes = count * size,
                 turned = count * fmax(8, size);
    if ((double)run * size >= SHORTEST && count <= reach)
        return 2 * bytes / (bytes < NEAR ? RUNS_NEAR : RUNS_FAR) + count / (double)run * RUN +
               COPY_CALL;
    return 2 * turned / (turned < NEAR ? COPY_NEAR : COPY_FAR) + COPY_CALL;
}

/* Both arrays on one memory, its rows the other's columns: half of the product is known. */
static bool is_gram(const lop_tensor *a, const lop_tensor *b, const lop_contract_step *g,
                    const lop_loop *loop, int n) {
    bool gram = a->same == b->same && g->m == g->n && g->am == g->bn && g->ak == g->bk &&
                lop_contract_simple(g->m, g->n, g->cm, g->cn) &&
                lop_contract_simple(g->m, g->k, g->am, g->ak);
    for (int i = 0; gram && i < n; i++) gram = !loop[i].sum && loop[i].a == loop[i].b;
    return gram;
}

/* The best choice with these arrays packed, these of them turned; `best` where none is better. */
static choice with_copies(const lop_contract_work *w, const axes *all, int mask, int turned,
                          int force, choice best, axes *packed, axes *fused) {
    double copies = 0;
    *packed = *all;
    pack(packed, mask, turned);
    for (int i = 0; i < ARRAYS; i++)
        if (mask >> i & 1) copies += copy_seconds(w, all, packed, i);
    if (copies >= best.seconds) return best;
    for (int joined = 1; joined >= 0; joined--) {
        choice one = {.packed = mask, .turned = turned, .joined = joined};
        if (!joined && packed->n[TERM] < 2) continue;
        if (force && (force == 17 || (force > 8) == joined)) continue;
        fuse(packed, fused, joined);
        one.seconds = copies + best_gemm(fused, w->plan->dt, one.at);
        if (one.seconds < best.seconds) best = one;
    }
    return best;
}

/* `force` as in lop_spec. */
static choice choose(const lop_contract_work *w, const axes *all, const lop_tensor *const t[],
                     int force, axes *packed, axes *fused) {
    const int turns = force / 32, how = force % 32; /* tests: turned and packed as said */
    choice best = {.seconds = INFINITY};
    for (int mask = 0; mask < 8; mask++) {
        if ((mask & PACK_C) && !t[C_]->n) continue;
        if (how && how != 17 && (how - 1) % 8 != mask) continue;
        int turned = 0;
        do {
            if (!how || turned == (turns & mask))
                best = with_copies(w, all, mask, turned, how, best, packed, fused);
            turned = (turned - mask) & mask; /* the next part of mask; after all of it none */
        } while (turned);
        if (mask == 0 && (!how || how == 17)) {
            lop_loop loop[2 * LOP_MAXAXES], some[2 * LOP_MAXAXES + 2];
            lop_contract_step nest;
            fuse(all, fused, true);
            lop_contract_nest(&nest, some, loop, loops_of(fused, NULL, loop), w->plan->dt);
            if (nest.seconds < best.seconds)
                best = (choice){.seconds = nest.seconds, .joined = true, .nest = true};
        }
    }
    return best;
}

/* c = a b by the cheapest choice; c has its slot. */
static lop_status lower(lop_contract_work *w, const lop_tensor *a, const lop_tensor *b,
                        const lop_tensor *c, const axes *all, axes *packed, axes *fused) {
    const lop_tensor *t[ARRAYS] = {c, a, b};
    lop_tensor made[ARRAYS];
    lop_loop loop[2 * LOP_MAXAXES];
    lop_status st = LOP_OK;
    choice best = choose(w, all, t, w->spec->force, packed, fused);
    if (w->spec->force && best.seconds == INFINITY) best = choose(w, all, t, 0, packed, fused);
    *packed = *all;
    pack(packed, best.packed, best.turned);
    fuse(packed, fused, best.joined);
    if (best.nest)
        return add_nest(w, c->slot, a->slot, b->slot, loop, loops_of(fused, NULL, loop), NULL);
    for (int i = 0; i < ARRAYS; i++)
        if (best.packed >> i & 1) {
            LOP_TRY(copied(w, packed, i, t[i], &made[i]));
            t[i] = &made[i];
        }
    if (best.packed & PACK_A) LOP_TRY(add_copy(w, t[A_], a, "pack"));
    if (best.packed & PACK_B) LOP_TRY(add_copy(w, t[B_], b, "pack"));
    lop_contract_step g = {
        .how = LOP_BY_GEMM, .a = t[A_]->slot, .b = t[B_]->slot, .c = t[C_]->slot};
    matrices(fused, best.at, &g);
    if (best.at[GROUPS] >= 0)
        (void)in_groups(fused, best.at[TERM], best.at[GROUPS], w->plan->dt, &g);
    g.each = best.at[BATCH] >= 0;
    g.nloop = loops_of(fused, best.at, loop);
    if (!g.each && !g.group && is_gram(t[A_], t[B_], &g, loop, g.nloop)) g.how = LOP_BY_GRAM;
    g.seconds = best.seconds;
    g.flops = 2;
    for (int sort = 0; sort < SORTS; sort++) g.flops *= count_of(fused, (enum sort)sort, -1);
    LOP_TRY(lop_contract_step_add(w, &g, loop));
    if (best.packed & PACK_C) LOP_TRY(add_copy(w, c, t[C_], "unpack"));
done:
    return st;
}

/* Where nobody says how the result is to lie: rows before columns, or (`turned`) behind them, each
 * as in its operand. */
static bool lay_out(axes *all, const lop_labels *kept, const lop_tensor *a, const lop_tensor *b,
                    bool turned, lop_tensor *c) {
    static const enum sort of_c[2][3] = {{BATCH, ROW, COL}, {BATCH, COL, ROW}};
    static const int by[2][3] = {{A_, A_, B_}, {A_, B_, A_}};
    lop_tensor like = {.n = 0};
    double count = 1;
    for (int sort = BATCH; sort <= COL; sort++) count *= count_of(all, (enum sort)sort, -1);
    if (count > 0x1p60) return false; /* at most 60 axes */
    repack(all, C_, of_c[turned], by[turned]);
    for (int side = 0; side < 2; side++) {
        const lop_tensor *t = side ? b : a;
        for (int i = 0; i < t->n; i++) {
            bool twice = false;
            if (side) (void)stride_in(a, t->label[i], &twice);
            if (lop_labels_has(kept, t->label[i]) && !twice) like.label[like.n++] = t->label[i];
        }
    }
    tensor_of(all, C_, &like, c);
    return true;
}

/* Sums of one array, or the array in another order. */
static lop_status alone(lop_contract_work *w, const lop_tensor *a, lop_tensor *c,
                        const lop_labels *kept) {
    lop_loop loop[LOP_MAXAXES];
    int n = 0, order[LOP_MAXAXES];
    if (c->n < 0) { /* in the order of its strides */
        axes *all = lop_alloc(w->ctx, sizeof *all);
        if (!all) return lop_fail(w->err, LOP_NOMEM, NULL);
        const lop_tensor none = {.n = 0};
        collect(w, a, &none, NULL, kept, all);
        in_order(all, ROW, A_, order);
        c->n = 0;
        for (int i = 0; i < all->n[ROW]; i++)
            if (lop_labels_has(kept, all->x[ROW][order[i]].label))
                c->label[c->n++] = all->x[ROW][order[i]].label;
        int64_t stride = 1;
        for (int i = c->n - 1; i >= 0; i--) {
            c->stride[i] = stride;
            if (!lop_mul_ok(stride, w->size[c->label[i]], &stride)) stride = INT64_MAX;
        }
        lop_free(w->ctx, all);
        const lop_status st = lop_contract_slot(w, stride, &c->slot);
        if (st != LOP_OK) return st;
        c->same = c->slot;
    }
    for (int i = 0; i < a->n; i++) {
        bool stays;
        const int64_t s = stride_in(c, a->label[i], &stays);
        loop[n++] = (lop_loop){w->size[a->label[i]], s, a->stride[i], 0, !stays};
    }
    return add_nest(w, c->slot, a->slot, -1, loop, n, c->slot == w->spec->noperand ? NULL : "sum");
}

/* A result whose order nobody says lies as it comes where that is cheaper by a tenth, or where it
 * would be put in order by a copy; rows or columns last, as its last axis has it. */
static void settle_result(lop_contract_work *w, const lop_tensor *a, const lop_tensor *b,
                          lop_tensor *c, const lop_labels *kept, axes *room) {
    const lop_tensor *t[ARRAYS] = {c, a, b};
    lop_tensor own = {.slot = c->slot, .same = c->same};
    lop_axes *r = &w->plan->result;
    const choice fixed = choose(w, &room[0], t, 0, &room[1], &room[2]);
    double most = (fixed.packed & PACK_C ? 0.99 : 0.9) * fixed.seconds;
    const bool last = innermost(&room[0], C_) == ROW;
    int taken = -1;
    for (int other = 0; other < 2; other++) {
        collect(w, a, b, NULL, kept, &room[3]);
        if (!lay_out(&room[3], kept, a, b, last != other, &own)) return;
        t[C_] = &own;
        const double seconds = choose(w, &room[3], t, 0, &room[1], &room[2]).seconds;
        if (seconds >= most) continue;
        most = 0.97 * seconds;
        taken = other;
    }
    if (taken < 0) return;
    collect(w, a, b, NULL, kept, &room[0]);
    if (!lay_out(&room[0], kept, a, b, last != taken, &own)) return;
    *c = own;
    for (int i = 0; i < r->n; i++) {
        bool has;
        const int64_t stride = stride_in(c, r->label[i], &has);
        if (has) r->stride[i] = stride;
    }
}

lop_status lop_contract_pair(lop_contract_work *w, const lop_tensor *a, const lop_tensor *b,
                             lop_tensor *c, const lop_labels *kept) {
    if (!b) return alone(w, a, c, kept);
    lop_status st = LOP_OK;
    axes *room = lop_alloc(w->ctx, 4 * sizeof *room);
    if (!room) return lop_fail(w->err, LOP_NOMEM, NULL);
    collect(w, a, b, c->n < 0 ? NULL : c, kept, &room[0]);
    if (w->spec->any_order && c == &w->result) settle_result(w, a, b, c, kept, room);
    if (c->n < 0) {
        if (!lay_out(&room[0], kept, a, b, false, c))
            LOP_TRY(lop_fail(w->err, LOP_OVERFLOW, "a product of parts of 2^60 elements and more"));
        LOP_TRY(lop_contract_slot(w, elements(w, c), &c->slot));
        c->same = c->slot;
    }
    LOP_TRY(lower(w, a, b, c, &room[0], &room[1], &room[2]));
done:
    lop_free(w->ctx, room);
    return st;
}
