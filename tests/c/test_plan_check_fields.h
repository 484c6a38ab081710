/* test_plan_check_fields.h: damage to a plan in a line each: SLOT or STEP(name, what the check is
 * to say (one of these), where it fits, what is done), `s` being the slot or step `i` of plan `p`.
 * Read twice by test_plan_check_damages.h: as functions and as rows. */
SLOT(sizes, "the sizes of slot", s->kind == LOP_S_TEMP, s->m++)
SLOT(leaf, "is not what it says|has no slot", s->kind == LOP_S_LEAF, s->leaf = -1)
SLOT(leaf_s_slot, "has no slot|is not what it says", s->kind == LOP_S_LEAF,
     p->leaf[s->leaf].slot = p->out)
SLOT(result, "there is no result", i == p->out, s->kind = LOP_S_TEMP)
SLOT(second_result, "is not what it says", is_temp(p, i), s->kind = LOP_S_OUT)
SLOT(part_and_transpose, "cannot be a name for", s->alias >= 0 && s->flip, s->part = true)
SLOT(name_of_another_dtype, "cannot be a name for",
     s->alias >= 0 && s->dt == LOP_f64 && p->slot[s->alias].dt != LOP_u8,
     s->dt = LOP_c64) /* as many bytes */
SLOT(no_transpose, "is no transpose of",
     s->alias >= 0 && !s->flip && !s->part && !s->window &&
         (p->slot[s->alias].m != s->n || p->slot[s->alias].n != s->m),
     s->flip = true)
SLOT(block_outside, "a block at", s->part, s->row = p->slot[s->alias].m - s->m + 1)
SLOT(block_before, "a block at", s->part, s->col = -1)
SLOT(blocks_overlap, "overlap|not wholly written|has read already|it covers",
     s->part && s->copy_step < 0 && s->row, s->row--)
SLOT(window_outside, "elements from", s->window, s->shift += p->slot[s->alias].m)
SLOT(window_one_too_far, "elements from", s->window,
     s->shift = (int64_t)((size_t)p->slot[s->alias].matbytes / lop_dtype_size(s->dt)) -
                s->m * s->n * s->batch + 1)
SLOT(window_before, "elements from", s->window, s->shift = -1)
SLOT(window_on_a_name, "elements from",
     s->window && p->slot[s->alias].window &&
         p->slot[s->alias].m == p->slot[p->slot[s->alias].alias].m,
     p->slot[s->alias].window = false)
SLOT(window_in_no_order, "elements from|in C order", s->window, p->slot[s->alias].need_c = false)
SLOT(window_in_a_matrix, "elements from",
     s->window && p->slot[s->alias].m % 2 == 0 && p->slot[s->alias].n == 1,
     columns_of(&p->slot[s->alias], 2))
SLOT(a_name_for_bytes, "cannot be a name for",
     s->alias >= 0 && !s->flip && !s->part && !s->window && s->dt == LOP_f64, bytes_of(p, s->alias))
SLOT(windows_overlap, "overlap", s->window && s->shift, s->shift--)
SLOT(a_window_that_says_nothing,
     "elements, slot|cannot be a name|a block at|lies outside|is a part of none",
     s->window && s->m * s->n != p->slot[s->alias].m, s->window = false)
SLOT(no_c_order, "in C order",
     s->alias >= 0 && !s->flip && !s->part && !s->window &&
         p->slot[base_of(p, i)].kind != LOP_S_TEMP,
     p->slot[base_of(p, i)].need_c = false)
SLOT(a_ring_of_names, "names for each other",
     s->alias >= 0 && p->slot[base_of(p, i)].kind == LOP_S_TEMP, p->slot[base_of(p, i)].alias = i)
SLOT(part_of_none, "is a part of none", is_temp(p, i), s->part = true)
SLOT(copied_elsewhere, "no step copies", s->copy_step >= 0,
     s->copy_step = s->copy_step ? 0 : p->nstep - 1)
STEP(no_arguments, "arguments|no step copies", true, s->n = 0)
STEP(no_such_slot, "argument 0 is slot|is not what it says|no step copies", true,
     s->arg[0] = p->nslot)
STEP(no_name, "it has no name", true, s->name = NULL)
STEP(writes_a_leaf, "writes a leaf", s->run && s->derived < 0, s->arg[0] = p->leaf[0].slot)
STEP(adds_without_a_name, "a function or a name", s->adds, s->adds_name = NULL)
STEP(data_lost, "its data is not", true, s->ndata = s->ndata ? 0 : 1)
STEP(a_sum_no_more, "a sum, and nothing else", s->subs, s->flags &= ~LOP_STEP_SUM)
STEP(w1_what_subtracts_stays, "a sum, and nothing else", !s->subs && s->run, s->subs = s->run,
     s->subs_name = s->name)
STEP(a_sum_of_one, "a sum has two", (s->flags & LOP_STEP_SUM), s->n = 2)
STEP(a_multiple_of_two, "a multiple has one", (s->flags & LOP_STEP_SCALES),
     s->arg[s->n++] = s->arg[1])
STEP(a_block_that_accumulates, "a product alone", s->adds, s->flags |= LOP_STEP_PLACES)
STEP(inf_times_a_product, "what accumulates is", (s->flags & LOP_STEP_ACCUMULATES),
     s->attr.re = INFINITY)
STEP(w1_what_accumulates_can_again, "what accumulates is", (s->flags & LOP_STEP_ACCUMULATES),
     s->adds = s->run, s->adds_name = s->name)
STEP(accumulates_without_scratch, "what accumulates is", (s->flags & LOP_STEP_ACCUMULATES),
     s->scratch = 0)
STEP(a_start_in_a_block, "what starts a sum", (s->flags & LOP_STEP_STARTS),
     s->flags |= LOP_STEP_PLACES)
STEP(columns_of_nothing, "linear in its argument", s->n <= 1, s->flags |= LOP_STEP_COLUMNS)
STEP(in_place_of_nothing, "run in place has", s->n <= 1, s->flags |= LOP_STEP_INPLACE)
STEP(a_batch_of_nothing, "takes a batch has", s->n <= 1, s->flags |= LOP_STEP_BATCH)
STEP(a_pair_of_nothing, "each pair of a batch", s->n != 3, s->flags |= LOP_STEP_EACH)
STEP(a_group_of_nothing, "a group has", s->n <= 1, s->flags |= LOP_STEP_GROUP)
STEP(a_group_and_columns, "a group is no other", (s->flags & LOP_STEP_GROUP),
     s->flags |= LOP_STEP_COLUMNS)
STEP(places_nothing, "what places has|takes a batch", (s->flags & LOP_STEP_PLACES), s->n = 1)
STEP(quiet_about_nothing, "it is quiet", s->fail < 0, s->flags |= LOP_STEP_QUIET)
STEP(foreign, "only derived values own", s->derived < 0, s->flags |= LOP_STEP_FOREIGN)
STEP(no_mask, "is no mask", s->run, s->when = p->out)
STEP(two_ways_out, "leads to two ways", s->fail >= 0, s->escape = s->fail, s->escape_to = i + 1)
STEP(hangs_on_itself, "its own failure", s->fail >= 0, s->when = s->fail)
STEP(hangs_on_nothing, "a mask that is not there", s->when < 0, s->when_set = true)
STEP(within_none, "within none", s->late < 0 && some_mask(p) >= 0 && s->fail < 0,
     s->later = some_mask(p))
STEP(escapes_backwards, "escape forward", s->escape >= 0, s->escape_to = i)
STEP(escapes_elsewhere, "to another step",
     s->escape >= 0 && i != 0 && p->step[i - 1].escape == s->escape &&
         s->escape_to + 1 < p->nstep && s->run && p->step[i - 1].run,
     s->escape_to++)
STEP(prepares_no_value, "derived values, and nothing else|what places|what starts|what accumulates",
     s->derived < 0 && p->nderive && s->run, s->derived = 0)
STEP(prepared_beyond_the_end, "is not what it says|no step copies",
     p->step[i].derived >= 0 && i != 0, p->nstep = i) /* what lies behind still looks right */
STEP(does_not_run, "neither runs", s->run, s->run = NULL)
STEP(no_batch_in_the_plan, "the plan has none", !i && p->batched, p->batched = false)
STEP(w1_accumulates_unsaid, "it covers what step|has read already",
     (s->flags & LOP_STEP_ACCUMULATES), s->flags &= ~LOP_STEP_ACCUMULATES)
STEP(placed_beside, "goes beside", (s->flags & LOP_STEP_PLACES), s->attr.i[0] += 1000)
STEP(the_other_side_of_a_mask,
     "only where|has failed|is not written|never run|also where|it covers", s->when >= 0 && s->run,
     s->when_set = !s->when_set)
STEP(never, "can never run", s->late >= 0 && s->when == s->late, s->when_set = false)
STEP(the_result_left_out, "the result may be left out|was left out",
     s->run && p->nderive && s->arg[0] == p->out && !s->serves, s->serves = 1)
STEP(another_key, "their keys name", !i && p->nderive, p->key[0] ^= 1)
STEP(another_name, "their keys name", s->derived >= 0, s->name = "another")
STEP(no_keys, "have no keys", !i && p->nderive, p->key = NULL)
STEP(an_odd_workspace, "the workspace has", !i, p->workspace++)
SLOT(made_where_no_value_is, "cannot lie where|for that alone",
     is_temp(p, i) && s->onto < 0 && last_touch(p, i) >= 0, s->onto = p->nderive)
SLOT(no_place, "has no place", is_temp(p, i) && s->onto < 0 && last_touch(p, i) >= 0,
     s->offset = -64)
SLOT(between_places, "has no place", is_temp(p, i) && s->onto < 0 && last_touch(p, i) >= 0,
     s->offset += 8)
SLOT(outside, "lies outside its memory",
     is_temp(p, i) && s->onto < 0 && last_touch(p, i) >= 0 && s->matbytes,
     s->offset = s->late ? p->reserve[s->late - 1] : p->workspace)
STEP(too_little_scratch, "bytes of scratch", s->run && s->scratch,
     s->scratch = 1 + (s->late >= 0 ? p->late_scratch[s->later >= 0] : p->scratch))
STEP(not_for_a_value_alone, "for that alone|left out",
     s->run && s->derived < 0 && p->slot[base_of(p, s->arg[0])].onto >= 0 &&
         p->slot[base_of(p, s->arg[0])].kind == LOP_S_TEMP,
     s->serves = 0)
