/* fuse_sums.c: sums without the passes over memory between their parts, once all steps are there.
 *
 *   t = A B, u = c t, out = x + u    becomes    out = x (nothing where x dies here), out += c A B
 *                                    or         out = x + c A B, of a column A and a row B
 *   u = -t, out = x + u              becomes    out = x - t
 *   and where nothing else reads x, it is made in `out` from the start
 *   t = A whole of its triangle, f = factor of t    becomes    f = factor of A's triangle
 *   t, u = A, B whole of their triangles, out = t + u    becomes    out = the triangles' sum, whole
 *
 * where t and u are read there alone, whatever transposes (changes of strides) stand between; the
 * sums that a pair means for generators are such a product too, of more arguments, and -t of u = c
 * t is one multiple. All steps that become one lie in the same branch: in a fast one, which is left
 * where its check fails, or in none. Steps of fallbacks and batches stay as they are, plans of more
 * than MANY steps too. */
#include "emit_impl.h"
#include "kernels/common/kernels.h"
#include "kernels/dense/k_blas.h"
#include "passes.h"

#include <math.h>
#include <string.h>

enum {
    LEAST = 16,     /* products with fewer rows or columns are not worth a call of their own */
    MANY = 256,     /* plans of more steps stay as they are, so that this takes linear time */
    STRIP = 64,     /* rows of triangles that are added at once */
    ROWS = 1 << 16, /* bytes of rows that a product which BLAS cannot add is made in, or one row */
};

typedef struct fuse {
    lop_plan *p;
    int *reads, *writes; /* of a slot's memory: how many steps' arguments */
    int *maker;          /* the step that wrote last */
    bool *drop;
} fuse;

static void count(fuse *f) {
    const lop_plan *p = f->p;
    memset(f->reads, 0, (size_t)p->nslot * sizeof *f->reads);
    memset(f->writes, 0, (size_t)p->nslot * sizeof *f->writes);
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        if (!s->run) continue; /* changes of strides */
        int out = lop_slot_base(p, s->arg[0]);
        f->writes[out]++;
        f->maker[out] = i;
        for (int j = 1; j < s->n; j++) f->reads[lop_slot_base(p, s->arg[j])]++;
    }
}

/* Neither guarded nor a check, no batch. */
static bool plain(const lop_plan *p, const lop_step *s) {
    return s->fail < 0 && s->when < 0 && s->late < 0 && s->derived < 0 &&
           p->slot[s->arg[0]].batch == 1;
}

/* In the same fast branch, or both in none. */
static bool together(const lop_step *a, const lop_step *b) { return a->escape == b->escape; }

static bool same_sizes(const lop_slot *a, const lop_slot *b) {
    return a->m == b->m && a->n == b->n && a->batch == b->batch && a->dt == b->dt &&
           a->core == b->core;
}

/* The step that made what `slot` names for step `reader`, read by nobody else; *turned: it is seen
 * transposed. */
static const lop_step *made_for(const fuse *f, const lop_step *reader, int slot, bool *turned) {
    const lop_plan *p = f->p;
    for (; p->slot[slot].alias >= 0; slot = p->slot[slot].alias) {
        if (!p->slot[slot].flip) return NULL;
        *turned = !*turned;
    }
    const lop_slot *s = &p->slot[slot];
    if (s->kind != LOP_S_TEMP || s->need_c || f->reads[slot] != 1 || f->writes[slot] != 1)
        return NULL;
    const lop_step *by = &p->step[f->maker[slot]];
    return plain(p, by) && together(by, reader) && by->arg[0] == slot ? by : NULL;
}

/* The steps without those dropped, `first` (NULL: none) and `second` in the place of `sum`; what
 * counts steps follows. */
static void rebuild(fuse *f, int *place, int sum, const lop_step *first, const lop_step *second) {
    lop_plan *p = f->p;
    int n = 0;
    for (int i = 0; i < p->nstep; i++) {
        place[i] = n;
        if (f->drop[i]) continue;
        if (i == sum && first) p->step[n++] = *first;
        p->step[n++] = i == sum ? *second : p->step[i];
    }
    for (int i = 0; i < p->nslot; i++)
        if (p->slot[i].copy_step >= 0) p->slot[i].copy_step = place[p->slot[i].copy_step];
    for (int i = 0; i < p->nderive; i++) p->derive[i].step = place[p->derive[i].step];
    for (int i = 0; i < n; i++)
        if (p->step[i].escape >= 0) p->step[i].escape_to = place[p->step[i].escape_to];
    p->nstep = n;
}

/* Drops the maker and the changes of strides of what it made. */
static void drop_with_views(fuse *f, const lop_step *maker) {
    lop_plan *p = f->p;
    int base = maker->arg[0];
    f->drop[maker - p->step] = true;
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        if (s->run || lop_slot_base(p, s->arg[0]) != base) continue;
        f->drop[i] = true;
        for (int j = 0; j < s->n; j++) /* the step that would copy is no more */
            if (p->slot[s->arg[j]].copy_step == i) p->slot[s->arg[j]].copy_step = -1;
    }
}

static bool touches(const lop_plan *p, const lop_step *s, int x) {
    for (int j = 0; j < s->n; j++)
        if (lop_slot_base(p, s->arg[j]) == x) return true;
    return false;
}

/* May the sum be built where `x` is, which nothing else reads? Then x is made in `out` from the
 * start, and no step moves it. */
static bool built_in_place(const fuse *f, int x, int out, int sum) {
    const lop_plan *p = f->p;
    const lop_slot *s = &p->slot[x];
    if (s->kind != LOP_S_TEMP || s->alias >= 0 || p->slot[out].alias >= 0 || s->part || s->need_c ||
        s->copy_step >= 0 || f->reads[x] != 1 || f->writes[out] != 1)
        return false;
    for (int i = 0; i < p->nslot; i++)
        if (i != x && p->slot[i].alias == x && p->slot[i].part) return false;
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *by = &p->step[i];
        const bool writes = by->run && lop_slot_base(p, by->arg[0]) == x;
        if (writes && !(plain(p, by) && together(by, &p->step[sum]))) return false;
        if (i < sum ? touches(p, by, out) : i > sum && touches(p, by, x)) return false;
    }
    return f->writes[x] > 0;
}
static void build_in(lop_plan *p, int x, int out) {
    for (int i = 0; i < p->nslot; i++)
        if (p->slot[i].alias == x) p->slot[i].alias = out;
    for (int i = 0; i < p->nstep; i++)
        for (int j = 0; j < p->step[i].n; j++)
            if (p->step[i].arg[j] == x) p->step[i].arg[j] = out;
}

static size_t scratch_of(const lop_slot *out) {
    const size_t row = (size_t)out->n * lop_dtype_size(out->dt), all = (size_t)out->matbytes;
    return all <= ROWS ? all : row > ROWS ? row : (size_t)ROWS;
}

/* Is the product one of a real column and a row, and x not to be written over, or read after the
 * sum? Then one pass over the sum makes it. */
static bool one_pass(const lop_plan *p, const lop_step *product, int x, int sum) {
    const int from = lop_slot_base(p, x);
    bool stays = p->slot[from].kind != LOP_S_TEMP;
    for (int i = sum + 1; i < p->nstep && !stays; i++)
        stays = p->step[i].run && touches(p, &p->step[i], from);
    return stays && product->n == 3 && p->slot[product->arg[1]].m == 1 &&
           !lop_is_complex(p->slot[x].dt);
}

static void onto(fuse *f, int *place, int sum, int x, const lop_step *product,
                 const lop_step *const *scale, lop_coef c, bool turned) {
    lop_plan *p = f->p;
    const lop_step *add = &p->step[sum];
    int out = add->arg[0], t = product->arg[0];
    lop_step start = *add, then = *product;
    const bool there = built_in_place(f, x, out, sum);
    memset(f->drop, 0, (size_t)p->nstep * sizeof *f->drop);
    drop_with_views(f, product);
    for (int i = 0; i < 2 && scale[i]; i++) drop_with_views(f, scale[i]);
    start.name = "start";
    start.run = lop_run_start;
    start.subs = NULL;
    start.subs_name = NULL;
    start.n = 2;
    start.arg[1] = x;
    start.flags = LOP_STEP_INPLACE | LOP_STEP_STARTS;
    start.flops = 0;
    start.bytes = 2 * (double)p->slot[out].matbytes;
    then.name = product->adds_name;
    then.run = product->adds;
    then.adds = NULL;
    then.adds_name = NULL;
    lop_coef_put(&then.attr, c);
    then.flags =
        (then.flags & ~(LOP_STEP_COLUMNS | LOP_STEP_BATCH | LOP_STEP_EACH)) | LOP_STEP_ACCUMULATES;
    if (then.n == 3 || then.scratch < scratch_of(&p->slot[out]))
        then.scratch = scratch_of(&p->slot[out]);
    then.bytes += (double)p->slot[out].matbytes;
    if (turned) {
        p->slot[t].alias = out;
        p->slot[t].flip = true;
        p->slot[t].copy_step = -1; /* no step sees it transposed: the product writes it so */
    } else {
        then.arg[0] = out;
    }
    const bool one = !there && one_pass(p, &then, x, sum);
    if (one) {
        then.name = "rank-one";
        then.flags = (then.flags & ~LOP_STEP_ACCUMULATES) | LOP_STEP_STARTS;
        then.arg[then.n++] = x;
        then.attr.i[1] = turned;
    }
    rebuild(f, place, sum, there || one ? NULL : &start, &then);
    if (there) build_in(p, x, out);
}

static void minus(fuse *f, int *place, int sum, int x, const lop_step *scale) {
    lop_step sub = f->p->step[sum];
    memset(f->drop, 0, (size_t)f->p->nstep * sizeof *f->drop);
    f->drop[scale - f->p->step] = true;
    sub.name = sub.subs_name;
    sub.run = sub.subs;
    sub.subs = NULL; /* what run is now */
    sub.subs_name = NULL;
    sub.flags &= ~LOP_STEP_SUM;
    sub.arg[1] = x;
    sub.arg[2] = scale->arg[1];
    rebuild(f, place, sum, NULL, &sub);
}

/* Is the product worth a call that adds? A matrix of some rows and columns, or what sums over
 * generators: as many numbers, in a line. */
static bool worth_adding(const lop_step *by, const lop_slot *out, bool turned) {
    if (!by || !by->adds) return false;
    return by->n > 3 ? !turned : out->m >= LEAST && out->n >= LEAST;
}
static bool finite(const lop_plan *p, const lop_step *scale, lop_dtype dt) {
    return lop_coef_test(p->ctx, lop_coef_of(&scale->attr), LOP_COEF_FINITE) &&
           p->slot[scale->arg[1]].dt == dt;
}

/* -- halves */

/* The step that mirrored the given array which derived step `s` reads by its triangle; NULL. */
static const lop_step *mirrored_for(const fuse *f, const lop_step *s) {
    const lop_plan *p = f->p;
    if (!(s->flags & LOP_STEP_HALVES) || s->n != 2) return NULL;
    const int x = s->arg[1];
    if (p->slot[x].kind != LOP_S_TEMP || p->slot[x].alias >= 0 || f->writes[x] != 1) return NULL;
    const lop_step *by = &p->step[f->maker[x]];
    const bool right = plain(p, by) && (by->flags & LOP_STEP_MIRRORS) && by->arg[0] == x;
    return right && p->slot[by->arg[1]].kind == LOP_S_LEAF ? by : NULL;
}

/* Factors that read a triangle take the array as it was given, and no matrix is made for them. */
static void read_halves(fuse *f, int *place) {
    lop_plan *p = f->p;
    for (int i = 0; i < p->nstep; i++) {
        count(f);
        lop_step *s = &p->step[i];
        const lop_step *by = mirrored_for(f, s);
        if (!by) continue;
        const bool alone = f->reads[s->arg[1]] == 1;
        s->arg[1] = by->arg[1];
        s->attr.i[1] = by->attr.i[0] ? 2 : 1;
        if (!alone) continue;
        memset(f->drop, 0, (size_t)p->nstep * sizeof *f->drop);
        drop_with_views(f, by);
        rebuild(f, place, -1, NULL, NULL);
        i = -1;
    }
}

/* Argument 0 <- the matrix whose upper triangle is the sum of those of arguments 1 and 2. */
static lop_status run_add_halves(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    for (int64_t i = 0; i < y->m; i += STRIP) {
        const int64_t m = y->m - i < STRIP ? y->m - i : STRIP;
        lop_mat part[3];
        for (int j = 0; j < 3; j++) {
            const lop_mat *a = c->a[j];
            part[j] = (lop_mat){
                (char *)a->p + i * (a->rs + a->cs) * size, m, y->n - i, a->rs, a->cs, a->dt};
        }
        lopk_add(&part[0], &part[1], &part[2]);
    }
    lopk_whole_of_half(y, y, c->step->attr.i[0] != 0);
    return LOP_OK;
}

/* The step that mirrored the given array which argument j of step `add` is, and which nothing else
 * reads; NULL. */
static const lop_step *half_of_sum(const fuse *f, const lop_step *add, int j) {
    const lop_plan *p = f->p;
    bool turned = false;
    const lop_step *by = made_for(f, add, add->arg[j], &turned);
    const bool right =
        by && !turned && (by->flags & LOP_STEP_MIRRORS) && p->slot[by->arg[1]].kind == LOP_S_LEAF;
    return right && same_sizes(&p->slot[add->arg[0]], &p->slot[by->arg[1]]) ? by : NULL;
}

/* Sums of two matrices of which a triangle is given each are made of the triangles. */
static void add_halves(fuse *f, int *place) {
    lop_plan *p = f->p;
    for (int i = 0; i < p->nstep; i++) {
        lop_step *s = &p->step[i];
        if (!(s->flags & LOP_STEP_SUM) || !plain(p, s)) continue;
        count(f);
        const lop_step *by[2] = {half_of_sum(f, s, 1), half_of_sum(f, s, 2)};
        if (!by[0] || !by[1] || by[0]->attr.i[0] != by[1]->attr.i[0]) continue;
        lop_step sum = *s;
        sum.name = "add-halves";
        sum.run = run_add_halves;
        sum.subs = NULL;
        sum.subs_name = NULL;
        sum.flags &= ~(LOP_STEP_SUM | LOP_STEP_INPLACE);
        sum.attr = by[0]->attr;
        for (int j = 0; j < 2; j++) sum.arg[1 + j] = by[j]->arg[1];
        memset(f->drop, 0, (size_t)p->nstep * sizeof *f->drop);
        for (int j = 0; j < 2; j++) drop_with_views(f, by[j]);
        rebuild(f, place, i, NULL, &sum);
        i = -1;
    }
}

/* out = x + argument k of step `sum`. True: the steps are others now. */
static bool try_one(fuse *f, int *place, int sum, int k) {
    lop_plan *p = f->p;
    lop_step *add = &p->step[sum];
    const lop_slot *out = &p->slot[add->arg[0]];
    const int x = add->arg[3 - k], y = add->arg[k];
    bool turned = false;
    if (!same_sizes(out, &p->slot[x]) || !same_sizes(out, &p->slot[y])) return false;
    const lop_step *by = made_for(f, add, y, &turned), *scale[2] = {NULL, NULL};
    lop_coef c = lop_coef_const(1, 0);
    if (!by) return false;
    if (by->flags & LOP_STEP_SCALES) {
        scale[0] = by;
        const bool upright = !turned;
        by = made_for(f, add, by->arg[1], &turned);
        c = lop_coef_of(&scale[0]->attr);
        if (!finite(p, scale[0], out->dt)) return false;
        if (!worth_adding(by, out, turned) && upright &&
            lop_coef_test(p->ctx, c, LOP_COEF_MINUS_ONE)) {
            const lop_step *within =
                by && (by->flags & LOP_STEP_SCALES) ? made_for(f, add, by->arg[1], &turned) : NULL;
            if (!within || within->n == 3 || !worth_adding(within, out, turned) ||
                !finite(p, by, out->dt)) {
                minus(f, place, sum, x, scale[0]);
                return true;
            }
            scale[1] = by;
            c = lop_coef_times(p->ctx, c, lop_coef_of(&by->attr));
            by = within;
        }
    }
    if (!worth_adding(by, out, turned)) return false;
    for (int i = add->arg[0]; turned && i >= 0; i = p->slot[i].alias)
        if (p->slot[i].part) return false; /* a block is transposed by its strides */
    onto(f, place, sum, x, by, scale, c, turned);
    return true;
}

lop_status lop_fuse(lop_plan *p, lop_err *err) {
    bool any = false;
    for (int i = 0; i < p->nstep && !any; i++)
        any = (p->step[i].flags & (LOP_STEP_SUM | LOP_STEP_MIRRORS)) != 0;
    if (!any || p->nstep > MANY) return LOP_OK;
    size_t slots = (size_t)p->nslot, steps = (size_t)p->nstep;
    fuse f = {.p = p};
    int *block = lop_calloc(p->ctx, 3 * slots + steps, sizeof *block);
    f.drop = lop_calloc(p->ctx, steps, sizeof *f.drop);
    lop_status st = block && f.drop ? LOP_OK : lop_fail(err, LOP_NOMEM, NULL);
    f.reads = block;
    f.writes = block + slots;
    f.maker = block + 2 * slots;
    if (st == LOP_OK) {
        read_halves(&f, block + 3 * slots);
        add_halves(&f, block + 3 * slots);
    }
    for (int i = 0; st == LOP_OK && i < p->nstep; i++) {
        if (!(p->step[i].flags & LOP_STEP_SUM) || !plain(p, &p->step[i])) continue;
        count(&f);
        if (try_one(&f, block + 3 * slots, i, 2) || try_one(&f, block + 3 * slots, i, 1)) i = -1;
    }
    lop_free(p->ctx, f.drop);
    lop_free(p->ctx, block);
    return st;
}
