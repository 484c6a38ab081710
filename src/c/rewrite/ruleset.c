/* ruleset.c: compiles the rule table, and users' rules beside it.
 *
 * Rows of the table come by tier and by how much they name, else in its order. A user's row of
 * `first` or `push` stands before them (the first that fits wins), one of `explore` by itself. A
 * name keeps its place when its rule is unregistered, so that what was switched off by number stays
 * that rule. */
#include "ruleset.h"

#include "guards.h"

#include <stdio.h>
#include <string.h>

/* May a term be a node of that op? */
static bool may_be(const lop_term *t, int id) {
    if (!t->op || lop_op_id(t->op) == id) return true;
    const lop_op *times = t->attr_hole >= 0 ? lop_multiples_of(t->op) : NULL;
    return times && lop_op_id(times) == id;
}

/* Marks op(a, b) for all kinds that two terms may be; b NULL: of one operand. */
static void mark_pair(lop_rules *r, const lop_op *op, const lop_term *a, const lop_term *b) {
    for (int i = 0; i < r->nops; i++)
        for (int j = 0; may_be(a, i) && j < (b ? r->nops : 1); j++)
            if (!b || may_be(b, j)) r->close[(lop_op_id(op) * r->nops + i) * r->nops + j] = 1;
}

/* Marks the kinds a close row can meet: a hole meets all. */
static void mark_close(lop_rules *r, const lop_text *t) {
    const lop_term *root = &t->term[t->n - 1],
                   *a = root->n > 0 ? &t->term[t->index[root->first]] : NULL,
                   *b = root->n > 1 ? &t->term[t->index[root->first + 1]] : NULL;
    static const lop_term any = {.attr_hole = -1};
    if (!a) a = b = &any; /* a kind named alone, of any operands */
    mark_pair(r, root->op, a, b);
    if (root->either) mark_pair(r, root->op, b, a);
}

bool lop_may_close(const lop_rules *r, const lop_op *op, const lop_op *left, const lop_op *right) {
    int b = right ? lop_op_id(right) : 0;
    return r->close[(lop_op_id(op) * r->nops + lop_op_id(left)) * r->nops + b] != 0;
}

/* Is this the head of the operand in question? NULL where it may be several. */
static const lop_op *head_of(const lop_term *root, const lop_term *first) {
    return root->either || (first->attr_hole >= 0 && first->op && lop_multiples_of(first->op))
               ? NULL
               : first->op;
}

/* How many ?* and ?+ there are in a term that stand below no head that takes them. */
static int loose(const lop_text *t, int id, bool below) {
    const lop_term *term = &t->term[id];
    int n = !below && !term->op && term->hole >= LOP_EACH;
    for (int i = 0; i < term->n; i++)
        n += loose(t, t->index[term->first + i], below || lop_takes_each(term));
    return n;
}

/* Are ?* and ?+ where they mean something: on the right, below a head that takes any number of
 * operands, and is there one on the left that has them? */
static bool each_bound(const lop_compiled *row) {
    int alone = 0, most = 0, left = 0;
    for (int i = 0; i < row->left.n; i++) {
        const lop_term *t = &row->left.term[i];
        alone += lop_names_alone(t);
        left += !t->op && t->hole >= LOP_EACH;
    }
    for (int i = 0; row->has_right && i < row->right.n; i++) {
        const lop_term *t = &row->right.term[i];
        if (!t->op && t->hole - LOP_EACH + 1 > most) most = t->hole - LOP_EACH + 1;
    }
    return left == 0 && most <= alone &&
           (!row->has_right || loose(&row->right, row->right.n - 1, false) == 0);
}

/* Are all holes of the right bound on the left? */
static lop_status bound(const lop_rule *rule, const lop_compiled *row, lop_err *err) {
    unsigned holes = 0, attrs = 0;
    if (!each_bound(row))
        return lop_fail(err, LOP_PARSE,
                        "rule %s: ?* and ?+ stand on the right, below a head of any number of "
                        "operands, for those of heads that stand alone on the left",
                        rule->name);
    for (int i = 0; i < row->left.n; i++) {
        const lop_term *t = &row->left.term[i];
        if (!t->op) holes |= 1u << t->hole;
        if (t->op && t->attr_hole >= 0) attrs |= 1u << t->attr_hole;
    }
    for (int i = 0; row->has_right && i < row->right.n; i++) {
        const lop_term *t = &row->right.term[i];
        bool free_attr = t->op && t->attr_hole >= 0 && !(attrs >> t->attr_hole & 1);
        if (t->op && t->either)
            return lop_fail(err, LOP_PARSE, "rule %s: (%s*) belongs on the left", rule->name,
                            t->op->name);
        if (t->op && t->n == 0)
            return lop_fail(err, LOP_PARSE,
                            "rule %s: (%s) on the right has no operands to take its size from",
                            rule->name, t->op->name);
        if (free_attr || (!t->op && t->hole < LOP_EACH && !(holes >> t->hole & 1)))
            return lop_fail(err, LOP_PARSE, "rule %s: %c%c on the right is not bound on the left",
                            rule->name, t->op ? '@' : '?', 'a' + (t->op ? t->attr_hole : t->hole));
    }
    const lop_guard *guard = lop_guard_of(rule->when);
    for (const char *c = guard && guard->needs ? guard->needs : ""; *c; c++) {
        bool attr = *c == '@';
        if (attr) c++;
        if (!((attr ? attrs : holes) >> (*c - 'a') & 1))
            return lop_fail(err, LOP_PARSE, "rule %s: its guard %s needs %c%c on the left",
                            rule->name, guard->name, attr ? '@' : '?', *c);
    }
    return LOP_OK;
}

/* How much a left side names: heads, and then attributes that must be what they are. */
static int named(const lop_text *t) {
    enum { HEAD = 100 };
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (t->term[i].op) n += t->term[i].has_attr ? HEAD + 1 : HEAD;
    return n;
}

/* Is a row asked before another, wherever they stand in the table? */
static bool precedes(const lop_compiled *a, const lop_compiled *b) {
    if (a->rule->phase == LOP_EXPLORE) return false; /* users': as they came */
    if (a->rule->tier != b->rule->tier) return a->rule->tier < b->rule->tier;
    return named(&a->left) > named(&b->left);
}

/* Row i goes to its place in the list of its root: among its equals behind those that are there, so
 * that the table's order stays. */
static void append_to(lop_rules *r, lop_phase phase, int i) {
    const lop_compiled *row = &r->row[i];
    const int list = phase == LOP_CLOSE;
    int *at = &r->first[phase][lop_op_id(row->left.term[row->left.n - 1].op)];
    while (*at >= 0 && !precedes(row, &r->row[*at])) at = &r->quick[*at].next[list];
    r->quick[i].next[list] = *at;
    *at = i;
}
static void append(lop_rules *r, int i) {
    const lop_phase phase = r->row[i].rule->phase;
    r->quick[i] = (lop_quick){r->row[i].head, {-1, -1}};
    append_to(r, phase == LOP_BOTH ? LOP_CLOSE : phase, i);
    if (phase == LOP_BOTH) append_to(r, LOP_PUSH, i);
}

static lop_status compile(lop_rules *r, const lop_rule *rule, lop_compiled *row, lop_err *err) {
    row->rule = rule;
    lop_status st = lop_text_parse(r->ctx, rule->left, &row->left, err);
    if (st == LOP_OK && rule->right) {
        st = lop_text_parse(r->ctx, rule->right, &row->right, err);
        row->has_right = st == LOP_OK;
    }
    if (st == LOP_PARSE) {
        char why[LOP_ERR_TEXT];
        memcpy(why, err ? err->text : "", err ? sizeof why : 1);
        return lop_fail(err, st, "rule %s: %.400s", rule->name, why);
    }
    if (st != LOP_OK) return st;
    const lop_term *root = &row->left.term[row->left.n - 1];
    if (!root->op || (!rule->right && !rule->build))
        return lop_fail(err, LOP_PARSE, "rule %s needs a head on the left and a right side",
                        rule->name);
    if (root->n > 0) row->head = head_of(root, &row->left.term[row->left.index[root->first]]);
    if (rule->phase == LOP_CLOSE || rule->phase == LOP_BOTH) mark_close(r, &row->left);
    return bound(rule, row, err);
}

lop_status lop_rules_new(lop_ctx *ctx, const lop_rule *table, int count, lop_rules **out,
                         lop_err *err) {
    *out = NULL;
    lop_rules *r = lop_calloc(ctx, 1, sizeof *r);
    if (!r) return lop_fail(err, LOP_NOMEM, NULL);
    r->ctx = ctx;
    r->nops = lop_nops();
    r->row = lop_calloc(ctx, (size_t)count, sizeof *r->row);
    r->quick = lop_calloc(ctx, (size_t)count, sizeof *r->quick);
    r->room = count;
    r->close = lop_calloc(ctx, (size_t)(r->nops * r->nops * r->nops), 1);
    lop_status st = r->row && r->quick && r->close ? LOP_OK : lop_fail(err, LOP_NOMEM, NULL);
    for (int p = 0; p < LOP_NPHASE && st == LOP_OK; p++) {
        r->first[p] = lop_alloc(ctx, (size_t)r->nops * sizeof *r->first[p]);
        if (!r->first[p]) st = lop_fail(err, LOP_NOMEM, NULL);
        for (int i = 0; st == LOP_OK && i < r->nops; i++) r->first[p][i] = -1;
    }
    while (st == LOP_OK && r->n < count) {
        lop_compiled *row = &r->row[r->n++];
        st = compile(r, &table[r->n - 1], row, err);
        if (st != LOP_OK) break;
        append(r, r->n - 1);
        r->explore += row->rule->phase == LOP_EXPLORE;
    }
    if (st == LOP_OK)
        *out = r;
    else
        lop_rules_free(r);
    return st;
}

static void clear(lop_rules *r, lop_compiled *row) {
    if (row->left.ctx) lop_text_clear(&row->left);
    if (row->has_right) lop_text_clear(&row->right);
    lop_free(r->ctx, row->own);
    memset(row, 0, sizeof *row);
}

void lop_rules_free(lop_rules *r) {
    if (!r) return;
    for (int i = 0; r->row && i < r->n; i++) clear(r, &r->row[i]);
    lop_free(r->ctx, r->row);
    lop_free(r->ctx, r->quick);
    lop_free(r->ctx, r->close);
    for (int p = 0; p < LOP_NPHASE; p++) lop_free(r->ctx, r->first[p]);
    lop_free(r->ctx, r);
}

int lop_rules_count(const lop_rules *r) { return r->n; }
const lop_rule *lop_rules_at(const lop_rules *r, int i) { return r->row[i].rule; }
int64_t lop_rules_fired(const lop_rules *r, int i) { return r->row[i].fired; }
bool lop_rules_is_gone(const lop_rules *r, int i) { return r->row[i].gone; }
bool lop_rules_is_own(const lop_rules *r, int i) { return r->row[i].own != NULL; }
bool lop_rules_explore(const lop_rules *r) { return r->explore > 0; }
bool lop_rules_cheaper(const lop_rules *r, int i) { return r->row[i].cheaper; }

/* -- users' rules */

int lop_rules_find(const lop_rules *r, const char *name) {
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->row[i].rule->name, name)) return i;
    return -1;
}

static char *put(char **to, const char *text) {
    size_t n = strlen(text) + 1;
    char *at = memcpy(*to, text, n);
    *to += n;
    return at;
}

/* The rule with texts of its own, in one block. NULL: no memory. */
static lop_own *copy(lop_ctx *ctx, const lop_rule *rule) {
    size_t bytes =
        strlen(rule->name) + strlen(rule->left) + strlen(rule->right) + strlen(rule->source) + 4;
    lop_own *own = lop_alloc(ctx, sizeof *own + bytes);
    if (!own) return NULL;
    char *to = own->text;
    own->rule = *rule;
    own->rule.name = put(&to, rule->name);
    own->rule.left = put(&to, rule->left);
    own->rule.right = put(&to, rule->right);
    own->rule.source = put(&to, rule->source);
    return own;
}

static lop_status place_for(lop_rules *r, const char *name, int *at, lop_err *err) {
    *at = lop_rules_find(r, name);
    if (*at >= 0)
        return r->row[*at].gone ? LOP_OK
                                : lop_fail(err, LOP_DOMAIN, "there is a rule %s already", name);
    if (r->n == LOP_RULES_MOST)
        return lop_fail(err, LOP_DOMAIN, "no room for more than %d rules", LOP_RULES_MOST);
    if (r->n == r->room) {
        const size_t room = (size_t)r->room + 16;
        lop_quick *quick = lop_realloc(r->ctx, r->quick, room * sizeof *r->quick);
        if (quick) r->quick = quick;
        lop_compiled *more = quick ? lop_realloc(r->ctx, r->row, room * sizeof *r->row) : NULL;
        if (!more) return lop_fail(err, LOP_NOMEM, NULL);
        r->row = more;
        r->room += 16;
    }
    *at = r->n;
    return LOP_OK;
}

lop_status lop_rules_add(lop_rules *r, const lop_rule *rule, bool cheaper, int *index,
                         lop_err *err) {
    enum { LONGEST = 2000 }; /* matching recurses as deep as the text */
    lop_compiled fresh = {.gone = false};
    int at;
    if (strlen(rule->left) > LONGEST || strlen(rule->right) > LONGEST)
        return lop_fail(err, LOP_PARSE, "rule %.100s: a side has more than %d characters",
                        rule->name, LONGEST);
    lop_status st = place_for(r, rule->name, &at, err);
    if (st != LOP_OK) return st;
    lop_own *own = copy(r->ctx, rule);
    if (!own) return lop_fail(err, LOP_NOMEM, NULL);
    st = compile(r, &own->rule, &fresh, err);
    fresh.own = own;
    fresh.cheaper = cheaper;
    if (st != LOP_OK) {
        clear(r, &fresh);
        return st;
    }
    if (at == r->n)
        r->n++;
    else
        clear(r, &r->row[at]);
    r->row[at] = fresh;
    const lop_term *root = &fresh.left.term[fresh.left.n - 1];
    int *first = &r->first[rule->phase][lop_op_id(root->op)];
    if (rule->phase == LOP_EXPLORE) {
        append(r, at);
        r->explore++;
    } else {
        r->quick[at] = (lop_quick){fresh.head, {*first, -1}};
        *first = at;
    }
    if (index) *index = at;
    return LOP_OK;
}

void lop_rules_remove(lop_rules *r, int i) {
    lop_compiled *row = &r->row[i];
    if (row->gone || !row->own) return;
    int *at = &r->first[row->rule->phase][lop_op_id(row->left.term[row->left.n - 1].op)];
    while (*at != i) at = &r->quick[*at].next[0];
    *at = r->quick[i].next[0];
    r->quick[i].next[0] = -1;
    row->gone = true;
    r->explore -= row->rule->phase == LOP_EXPLORE;
}

void lop_rules_switch(lop_rules *r, const unsigned char *off, int bytes) {
    r->off = off;
    r->noff = off ? bytes : 0;
}
