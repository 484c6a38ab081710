/* dump.c: a plan for people. Reads, never changes. Cost: linear in what is printed. */
#include "dump.h"

#include "text.h"

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

static const char *slot_name(const lop_plan *p, int slot, char *name, size_t size) {
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

static void put_step(sheet *out, const lop_plan *p, int i) {
    const lop_step *s = &p->step[i];
    char name[160];
    put(out, "  %2d %-14s %s <-", i, s->name, slot_name(p, s->arg[0], name, sizeof name));
    for (int j = 1; j < s->n; j++) put(out, " %s", slot_name(p, s->arg[j], name, sizeof name));
    if (s->derived >= 0) put(out, "   [kept while its inputs keep their content]");
    if (s->fail >= 0) put(out, "   [on failure: step %d instead]", i + 1);
    if (s->when >= 0)
        put(out, "   [only %s the one before failed]", s->when_set ? "where" : "unless");
    if (!s->run) put(out, "   [strides only]");
    put(out, "\n     %.3g flops, %.3g bytes\n", s->flops, s->bytes);
}

char *lop_plan_dump(const lop_plan *p, const lop_rules *rules, int limit) {
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
    if (p->trace.order[0])
        put(&out, "planned   %s\n          as written %.3g flops, chosen %.3g; %d states priced\n",
            p->trace.order, p->trace.written, p->flops, p->trace.states);
    put(&out, "steps     %d\n", p->nstep);
    for (int i = 0; i < p->nstep && i < limit; i++) put_step(&out, p, i);
    if (p->nstep > limit) put(&out, "  ... %d more\n", p->nstep - limit);
    put(&out, "total     %.3g flops, %.3g bytes moved, %lld bytes of workspace, estimated %.3g s\n",
        p->flops, p->bytes, (long long)p->workspace + (long long)p->scratch, p->seconds);
    if (out.failed) {
        lop_free(p->ctx, out.text);
        return NULL;
    }
    return out.text;
}
