/* builds.h: right sides that are computed. Each makes the node that replaces the match: owned in
 * *out. */
#ifndef LOP_BUILDS_H
#define LOP_BUILDS_H

#include "planner/chain_rules.h"
#include "checked_solution.h"
#include "rewrite/cheap_to_solve.h"

/* slices_of_blocks.c */
LOP_BUILD(value_of_blocks);
/* tidy.c */
LOP_BUILD(tidy);
LOP_BUILD(tidy_inverse);
/* tidy_krons.c */
LOP_BUILD(dense_kronsum);
/* views_scalars_elements.c */
LOP_BUILD(view_view);
LOP_BUILD(sparse_pair);
LOP_BUILD(dense_results);
LOP_BUILD(swap_swap);
LOP_BUILD(view_real);
LOP_BUILD(view_diag);
LOP_BUILD(view_scaled);
LOP_BUILD(closed);
LOP_BUILD(one_kind);
LOP_BUILD(zeros);
LOP_BUILD(cast_x);
LOP_BUILD(widen);
LOP_BUILD(over_diag);
LOP_BUILD(with_digits);
LOP_BUILD(solve_scaled);
LOP_BUILD(inverse_scaled_value);
LOP_BUILD(shift);
LOP_BUILD(own_view);
LOP_BUILD(solve_own_view);
LOP_BUILD(cholsolve);
LOP_BUILD(cholsolve_tried);
LOP_BUILD(lusolve);
LOP_BUILD(lusolve_view);
LOP_BUILD(ldlsolve);
LOP_BUILD(det_ldl);
LOP_BUILD(det_tried);
LOP_BUILD(trisolve);
LOP_BUILD(diag_plus_identity);
LOP_BUILD(apply_part);
LOP_BUILD(part_value);
LOP_BUILD(eye);
LOP_BUILD(apply_eye);
LOP_BUILD(diagonal_view);
LOP_BUILD(diagonal_prod);
LOP_BUILD(diagonal_dense);
LOP_BUILD(trace_diagonal);
LOP_BUILD(trace_identity);
LOP_BUILD(element_view);
LOP_BUILD(element_dense);
LOP_BUILD(element_eye);
LOP_BUILD(element_column);
/* The vector on the diagonal of diag, identity or a multiple of that. Owned. */
lop_status lop_make_diagonal(const lop_maker *mk, const lop_node *a, const lop_node **out);
/* The band of `a` in dtype dt, as band_solve takes it. Owned. */
lop_status lop_make_band(const lop_maker *mk, const lop_node *a, lop_band b, lop_dtype dt,
                         const lop_node **out);
/* Diagonals b.l, ..., -b.u of the inverse of `a`, of bands b, as band_join has them; by one sweep.
 * Owned. NOMATCH: its band is not narrow. */
lop_status lop_band_of_inverse(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                               const lop_node **out) LOP_MUST_CHECK;
/* kron_places.c */
LOP_BUILD(apply_kron_places);
/* sum_terms.c */
LOP_BUILD(sum_of_kinds);
/* solve_views.c */
LOP_BUILD(solve_update_view);
LOP_BUILD(solve_view_update);
LOP_BUILD(solve_view);
LOP_BUILD(settle_view);
LOP_BUILD(entries_inverse_view);
LOP_BUILD(settle_views);
LOP_BUILD(solve_inverse);
/* powers.c */
LOP_BUILD(apply_power);
LOP_BUILD(apply_power_squared);
LOP_BUILD(power_squared);
LOP_BUILD(power_itself);
LOP_BUILD(power_closed);
LOP_BUILD(inverse_power);
LOP_BUILD(solve_power);
/* bands_permutations_triangles.c */
/* What is left of an assumption when a real (or complex) number comes in; `positive`: it is > 0. */
int64_t lop_assumption_left(int64_t assumed, bool real, bool positive);
/* Is the multiple one by a positive number? */
bool lop_is_positive_multiple(const lop_node *multiple);
bool lop_is_negative_multiple(const lop_node *multiple);
LOP_BUILD(view_tridiagonal);
LOP_BUILD(scaled_tridiagonal);
LOP_BUILD(sum_tridiagonal);
LOP_BUILD(tridiagonal_plus);
LOP_BUILD(tridisolve);
LOP_BUILD(bandsolve);
LOP_BUILD(solve_inferred);
LOP_BUILD(det_inferred);
LOP_BUILD(view_triangular);
LOP_BUILD(unview_triangular);
LOP_BUILD(triangular_solve);
LOP_BUILD(sparsetri_solve);
LOP_BUILD(view_householder);
LOP_BUILD(solve_reflections);
LOP_BUILD(view_full);
LOP_BUILD(scaled_full);
LOP_BUILD(no_view);
LOP_BUILD(compose);
LOP_BUILD(view_permutation);
LOP_BUILD(drop_conj);
LOP_BUILD(view_offdiag);
/* kron.c */
LOP_BUILD(apply_kron);
LOP_BUILD(dense_kron);
LOP_BUILD(diagonal_kron);
LOP_BUILD(diagonal_kron_off);
LOP_BUILD(trace_kron);
LOP_BUILD(element_kron);
/* determinants.c */
LOP_BUILD(det_const);
LOP_BUILD(det_view);
LOP_BUILD(det_scaled);
LOP_BUILD(det_kron);
LOP_BUILD(det_blockdiag);
LOP_BUILD(det_permutation);
LOP_BUILD(det_offdiag);
LOP_BUILD(det_full);
LOP_BUILD(det_tridiagonal);
LOP_BUILD(det_dft);
LOP_BUILD(det_dct);
LOP_BUILD(det_hadamard);
LOP_BUILD(det_laplacian);
LOP_BUILD(det_difference);
/* slices.c */
LOP_BUILD(slice_close);
LOP_BUILD(slice_in);
LOP_BUILD(view_slice);
LOP_BUILD(view_slice_out);
LOP_BUILD(apply_slice);
LOP_BUILD(dense_slice);
LOP_BUILD(element_slice);
LOP_BUILD(diagonal_slice);
/* circulant_transforms.c */
LOP_BUILD(circulant_product);
LOP_BUILD(circulant_view);
LOP_BUILD(circulant_solve);
LOP_BUILD(view_circulant_flip);
LOP_BUILD(view_circulant_conj);
LOP_BUILD(inverse_dft);
LOP_BUILD(inverse_dct);
LOP_BUILD(view_dct);
LOP_BUILD(hadamard);
LOP_BUILD(inverse_hadamard);
LOP_BUILD(solve_dft);
LOP_BUILD(solve_dct);
LOP_BUILD(solve_hadamard);
LOP_BUILD(apply_kronsum);
LOP_BUILD(diagonal_kronsum);
LOP_BUILD(trace_kronsum);
LOP_BUILD(element_kronsum);
/* toeplitz_hankel.c */
LOP_BUILD(toeplitz_solve);
LOP_BUILD(hankel_solve);
LOP_BUILD(toeplitz_det);
LOP_BUILD(hankel_det);
LOP_BUILD(toeplitz_plus);
LOP_BUILD(toeplitz_inverse_diagonal);
LOP_BUILD(toeplitz_inverse_dense);
/* toeplitz_hankel.c: are solves with the Toeplitz matrix a in dt by its structure? */
bool lop_toeplitz_pays(const lop_maker *mk, const lop_node *a, lop_dtype dt);
/* The columns x, w, z and v of toeplitz_inverse_diagonal, of a Toeplitz or a Hankel matrix; NOMATCH
 * where the dense way is as good. Owned, four. */
lop_status lop_toeplitz_inverse_columns(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                                        const lop_node **column) LOP_MUST_CHECK;
/* quasiseparable.c */
LOP_BUILD(quasi_sum);
LOP_BUILD(quasi_elementwise);
LOP_BUILD(quasi_scaled);
LOP_BUILD(quasi_view);
LOP_BUILD(quasi_plus);
LOP_BUILD(quasi_solve);
LOP_BUILD(quasi_det);
LOP_BUILD(quasi_inverse_diagonal);
LOP_BUILD(generators_inverse);
LOP_BUILD(generators_between);
LOP_BUILD(between_quasi_diagonal);
LOP_BUILD(between_quasi_trace);
/* sums_settled.c */
LOP_BUILD(sum_settled);
LOP_BUILD(householder_update);
LOP_BUILD(det_similar);
LOP_BUILD(trace_inverse_similar);
LOP_BUILD(diagonal_inverse_similar);
LOP_BUILD(sums_inverse_settled);
/* covered_inverses.c */
LOP_BUILD(covered_entries);
LOP_BUILD(covered_diagonal);
LOP_BUILD(covered_trace);
/* sparse_updates.c */
LOP_BUILD(solve_sparse_update);
LOP_BUILD(inverse_sparse_update);
LOP_BUILD(pushed_inverse);
LOP_BUILD(views_opened);
LOP_BUILD(pushed_field);
LOP_BUILD(pushed_pair);
LOP_BUILD(det_sparse_update);
/* distributed_traces.c */
LOP_BUILD(trace_distributed);
/* parallel_sums.c */
LOP_BUILD(solve_parallel_sum);
LOP_BUILD(parallel_inverse);
LOP_BUILD(det_parallel_sum);
LOP_BUILD(det_two_inverses);
/* beside_band_inverse.c */
LOP_BUILD(solve_beside_band_inverse);
LOP_BUILD(det_beside_band_inverse);
LOP_BUILD(inverse_beside_band);
/* circulant_sums.c */
LOP_BUILD(circulant_value);
LOP_BUILD(sums_beside_circulant);
/* The root's sums along diagonals, not modulo n, of what is one circulant. Owned in *out. */
lop_status lop_sums_as_toeplitz(const lop_match *m, const lop_maker *mk,
                                const lop_node **out) LOP_MUST_CHECK;
LOP_BUILD(trace_beside_circulant);
LOP_BUILD(circular_solve);
/* circulant_fractions.c */
LOP_BUILD(circulants_applied);
LOP_BUILD(circulants_solved);
LOP_BUILD(cast_quotient);
LOP_BUILD(cast_spectrum);
/* The root's solve with a, circulants that hold inverses; the first column of such: owned. NOMATCH:
 * it is none. */
lop_status lop_spectral_solve(const lop_maker *mk, const lop_node *root, const lop_node *a,
                              const lop_node **out);
lop_status lop_spectral_column(const lop_maker *mk, const lop_node *a, const lop_node **out);
/* circulant_sums.c: what lop_is_circulant, as a Circulant: owned. NOMATCH: it is none. */
lop_status lop_one_circulant(const lop_maker *mk, const lop_node *a, const lop_node **out);
/* The root, a solve with the sum, its determinant or an action on its inverse, of a sum of
 * circulants that holds inverses, by a fraction. NOMATCH: it is none. */
lop_status lop_circulant_fraction(const lop_maker *mk, const lop_node *root, const lop_node *sum,
                                  const lop_node **out) LOP_MUST_CHECK;
/* The solve at the root, whose matrix is that Circulant or a view of it: owned. */
lop_status lop_solve_circulant(const lop_maker *mk, const lop_node *root, const lop_node *one,
                               const lop_node **out);
/* *sum + term in *sum, which may be NULL: nothing yet; owned. */
lop_status lop_plus(const lop_maker *mk, const lop_node *term, const lop_node **sum) LOP_MUST_CHECK;
/* low_rank_inverse_between.c: OK where it is S^-1 X S^-1 of which the diagonal has a row, NOMATCH
 * else. */
lop_status lop_is_between_update(const lop_maker *mk, const lop_node *p,
                                 lop_dtype dt) LOP_MUST_CHECK;
/* solve_sparse.c: is one of the factors A^-1, of which entries are selected, and are the others
 * sparse? */
bool lop_turns_to_inverse(const lop_node *const *f, int n);
/* Likewise. The product of the factors from..to - 1 seen transposed; owned in *out. Have U and W so
 * many entries that the pairs of a row of each are too many beside the entries of A? Of fewer rows
 * than so many as many solves are as cheap. */
lop_status lop_transposed_product(const lop_maker *mk, const lop_node *const *f, int from, int to,
                                  const lop_node **out) LOP_MUST_CHECK;
bool lop_rows_are_full(const lop_node *u, const lop_node *w, const lop_node *a);
enum { LOP_ROWS_FEWEST = 32 };
/* product_values.c: the factors of a product in order, borrowed; 0: there are more than `room`, or
 * a part of it has another dtype than the whole, whose numbers may wrap. */
int lop_product_factors(const lop_node *p, const lop_node **f, int room);
enum { LOP_FACTORS = 12 };
/* What a is a multiple of, by whose number *c is multiplied, or a itself. Borrowed. */
const lop_node *lop_peeled(const lop_node *a, lop_coef *c);
/* At most LOP_FACTORS of them, those of multiples too, by whose numbers *c is multiplied. */
int lop_factors_times(const lop_node *a, const lop_node **f, lop_coef *c);
/* A of A^-1, borrowed, and the mode in which it is seen; NULL: f is no inverse. */
const lop_node *lop_inverse_seen(const lop_node *f, int64_t *mode);
/* solve_woodbury.c: `a` seen through the mode, of what is a view itself one view. Owned. */
lop_status lop_view_once(const lop_maker *mk, int mode, const lop_node *a,
                         const lop_node **out) LOP_MUST_CHECK;
/* Their product. Owned. */
lop_status lop_product_of(const lop_maker *mk, const lop_node *const *f, int n,
                          const lop_node **out) LOP_MUST_CHECK;
/* low_rank.c: base + `low`, a lowrank or a lowrankupdate, whose own base is added to it; base NULL:
 * its own. Owned in *out. */
lop_status lop_update_of(const lop_maker *mk, const lop_node *base, const lop_node *low,
                         const lop_node **out) LOP_MUST_CHECK;
/* solve_woodbury.c: a product whose rank is at most half its rows, a Kron of such, and multiples of
 * these, as a LowRank; NOMATCH: it is none. Owned in *out. */
lop_status lop_thin_low(const lop_maker *mk, const lop_node *term,
                        const lop_node **out) LOP_MUST_CHECK;
/* Is `sum`, `base` and a term of that rank, a narrow band or sparse, and sooner factored as that
 * with the term written out? k right sides; base NULL: the identity. */
bool lop_thin_better_whole(const lop_maker *mk, lop_dtype dt, const lop_node *sum,
                           const lop_node *base, int64_t rank, int64_t k);
/* kernel_lines.c */
LOP_BUILD(line_solve);
LOP_BUILD(line_det);
LOP_BUILD(line_inverse_diagonal);
/* block_tridiagonal.c */
LOP_BUILD(blocktri_sum);
LOP_BUILD(blocktri_scaled);
LOP_BUILD(blocktri_plus);
LOP_BUILD(blocktri_solve);
LOP_BUILD(blocktri_det);
LOP_BUILD(blocktri_inverse_diagonal);
LOP_BUILD(blocktri_inverse_trace);
LOP_BUILD(blocktri_inverse_blocks);
/* blocks.c */
LOP_BUILD(blockdiag_rows);
LOP_BUILD(blockdiag_times);
LOP_BUILD(blocks_dense);
LOP_BUILD(blocks_diagonal);
LOP_BUILD(blocks_element);
LOP_BUILD(inverse_blocks);
LOP_BUILD(action_alike);
LOP_BUILD(dense_alike);
LOP_BUILD(blockdiag_with);
LOP_BUILD(blocks_update_plus);
LOP_BUILD(apply_inverses_alike);
LOP_BUILD(value_inverses_alike);
LOP_BUILD(det_alike);
LOP_BUILD(apply_block);
LOP_BUILD(solve_block);
LOP_BUILD(det_block);
LOP_BUILD(block_inverse_diagonal);
LOP_BUILD(view_block);
/* low_rank.c */
LOP_BUILD(view_update);
LOP_BUILD(update_value);
LOP_BUILD(scaled_lowrank);
LOP_BUILD(lowrank_plus);
LOP_BUILD(plus_lowrank);
LOP_BUILD(solve_update);
LOP_BUILD(det_update);
LOP_BUILD(update_inverse_diagonal);
/* expanded_updates.c */
LOP_BUILD(expanded_update);
LOP_BUILD(entries_expanded);
LOP_BUILD(partial_expanded);
LOP_BUILD(diagonal_expanded);
LOP_BUILD(trace_expanded);
/* low_rank_inverse_between.c */
LOP_BUILD(between_update_diagonal);
LOP_BUILD(between_update_trace);
/* low_rank_inverse_trace.c */
LOP_BUILD(trace_inverse_update);
/* low_rank_inverse_projections.c */
LOP_BUILD(projection_inverse_update);
LOP_BUILD(projection_inverse_thin_sum);
/* identity_plus_weighted.c */
LOP_BUILD(det_weighted);
LOP_BUILD(solve_weighted);
LOP_BUILD(diagonal_inverse_weighted);
LOP_BUILD(dense_inverse_weighted);
/* inverse_identities.c */
LOP_BUILD(solve_spelled_inverse);
LOP_BUILD(kron_beside_runs);
LOP_BUILD(spelled_inverse);
LOP_BUILD(apply_spelled_product);
LOP_BUILD(inverse_parallel);
/* inverse_differences.c */
LOP_BUILD(solve_inverse_difference);
LOP_BUILD(inverse_difference);
LOP_BUILD(solve_quadratic);
LOP_BUILD(det_quadratic);
LOP_BUILD(diagonal_inverses_shifted);
LOP_BUILD(trace_inverses_shifted);
/* resolvents.c */
LOP_BUILD(power_halves);
LOP_BUILD(solve_resolvent);
LOP_BUILD(det_resolvent);
LOP_BUILD(inverse_resolvent);
LOP_BUILD(diagonal_smoother);
LOP_BUILD(dense_smoother);
LOP_BUILD(trace_smoother);
/* precision.c */
LOP_BUILD(update_inverse_dense);
LOP_BUILD(solve_beside_inverse);
/* product_values.c */
LOP_BUILD(value_prod_krons);
LOP_BUILD(value_shifted);
LOP_BUILD(value_prod_blocks);
/* diagonals_of_products.c */
LOP_BUILD(diagonal_picked);
LOP_BUILD(trace_picked);
LOP_BUILD(diagonal_of_rows);
LOP_BUILD(value_of_terms);
LOP_BUILD(diagonal_ends);
LOP_BUILD(trace_ends);
/* projections.c */
LOP_BUILD(projection_update);
LOP_BUILD(sums_view);
LOP_BUILD(sums_band);
LOP_BUILD(sums_inverse_view);
LOP_BUILD(sums_inverse_circulant);
LOP_BUILD(sums_inverse_toeplitz);
LOP_BUILD(sums_circulants);
LOP_BUILD(sums_between_toeplitz);
LOP_BUILD(sums_weighted_toeplitz);
LOP_BUILD(sums_expanded);
LOP_BUILD(toeplitz_words);
LOP_BUILD(between_toeplitz_trace);
LOP_BUILD(sums_toeplitz);
LOP_BUILD(sums_circulant);
LOP_BUILD(sums_product);
LOP_BUILD(sums_dense);
LOP_BUILD(partial_view);
LOP_BUILD(partial_turned);
LOP_BUILD(partial_krons);
LOP_BUILD(partial_product);
LOP_BUILD(partial_dense);
LOP_BUILD(entries_band);
LOP_BUILD(entries_product);
LOP_BUILD(entries_triangle);
LOP_BUILD(entries_dense);
LOP_BUILD(generators_above);
LOP_BUILD(generators_product);
LOP_BUILD(generators_dense);
/* inverse_diagonals.c */
LOP_BUILD(diagonal_inverse_opened);
LOP_BUILD(inverse_prod);
LOP_BUILD(trace_inverse_bands);
LOP_BUILD(diagonal_inverse_bands);
LOP_BUILD(circulant_inverse_diagonal);
/* The inverse of `a`, of the kind that it closes to where it does. Owned in *out. */
lop_status lop_inverse_closed(const lop_maker *mk, const lop_node *a,
                              const lop_node **out) LOP_MUST_CHECK;
/* The inverse of the dense form of `a` by a factor, and its diagonal at->i[0]: what the ways by
 * structure fall back to. Owned in *out. */
lop_status lop_inverse_array(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                             const lop_node **out) LOP_MUST_CHECK;
lop_status lop_inverse_diagonal(const lop_maker *mk, const lop_node *a, const lop_attr *at,
                                lop_dtype dt, const lop_node **out) LOP_MUST_CHECK;
/* What V diag(d)^-1 V^H means for a factor of a Kron, V the Kron of n operators v, V^H of vh; root:
 * the kron_partial that asks. NOMATCH: the factor is of none of the v. Owned in *out. */
lop_status lop_partial_of_spectrum(const lop_maker *mk, lop_dtype dt, int n,
                                   const lop_node *const *v, const lop_node *const *vh,
                                   const lop_node *d, const lop_node *root,
                                   const lop_node **out) LOP_MUST_CHECK;
/* S^-T X S^-T, or longer, as Y^T with Y = S^-1 X^T S^-1: Y, owned, and the view by which it is to
 * be seen. NOMATCH of a product that does not begin and end with such inverses. */
lop_status lop_unturned(const lop_maker *mk, const lop_node *p, int64_t *mode,
                        const lop_node **out) LOP_MUST_CHECK;
/* between_spectra.c: the three factors of a product, or two, *x NULL then: borrowed. False: it is
 * none. */
bool lop_factors_between(const lop_node *p, const lop_node **left, const lop_node **x,
                         const lop_node **right);
/* S and X of a product S^-1 X S^-1, borrowed; NULL: it is none. */
const lop_node *lop_read_between(const lop_node *p, const lop_node **x);
/* S of S^-1 S^-1, borrowed; NULL: it is not that. */
const lop_node *lop_read_inverse_twice(const lop_node *p);
/* S, borrowed, and X, owned, of either, where X is the identity of S^-1 S^-1; NOMATCH: of none. */
lop_status lop_read_between_or_twice(const lop_maker *mk, const lop_node *p, const lop_node **s,
                                     const lop_node **x) LOP_MUST_CHECK;
/* The diagonal of the dense form. Owned. */
lop_status lop_diagonal_of_dense(const lop_maker *mk, lop_dtype dt, const lop_node *a,
                                 const lop_node **out) LOP_MUST_CHECK;
/* inverse_diagonals.c: |V|^2, number by number, as an operator; a column of ones. Owned. */
lop_status lop_squares_of(const lop_maker *mk, lop_dtype dt, const lop_node *v,
                          const lop_node **out) LOP_MUST_CHECK;
lop_status lop_ones_column(const lop_maker *mk, lop_dtype dt, int64_t n,
                           const lop_node **out) LOP_MUST_CHECK;
/* A column of ones over d; Kron(v[0], ..., v[n-1]), or the one. Owned. */
lop_status lop_reciprocals(const lop_maker *mk, lop_dtype dt, const lop_node *d,
                           const lop_node **out) LOP_MUST_CHECK;
lop_status lop_kron_of(const lop_maker *mk, int n, const lop_node *const *v,
                       const lop_node **out) LOP_MUST_CHECK;
/* projections.c: generator_sums of root's operator by its dense form. Owned in *out. */
lop_status lop_generators_of_dense(const lop_maker *mk, const lop_node *root,
                                   const lop_node **out) LOP_MUST_CHECK;
/* projections.c: entry_sums of root's operator by its dense form. Owned in *out. */
lop_status lop_entries_of_dense(const lop_maker *mk, const lop_node *root,
                                const lop_node **out) LOP_MUST_CHECK;
/* projections.c: diagonal_sums by the dense form; what is meant for a factor of a Kron by it. */
lop_status lop_sums_of_dense(const lop_maker *mk, const lop_node *root,
                             const lop_node **out) LOP_MUST_CHECK;
lop_status lop_partial_of_dense(const lop_maker *mk, const lop_node *root,
                                const lop_node **out) LOP_MUST_CHECK;
/* diag(V diag(d)^-1 V^H) for V the Kron of n operators v. Owned in *out. */
lop_status lop_diagonal_of_spectrum(const lop_maker *mk, lop_dtype dt, int n,
                                    const lop_node *const *v, const lop_node *d,
                                    const lop_node **out) LOP_MUST_CHECK;
/* elementwise.c */
LOP_BUILD(hadamard_diag);
LOP_BUILD(apply_hadamard);
LOP_BUILD(khatrirao);
LOP_BUILD(apply_khatrirao_wide);
/* khatri_rao.c */
LOP_BUILD(apply_khatrirao);
LOP_BUILD(apply_khatrirao_view);
LOP_BUILD(element_khatrirao);
LOP_BUILD(apply_lowrank_elementwise);
LOP_BUILD(lowrank_elementwise);
/* kernel_matrices.c */
LOP_BUILD(view_kernel);
LOP_BUILD(kernel_elementwise);
/* The kernel of some of the points of its rows, or (`of_y`) of its columns: `rows` as `cut` takes
 * it, `index` NULL or which. Owned in *out. */
lop_status lop_kernel_cut(const lop_maker *mk, const lop_node *k, const lop_attr *rows,
                          const lop_node *index, bool of_y, const lop_node **out) LOP_MUST_CHECK;
LOP_BUILD(full_elementwise);
/* elementwise.c */
LOP_BUILD(cast_value);
LOP_BUILD(cast_column);
LOP_BUILD(solve_orthogonal);

LOP_BUILD(diagonal_single);
LOP_BUILD(diagonal_band);
LOP_BUILD(trace_band);

/* solve_grid.c */
LOP_BUILD(solve_grid);
LOP_BUILD(det_grid);

/* solve_woodbury.c */
LOP_BUILD(solve_thin_sum);
LOP_BUILD(inverse_diagonal_thin_sum);
LOP_BUILD(inverse_dense_thin_sum);
LOP_BUILD(solve_deficient);
LOP_BUILD(value_deficient);
LOP_BUILD(det_thin_sum);
/* solve_eigenbasis.c */
enum { LOP_SPECTRAL_ROWS = 40 }; /* smaller sums are quicker by the dense form */
LOP_BUILD(solve_spectral);
LOP_BUILD(det_spectral);
LOP_BUILD(inverse_diagonal_spectral);
LOP_BUILD(inverse_partial_spectral);
LOP_BUILD(between_partial_spectral);
LOP_BUILD(between_trace_spectral);

/* solve_schur_complement.c */
LOP_BUILD(solve_bordered);
LOP_BUILD(det_bordered);
LOP_BUILD(solve_corner);
LOP_BUILD(inverse_corner);
LOP_BUILD(det_corner);
LOP_BUILD(value_corner);
LOP_BUILD(bordered_inverse_diagonal);

/* solve_normal_equations.c */
LOP_BUILD(solve_normal);

/* solve_sparse.c */
LOP_BUILD(solve_sparse);
LOP_BUILD(det_sparse);
LOP_BUILD(diagonal_sparse_inverse);
LOP_BUILD(band_inverse_diagonal);
/* between_bands.c */
LOP_BUILD(diagonal_between_bands);
LOP_BUILD(trace_between_bands);
LOP_BUILD(diagonal_beside_between_bands);
LOP_BUILD(entries_between_bands);
LOP_BUILD(entries_inverse_band);
LOP_BUILD(entries_near_band_inverse);
LOP_BUILD(diagonal_of_partial);
LOP_BUILD(trace_sparse_inverse);
LOP_BUILD(trace_turned_to_inverse);
LOP_BUILD(sparse_rows);
LOP_BUILD(trace_of_diag_prod);
LOP_BUILD(entries_sparse_inverse);
LOP_BUILD(entries_blocks);
LOP_BUILD(diagonal_between_sparse);
LOP_BUILD(rows_between_sparse);
LOP_BUILD(entries_between_sparse);
LOP_BUILD(between_sums);
LOP_BUILD(diagonal_sparse_product);
LOP_BUILD(trace_sparse_product);
LOP_BUILD(trace_between_sparse);
/* [a b; c d], NULL of zeros. Owned. */
lop_status lop_two_by_two(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node *c, const lop_node *d,
                          const lop_node **out) LOP_MUST_CHECK;
/* blocks_alike.c: the blocks of root's operand, a BlockDiag of many of one make or the inverse of
 * one, as an array with a batch. Owned; NOMATCH. */
lop_status lop_blocks_alike_array(const lop_match *m, const lop_maker *mk,
                                  const lop_node **out) LOP_MUST_CHECK;

lop_status lop_inverse_alike(const lop_match *m, const lop_maker *mk,
                             const lop_node **out) LOP_MUST_CHECK;
/* A view with its views moved down to its parts, where rows say how. Takes over *a. */
lop_status lop_settle(const lop_maker *mk, const lop_node **a) LOP_MUST_CHECK;
lop_status lop_solve_conjugated(const lop_match *m, const lop_maker *mk,
                                const lop_node **out) LOP_MUST_CHECK;

#endif
