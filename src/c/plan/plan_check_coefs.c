/* plan_check_coefs.c: two plans of one expression, for coefficients of one class, that are to be
 * the same but for the numbers that coefs names. A rule that computes or decides by a coefficient
 * past coefficients.h shows here. */
#include "plan_check.h"

#include <string.h>

static bool same_number(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

/* Is that word of its data a part of a coefficient? */
static bool is_number(const lop_step *s, int word) {
    for (int i = 0; i < s->numbers; i++) {
        const int at = lop_data_number_at(s, i).word;
        if (word == at || word == at + 1) return true;
    }
    return false;
}

static const char *differ(const lop_step *s, const lop_step *t) {
    if (s->run != t->run || strcmp(s->name, t->name) != 0) return "steps";
    if (s->n != t->n || memcmp(s->arg, t->arg, (size_t)s->n * sizeof *s->arg) != 0)
        return "arguments";
    if (memcmp(s->attr.i, t->attr.i, sizeof s->attr.i) != 0) return "attributes";
    if (s->attr.num != t->attr.num) return "names of numbers";
    if (!s->attr.num &&
        (!same_number(s->attr.re, t->attr.re) || !same_number(s->attr.im, t->attr.im)))
        return "constants";
    if (s->ndata != t->ndata || s->numbers != t->numbers) return "data";
    for (int i = 0; i < s->ndata; i++)
        if (!is_number(s, i) && s->data[i] != t->data[i]) return "data";
    for (int i = s->ndata; i < s->ndata + s->numbers; i++)
        if (s->data[i] != t->data[i]) return "numbers among the data";
    return NULL;
}

lop_status lop_plan_check_coefs(const lop_plan *p, const lop_plan *q, lop_err *err) {
    const lop_coefs *c = p->coefs, *d = q->coefs;
    for (int i = c->sources + 1; i < c->entries || i < d->entries; i++) {
        const lop_entry *a = &c->entry[i], *b = &d->entry[i];
        if (i < c->entries && i < d->entries && a->how == b->how && a->a == b->a && a->b == b->b &&
            (a->how != 'c' || lop_number_equal(a->value, b->value)))
            continue;
        return lop_fail(err, LOP_INTERNAL,
                        "number %d of a plan depends on the values of its coefficients: %c %d %d "
                        "(%g) and %c %d %d (%g)",
                        i, a->how, a->a, a->b, a->value.re, b->how, b->a, b->b, b->value.re);
    }
    for (int i = 0; i < c->conditions || i < d->conditions; i++) {
        const lop_condition *a = &c->condition[i], *b = &d->condition[i];
        if (i < c->conditions && i < d->conditions && a->what == b->what && a->a == b->a &&
            a->b == b->b && a->holds == b->holds)
            continue;
        return lop_fail(err, LOP_INTERNAL,
                        "condition %d of a plan depends on the values of its coefficients: "
                        "%d of %d and %d, %d of %d and %d",
                        i, (int)a->what, a->a, a->b, (int)b->what, b->a, b->b);
    }
    if (p->nstep != q->nstep)
        return lop_fail(err, LOP_INTERNAL,
                        "coefficients of one class give plans of %d and %d steps", p->nstep,
                        q->nstep);
    for (int i = 0; i < p->nstep; i++) {
        const char *what = differ(&p->step[i], &q->step[i]);
        if (what)
            return lop_fail(err, LOP_INTERNAL,
                            "coefficients of one class give other %s in step %d, %s", what, i,
                            p->step[i].name);
    }
    return LOP_OK;
}
