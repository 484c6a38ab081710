/* contract_in_parts.c: a window view that is copied before a product of matrices (im2col) goes part
 * by part along an axis of the result, so that each copy lies in the cache when it is read, and
 * takes little memory. Only where that costs no more, by price. */
#include "contract_parts.h"

#include <stdlib.h>

enum { NEAR = 1 << 18 }; /* bytes of temporaries of a part */
/* Prices do not see that a part is read from the second cache, and a part takes less memory: parts
 * are taken up to this much above the whole. A choice, not a measurement. */
static const double ALIKE = 1.1;

/* The operand that is copied first and whose elements are read more than once; -1: none. */
static int copied_windows(const lop_spec *spec, const lop_contraction *p) {
    for (int i = 0; i < p->nstep; i++) {
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

static void shorten(lop_axes *x, int label, int64_t size) {
    for (int j = 0; j < x->n; j++)
        if (x->label[j] == label && x->size[j] != 1) x->size[j] = size;
}

/* The plan of a part, in place of *plan, where that is cheaper. */
static lop_status in_parts(lop_ctx *ctx, const lop_spec *spec, lop_contraction **plan,
                           lop_err *err) {
    lop_contraction *whole = *plan, *part = NULL;
    const int k = copied_windows(spec, whole),
              at = k < 0 ? -1 : outermost(&whole->result, &spec->operand[k]);
    if (at < 0) return LOP_OK;
    const int label = whole->result.label[at];
    const int64_t n = whole->result.size[at];
    int64_t parts = 2;
    while (parts < n && (n % parts || whole->workspace / parts > NEAR)) parts++;
    lop_axes *of = lop_alloc(ctx, 3 * sizeof *of);
    if (!of) return lop_fail(err, LOP_NOMEM, NULL);
    of[0] = spec->operand[0];
    of[1] = spec->operand[1];
    of[2] = whole->result;
    for (int i = 0; i < 3; i++) shorten(&of[i], label, n / parts);
    lop_spec one = *spec;
    one.operand = of;
    one.result = &of[2];
    one.any_order = false;
    const lop_status st = lop_contract_whole(ctx, &one, &part, err);
    if (st == LOP_OK && part->seconds * (double)parts < ALIKE * whole->seconds) {
        part->parts = parts;
        for (int i = 0; i < 3; i++)
            part->part[i] =
                n / parts * stride_of(i < 2 ? &spec->operand[i] : &whole->result, label);
        part->result = whole->result;
        part->seconds *= (double)parts;
        part->flops *= (double)parts;
        *plan = part;
        part = whole;
    }
    lop_contract_free(ctx, part);
    lop_free(ctx, of);
    return st;
}

lop_status lop_contract(lop_ctx *ctx, const lop_spec *spec, lop_contraction **out, lop_err *err) {
    lop_contraction *plan = NULL;
    lop_status st = lop_contract_whole(ctx, spec, &plan, err);
    if (st == LOP_OK && spec->noperand == 2 && !spec->force && plan->workspace > NEAR)
        st = in_parts(ctx, spec, &plan, err);
    if (st == LOP_OK)
        *out = plan;
    else
        lop_contract_free(ctx, plan);
    return st;
}
