/* test_plan_check_damages.h: what is done to a plan at slot or step `i`, where it fits (else
 * false), and what the check is to say. Here what goes against other steps; at the end all of it, a
 * row each. For test_plan_check.c alone. */
#include "test_plan_check_fields.h"

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
static bool do_w1_accumulates_unsaid(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_ACCUMULATES)) return false;
    s->flags &= ~LOP_STEP_ACCUMULATES;
    return true;
}
static bool do_accumulates_on_nothing(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_ACCUMULATES) || i == 0 || p->step[i - 1].arg[0] != s->arg[0])
        return false;
    if (p->step[i - 1].flags & LOP_STEP_ACCUMULATES) return false;
    remove_step(p, i - 1);
    return true;
}
static bool do_placed_beside(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!(s->flags & LOP_STEP_PLACES)) return false;
    s->attr.i[0] += 1000;
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
static bool do_the_other_side_of_a_mask(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->when < 0 || !s->run) return false;
    s->when_set = !s->when_set;
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
static bool do_never(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->late < 0 || s->when != s->late) return false;
    s->when_set = false;
    return true;
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
static bool do_the_result_left_out(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || !p->nderive || s->arg[0] != p->out || s->serves) return false;
    s->serves = 1;
    return true;
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
static bool do_another_key(lop_plan *p, int i) {
    if (i || !p->nderive) return false;
    p->key[0] ^= 1;
    return true;
}
static bool do_another_name(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (s->derived < 0) return false;
    s->name = "another";
    return true;
}
static bool do_no_keys(lop_plan *p, int i) {
    if (i || !p->nderive) return false;
    p->key = NULL;
    return true;
}
static bool do_an_odd_workspace(lop_plan *p, int i) {
    if (i) return false;
    p->workspace++;
    return true;
}
static bool do_made_where_no_value_is(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!is_temp(p, i) || s->onto >= 0 || last_touch(p, i) < 0) return false;
    s->onto = p->nderive;
    return true;
}
static bool do_no_place(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!is_temp(p, i) || s->onto >= 0 || last_touch(p, i) < 0) return false;
    s->offset = -64;
    return true;
}
static bool do_between_places(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!is_temp(p, i) || s->onto >= 0 || last_touch(p, i) < 0) return false;
    s->offset += 8;
    return true;
}
static bool do_outside(lop_plan *p, int i) {
    lop_slot *s = &p->slot[i];
    if (!is_temp(p, i) || s->onto >= 0 || last_touch(p, i) < 0 || !s->matbytes) return false;
    s->offset = s->late ? p->reserve[s->late - 1] : p->workspace;
    return true;
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
static bool do_not_in_place(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    const int to = base_of(p, s->arg[0]), from = s->n > 1 ? base_of(p, s->arg[1]) : to;
    if (!s->run || to == from || !is_temp(p, to) || !is_temp(p, from) || p->slot[to].onto >= 0 ||
        p->slot[from].onto >= 0 || p->slot[to].late != p->slot[from].late ||
        p->slot[to].offset != p->slot[from].offset || last_touch(p, from) != i)
        return false;
    s->flags &= ~LOP_STEP_INPLACE;
    return true;
}
static bool do_in_place_of_what_lives_on(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    const int to = base_of(p, s->arg[0]), from = s->n > 1 ? base_of(p, s->arg[1]) : to;
    if (!s->run || to == from || !is_temp(p, to) || !is_temp(p, from) || p->slot[to].onto >= 0 ||
        p->slot[from].onto >= 0 || p->slot[to].late != p->slot[from].late ||
        p->slot[to].offset != p->slot[from].offset || last_touch(p, from) != i)
        return false;
    for (int k = i + 1; k < p->nstep; k++)
        for (int j = 1; j < p->step[k].n; j++)
            if (p->step[k].run && same_shape(p, p->step[k].arg[j], from) && p->step[k].when < 0) {
                p->step[k].arg[j] = from;
                return true;
            }
    return false;
}
static bool do_in_place_of_half(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    const int to = base_of(p, s->arg[0]), from = s->n > 1 ? base_of(p, s->arg[1]) : to;
    if (!s->run || to == from || !is_temp(p, to) || !is_temp(p, from) || p->slot[to].onto >= 0 ||
        p->slot[from].onto >= 0 || p->slot[to].late != p->slot[from].late ||
        p->slot[to].offset != p->slot[from].offset || last_touch(p, from) != i)
        return false;
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
static bool do_too_little_scratch(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || !s->scratch) return false;
    s->scratch = 1 + (s->late >= 0 ? p->late_scratch[s->later >= 0] : p->scratch);
    return true;
}
static bool do_not_for_a_value_alone(lop_plan *p, int i) {
    lop_step *s = &p->step[i];
    if (!s->run || s->derived >= 0) return false;
    if (p->slot[base_of(p, s->arg[0])].onto < 0 ||
        p->slot[base_of(p, s->arg[0])].kind != LOP_S_TEMP)
        return false;
    s->serves = 0;
    return true;
}

typedef struct damage {
    const char *name, *says; /* one of these, parted by bars */
    bool of_slot;
    bool (*how)(lop_plan *p, int i);
} damage;
static const damage damages[] = {
    {"sizes", "the sizes of slot", true, do_sizes},
    {"leaf", "is not what it says|has no slot", true, do_leaf},
    {"leaf's slot", "has no slot|is not what it says", true, do_leaf_s_slot},
    {"result", "there is no result", true, do_result},
    {"second result", "is not what it says", true, do_second_result},
    {"part and transpose", "cannot be a name for", true, do_part_and_transpose},
    {"name of another dtype", "cannot be a name for", true, do_name_of_another_dtype},
    {"no transpose", "is no transpose of", true, do_no_transpose},
    {"transposed otherwise", "is no transpose of|has no slot|elements, slot|cannot be", true,
     do_transposed_otherwise},
    {"on a transpose", "lies on the transpose", true, do_on_a_transpose},
    {"block outside", "a block at", true, do_block_outside},
    {"block before", "a block at", true, do_block_before},
    {"blocks overlap", "overlap|not wholly written|has read already|it covers", true,
     do_blocks_overlap},
    {"window outside", "elements from", true, do_window_outside},
    {"windows overlap", "overlap", true, do_windows_overlap},
    {"name of another size", "elements, slot", true, do_name_of_another_size},
    {"a window that says nothing",
     "elements, slot|cannot be a name|a block at|lies outside|is a part of none", true,
     do_a_window_that_says_nothing},
    {"no C order", "in C order", true, do_no_c_order},
    {"a ring of names", "names for each other", true, do_a_ring_of_names},
    {"part of none", "is a part of none", true, do_part_of_none},
    {"copied elsewhere", "no step copies", true, do_copied_elsewhere},
    {"no arguments", "arguments|no step copies", false, do_no_arguments},
    {"no such slot", "argument 0 is slot|is not what it says|no step copies", false,
     do_no_such_slot},
    {"no name", "it has no name", false, do_no_name},
    {"writes a leaf", "writes a leaf", false, do_writes_a_leaf},
    {"adds without a name", "a function or a name", false, do_adds_without_a_name},
    {"data lost", "its data is not", false, do_data_lost},
    {"a sum no more", "a sum, and nothing else", false, do_a_sum_no_more},
    {"W1: what subtracts stays", "a sum, and nothing else", false, do_w1_what_subtracts_stays},
    {"a sum of one", "a sum has two", false, do_a_sum_of_one},
    {"a multiple of two", "a multiple has one", false, do_a_multiple_of_two},
    {"a block that accumulates", "a product alone", false, do_a_block_that_accumulates},
    {"inf times a product", "what accumulates is", false, do_inf_times_a_product},
    {"W1: what accumulates can again", "what accumulates is", false,
     do_w1_what_accumulates_can_again},
    {"accumulates without scratch", "what accumulates is", false, do_accumulates_without_scratch},
    {"columns of nothing", "linear in its argument", false, do_columns_of_nothing},
    {"in place of nothing", "run in place has", false, do_in_place_of_nothing},
    {"a batch of nothing", "takes a batch has", false, do_a_batch_of_nothing},
    {"a group of nothing", "a group has", false, do_a_group_of_nothing},
    {"a group and columns", "a group is no other", false, do_a_group_and_columns},
    {"places nothing", "what places has|takes a batch", false, do_places_nothing},
    {"quiet about nothing", "it is quiet", false, do_quiet_about_nothing},
    {"foreign", "only derived values own", false, do_foreign},
    {"no mask", "is no mask", false, do_no_mask},
    {"two ways out", "leads to two ways", false, do_two_ways_out},
    {"a mask of another batch", "one flag a batch", false, do_a_mask_of_another_batch},
    {"hangs on itself", "its own failure", false, do_hangs_on_itself},
    {"hangs on nothing", "a mask that is not there", false, do_hangs_on_nothing},
    {"within none", "within none", false, do_within_none},
    {"escapes backwards", "escape forward", false, do_escapes_backwards},
    {"escapes elsewhere", "to another step", false, do_escapes_elsewhere},
    {"prepares no value", "derived values, and nothing else|what places", false,
     do_prepares_no_value},
    {"prepares a second time", "another value than", false, do_prepares_a_second_time},
    {"prepared beyond the end", "is not what it says|no step copies", false,
     do_prepared_beyond_the_end},
    {"an odd value", "whole number of lines", false, do_an_odd_value},
    {"does not run", "neither runs", false, do_does_not_run},
    {"another batch", "batch of argument", false, do_another_batch},
    {"no batch in the plan", "the plan has none", false, do_no_batch_in_the_plan},
    {"dropped",
     "written|has read already|never|adds to|is not made|overlap|has failed|left out|by strides|is "
     "not what",
     false, do_dropped},
    {"reads too early", "is not written|not wholly|also where|never run|only where", false,
     do_reads_too_early},
    {"writes too late", "has read already|it covers|not written|not wholly|overlap", false,
     do_writes_too_late},
    {"W1: accumulates unsaid", "it covers what step|has read already", false,
     do_w1_accumulates_unsaid},
    {"accumulates on nothing", "it adds to slot", false, do_accumulates_on_nothing},
    {"placed beside", "goes beside", false, do_placed_beside},
    {"placed twice", "overlap|not wholly", false, do_placed_twice},
    {"the other side of a mask",
     "only where|has failed|is not written|never run|also where|it covers", false,
     do_the_other_side_of_a_mask},
    {"wherever it likes", "also where|in a reserve|it covers|only where|has failed|scratch", false,
     do_wherever_it_likes},
    {"never", "can never run", false, do_never},
    {"left out", "left out", false, do_left_out},
    {"the result left out", "the result may be left out|was left out", false,
     do_the_result_left_out},
    {"fewer leaves", "fewer leaves", false, do_fewer_leaves},
    {"another key", "their keys name", false, do_another_key},
    {"another name", "their keys name", false, do_another_name},
    {"no keys", "have no keys", false, do_no_keys},
    {"an odd workspace", "the workspace has", false, do_an_odd_workspace},
    {"made where no value is", "cannot lie where|for that alone", true, do_made_where_no_value_is},
    {"no place", "has no place", true, do_no_place},
    {"between places", "has no place", true, do_between_places},
    {"outside", "lies outside its memory", true, do_outside},
    {"where another lives", "is put where|lies outside its", false, do_where_another_lives},
    {"not in place", "cannot run in place", false, do_not_in_place},
    {"in place of what lives on", "it lives on|their keys name", false,
     do_in_place_of_what_lives_on},
    {"in place of half", "the sizes differ|is put where|lies outside its", false,
     do_in_place_of_half},
    {"in a reserve", "in a reserve|lies outside", false, do_in_a_reserve},
    {"too little scratch", "bytes of scratch", false, do_too_little_scratch},
    {"not for a value alone", "for that alone|left out", false, do_not_for_a_value_alone},
};
