/* k_sparse_pair_per_dtype.h: k_sparse_pair_per_index.h for both index types, one dtype. */
#define IX int32_t
#define S_(name) LOPK_CAT(N_(name), _i32)
#include "k_sparse_pair_per_index.h"
#undef IX
#undef S_
#define IX int64_t
#define S_(name) LOPK_CAT(N_(name), _i64)
#include "k_sparse_pair_per_index.h"
#undef IX
#undef S_
