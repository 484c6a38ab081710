/* oom_inverses.h: scenes of failing allocations that are inverses, for oom.c. */
#ifndef OOM_INVERSES_H
#define OOM_INVERSES_H

#include "gen.h"

#include <string.h>

/* Formulas that spell out an inverse, and a covariance by its precision. */
static const lop_node *of_inverses(world *w, int which) {
    enum { OF_SPARSE = 26 }; /* these are last */
    static const char *const rule[] = {"solve-spelled-inverse",
                                       "scaledet-resolvent",
                                       "solve-beside-inverse",
                                       "dense-inverse-update",
                                       "solve-resolvent",
                                       "diagonal-smoother",
                                       "solve-inverse-difference",
                                       "diagonal-inverses-shifted-kron",
                                       "diagonal-corner",
                                       "solve-spelled-product",
                                       "solve-quadratic",
                                       "diagonal-inverse-beside-band",
                                       "diagonal-spelled-product",
                                       "dense-spelled-product",
                                       "scaledet-spelled-product",
                                       "scaledet-quadratic",
                                       "diagonal-inverse-of-parallel-sum",
                                       "diagonal-plus-identity",
                                       "diagonal-inverse-block",
                                       "trace-inverse-similar",
                                       "diagonal-inverse-similar",
                                       "solve-of-parallel-sum",
                                       "scaledet-of-parallel-sum",
                                       "scaledet-parallel",
                                       "solve-expanded",
                                       "diagonal-inverse-expanded-slice",
                                       "solve-sparse-update",
                                       "scaledet-sparse-update",
                                       "diagonal-covered-inverse",
                                       "trace-pushed-inverse",
                                       "trace-field-pushed",
                                       "trace-views-opened",
                                       "trace-pushed-pair",
                                       "trace-distributed",
                                       "dense-smoother",
                                       "apply-spelled-product",
                                       "scaledet-kron-runs"};
    const lop_node *a = NULL;
    gen g = {.w = w, .dtype = LOP_f64, .solves = true, .largest = 3};
    for (int i = 0; i < 40 && !a; i++) {
        world_leaves(w);
        a = which < OF_SPARSE || which >= 34 ? gen_identity_of_inverses(&g, rule[which])
            : strstr(rule[which], "field")   ? gen_field(&g, rule[which])
            : strstr(rule[which], "opened")  ? gen_views_opened(&g, rule[which])
            : strstr(rule[which], "pair") || strstr(rule[which], "distributed")
                ? gen_pushed_pair(&g, rule[which])
            : strstr(rule[which], "pushed") ? gen_pushed(&g, rule[which])
                                            : gen_sparse_update(&g, rule[which]);
    }
    return a;
}

#endif
