/* test_plan_check_fields.h: damage to one field of a slot or a step: see test_plan_check_damages.h.
 */
static bool do_sizes(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->kind != LOP_S_TEMP) return false;
    s->m++;
    return true;
}
static bool do_leaf(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->kind != LOP_S_LEAF) return false;
    s->leaf = -1;
    return true;
}
static bool do_leaf_s_slot(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->kind != LOP_S_LEAF) return false;
    p->leaf[s->leaf].slot = p->out;
    return true;
}
static bool do_result(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (i != p->out) return false;
    s->kind = LOP_S_TEMP;
    return true;
}
static bool do_second_result(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!is_temp(p, i)) return false;
    s->kind = LOP_S_OUT;
    return true;
}
static bool do_part_and_transpose(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->alias < 0 || !s->flip) return false;
    s->part = true;
    return true;
}
static bool do_name_of_another_dtype(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->alias < 0 || s->dt != LOP_f64) return false;
    s->dt = LOP_c64; /* as many bytes */
    return true;
}
static bool do_no_transpose(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->alias < 0 || s->flip || s->part || s->window) return false;
    const lop_slot *of = &p->slot[s->alias];
    if (of->m == s->n && of->n == s->m) return false;
    s->flip = true;
    return true;
}
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
static bool do_block_outside(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!s->part) return false;
    s->row = p->slot[s->alias].m - s->m + 1;
    return true;
}
static bool do_block_before(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!s->part) return false;
    s->col = -1;
    return true;
}
static bool do_blocks_overlap(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!s->part || s->copy_step >= 0 || !s->row) return false;
    s->row--;
    return true;
}
static bool do_window_outside(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!s->window) return false;
    s->shift += p->slot[s->alias].m;
    return true;
}
static bool do_windows_overlap(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!s->window || !s->shift) return false;
    s->shift--;
    return true;
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
static bool do_a_window_that_says_nothing(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!s->window || s->m * s->n == p->slot[s->alias].m) return false;
    s->window = false;
    return true;
}
static bool do_no_c_order(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->alias < 0 || s->flip || s->part || s->window ||
        p->slot[base_of(p, i)].kind == LOP_S_TEMP)
        return false;
    p->slot[base_of(p, i)].need_c = false;
    return true;
}
static bool do_a_ring_of_names(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->alias < 0) return false;
    if (p->slot[base_of(p, i)].kind != LOP_S_TEMP) return false;
    p->slot[base_of(p, i)].alias = i;
    return true;
}
static bool do_part_of_none(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!is_temp(p, i)) return false;
    s->part = true;
    return true;
}
static bool do_copied_elsewhere(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (s->copy_step < 0) return false;
    s->copy_step = s->copy_step ? 0 : p->nstep - 1;
    return true;
}
static bool do_no_arguments(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    s->n = 0;
    return true;
}
static bool do_no_such_slot(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    s->arg[0] = p->nslot;
    return true;
}
static bool do_no_name(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    s->name = NULL;
    return true;
}
static bool do_writes_a_leaf(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || s->derived >= 0) return false;
    s->arg[0] = p->leaf[0].slot;
    return true;
}
static bool do_adds_without_a_name(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->adds) return false;
    s->adds_name = NULL;
    return true;
}
static bool do_data_lost(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    s->ndata = s->ndata ? 0 : 1;
    return true;
}
static bool do_a_sum_no_more(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->subs) return false;
    s->flags &= ~LOP_STEP_SUM;
    return true;
}
static bool do_w1_what_subtracts_stays(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->subs || !s->run) return false;
    s->subs = s->run;
    s->subs_name = s->name;
    return true;
}
static bool do_a_sum_of_one(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_SUM)) return false;
    s->n = 2;
    return true;
}
static bool do_a_multiple_of_two(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_SCALES)) return false;
    s->arg[s->n++] = s->arg[1];
    return true;
}
static bool do_a_block_that_accumulates(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->adds) return false;
    s->flags |= LOP_STEP_PLACES;
    return true;
}
static bool do_inf_times_a_product(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_ACCUMULATES)) return false;
    s->attr.re = INFINITY;
    return true;
}
static bool do_w1_what_accumulates_can_again(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_ACCUMULATES)) return false;
    s->adds = s->run;
    s->adds_name = s->name;
    return true;
}
static bool do_accumulates_without_scratch(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_ACCUMULATES)) return false;
    s->scratch = 0;
    return true;
}
static bool do_columns_of_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->n > 1) return false;
    s->flags |= LOP_STEP_COLUMNS;
    return true;
}
static bool do_in_place_of_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->n > 1) return false;
    s->flags |= LOP_STEP_INPLACE;
    return true;
}
static bool do_a_batch_of_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->n > 1) return false;
    s->flags |= LOP_STEP_BATCH;
    return true;
}
static bool do_a_group_of_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->n > 1) return false;
    s->flags |= LOP_STEP_GROUP;
    return true;
}
static bool do_a_group_and_columns(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_GROUP)) return false;
    s->flags |= LOP_STEP_COLUMNS;
    return true;
}
static bool do_places_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_PLACES)) return false;
    s->n = 1;
    return true;
}
static bool do_quiet_about_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->fail >= 0) return false;
    s->flags |= LOP_STEP_QUIET;
    return true;
}
static bool do_foreign(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->derived >= 0) return false;
    s->flags |= LOP_STEP_FOREIGN;
    return true;
}
static bool do_no_mask(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run) return false;
    s->when = p->out;
    return true;
}
static bool do_two_ways_out(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->fail < 0) return false;
    s->escape = s->fail;
    s->escape_to = i + 1;
    return true;
}
static bool do_a_mask_of_another_batch(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->fail < 0) return false;
    lop_slot *m = &p->slot[s->fail];
    m->shape.dim[m->shape.ndim++] = 2;
    m->batch *= 2;
    return true;
}
static bool do_hangs_on_itself(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->fail < 0) return false;
    s->when = s->fail;
    return true;
}
static bool do_hangs_on_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->when >= 0) return false;
    s->when_set = true;
    return true;
}
static bool do_within_none(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->late >= 0 || some_mask(p) < 0 || s->fail >= 0) return false;
    s->later = some_mask(p);
    return true;
}
static bool do_escapes_backwards(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->escape < 0) return false;
    s->escape_to = i;
    return true;
}
static bool do_escapes_elsewhere(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->escape < 0 || i == 0 || p->step[i - 1].escape != s->escape ||
        s->escape_to + 1 >= p->nstep || !s->run || !p->step[i - 1].run)
        return false;
    s->escape_to++;
    return true;
}
static bool do_prepares_no_value(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->derived >= 0 || !p->nderive || !s->run) return false;
    s->derived = 0;
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
static bool do_prepared_beyond_the_end(lop_plan *p, int i) {
    if (p->step[i].derived < 0 || i == 0) return false;
    p->nstep = i; /* what lies behind still looks right */
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
static bool do_does_not_run(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run) return false;
    s->run = NULL;
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
static bool do_no_batch_in_the_plan(lop_plan *p, int i) {
    if (i || !p->batched) return false;
    p->batched = false;
    return true;
}
