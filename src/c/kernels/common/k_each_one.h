/* k_each_one.h: one dtype's turn in k_each.h. */
#include "k_elem.h"

#include LOPK_TEMPLATE

#undef N_
#undef EL
#undef DT
#undef E
#undef W
#undef R
#undef FAM
