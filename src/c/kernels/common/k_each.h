/* k_each.h: includes the header named by LOPK_TEMPLATE once for each of the 13 dtypes, with
 * k_elem.h before it. Define LOPK_TEMPLATE (a quoted name) before, and include once per .c file. */
#define FAM_B 0
#define FAM_I 1
#define FAM_F 2
#define FAM_C 3

#define DT b8
#define E unsigned char
#define W uint32_t
#define FAM FAM_B
#include "k_each_one.h"
#define DT i8
#define E int8_t
#define W uint32_t
#define FAM FAM_I
#include "k_each_one.h"
#define DT u8
#define E uint8_t
#define W uint32_t
#define FAM FAM_I
#include "k_each_one.h"
#define DT i16
#define E int16_t
#define W uint32_t
#define FAM FAM_I
#include "k_each_one.h"
#define DT u16
#define E uint16_t
#define W uint32_t
#define FAM FAM_I
#include "k_each_one.h"
#define DT i32
#define E int32_t
#define W uint32_t
#define FAM FAM_I
#include "k_each_one.h"
#define DT u32
#define E uint32_t
#define W uint32_t
#define FAM FAM_I
#include "k_each_one.h"
#define DT i64
#define E int64_t
#define W uint64_t
#define FAM FAM_I
#include "k_each_one.h"
#define DT u64
#define E uint64_t
#define W uint64_t
#define FAM FAM_I
#include "k_each_one.h"
#define DT f32
#define E float
#define FAM FAM_F
#include "k_each_one.h"
#define DT f64
#define E double
#define FAM FAM_F
#include "k_each_one.h"
#define DT c64
#define R float
#define FAM FAM_C
#include "k_each_one.h"
#define DT c128
#define R double
#define FAM FAM_C
#include "k_each_one.h"
