/* rules.c: THE RULE TABLE. Only data: each row says what becomes of what, under which guard, from where.
 *
 * `close` rows act when an expression is built and never compute; `push` rows act at first need and move
 * actions down to the kinds. Within a root the order is the table's: the first row that fits wins.
 * Notation: text.h. view:1 is the transpose, view:2 the conjugate, view:3 the adjoint. */
#include "builds.h"
#include "guards.h"
#include "rewrite.h"

const lop_rule lop_rule_table[] = {
    /* -- at construction --------------------------------------------------------------------------------- */
    {"close-diag-diag", LOP_CLOSE, "(prod (diag ?a) (diag ?b))", "(diag (mul ?a ?b))", NULL, NULL, "D1 D2 = diag(d1 d2)"},
    {"close-diag-plus", LOP_CLOSE, "(sum (diag ?a) (diag ?b))", "(diag (add ?a ?b))", NULL, NULL, "D1 + D2 = diag(d1 + d2)"},
    {"close-diag-scaled", LOP_CLOSE, "(scaled@c (diag ?a))", "(diag (scale@c ?a))", NULL, NULL, "c D = diag(c d)"},
    {"close-diag-view", LOP_CLOSE, "(view@m (diag ?a))", NULL, NULL, lop_build_view_diag, "D^T = D, D^H = diag(conj d)"},
    {"close-diag-identity", LOP_CLOSE, "(prod (diag ?a) (identity))", "(diag ?a)", lop_when_right_weak, NULL, "D I = D"},
    {"close-identity-diag", LOP_CLOSE, "(prod (identity) (diag ?a))", "(diag ?a)", lop_when_left_weak, NULL, "I D = D"},
    {"close-identity-identity", LOP_CLOSE, "(prod (identity) (identity))", NULL, NULL, lop_build_one_kind, "I I = I"},
    {"close-diag-zeros", LOP_CLOSE, "(prod (diag ?a) (zeros))", NULL, NULL, lop_build_zeros, "D 0 = 0"},
    {"close-zeros-diag", LOP_CLOSE, "(prod (zeros) (diag ?a))", NULL, NULL, lop_build_zeros, "0 D = 0"},
    {"close-diag-plus-zeros", LOP_CLOSE, "(sum (diag ?a) (zeros))", "(diag ?a)", lop_when_right_weak, NULL, "D + 0 = D"},
    {"close-zeros-plus-diag", LOP_CLOSE, "(sum (zeros) (diag ?a))", "(diag ?a)", lop_when_left_weak, NULL, "0 + D = D"},
    {"close-kron-kron", LOP_CLOSE, "(prod (kron) (kron))", NULL, lop_when_krons_fit, lop_build_kron_kron, "mixed product, Van Loan 2000, sec. 1"},
    {"close-kron-view", LOP_CLOSE, "(view@m (kron))", NULL, NULL, lop_build_view_kron, "(A (x) B)^T = A^T (x) B^T"},
    {"close-kron-inverse", LOP_CLOSE, "(inverse (kron))", NULL, lop_when_square_factors, lop_build_inverse_kron, "(A (x) B)^-1 = A^-1 (x) B^-1"},
    {"close-toeplitz-plus", LOP_CLOSE, "(sum (toeplitz ?a ?b) (toeplitz ?c ?d))", "(toeplitz (add ?a ?c) (add ?b ?d))", NULL, NULL,
     "diagonals add"},
    {"close-toeplitz-scaled", LOP_CLOSE, "(scaled@c (toeplitz ?a ?b))", "(toeplitz (scale@c ?a) (scale@c ?b))", NULL, NULL,
     "diagonals scale"},
    {"close-identity-view", LOP_CLOSE, "(view@m (identity))", NULL, NULL, lop_build_one_kind, "I^T = I"},
    {"close-zeros-view", LOP_CLOSE, "(view@m (zeros))", NULL, NULL, lop_build_zeros, "0^T = 0"},
    {"close-identity-inverse", LOP_CLOSE, "(inverse (identity))", NULL, NULL, lop_build_one_kind, "I^-1 = I"},

    /* -- views: pushed to the kinds ------------------------------------------------------------------------ */
    {"view-view", LOP_PUSH, "(view@m (view@n ?a))", NULL, NULL, lop_build_view_view, "(A^T)^T = A"},
    {"view-real", LOP_PUSH, "(view@m ?a)", NULL, lop_when_real, lop_build_view_real, "conj of real is itself"},
    {"view-sum", LOP_PUSH, "(view@m (sum ?a ?b))", "(sum (view@m ?a) (view@m ?b))", NULL, NULL, "(A + B)^T = A^T + B^T"},
    {"view-prod-conj", LOP_PUSH, "(view:2 (prod ?a ?b))", "(prod (view:2 ?a) (view:2 ?b))", NULL, NULL, "conj(A B) = conj A conj B"},
    {"view-prod", LOP_PUSH, "(view@m (prod ?a ?b))", "(prod (view@m ?b) (view@m ?a))", NULL, NULL, "(A B)^T = B^T A^T"},
    {"view-scaled", LOP_PUSH, "(view@m (scaled@c ?a))", NULL, NULL, lop_build_view_scaled, "(c A)^H = conj(c) A^H"},
    {"view-power", LOP_PUSH, "(view@m (power@p ?a))", "(power@p (view@m ?a))", NULL, NULL, "(A^p)^T = (A^T)^p"},
    {"view-inverse", LOP_PUSH, "(view@m (inverse ?a))", "(inverse (view@m ?a))", NULL, NULL, "(A^-1)^T = (A^T)^-1"},
    {"view-kron", LOP_PUSH, "(view@m (kron))", NULL, NULL, lop_build_view_kron, "(A (x) B)^T = A^T (x) B^T"},
    {"view-diag", LOP_PUSH, "(view@m (diag ?a))", NULL, NULL, lop_build_view_diag, "D^T = D"},
    {"view-identity", LOP_PUSH, "(view@m (identity))", NULL, NULL, lop_build_one_kind, "I^T = I"},
    {"view-zeros", LOP_PUSH, "(view@m (zeros))", NULL, NULL, lop_build_zeros, "0^T = 0"},
    {"view-lowrank-h", LOP_PUSH, "(view:3 (lowrank ?u ?v))", "(lowrank ?v ?u)", NULL, NULL, "(U V^H)^H = V U^H"},
    {"view-lowrank-c", LOP_PUSH, "(view:2 (lowrank ?u ?v))", "(lowrank (view:2 ?u) (view:2 ?v))", NULL, NULL, "conj"},
    {"view-lowrank-t", LOP_PUSH, "(view:1 (lowrank ?u ?v))", "(lowrank (view:2 ?v) (view:2 ?u))", NULL, NULL, "(U V^H)^T"},
    {"view-lowrank3-h", LOP_PUSH, "(view:3 (lowrank ?u ?v ?c))", "(lowrank ?v ?u (view:3 ?c))", NULL, NULL, "(U C V^H)^H"},
    {"view-lowrank3-c", LOP_PUSH, "(view:2 (lowrank ?u ?v ?c))", "(lowrank (view:2 ?u) (view:2 ?v) (view:2 ?c))", NULL, NULL, "conj"},
    {"view-lowrank3-t", LOP_PUSH, "(view:1 (lowrank ?u ?v ?c))", "(lowrank (view:2 ?v) (view:2 ?u) (view:1 ?c))", NULL, NULL, "(U C V^H)^T"},

    /* -- products with arrays: right to left ---------------------------------------------------------------- */
    {"apply-sum", LOP_PUSH, "(apply (sum ?a ?b) ?x)", "(add (apply ?a ?x) (apply ?b ?x))", NULL, NULL, "(A + B) x = A x + B x"},
    {"apply-prod", LOP_PUSH, "(apply (prod ?a ?b) ?x)", "(apply ?a (apply ?b ?x))", NULL, NULL, "(A B) x = A (B x)"},
    {"apply-scaled", LOP_PUSH, "(apply (scaled@c ?a) ?x)", "(scale@c (apply ?a ?x))", NULL, NULL, "(c A) x = c (A x)"},
    {"apply-identity", LOP_PUSH, "(apply (identity) ?x)", NULL, lop_when_no_batch, lop_build_cast_x, "I x = x"},
    {"apply-inverse", LOP_PUSH, "(apply (inverse ?a) ?x)", "(solve ?a ?x)", NULL, NULL, "A^-1 x by a solve"},
    {"apply-power", LOP_PUSH, "(apply (power@p ?a) ?x)", NULL, NULL, lop_build_apply_power, "A^p x = A (A^(p-1) x)"},
    {"apply-diag-mul", LOP_PUSH, "(apply (diag (mul ?a ?b)) ?x)", "(apply (diag ?a) (apply (diag ?b) ?x))", NULL, NULL,
     "right to left: no over- or underflow the formula as written would not have"},
    {"apply-diag-scale", LOP_PUSH, "(apply (diag (scale@c ?a)) ?x)", "(scale@c (apply (diag ?a) ?x))", NULL, NULL, "right to left"},
    {"apply-lowrank", LOP_PUSH, "(apply (lowrank ?u ?v) ?x)", "(apply ?u (apply (view:3 ?v) ?x))", NULL, NULL, "U (V^H x)"},
    {"apply-lowrank3", LOP_PUSH, "(apply (lowrank ?u ?v ?c) ?x)", "(apply ?u (apply ?c (apply (view:3 ?v) ?x)))", NULL, NULL,
     "U (C (V^H x))"},
    {"apply-kron", LOP_PUSH, "(apply (kron) ?x)", NULL, NULL, lop_build_apply_kron, "Van Loan 2000, sec. 1; order by cost"},

    /* -- solves ------------------------------------------------------------------------------------------------ */
    {"solve-identity", LOP_PUSH, "(solve (identity) ?x)", NULL, lop_when_no_batch, lop_build_cast_x, "I^-1 x = x"},
    {"solve-diag", LOP_PUSH, "(solve (diag ?a) ?x)", "(div ?x ?a)", NULL, NULL, "x / d"},
    {"solve-kron", LOP_PUSH, "(solve (kron) ?x)", NULL, lop_when_square_factors, lop_build_solve_kron, "factor by factor"},
    {"solve-prod", LOP_PUSH, "(solve (prod ?a ?b) ?x)", "(solve ?b (solve ?a ?x))", lop_when_both_square, NULL, "(A B)^-1 = B^-1 A^-1"},
    {"solve-scaled", LOP_PUSH, "(solve (scaled@c ?a) ?x)", NULL, lop_when_coef_nonzero, lop_build_solve_scaled, "(c A)^-1 x = A^-1 x / c"},
    {"solve-positive", LOP_PUSH, "(solve ?a ?x)", NULL, lop_when_positive, lop_build_cholsolve, "Cholesky; LU where it fails"},
    {"solve-dense", LOP_PUSH, "(solve ?a ?x)", NULL, NULL, lop_build_lusolve, "LU of the dense form"},

    /* -- dense forms -------------------------------------------------------------------------------------------- */
    {"dense-dense", LOP_PUSH, "(todense@d (dense ?a))", "(cast@d ?a)", NULL, NULL, "it is held already"},
    {"dense-sum", LOP_PUSH, "(todense@d (sum ?a ?b))", "(add (todense@d ?a) (todense@d ?b))", NULL, NULL, "entry by entry"},
    {"dense-prod", LOP_PUSH, "(todense@d (prod ?a ?b))", "(apply ?a (todense@d ?b))", NULL, NULL, "A times the dense B"},
    {"dense-scaled", LOP_PUSH, "(todense@d (scaled@c ?a))", NULL, NULL, lop_build_scaled_value, "entry by entry"},
    {"dense-lowrank", LOP_PUSH, "(todense@d (lowrank ?u ?v))", "(apply ?u (todense@d (view:3 ?v)))", NULL, NULL, "U times V^H"},
    {"dense-lowrank3", LOP_PUSH, "(todense@d (lowrank ?u ?v ?c))", "(apply ?u (apply ?c (todense@d (view:3 ?v))))", NULL, NULL, "U C V^H"},
    {"dense-view", LOP_PUSH, "(todense@d (view@m ?a))", "(swap@m (todense@d ?a))", lop_when_leaf_kind, NULL, "transpose the dense form"},
    {"dense-kron", LOP_PUSH, "(todense@d (kron))", NULL, NULL, lop_build_dense_kron, "blocks a_ij B"},
    {"dense-identity", LOP_PUSH, "(todense@d (identity))", NULL, NULL, lop_build_eye, "ones on the diagonal"},
    {"dense-columns", LOP_PUSH, "(todense@d ?a)", NULL, lop_when_no_dense, lop_build_apply_eye, "A times the unit matrix"},

    /* -- diagonals, traces, elements ------------------------------------------------------------------------------ */
    {"diagonal-sum", LOP_PUSH, "(diagonal@k (sum ?a ?b))", "(add (diagonal@k ?a) (diagonal@k ?b))", NULL, NULL, "linear"},
    {"diagonal-scaled", LOP_PUSH, "(diagonal@k (scaled@c ?a))", NULL, NULL, lop_build_scaled_value, "linear"},
    {"diagonal-diag", LOP_PUSH, "(diagonal@k (diag ?a))", "(cast@k ?a)", lop_when_main, NULL, "the vector itself"},
    {"diagonal-diag-prod", LOP_PUSH, "(diagonal@k (prod (diag ?d) ?a))", "(mul (cast@k ?d) (diagonal@k ?a))", lop_when_main_square, NULL,
     "diag(D A) = d diag(A)"},
    {"diagonal-prod-diag", LOP_PUSH, "(diagonal@k (prod ?a (diag ?d)))", "(mul (diagonal@k ?a) (cast@k ?d))", lop_when_main_square, NULL,
     "diag(A D) = diag(A) d"},
    {"diagonal-view", LOP_PUSH, "(diagonal@k (view@m ?a))", NULL, NULL, lop_build_diagonal_view, "diag_k(A^T) = diag_-k(A)"},
    {"diagonal-lowrank", LOP_PUSH, "(diagonal@k (lowrank ?u ?v))", "(diagonal@k (prod ?u (view:3 ?v)))", NULL, NULL, "rows of U with V"},
    {"diagonal-lowrank3", LOP_PUSH, "(diagonal@k (lowrank ?u ?v ?c))", "(diagonal@k (prod (prod ?u ?c) (view:3 ?v)))", NULL, NULL, "likewise"},
    {"diagonal-kron", LOP_PUSH, "(diagonal@k (kron))", NULL, lop_when_main_kron, lop_build_diagonal_kron, "diag(A) (x) diag(B)"},
    {"diagonal-prod", LOP_PUSH, "(diagonal@k (prod ?a ?b))", NULL, NULL, lop_build_diagonal_prod, "sum_t A[i,t] B[t,j]"},
    {"diagonal-dense", LOP_PUSH, "(diagonal@k ?a)", NULL, lop_when_no_diagonal, lop_build_diagonal_dense, "of the dense form"},
    {"trace-sum", LOP_PUSH, "(trace@k (sum ?a ?b))", "(add (trace@k ?a) (trace@k ?b))", NULL, NULL, "linear"},
    {"trace-scaled", LOP_PUSH, "(trace@k (scaled@c ?a))", NULL, NULL, lop_build_scaled_value, "linear"},
    {"trace-kron", LOP_PUSH, "(trace@k (kron))", NULL, lop_when_square_factors, lop_build_trace_kron, "tr(A (x) B) = tr A tr B"},
    {"trace-diagonal", LOP_PUSH, "(trace@k ?a)", "(sumall (diagonal@k ?a))", NULL, NULL, "sum of the diagonal"},
    {"element-sum", LOP_PUSH, "(element@k (sum ?a ?b))", "(add (element@k ?a) (element@k ?b))", NULL, NULL, "linear"},
    {"element-scaled", LOP_PUSH, "(element@k (scaled@c ?a))", NULL, NULL, lop_build_scaled_value, "linear"},
    {"element-view", LOP_PUSH, "(element@k (view@m ?a))", NULL, NULL, lop_build_element_view, "A^T[i, j] = A[j, i]"},
    {"element-kron", LOP_PUSH, "(element@k (kron))", NULL, NULL, lop_build_element_kron, "a product of elements"},
    {"element-dense", LOP_PUSH, "(element@k (dense ?a))", NULL, NULL, lop_build_element_dense, "read it"},
    {"element-identity", LOP_PUSH, "(element@k (identity))", NULL, NULL, lop_build_element_eye, "0 or 1"},
    {"element-column", LOP_PUSH, "(element@k ?a)", NULL, lop_when_no_element, lop_build_element_column, "from a product with a unit vector"},

    /* -- arrays ----------------------------------------------------------------------------------------------------- */
    {"cast-same", LOP_PUSH, "(cast@d ?a)", "?a", lop_when_cast_same, NULL, "nothing to do"},
    {"conj-real", LOP_PUSH, "(conjugate ?a)", "?a", lop_when_array_real, NULL, "conj of real is itself"},
    {"conj-conj", LOP_PUSH, "(conjugate (conjugate ?a))", "?a", NULL, NULL, "conj conj a = a"},
};
const int lop_rule_count = (int)(sizeof lop_rule_table / sizeof lop_rule_table[0]);
