/* test_plan_check_damages.h: what is done to a plan at slot or step `i`, where it fits (else
 * false), and what the check is to say. Here what takes more than a line of
 * test_plan_check_fields.h; at the end all of it, a row each. For test_plan_check.c alone. */
/* As many elements in columns. */
static void columns_of(lop_slot *s, int64_t n) {
    s->m /= n;
    s->n *= n;
    s->shape.dim[s->shape.ndim - 2] = s->m;
    s->shape.dim[s->shape.ndim - 1] = s->n;
}
/* As many elements, a byte each. */
static void bytes_of(lop_plan *p, int slot) {
    lop_slot *s = &p->slot[slot];
    s->matbytes = s->m * s->n;
    s->dt = LOP_u8;
    if (s->kind == LOP_S_LEAF) p->leaf[s->leaf].dt = LOP_u8;
}
#define DAMAGE(what, all, name, fits, ...)                                                         \
    static bool do_##name(lop_plan *p, int i) {                                                    \
        what *s = &p->all[i];                                                                      \
        (void)s;                                                                                   \
        if (!(fits)) return false;                                                                 \
        __VA_ARGS__;                                                                               \
        return true;                                                                               \
    }
#define SLOT(name, says, ...) DAMAGE(lop_slot, slot, name, __VA_ARGS__)
#define STEP(name, says, ...) DAMAGE(lop_step, step, name, __VA_ARGS__)
#include "test_plan_check_fields.h"
#undef SLOT
#undef STEP

static bool do_transposed_otherwise(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!s->flip || s->m == s->n) return false;
    s->alias = p->leaf[0].slot == s->alias ? p->leaf[p->nleaf - 1].slot : p->leaf[0].slot;
    return p->slot[s->alias].m != s->n || p->slot[s->alias].n != s->m;
}
static bool do_on_a_transpose(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!is_temp(p, i) || s->dt != LOP_f64) return false;
    for (int j = 0; j < p->nslot; j++)
        if (p->slot[j].flip && base_of(p, j) != i && p->slot[j].dt == s->dt) {
            s->alias = j;
            return true;
        }
    return false;
}
static bool do_name_of_another_size(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->alias < 0 || s->flip || s->part || s->window) return false;
    for (int j = 0; j < p->nslot; j++)
        if (p->slot[j].kind == LOP_S_LEAF && p->slot[j].dt == s->dt &&
            p->slot[j].m * p->slot[j].n * p->slot[j].batch != s->m * s->n * s->batch) {
            s->alias = j;
            return true;
        }
    return false;
}
static bool do_a_mask_of_another_batch(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->fail < 0) return false;
    lop_slot *m = &p->slot[s->fail];
    m->shape.dim[m->shape.ndim++] = 2;
    m->batch *= 2;
    return true;
}
static bool do_prepares_a_second_time(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->derived >= 0 || !p->nderive || !s->run || s->fail >= 0) return false;
    s->derived = 0;
    s->flags = 0;
    s->subs = s->adds = NULL;
    s->subs_name = s->adds_name = NULL;
    s->arg[0] = p->step[p->derive[0].step].arg[0];
    return true;
}
static bool do_an_odd_value(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->derived < 0) return false;
    lop_slot *o = &p->slot[s->arg[0]];
    o->shape.dim[o->shape.ndim - 1]++;
    o->m++;
    o->matbytes++;
    p->derive[s->derived].bytes++;
    return true;
}
static bool do_another_batch(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || s->n < 2 || (s->flags & LOP_STEP_PLACES)) return false;
    lop_slot *in = &p->slot[s->arg[1]];
    if (in->kind != LOP_S_LEAF || in->shape.ndim == in->core || in->shape.dim[0] < 2) return false;
    in->batch = in->batch / in->shape.dim[0] * 7;
    in->shape.dim[0] = 7;
    p->leaf[in->leaf].shape = in->shape;
    return true;
}
static bool do_dropped(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || s->derived >= 0) return false;
    if (s->fail < 0 && s->arg[0] != p->out && !(s->flags & LOP_STEP_PLACES)) {
        bool read = false; /* 0 X: computed, and not used */
        for (int k = i + 1; k < p->nstep; k++) read = read || read_at(p, s->arg[0], k);
        if (!read) return false;
    }
    for (int k = i - 1; k >= 0 && !(s->flags & LOP_STEP_PLACES); k--)
        if (p->step[k].flags & LOP_STEP_ACCUMULATES && p->step[k].arg[0] == s->arg[0]) return false;
    if (s->flags & LOP_STEP_ACCUMULATES) return false; /* a shorter sum is a sum */
    for (int k = 0; k < i; k++)                        /* zeros below blocks */
        if (p->step[k].arg[0] == s->arg[0] && (s->flags & LOP_STEP_PLACES) &&
            !(p->step[k].flags & LOP_STEP_PLACES))
            return false;
    remove_step(p, i);
    return true;
}
static bool do_reads_too_early(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || s->n < 2) return false;
    for (int k = i + 1; k < p->nstep; k++) {
        const int t = p->step[k].arg[0];
        bool before = base_of(p, t) == base_of(p, s->arg[0]);
        for (int l = 0; l < k; l++)
            before = before || base_of(p, p->step[l].arg[0]) == base_of(p, t);
        if (before || !p->step[k].run || !same_shape(p, t, s->arg[1])) continue;
        s->arg[1] = t;
        return true;
    }
    return false;
}
static bool do_writes_too_late(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || s->derived >= 0 || s->fail >= 0 || s->when >= 0 || (s->flags & LOP_STEP_PLACES))
        return false;
    for (int k = 0; k < i; k++) {
        const int t = p->step[k].arg[0];
        if (!p->step[k].run || !is_temp(p, t) || !same_shape(p, t, s->arg[0]) || t == s->arg[0])
            continue;
        for (int l = k + 1; l < i; l++)
            if (read_at(p, t, l) && p->step[l].run && !read_at(p, t, i)) {
                s->arg[0] = t;
                return true;
            }
    }
    return false;
}
static bool do_accumulates_on_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_ACCUMULATES) || i == 0 || p->step[i - 1].arg[0] != s->arg[0])
        return false;
    if (p->step[i - 1].flags & LOP_STEP_ACCUMULATES) return false;
    remove_step(p, i - 1);
    return true;
}
static bool do_placed_twice(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_PLACES) || s->arg[0] == base_of(p, 0)) return false;
    bool zeros = false;
    for (int k = 0; k < i; k++)
        zeros = zeros || (p->step[k].arg[0] == s->arg[0] && !(p->step[k].flags & LOP_STEP_PLACES));
    if (zeros || !s->attr.i[0]) return false;
    s->attr.i[0]--;
    return true;
}
static bool do_wherever_it_likes(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->when < 0 || s->late >= 0 || s->derived >= 0 || !s->when_set) return false;
    s->when = -1;
    s->when_set = false;
    for (int j = 1; j < s->n; j++)
        if (p->slot[base_of(p, s->arg[j])].late) return true;
    return false;
}
static bool do_left_out(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || s->serves || s->derived >= 0 || !p->nderive || base_of(p, s->arg[0]) == p->out)
        return false;
    for (int k = i + 1; k < p->nstep; k++)
        if (read_at(p, s->arg[0], k) && p->step[k].run && !p->step[k].serves &&
            p->step[k].derived < 0) {
            s->serves = 1;
            return true;
        }
    return false;
}
static bool do_fewer_leaves(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->derived < 0) return false;
    uint64_t *leaves = &p->derive[s->derived].leaves;
    for (int k = 0; k < i; k++)
        for (int j = 1; read_at(p, p->step[k].arg[0], i) && j < p->step[k].n; j++) {
            const lop_slot *in = &p->slot[base_of(p, p->step[k].arg[j])];
            const uint64_t bit = in->kind == LOP_S_LEAF ? (uint64_t)1 << in->leaf : 0;
            if (!(*leaves & bit) || *leaves == bit) continue;
            *leaves &= ~bit;
            return true;
        }
    return false;
}
static bool do_where_another_lives(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || s->n < 3) return false;
    const int a = base_of(p, s->arg[1]), b = base_of(p, s->arg[2]);
    if (a == b || !is_temp(p, a) || !is_temp(p, b) || p->slot[a].late != p->slot[b].late ||
        p->slot[a].onto >= 0 || p->slot[b].onto >= 0)
        return false;
    p->slot[b].offset = p->slot[a].offset;
    return true;
}
/* Does step i write where what it reads lies, and is that read last here? */
static bool in_place(const lop_plan *p, int i, int *to, int *from) {
    const lop_step *s = &p->step[i];
    if (!s->run || s->n < 2) return false;
    *to = base_of(p, s->arg[0]);
    *from = base_of(p, s->arg[1]);
    const lop_slot *x = &p->slot[*from], *y = &p->slot[*to];
    return *to != *from && is_temp(p, *to) && is_temp(p, *from) && x->onto < 0 && y->onto < 0 &&
           x->late == y->late && x->offset == y->offset && last_touch(p, *from) == i;
}
static bool do_not_in_place(lop_plan *p, int i) {
    int to, from;
    if (!in_place(p, i, &to, &from)) return false;
    p->step[i].flags &= ~LOP_STEP_INPLACE;
    return true;
}
static bool do_in_place_of_what_lives_on(lop_plan *p, int i) {
    int to, from;
    if (!in_place(p, i, &to, &from)) return false;
    for (int k = i + 1; k < p->nstep; k++)
        for (int j = 1; j < p->step[k].n; j++)
            if (p->step[k].run && same_shape(p, p->step[k].arg[j], from) && p->step[k].when < 0) {
                p->step[k].arg[j] = from;
                return true;
            }
    return false;
}
/* By a step that runs where that one does, or where that one fails: both may read what it reads. */
static bool do_in_place_of_what_a_branch_reads(lop_plan *p, int i) {
    int to, from;
    const lop_step *s = &p->step[i];
    if (!in_place(p, i, &to, &from) || (s->when < 0 && s->fail < 0)) return false;
    for (int k = i + 1; k < p->nstep; k++) {
        const lop_step *t = &p->step[k];
        const bool beside = s->when >= 0 && t->when == s->when && t->when_set == s->when_set,
                   after = s->fail >= 0 && t->when == s->fail && t->when_set;
        for (int j = 1; t->run && (beside || after) && j < t->n; j++)
            if (same_shape(p, t->arg[j], from)) {
                p->step[k].arg[j] = from;
                return true;
            }
    }
    return false;
}
static bool do_in_place_of_half(lop_plan *p, int i) {
    int to, from;
    if (!in_place(p, i, &to, &from)) return false;
    if (!p->slot[to].matbytes) return false;
    p->slot[to].offset += 64;
    return p->slot[to].matbytes * p->slot[to].batch > 64;
}
static bool do_in_a_reserve(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    const int out = base_of(p, s->arg[0]);
    if (!s->run || s->late < 0 || s->later >= 0 || !is_temp(p, out) || p->slot[out].late != 1)
        return false;
    p->slot[out].late = 2;
    p->reserve[1] = p->reserve[0];
    return true;
}

typedef struct damage {
    const char *name, *says; /* one of these, parted by bars */
    bool of_slot;
    bool (*how)(lop_plan *p, int i);
} damage;
#define SLOT(name, says, ...) {#name, says, true, do_##name},
#define STEP(name, says, ...) {#name, says, false, do_##name},
/* Without its gate a fast branch reads what may not have been made. */
static bool do_no_gate(lop_plan *p, int i) {
    if (!(p->step[i].flags & LOP_STEP_GATE)) return false;
    p->step[i].flags &= ~LOP_STEP_GATE;
    return true;
}
static const damage damages[] = {
#include "test_plan_check_fields.h"
    {"transposed otherwise", "is no transpose of|has no slot|elements, slot|cannot be", true,
     do_transposed_otherwise},
    {"on a transpose", "lies on the transpose", true, do_on_a_transpose},
    {"name of another size", "elements, slot", true, do_name_of_another_size},
    {"a mask of another batch", "one flag a batch", false, do_a_mask_of_another_batch},
    {"prepares a second time", "another value than", false, do_prepares_a_second_time},
    {"an odd value", "whole number of lines", false, do_an_odd_value},
    {"another batch", "batch of argument", false, do_another_batch},
    {"dropped",
     "written|has read already|never|adds to|is not made|overlap|has failed|left out|by strides|is "
     "not what",
     false, do_dropped},
    {"reads too early", "is not written|not wholly|also where|never run|only where", false,
     do_reads_too_early},
    {"writes too late", "has read already|it covers|not written|not wholly|overlap", false,
     do_writes_too_late},
    {"accumulates on nothing", "it adds to slot", false, do_accumulates_on_nothing},
    {"placed twice", "overlap|not wholly", false, do_placed_twice},
    {"wherever it likes", "also where|in a reserve|it covers|only where|has failed|scratch", false,
     do_wherever_it_likes},
    {"left out", "left out", false, do_left_out},
    {"fewer leaves", "fewer leaves", false, do_fewer_leaves},
    {"where another lives", "is put where|lies outside its", false, do_where_another_lives},
    {"not in place", "cannot run in place", false, do_not_in_place},
    {"in place of what lives on",
     "it lives on|their keys name|also where that is not written|left out", false,
     do_in_place_of_what_lives_on}, /* of what a branch writes it is read elsewhere too */
    {"in place of what a branch reads",
     "it lives on|their keys name|only where that is not written", false,
     do_in_place_of_what_a_branch_reads},
    {"in place of half", "the sizes differ|is put where|lies outside its", false,
     do_in_place_of_half},
    {"no gate", "also where that is not written", false, do_no_gate},
    {"in a reserve", "in a reserve|lies outside", false, do_in_a_reserve},
};
