/* battery_mutants.h: the battery watches itself: with .T and .H swapped in what a row makes, in its
 * text and in the nodes it builds, a row that makes views must fail. For battery_rules.c alone. */
/* `text` with view:1 and view:3 exchanged: owned; NULL where there are none. */
static char *swapped(const char *text) {
    char *copy = text ? malloc(strlen(text) + 1) : NULL;
    int n = 0;
    if (copy) strcpy(copy, text);
    for (char *at = copy; at && (at = strstr(at, "view:")); at += 5)
        if (at[5] == '1' || at[5] == '3') {
            at[5] = (char)('1' + '3' - at[5]);
            n++;
        }
    if (n) return copy;
    free(copy);
    return NULL;
}

/* The same tree with .T and .H exchanged: owned; *n counts. */
static const lop_node *mutant(const lop_node *node, int *n) {
    const lop_node *child[8] = {0}, *out = NULL;
    lop_attr attr = node->attr;
    if (node->n == 0 || node->n > 8) return lop_node_ref(node);
    bool turn = (node->op == &lop_op_view || node->op == &lop_op_swap) && attr.i[0] != LOP_C;
    if (turn) {
        attr.i[0] = LOP_T + LOP_H - attr.i[0];
        ++*n;
    }
    for (int i = 0; i < node->n; i++) child[i] = mutant(node->child[i], n);
    out = t_node(&w, node->op->name, &attr, node->n, child);
    for (int i = 0; i < node->n; i++) lop_node_unref(child[i]);
    return out;
}

/* Draws without views of their own: does exchanging those the row made show? *made: rows that make
 * any. */
static bool notices(const lop_rule *rule, bool *made) {
    lop_text text;
    bool seen = false;
    int fired = 0;
    *made = false;
    lop_rule row[1 + ASKED];
    lop_rules *one = alone(rule, row, &text);
    for (int i = 0; one && i < 20000 && !seen && (*made || fired < 150); i++) {
        lop_tab tab;
        lop_status st;
        const lop_node *left = a_left(rule, &text, false), *right = NULL, *turned = NULL;
        int n = 0;
        bool compared = false;
        lop_tab_init(&tab, &w.ctx);
        if (left) right = rewritten(one, left, &tab, &st);
        if (right) turned = mutant(right, &n);
        fired += right != NULL;
        if (left && !lop_is_complex(left->dtype)) n = 0; /* .T is .H */
        *made = *made || n > 0;
        if (n > 0 && turned) seen = !equal(left, turned, &compared);
        lop_node_unref(left);
        lop_node_unref(right);
        lop_node_unref(turned);
        lop_tab_clear(&tab);
        world_leaves(&w);
    }
    if (one) lop_text_clear(&text);
    lop_rules_free(one);
    return seen;
}

/* Rows of kinds that are real whatever their dtype, and of products of such, and those that turn
 * the reciprocals of eigenvalues: .T is .H there. */
static bool always_real(const lop_rule *rule) {
    return !strcmp(rule->name, "diagonal-single") || !strncmp(rule->name, "partial-inverse", 15) ||
           !strncmp(rule->name, "partial-between", 15) || strstr(rule->left, "(permutation") ||
           strstr(rule->left, "(laplacian") || strstr(rule->left, "(difference");
}

__attribute__((unused)) static void watch_itself(void) {
    int texts = 0, nodes = 0;
    for (int i = 0; i < lop_rule_count; i++) {
        const lop_rule *rule = &lop_rule_table[i];
        lop_rule wrong = *rule;
        bool agreed, made;
        if (always_real(rule)) continue;
        char *text = swapped(rule->right);
        if (!text && (text = swapped(rule->left)))
            wrong.left = text;
        else if (text)
            wrong.right = text;
        if (text) {
            battery(&wrong, true, &agreed);
            t_check(!agreed, "%s with .T and .H swapped goes through", rule->name);
            texts++;
        }
        free(text);
        bool seen = notices(rule, &made);
        /* these turn the operator and its product back again: by .H it is as right as by .T */
        /* and these turn a probe of ones and zeros, a Selection or a Permutation */
        bool probe = strstr(rule->name, "inverses-alike") || strstr(rule->name, "-picked") ||
                     !strcmp(rule->name, "diagonal-inverse-blockdiag") ||
                     !strcmp(rule->name, "diagonal-inverse-similar");
        bool twice = probe || !strncmp(rule->name, "dense-slice", 11) ||
                     !strcmp(rule->name, "dense-prod-left") ||
                     (strstr(rule->name, "elementwise") && strstr(rule->name, "lowrank"));
        t_check(!made || seen || twice, "%s: its views exchanged go through", rule->name);
        nodes += made;
    }
    printf("%d rows mutated as text, %d make views\n", texts, nodes);
}
