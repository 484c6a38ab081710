/* contract_check.c: is a contraction's plan sound? Asked of every plan in debug builds, and where
 * pl.config(check_plans=True) says so.
 *
 *   - each step reads what lies there already and writes a temporary or the result;
 *   - each operand is read, at exactly the elements that its axes say; a temporary is written at
 *     exactly the elements of an array without gaps, and read at these; the result is written at
 *     the elements of its axes;
 *   - temporaries that live at once lie beside each other, within the workspace.
 *
 * Nothing that the planner worked out is trusted but the steps. Loops of n places s apart visit
 * elements whose generating function is (x^(n s) - 1) / (x^s - 1), their product that of all of
 * them: two sets of loops visit the same elements, as often, where they start at the same one and
 * the factors left of a fraction cancel those of the other. So it does not matter which loops are
 * one and which are apart. */
#include "contract_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Up to two loops of a matrix more (terms in groups), and the parts around. */
enum { C_, A_, B_, ARRAYS, MOST = 2 * LOP_MAXAXES + 8 };

typedef struct reach {
    int n;
    int64_t first;                /* the least element, from the array's own */
    int64_t over[MOST], by[MOST]; /* n s, s */
} reach;

typedef struct checker {
    lop_ctx *ctx;
    const lop_spec *spec;
    const lop_contraction *p;
    lop_err *err;
    int *born, *last; /* of each slot: its first and last step; -1 */
    int64_t *count;   /* of temporaries: elements */
    int64_t size[LOP_MAXLABELS];
    reach want, found;
} checker;

static lop_status fault(const checker *k, int step, const char *format, ...) {
    char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return lop_fail(k->err, LOP_INTERNAL,
                    "pylinop made a plan of a contraction that is wrong (a bug of ours, please "
                    "report it with this text), step %d of %d: %s",
                    step, k->p->nstep, what);
}

/* -- elements that loops visit */

static void open(reach *r) { r->n = 0, r->first = 0; }

/* false: more loops than a step has, or none of a size. */
static bool visit(reach *r, int64_t size, int64_t stride) {
    int64_t all;
    if (size < 1) return false;
    if (size == 1 || !stride) return true; /* the same elements again */
    if (r->n == MOST || !lop_mul_ok(size, llabs(stride), &all)) return false;
    if (stride < 0) r->first += (size - 1) * stride;
    r->over[r->n] = all;
    r->by[r->n++] = llabs(stride);
    return true;
}

static int ascending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool alike(const reach *a, const reach *b) {
    int64_t left[2 * MOST], right[2 * MOST];
    const size_t n = (size_t)(a->n + b->n);
    if (a->first != b->first) return false;
    memcpy(left, a->over, (size_t)a->n * sizeof *left);
    memcpy(left + a->n, b->by, (size_t)b->n * sizeof *left);
    memcpy(right, b->over, (size_t)b->n * sizeof *right);
    memcpy(right + b->n, a->by, (size_t)a->n * sizeof *right);
    qsort(left, n, sizeof *left, ascending);
    qsort(right, n, sizeof *right, ascending);
    return !memcmp(left, right, n * sizeof *left);
}

/* What a step visits of its array C_, A_, B_. */
static bool visited(const checker *k, const lop_contract_step *s, int of, reach *r) {
    const lop_contraction *p = k->p;
    const int slot[ARRAYS] = {s->c, s->a, s->b};
    open(r);
    if (p->part && slot[of] <= p->noperand && !visit(r, p->parts, p->part[slot[of]])) return false;
    for (int i = 0; i < s->nloop; i++) {
        const lop_loop *l = &p->loop[s->first + i];
        const int64_t stride[ARRAYS] = {l->c, l->a, l->b};
        if (!visit(r, l->size, stride[of])) return false;
    }
    if (s->how == LOP_BY_NEST) return true;
    if (of == C_) return visit(r, s->m, s->cm) && visit(r, s->n, s->cn);
    const bool rows = s->n <= 1 ? s->cm != 1 : s->cn == 1; /* the windows are the left operand's */
    const int64_t along = of == A_ ? s->ak : s->bk;
    if (!(of == A_ ? visit(r, s->m, s->am) : visit(r, s->n, s->bn))) return false;
    if (!s->group || (of == A_) != rows) return visit(r, s->k, along);
    return s->k % s->group == 0 && visit(r, s->group, along) && visit(r, s->k / s->group, s->apart);
}

/* What the axes of an operand or the result are. */
static bool described(checker *k, const lop_axes *x, bool result) {
    int64_t stride[LOP_MAXLABELS] = {0};
    open(&k->want);
    for (int i = 0; i < x->n; i++)
        if (x->size[i] != 1) stride[x->label[i]] += x->stride[i]; /* its diagonal, where twice */
    for (int i = 0; i < x->n; i++) {
        const int label = x->label[i];
        if (result && x->size[i] != k->size[label]) return false;
        if (!visit(&k->want, k->size[label], stride[label])) return false;
        stride[label] = 0;
    }
    return true;
}

/* -- steps */

static lop_status check_slots(checker *k, int at) {
    const lop_contraction *p = k->p;
    const lop_contract_step *s = &p->step[at];
    const int n = p->noperand, slot[ARRAYS] = {s->c, s->a, s->b};
    if (s->first < 0 || s->nloop < 0 || s->nloop > p->nloops - s->first || s->nloop > MOST - 4)
        return fault(k, at, "%d loops from %d on; there are %d", s->nloop, s->first, p->nloops);
    if (s->how == LOP_BY_NEST ? s->nloop < 2 : s->b < 0 || s->nloop < s->each)
        return fault(k, at, "loops or operands are missing");
    if (s->c < n || s->c >= p->nslot || s->a < 0 || s->a >= p->nslot || s->b >= p->nslot)
        return fault(k, at, "slots %d, %d into %d; there are %d", s->a, s->b, s->c, p->nslot);
    for (int j = A_; j < ARRAYS; j++) {
        if (slot[j] == n || slot[j] == s->c || (slot[j] > n && k->born[slot[j]] < 0))
            return fault(k, at, "slot %d is read, where nothing lies yet", slot[j]);
        if (slot[j] >= 0 && k->born[slot[j]] < 0) k->born[slot[j]] = at;
        if (slot[j] >= 0) k->last[slot[j]] = at;
    }
    if (k->born[s->c] >= 0) return fault(k, at, "slot %d is written again", s->c);
    k->born[s->c] = k->last[s->c] = at;
    return LOP_OK;
}

/* The element that is written stays along sums and along nothing else. */
static lop_status check_sums(const checker *k, int at) {
    const lop_contraction *p = k->p;
    const lop_contract_step *s = &p->step[at];
    for (int i = 0; i < s->nloop; i++) {
        const lop_loop *l = &p->loop[s->first + i];
        if (l->size > 1 && l->sum != !l->c)
            return fault(k, at, "loop %d of %lld, %lld apart, %s a sum", i, (long long)l->size,
                         (long long)l->c, l->sum ? "is" : "is not");
        if (s->how != LOP_BY_NEST && s->each && i == s->nloop - 1 && l->sum)
            return fault(k, at, "products that are added up lie beside each other");
    }
    if (s->how != LOP_BY_NEST && ((s->m > 1 && !s->cm) || (s->n > 1 && !s->cn)))
        return fault(k, at, "a result's rows or columns lie on each other");
    const int *same = k->spec->same, n = p->noperand;
    const int a = s->a < n && same ? same[s->a] : s->a,
              b = s->b < n && s->b >= 0 && same ? same[s->b] : s->b;
    if (s->how == LOP_BY_GRAM && (a != b || s->m != s->n || s->am != s->bn || s->ak != s->bk))
        return fault(k, at, "a Gram matrix of two arrays");
    return LOP_OK;
}

static lop_status check_elements(checker *k, int at) {
    const lop_contraction *p = k->p;
    const lop_contract_step *s = &p->step[at];
    const int n = p->noperand, slot[ARRAYS] = {s->c, s->a, s->b};
    for (int j = ARRAYS - 1; j >= 0; j--) {
        const int of = slot[j];
        if (of < 0) continue;
        if (!visited(k, s, j, &k->found)) return fault(k, at, "sizes of slot %d", of);
        if (of <= n) {
            if (!described(k, of < n ? &k->spec->operand[of] : &p->result, of == n))
                return fault(k, at, "axes of slot %d", of);
        } else {
            int64_t *count = &k->count[of];
            if (j == C_) { /* without gaps */
                *count = 1;
                for (int i = 0; i < k->found.n; i++)
                    if (!lop_mul_ok(*count, k->found.over[i] / k->found.by[i], count))
                        return fault(k, at, "slot %d has no size", of);
            }
            open(&k->want);
            if (!visit(&k->want, *count, 1)) return fault(k, at, "slot %d has no size", of);
        }
        if (!alike(&k->want, &k->found))
            return fault(k, at, "of slot %d other elements are %s than there are", of,
                         j == C_ ? "written" : "read");
    }
    return LOP_OK;
}

/* -- memory */

static lop_status check_memory(const checker *k) {
    const lop_contraction *p = k->p;
    const int64_t size = (int64_t)lop_dtype_size(p->dt);
    for (int i = p->noperand + 1; i < p->nslot; i++) {
        if (k->born[i] < 0) continue;
        const int64_t from = p->offset[i], to = from + k->count[i] * size;
        if (from < 0 || from % size || to > p->workspace)
            return fault(k, k->born[i], "slot %d lies outside the workspace", i);
        for (int j = p->noperand + 1; j < i; j++)
            if (k->born[j] >= 0 && k->born[j] <= k->last[i] && k->born[i] <= k->last[j] &&
                p->offset[j] < to && from < p->offset[j] + k->count[j] * size)
                return fault(k, k->born[i], "slots %d and %d lie on each other", j, i);
    }
    return LOP_OK;
}

static lop_status check_all(checker *k) {
    const lop_contraction *p = k->p;
    lop_status st = LOP_OK;
    for (int i = 0; i < LOP_MAXLABELS; i++) k->size[i] = 1;
    for (int i = 0; i < p->noperand; i++)
        for (int j = 0; j < k->spec->operand[i].n; j++)
            if (k->spec->operand[i].size[j] != 1)
                k->size[k->spec->operand[i].label[j]] = k->spec->operand[i].size[j];
    for (int i = 0; i < p->nslot; i++) k->born[i] = k->last[i] = -1;
    for (int i = 0; i < p->nstep; i++) {
        LOP_TRY(check_slots(k, i));
        LOP_TRY(check_sums(k, i));
        LOP_TRY(check_elements(k, i));
    }
    for (int i = 0; i <= p->noperand; i++)
        if (k->born[i] < 0)
            LOP_TRY(
                fault(k, p->nstep, "slot %d is never %s", i, i < p->noperand ? "read" : "written"));
    for (int i = p->noperand + 1; i < p->nslot; i++)
        if (k->born[i] >= 0 && k->last[i] == k->born[i])
            LOP_TRY(fault(k, k->born[i], "slot %d is never read", i));
    LOP_TRY(check_memory(k));
done:
    return st;
}

lop_status lop_contract_check(lop_ctx *ctx, const lop_spec *spec, const lop_contraction *plan,
                              lop_err *err) {
    if (plan->zero) return LOP_OK;
    lop_status st = LOP_OK;
    checker *k = lop_calloc(ctx, 1, sizeof *k);
    const size_t n = (size_t)plan->nslot;
    if (!k) return lop_fail(err, LOP_NOMEM, NULL);
    *k = (checker){.ctx = ctx, .spec = spec, .p = plan, .err = err};
    k->born = lop_calloc(ctx, n, sizeof *k->born);
    k->last = lop_calloc(ctx, n, sizeof *k->last);
    k->count = lop_calloc(ctx, n, sizeof *k->count);
    st = k->born && k->last && k->count ? check_all(k) : lop_fail(err, LOP_NOMEM, NULL);
    lop_free(ctx, k->born);
    lop_free(ctx, k->last);
    lop_free(ctx, k->count);
    lop_free(ctx, k);
    return st;
}
