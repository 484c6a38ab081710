/* plan_print.c: a plan for people. Reads, never changes. Cost: linear in what is printed. */
#include "plan_print.h"

#include "rewrite/guards.h"
#include "expr/sexpr.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct sheet {
    lop_ctx *ctx;
    char *text;
    size_t n, room;
    bool failed;
} sheet;

static void put(sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(sheet *s, const char *format, ...) {
    va_list args;
    for (int again = 0; again < 2 && !s->failed; again++) {
        va_start(args, format);
        int n = vsnprintf(s->text ? s->text + s->n : NULL, s->room - s->n, format, args);
        va_end(args);
        if (n < 0) return;
        if (s->text && s->n + (size_t)n < s->room) {
            s->n += (size_t)n;
            return;
        }
        size_t room = 2 * s->room + (size_t)n + 512;
        char *more = lop_realloc(s->ctx, s->text, room);
        s->failed = !more;
        if (more) {
            s->text = more;
            s->room = room;
        }
    }
}

const char *lop_slot_text(const lop_plan *p, int slot, char *name, size_t size) {
    static const char *const kinds[] = {"a", "t", "out", "kept"}; /* by lop_slot_kind */
    const lop_slot *s = &p->slot[slot];
    char shape[128] = "";
    if (s->kind != LOP_S_DERIVED) lop_shape_text(&s->shape, shape, sizeof shape);
    if (s->kind == LOP_S_OUT)
        snprintf(name, size, "out%s", shape);
    else
        snprintf(name, size, "%s%d%s", kinds[s->kind], slot, shape);
    return name;
}

static void put_step(sheet *out, const lop_plan *p, const double *times, int i) {
    const lop_step *s = &p->step[i];
    char name[160];
    put(out, "  %2d %-14s %s <-", i, s->name, lop_slot_text(p, s->arg[0], name, sizeof name));
    if (s->flags & LOP_STEP_ACCUMULATES) put(out, " itself +");
    for (int j = 1; j < s->n; j++) put(out, " %s", lop_slot_text(p, s->arg[j], name, sizeof name));
    if (s->derived >= 0) put(out, "   [kept while its inputs keep their content]");
    if (lop_step_again(p, i)) put(out, "   [there by a step before]");
    if (s->fail >= 0) put(out, "   [on failure: step %d instead]", i + 1);
    if (s->when >= 0)
        put(out, "   [only %s the one before failed]", s->when_set ? "where" : "unless");
    if (!s->run) put(out, "   [strides only]");
    put(out, "\n     %.3g flops, %.3g bytes\n", s->flops, s->bytes);
    if (times && s->run && times[i] < 0)
        put(out, "     estimated %.3g s, did not run\n", lop_step_seconds(p, i));
    else if (times && s->run)
        put(out, "     estimated %.3g s, took %.3g s\n", lop_step_seconds(p, i), times[i]);
}

/* Prints a slot of a plan that may be wrong, and whose memory it uses. */
static void put_slot(sheet *out, const lop_plan *p, const char *word, int slot) {
    char name[160];
    if (slot < 0 || slot >= p->nslot) {
        put(out, "%sslot %d?", word, slot);
        return;
    }
    const lop_slot *s = &p->slot[slot];
    put(out, "%s%s", word, lop_slot_text(p, slot, name, sizeof name));
    if (s->alias >= 0)
        put(out, "(%s %d)", s->flip ? "transposed" : s->part ? "block of" : "in", s->alias);
}

char *lop_plan_steps(const lop_plan *p, int from, int to) {
    sheet out = {.ctx = p->ctx};
    put(&out, "%s", from > 0 ? "  ...\n" : "");
    for (int i = from; i < to && i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        put(&out, "  %2d %-10s", i, s->name ? s->name : "?");
        for (int j = 0; j < s->n && j < LOP_MAXARG; j++)
            put_slot(&out, p, j == 1 ? (s->flags & LOP_STEP_ACCUMULATES ? " += " : " <- ") : " ",
                     s->arg[j]);
        if (s->fail >= 0) put_slot(&out, p, ", failure: ", s->fail);
        if (s->when >= 0) put_slot(&out, p, s->when_set ? ", where " : ", unless ", s->when);
        if (s->late >= 0) put_slot(&out, p, ", in the fallback of ", s->late);
        if (s->later >= 0) put_slot(&out, p, " within it of ", s->later);
        if (s->escape >= 0) put_slot(&out, p, ", escapes by ", s->escape);
        put(&out, s->run ? "\n" : ", strides only\n");
    }
    if (to < p->nstep) put(&out, "  ...\n");
    if (!out.failed) return out.text;
    lop_free(p->ctx, out.text);
    return NULL;
}

const char *lop_why_text(const lop_rule *rule, lop_why why) {
    const lop_guard *guard = lop_guard_of(rule->when);
    switch (why) {
    case LOP_WHY_GUARD: return guard ? guard->doc : "its guard";
    case LOP_WHY_BUILD: return rule->build ? "left as written" : "its right side does not fit";
    case LOP_WHY_COST: return "no cheaper";
    case LOP_WHY_OFF: return "switched off";
    default: return NULL;
    }
}

/* Prints a line of rules that did not act: of those whose guards refused, or of those that are
 * switched off. */
static void put_refused(sheet *out, const lop_rules *rules, const lop_trail *trail, bool off) {
    enum { SHOWN = 12 };
    int shown = 0, all = 0;
    for (int i = 0; i < trail->n; i++) {
        const lop_note *n = &trail->note[i];
        if (n->why == LOP_WHY_FIRED || (n->why == LOP_WHY_OFF) != off) continue;
        if (all++ >= SHOWN) continue;
        const lop_rule *rule = lop_rules_at(rules, n->rule);
        const lop_guard *guard = n->why == LOP_WHY_GUARD ? lop_guard_of(rule->when) : NULL;
        put(out, "%s%s", shown++ ? ", " : off ? "off       " : "refused   ", rule->name);
        if (guard) put(out, " (guard %s)", guard->name);
        if (!guard && !off) put(out, " (%s)", lop_why_text(rule, (lop_why)n->why));
    }
    if (shown) put(out, "%s\n", all > shown ? ", ..." : "");
}

static void put_others(sheet *out, const lop_rules *rules, const lop_trail *trail) {
    for (int i = 0; i < trail->nother; i++) {
        const lop_other *o = &trail->other[i];
        const char *name = o->rule >= 0 ? lop_rules_at(rules, o->rule)->name : "";
        put(out, "%s%s%s: %.3g s\n", i ? "          " : "instead   ", o->rule >= 0 ? "by " : "",
            o->rule >= 0 ? name : o->text, o->seconds);
    }
}

static void put_memory(sheet *out, const lop_plan *p) {
    put(out, "memory    %lld bytes at most: %lld of workspace, %lld of result, %lld kept\n",
        (long long)lop_plan_memory(p), (long long)p->workspace + (long long)p->scratch,
        (long long)lop_plan_result(p), (long long)lop_plan_kept(p));
    if (p->reserve[0])
        put(out, "          and %lld where the safer way is needed\n", (long long)p->reserve[0]);
    if (p->reserve[1])
        put(out, "          and %lld where a still safer one is\n", (long long)p->reserve[1]);
}

char *lop_plan_dump(const lop_plan *p, const lop_rules *rules, const lop_trail *trail,
                    const double *times, int limit) {
    sheet out = {.ctx = p->ctx};
    char *text = lop_dump(p->written, 60);
    put(&out, "written   %s\n", text ? text : "?");
    lop_free(p->ctx, text);
    text = lop_dump(p->root, 60);
    put(&out, "canonical %s\n", text ? text : "?");
    lop_free(p->ctx, text);
    put(&out, "rules     %lld fired", (long long)p->trace.count);
    for (int i = 0; i < p->trace.count && i < LOP_TRACE && i < 20; i++)
        put(&out, "%s%s", i ? ", " : ": ", lop_rules_at(rules, p->trace.rule[i])->name);
    put(&out, "%s\n", p->trace.count > 20 ? ", ..." : "");
    if (trail) put_refused(&out, rules, trail, false);
    if (trail) put_refused(&out, rules, trail, true);
    if (p->trace.order[0])
        put(&out, "planned   %s\n          as written %.3g flops, chosen %.3g; %d states priced\n",
            p->trace.order, p->trace.written, p->flops, p->trace.states);
    if (trail) put_others(&out, rules, trail);
    put(&out, "steps     %d\n", p->nstep);
    double took = 0;
    for (int i = 0; times && i < p->nstep; i++) took += times[i] > 0 ? times[i] : 0;
    for (int i = 0; i < p->nstep && i < limit; i++) put_step(&out, p, times, i);
    if (p->nstep > limit) put(&out, "  ... %d more\n", p->nstep - limit);
    put(&out, "total     %.3g flops, %.3g bytes moved, %lld bytes of workspace, estimated %.3g s",
        p->flops, p->bytes, (long long)p->workspace + (long long)p->scratch, p->seconds);
    put(&out, times ? "\n          took %.3g s\n" : "\n", took);
    put_memory(&out, p);
    if (out.failed) {
        lop_free(p->ctx, out.text);
        return NULL;
    }
    return out.text;
}
