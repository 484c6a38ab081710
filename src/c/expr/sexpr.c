/* sexpr.c: reader and printer of the s-expression notation. Both loop with explicit stacks, so
 * depth is bounded by memory alone. Cost: linear in the text; a shared node is printed each time it
 * occurs. */
#include "sexpr.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- reading */

typedef struct reader {
    const char *text, *at;
    lop_text *out;
    lop_err *err;
    int *stack; /* open heads and finished children: term index, or -1 - head */
    int top, room;
    lop_term *open; /* heads not yet closed */
    int nopen, room_open;
} reader;

static lop_status bad(reader *r, const char *what) {
    return lop_fail(r->err, LOP_PARSE, "%s at character %lld of the expression text", what,
                    (long long)(r->at - r->text));
}

static bool room_for(lop_ctx *ctx, void **block, int *room, int n, size_t size) {
    if (n < *room) return true;
    void *more = lop_realloc(ctx, *block, (size_t)(*room ? 2 * *room : 16) * size);
    if (!more) return false;
    *block = more;
    *room = *room ? 2 * *room : 16;
    return true;
}

static lop_status push(reader *r, int what) {
    if (!room_for(r->out->ctx, (void **)&r->stack, &r->room, r->top, sizeof *r->stack))
        return LOP_NOMEM;
    r->stack[r->top++] = what;
    return LOP_OK;
}

static lop_status add_term(reader *r, const lop_term *t, int *id) {
    lop_text *o = r->out;
    if (!room_for(o->ctx, (void **)&o->term, &o->room, o->n, sizeof *o->term)) return LOP_NOMEM;
    o->term[o->n] = *t;
    *id = o->n++;
    return LOP_OK;
}

static lop_status read_ints(reader *r, lop_term *t) {
    for (int i = 0; i < t->op->ints; i++) {
        if (i && *r->at++ != ',') return bad(r, "expected ','");
        char *end;
        t->attr.i[i] = strtoll(r->at, &end, 10);
        if (end == r->at) return bad(r, "expected an integer");
        r->at = end;
    }
    return LOP_OK;
}

static lop_status read_coef(reader *r, lop_term *t) {
    double v[2];
    for (int i = 0; i < 5; i++) {
        if (i && *r->at++ != ',') return bad(r, "expected ','");
        char *end;
        if (i < 2)
            v[i] = strtod(r->at, &end);
        else
            t->attr.i[i - 2] = strtoll(r->at, &end, 10);
        if (end == r->at) return bad(r, "expected a number");
        r->at = end;
    }
    if (t->attr.i[1] < 0 || t->attr.i[1] > LOP_WEAK_COMPLEX || t->attr.i[2] < 0 ||
        t->attr.i[2] >= LOP_NDTYPE)
        return bad(r, "no such kind of coefficient");
    t->attr.re = v[0];
    t->attr.im = v[1];
    return LOP_OK;
}

static lop_status read_like(reader *r, lop_term *t) {
    char name[16];
    size_t n = 0;
    while (isalnum((unsigned char)r->at[n]) && n < sizeof name - 1) n++;
    memcpy(name, r->at, n);
    name[n] = 0;
    r->at += n;
    t->dt = lop_dtype_parse(name);
    t->has_like = true;
    t->core = 2;
    if (t->dt == LOP_NO_DTYPE && strcmp(name, "none") != 0) return bad(r, "expected a dtype");
    if (*r->at++ != '[') return bad(r, "expected '['");
    while (*r->at != ']') {
        char *end;
        int64_t d = strtoll(r->at, &end, 10);
        if (end == r->at || d < 0 || t->shape.ndim == LOP_MAXDIM) return bad(r, "expected a size");
        t->shape.dim[t->shape.ndim++] = d;
        r->at = end;
        if (*r->at == ',') r->at++;
    }
    r->at++;
    while (*r->at == '~' || *r->at == '#' || *r->at == '/') {
        char sign = *r->at++, *end;
        unsigned long long v = strtoull(r->at, &end, 10);
        if (end == r->at) return bad(r, "expected a number");
        if (sign == '~') t->weak = (uint8_t)(v > LOP_WEAK_COMPLEX ? LOP_WEAK_COMPLEX : v);
        if (sign == '#') t->serial = v;
        if (sign == '/') t->core = (uint8_t)(v > 2 ? 2 : v);
        r->at = end;
    }
    if (t->shape.ndim < t->core) return bad(r, "too few dimensions");
    return LOP_OK;
}

static lop_status read_head(reader *r) {
    lop_term t = {.attr_hole = -1};
    size_t n = 0;
    while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_') n++;
    t.op = lop_op_find(r->at, n);
    if (!t.op) return bad(r, "unknown head");
    r->at += n;
    if (*r->at == '*') {
        t.either = true;
        r->at++;
    }
    if (*r->at == '@') {
        if (!islower((unsigned char)r->at[1])) return bad(r, "expected a letter after '@'");
        t.attr_hole = r->at[1] - 'a';
        r->at += 2;
    }
    lop_status st = LOP_OK;
    if (*r->at == ':' && t.op->ints > 0) {
        r->at++;
        t.has_attr = true;
        st = read_ints(r, &t);
    } else if (*r->at == ':' && t.op->coef) {
        r->at++;
        t.has_attr = true;
        st = read_coef(r, &t);
    }
    if (st == LOP_OK && *r->at == ':' && t.op->max == 0) {
        r->at++;
        st = read_like(r, &t);
    }
    if (st != LOP_OK) return st;
    if (!room_for(r->out->ctx, (void **)&r->open, &r->room_open, r->nopen, sizeof t))
        return LOP_NOMEM;
    r->open[r->nopen] = t;
    return push(r, -1 - r->nopen++);
}

static lop_status close_head(reader *r) {
    lop_text *o = r->out;
    int from = r->top;
    while (from > 0 && r->stack[from - 1] >= 0) from--;
    if (from == 0) return bad(r, "unexpected ')'");
    lop_term t = r->open[--r->nopen];
    t.n = r->top - from;
    if (t.either && t.n != 2) return bad(r, "two operands go with '*'");
    t.first = o->nindex;
    for (int i = from; i < r->top; i++) {
        if (!room_for(o->ctx, (void **)&o->index, &o->room_index, o->nindex, sizeof *o->index))
            return LOP_NOMEM;
        o->index[o->nindex++] = r->stack[i];
    }
    r->top = from - 1;
    int id;
    lop_status st = add_term(r, &t, &id);
    return st == LOP_OK ? push(r, id) : st;
}

static lop_status read_all(reader *r) {
    lop_status st = LOP_OK;
    while (st == LOP_OK) {
        while (isspace((unsigned char)*r->at)) r->at++;
        if (*r->at == 0) break;
        if (*r->at == '(') {
            r->at++;
            st = read_head(r);
        } else if (*r->at == ')') {
            r->at++;
            st = close_head(r);
        } else if (*r->at == '?' &&
                   (islower((unsigned char)r->at[1]) || r->at[1] == '*' || r->at[1] == '+')) {
            const char c = r->at[1];
            lop_term t = {.hole = c == '*'   ? LOP_EACH
                                  : c == '+' ? LOP_EACH + 1
                                             : c - 'a',
                          .attr_hole = -1};
            int id;
            r->at += 2;
            st = add_term(r, &t, &id);
            if (st == LOP_OK) st = push(r, id);
        } else {
            st = bad(r, "unexpected character");
        }
    }
    if (st == LOP_OK && (r->top != 1 || r->stack[0] < 0))
        st = bad(r, "expected one closed expression");
    return st;
}

lop_status lop_text_parse(lop_ctx *ctx, const char *text, lop_text *out, lop_err *err) {
    memset(out, 0, sizeof *out);
    out->ctx = ctx;
    reader r = {.text = text, .at = text, .out = out, .err = err};
    lop_status st = read_all(&r);
    lop_free(ctx, r.stack);
    lop_free(ctx, r.open);
    if (st != LOP_OK) lop_text_clear(out);
    if (st == LOP_NOMEM) (void)lop_fail(err, st, NULL);
    return st;
}

void lop_text_clear(lop_text *text) {
    lop_free(text->ctx, text->term);
    lop_free(text->ctx, text->index);
    text->term = NULL;
    text->index = NULL;
}

lop_status lop_read(lop_ctx *ctx, const char *text, const lop_node **out, lop_err *err) {
    lop_text t;
    lop_status st = lop_text_parse(ctx, text, &t, err);
    *out = NULL;
    if (st != LOP_OK) return st;
    const lop_node **made = lop_calloc(ctx, (size_t)t.n, sizeof *made);
    const lop_node **child = lop_calloc(ctx, (size_t)t.nindex + 1, sizeof *child);
    int done = 0;
    if (!made || !child) st = lop_fail(err, LOP_NOMEM, NULL);
    for (; st == LOP_OK && done < t.n; done++) {
        const lop_term *m = &t.term[done];
        lop_node like = {.shape = m->shape,
                         .dtype = m->dt,
                         .weak = m->weak,
                         .core = m->core,
                         .serial = m->serial};
        like.opaque = m->dt >= LOP_NDTYPE;
        if (!m->op || m->attr_hole >= 0 || m->either)
            st = lop_fail(err, LOP_PARSE, "holes belong in rules only");
        else if (m->op->max == 0 && !m->has_like)
            st = lop_fail(err, LOP_PARSE, "%s needs a dtype and a shape", m->op->name);
        if (st != LOP_OK) break;
        for (int i = 0; i < m->n; i++) child[i] = made[t.index[m->first + i]];
        st = lop_node_make(ctx, m->op, &m->attr, m->n, child, m->has_like ? &like : NULL,
                           &made[done], err);
        if (st != LOP_OK) break;
    }
    if (st == LOP_OK) *out = lop_node_ref(made[t.n - 1]);
    for (int i = 0; made && i < done; i++) lop_node_unref(made[i]);
    lop_free(ctx, (void *)made);
    lop_free(ctx, (void *)child);
    lop_text_clear(&t);
    return st;
}

/* -- printing */

typedef struct printer {
    lop_ctx *ctx;
    char *text;
    size_t n, room;
    bool failed;
} printer;

static void put(printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(printer *p, const char *format, ...) {
    char piece[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (p->failed || n < 0) return;
    if (p->n + (size_t)n + 1 > p->room) {
        size_t room = 2 * p->room + 256;
        char *more = lop_realloc(p->ctx, p->text, room);
        if (!more) {
            p->failed = true;
            return;
        }
        p->text = more;
        p->room = room;
    }
    memcpy(p->text + p->n, piece, (size_t)n + 1);
    p->n += (size_t)n;
}

static void put_head(printer *p, const lop_node *node) {
    const lop_attr *a = &node->attr;
    put(p, "(%s", node->op->name);
    for (int i = 0; i < node->op->ints; i++) put(p, i ? ",%lld" : ":%lld", (long long)a->i[i]);
    if (node->op->coef)
        put(p, ":%.17g,%.17g,%lld,%lld,%lld", a->re, a->im, (long long)a->i[0], (long long)a->i[1],
            (long long)a->i[2]);
    if (node->op->max != 0) return;
    put(p, ":%s[", lop_dtype_name(node->dtype));
    for (int i = 0; i < node->shape.ndim; i++)
        put(p, i ? ",%lld" : "%lld", (long long)node->shape.dim[i]);
    put(p, "]");
    if (node->weak) put(p, "~%d", node->weak);
    if (node->serial) put(p, "#%llu", (unsigned long long)node->serial);
    if (node->core != 2) put(p, "/%d", node->core);
}

typedef struct visit {
    const lop_node *node;
    int next;
} visit;

char *lop_dump(const lop_node *node, int64_t limit) {
    printer p = {.ctx = node->ctx};
    int room = 0, top = 0;
    visit *stack = NULL;
    int64_t printed = 0;
    if (room_for(p.ctx, (void **)&stack, &room, 0, sizeof *stack)) stack[top++] = (visit){node, 0};
    while (top > 0 && !p.failed) {
        visit *v = &stack[top - 1];
        if (v->next == 0) {
            put_head(&p, v->node);
            printed++;
        }
        if (v->next == v->node->n) {
            put(&p, ")");
            top--;
            continue;
        }
        const lop_node *child = v->node->child[v->next++];
        put(&p, " ");
        if (limit && printed >= limit) {
            put(&p, "...");
            v->next = v->node->n;
            continue;
        }
        if (!room_for(p.ctx, (void **)&stack, &room, top, sizeof *stack)) p.failed = true;
        if (!p.failed) stack[top++] = (visit){child, 0};
    }
    bool failed = p.failed || !stack;
    lop_free(p.ctx, stack);
    if (failed) {
        lop_free(p.ctx, p.text);
        return NULL;
    }
    return p.text;
}
