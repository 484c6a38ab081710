/* rule_trial.h: tries a rule on random operands before it is accepted. */
#ifndef LOP_TRIAL_H
#define LOP_TRIAL_H

#include "exec.h"

/* Fills the left side at random (rectangular, complex and real, operands of all kinds, fixed seed),
 * and wherever it is well-formed and the guard says TRUE, makes the right side and computes both by
 * `table`. DOMAIN with the numbers where they differ in shape, dtype or value, or where too few
 * draws fit to say anything. */
lop_status lop_rule_trial(lop_ctx *ctx, const lop_rules *table, const lop_rule *rule,
                          lop_err *err) LOP_MUST_CHECK;

#endif
