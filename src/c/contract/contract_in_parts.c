/* contract_in_parts.c: where temporaries leave the cache, a plan goes part by part along an axis of
 * the result, so that each of them lies in the cache when it is read, and takes little memory: a
 * window view that is copied before a product of matrices (im2col), and what is made of operands
 * that all have an axis. Only where that costs no more, by price. */
#include "contract_parts.h"

#include <stdlib.h>

enum { NEAR = 1 << 18, FEW_PARTS = 4, MOST_PARTS = 4096 }; /* bytes of temporaries of a part */
/* Prices do not see that a part is read from the second cache, and a part takes less memory: parts
 * are taken up to this much above the whole. A choice, not a measurement. */
static const double ALIKE = 1.1;

/* The operand that is copied first and whose elements are read more than once; -1: none. */
static int copied_windows(const lop_spec *spec, const lop_contraction *p) {
    for (int i = 0; i < p->nstep && spec->noperand == 2; i++) {
        const int k = p->step[i].a;
        if (p->step[i].b >= 0 || k >= spec->noperand) continue;
        const lop_axes *x = &spec->operand[k];
        double count = 1, reach = 1;
        for (int j = 0; j < x->n; j++) {
            count *= (double)x->size[j];
            if (!x->stride[j]) count /= (double)x->size[j]; /* broadcast */
            reach += (double)(x->size[j] - 1) * (double)llabs(x->stride[j]);
        }
        if (count > reach) return k;
    }
    return -1;
}

static int64_t stride_of(const lop_axes *x, int label) {
    int64_t s = 0;
    for (int j = 0; j < x->n; j++)
        if (x->label[j] == label && x->size[j] != 1) s += x->stride[j];
    return s;
}

/* The axis of the result along which operand k moves furthest, its place in the result; -1: none.
 */
static int outermost(const lop_axes *r, const lop_axes *x) {
    int found = -1;
    for (int j = 0; j < r->n; j++) {
        const int64_t s = llabs(stride_of(x, r->label[j]));
        if (s && r->size[j] > 1 && (found < 0 || s > llabs(stride_of(x, r->label[found]))))
            found = j;
    }
    return found;
}

/* The outermost axis of the result that each operand has; -1: none. */
static int in_all(const lop_spec *spec, const lop_axes *r) {
    int found = -1;
    for (int j = 0; j < r->n; j++) {
        bool all = r->size[j] > 1;
        for (int i = 0; all && i < spec->noperand; i++)
            all = stride_of(&spec->operand[i], r->label[j]) != 0;
        if (all && (found < 0 || llabs(r->stride[j]) > llabs(r->stride[found]))) found = j;
    }
    return found;
}

static void shorten(lop_axes *x, int label, int64_t size) {
    for (int j = 0; j < x->n; j++)
        if (x->label[j] == label && x->size[j] != 1) x->size[j] = size;
}

/* The place in the result of the axis that is cut; -1: none. */
static int axis_to_cut(const lop_spec *spec, const lop_contraction *whole) {
    const int k = copied_windows(spec, whole);
    if (k >= 0) return outermost(&whole->result, &spec->operand[k]);
    return spec->noperand > 2 ? in_all(spec, &whole->result) : -1;
}

/* The plan of a part, in place of *plan, where that is cheaper. */
static lop_status in_parts(lop_ctx *ctx, const lop_spec *spec, lop_contraction **plan,
                           lop_err *err) {
    lop_contraction *whole = *plan, *part = NULL;
    const int at = axis_to_cut(spec, whole), n = spec->noperand;
    lop_status st = LOP_OK;
    if (at < 0) return LOP_OK;
    const int label = whole->result.label[at];
    const int64_t size = whole->result.size[at], most = size < MOST_PARTS ? size : MOST_PARTS;
    int64_t parts = 2;
    while (parts < most && (size % parts || whole->workspace / parts > NEAR)) parts++;
    if (size % parts) return LOP_OK;
    lop_axes *of = lop_alloc(ctx, (size_t)(n + 1) * sizeof *of);
    int64_t *step = lop_alloc(ctx, (size_t)(n + 1) * sizeof *step);
    if (!of || !step) LOP_TRY(lop_fail(err, LOP_NOMEM, NULL));
    for (int i = 0; i <= n; i++) {
        of[i] = i < n ? spec->operand[i] : whole->result;
        step[i] = size / parts * stride_of(&of[i], label);
        shorten(&of[i], label, size / parts);
    }
    lop_spec one = *spec;
    one.operand = of;
    one.result = &of[n];
    one.any_order = false;
    LOP_TRY(lop_contract_whole(ctx, &one, &part, err));
    /* a few that do not come near save little memory, and each packs the other operand again */
    const bool far = parts < FEW_PARTS && part->workspace > NEAR;
    if (!far && part->seconds * (double)parts < ALIKE * whole->seconds) {
        part->parts = parts;
        part->part = step;
        step = NULL;
        part->result = whole->result;
        part->seconds *= (double)parts;
        part->flops *= (double)parts;
        *plan = part;
        part = whole;
    }
done:
    lop_contract_free(ctx, part);
    lop_free(ctx, step);
    lop_free(ctx, of);
    return st;
}

lop_status lop_contract(lop_ctx *ctx, const lop_spec *spec, lop_contraction **out, lop_err *err) {
    lop_contraction *plan = NULL;
    lop_status st = lop_contract_whole(ctx, spec, &plan, err);
    if (st == LOP_OK && !spec->force && plan->workspace > NEAR)
        st = in_parts(ctx, spec, &plan, err);
    if (st == LOP_OK && ctx->check_plans) st = lop_contract_check(ctx, spec, plan, err);
    if (st == LOP_OK)
        *out = plan;
    else
        lop_contract_free(ctx, plan);
    return st;
}
