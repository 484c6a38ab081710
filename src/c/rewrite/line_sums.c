/* line_sums.c: is a sum one of Matern kernels of points on a line, and of diagonals? It is asked of
 * how it is written alone, never of the points, which are values. */
#include "line_sums.h"

#include "kernels/quasiseparable/k_quasi.h"

static bool add_term(lop_line_sum *s, const lop_node *term) {
    const lop_node *a = term->op == &lop_op_scaled ? term->child[0] : term;
    lop_line_kernel line;
    if (term != a && term->attr.im != 0) return false;
    if (lop_has(a, LOP_FLAG_diagonal)) {
        if (s->diagonals == LOP_LINE_TERMS) return false;
        s->diagonal[s->diagonals++] = term;
        return true;
    }
    if (!lop_kernel_line(a, &line) || s->kernels == LOP_LINE_TERMS) return false;
    int set = 0;
    while (set < s->sets && s->points[set] != line.points) set++;
    if (set == s->sets) s->points[s->sets++] = line.points;
    s->states += line.order + 1;
    s->kernel[s->kernels++] = term;
    return true;
}

/* Takes a thin term; false: there is one, or it is none. */
static bool take_low(lop_line_sum *s, const lop_node *t) {
    const bool update = t->op == &lop_op_lowrankupdate;
    if ((!update && t->op != &lop_op_lowrank) || s->low ||
        lop_cols(t->child[update]) > lop_rows(t) / 2)
        return false;
    s->low = t;
    return true;
}

bool lop_line_sum_read(lop_line_sum *s, const lop_node *a) {
    return lop_line_update_read(s, a) && !s->low;
}
bool lop_line_update_read(lop_line_sum *s, const lop_node *a) {
    const lop_node *todo[LOP_LINE_TERMS + 1] = {a};
    int waiting = 1;
    *s = (lop_line_sum){0};
    if (a->shape.ndim != 2 || lop_is_complex(a->dtype) || !lop_is_blas(a->dtype)) return false;
    while (waiting > 0) {
        const lop_node *t = todo[--waiting];
        if (take_low(s, t)) {
            if (t->op == &lop_op_lowrankupdate) todo[waiting++] = t->child[0];
        } else if (t->op != &lop_op_sum) {
            if (!add_term(s, t)) return false;
        } else if (waiting + 2 <= LOP_LINE_TERMS) {
            todo[waiting++] = t->child[1];
            todo[waiting++] = t->child[0];
        } else {
            return false;
        }
    }
    /* from there on what fails goes on within a band, never by the dense form (quasiseparable.c) */
    return s->kernels > 0 && lop_rows(a) / 32 > s->states &&
           lopk_quasi_lu_fits(lop_rows(a), s->states);
}
