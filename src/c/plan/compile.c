/* compile.c: the page on which planning happens.
 *
 *   written root --rewrite--> canonical root --one road--> fallbacks that serve at once
 *                --lower--> steps and slots --fuse--> fewer steps
 *                --keep--> keys of derived values --place--> one workspace
 *                --price--> seconds, bytes
 *
 * No pass calls another; each is a file of this folder, declared in passes.h, and each that makes
 * or changes steps is followed by a check (plan_check.c). Users' rules of the phase `explore` are
 * tried last: user_rule_search.c asks for the plan of each variant by the function that it is
 * given. */
#include "passes.h"

#include "plan_check.h"
#include "rewrite/assumptions.h"
#include "user_rule_search.h"

static lop_status checked(const lop_plan *p, lop_pass pass, lop_err *err) {
#ifdef NDEBUG
    if (!p->ctx->check_plans) return LOP_OK;
#endif
    return lop_plan_check(p, pass, err);
}

lop_status lop_plan_one(lop_ctx *ctx, const lop_rules *rules, const lop_options *options,
                        const lop_node *root, lop_plan **out, lop_err *err) {
    const lop_node *kinds = NULL;
    lop_status st;
    *out = NULL;
    if (root->opaque)
        return lop_fail(err, LOP_MISSING, "the expression holds a callable or a foreign dtype");
    lop_plan *p = lop_calloc(ctx, 1, sizeof *p);
    if (!p) return lop_fail(err, LOP_NOMEM, NULL);
    p->ctx = ctx;
    p->refs = 1;
    p->written = lop_node_ref(root);
    lop_tab tab;
    lop_tab_init(&tab, ctx);
    lop_emit e = {.plan = p, .err = err, .options = options};
    p->trace.trail = options->trail;
    LOP_TRY(lop_declared_kinds(rules, root, &kinds, err));
    LOP_TRY(lop_rewrite(rules, &tab, kinds, &p->root, &p->trace, err));
    if (p->root->dtype != root->dtype || !lop_shape_equal(&p->root->shape, &root->shape))
        LOP_TRY(lop_fail(err, LOP_INTERNAL, "the rules changed the shape or dtype of the result"));
    LOP_TRY(lop_map_init(&e.map, ctx));
    LOP_TRY(lop_map_init(&e.instead, ctx));
    LOP_TRY(lop_one_road(ctx, p->root, &e.instead));
    LOP_TRY(lop_plan_lower(&e, p->root));
    LOP_TRY(checked(p, LOP_PASS_LOWER, err));
    LOP_TRY(lop_fuse(p, err));
    LOP_TRY(checked(p, LOP_PASS_FUSE, err));
    LOP_TRY(lop_keep_plan(p, err));
    LOP_TRY(checked(p, LOP_PASS_KEEP, err));
    LOP_TRY(lop_plan_place(p, err));
    lop_plan_price(p);
    lop_plan_find_unasked(p);
    LOP_TRY(checked(p, LOP_PASS_PLACE, err));
done:
    p->trace.trail = NULL;
    lop_node_unref(kinds);
    lop_free(ctx, e.branch);
    lop_free(ctx, (void *)e.fresh);
    lop_map_clear(&e.map, ctx);
    lop_map_clear(&e.instead, ctx);
    lop_tab_clear(&tab);
    if (st == LOP_NOMEM && err && err->status != LOP_NOMEM) (void)lop_fail(err, LOP_NOMEM, NULL);
    if (st == LOP_OK)
        *out = p;
    else
        lop_plan_unref(p);
    return st;
}

lop_status lop_plan_make(lop_ctx *ctx, const lop_rules *rules, const lop_options *options,
                         const lop_node *root, lop_plan **out, lop_err *err) {
    lop_status st = lop_plan_one(ctx, rules, options, root, out, err);
    if (st != LOP_OK || !lop_rules_explore(rules)) return st;
    st = lop_explore(rules, options, root, lop_plan_one, out, err);
    if (st == LOP_OK) return st;
    lop_plan_unref(*out);
    *out = NULL;
    return st;
}

void lop_plan_unref(lop_plan *p) {
    if (!p || --p->refs > 0) return;
    lop_node_unref(p->root);
    lop_node_unref(p->written);
    lop_free(p->ctx, p->slot);
    for (int i = 0; i < p->nstep; i++) lop_free(p->ctx, (void *)(uintptr_t)p->step[i].data);
    lop_free(p->ctx, p->step);
    lop_free(p->ctx, p->leaf);
    lop_free(p->ctx, p->derive);
    lop_free(p->ctx, p->key);
    lop_coefs_free(p->coefs);
    lop_free(p->ctx, p);
}
