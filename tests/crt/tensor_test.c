/* tensor_test.c: views of tensors. */
#include "unit.h"

static const struct microtir_dtype int16 = {MICROTIR_ELEMENT_SIGNED, 16};
static int16_t values[24];
static const int64_t shape[] = {2, 3, 4};

static struct microtir_tensor view_of(int16_t *data)
{
    struct microtir_tensor tensor;
    CHECK(microtir_tensor_view(&tensor, data, int16, 3, shape), MICROTIR_OK);
    return tensor;
}

static void test_view(void)
{
    const struct microtir_dtype odd = {MICROTIR_ELEMENT_SIGNED, 4};
    const int64_t negative[] = {2, -1};
    const int64_t huge[] = {INT64_C(1) << 62, 4};
    const int64_t empty[] = {0, INT64_MAX};
    struct microtir_tensor tensor = {NULL, 99, {0, 0}, NULL, NULL, 0};
    uint64_t bytes = 0;
    CHECK(microtir_tensor_view(NULL, values, int16, 3, shape), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_tensor_view(&tensor, NULL, int16, 3, shape), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_tensor_view(&tensor, values, int16, 3, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_tensor_view(&tensor, values, int16, -1, shape), MICROTIR_ERROR_TENSOR_RANK);
    CHECK(microtir_tensor_view(&tensor, values, odd, 3, shape), MICROTIR_ERROR_TENSOR_DTYPE);
    CHECK(microtir_tensor_view(&tensor, values, int16, 2, negative), MICROTIR_ERROR_TENSOR_SHAPE);
    CHECK(microtir_tensor_view(&tensor, values, int16, 2, huge), MICROTIR_ERROR_TENSOR_SHAPE);
    CHECK(tensor.rank, 99);
    CHECK(microtir_tensor_view(&tensor, values, int16, 2, empty), MICROTIR_OK);
    CHECK(microtir_tensor_bytes(&tensor, &bytes), MICROTIR_OK);
    CHECK(bytes, 0);
    CHECK(microtir_tensor_view(&tensor, values, int16, 0, NULL), MICROTIR_OK);
    CHECK(microtir_tensor_bytes(&tensor, &bytes), MICROTIR_OK);
    CHECK(bytes, 2);
}

/* Extents behind a zero may be of any size: their products overflowed. */
static void test_empty(void)
{
    const int64_t empty[] = {0, INT64_MAX, INT64_MAX};
    const int64_t other[] = {INT64_C(1) << 62, 4, 4};
    struct microtir_tensor tensor = {NULL, 0, {0, 0}, NULL, NULL, 0};
    struct microtir_tensor result;
    int64_t extents[3] = {0};
    uint64_t bytes = 9;
    CHECK(microtir_tensor_view(&tensor, values, int16, 3, empty), MICROTIR_OK);
    CHECK(microtir_tensor_bytes(&tensor, &bytes), MICROTIR_OK);
    CHECK(bytes, 0);
    CHECK(microtir_tensor_rows(&tensor, 0, 0, extents, &result), MICROTIR_OK);
    CHECK(microtir_tensor_reshape(&tensor, 3, empty, &result), MICROTIR_OK);
#if MICROTIR_MAX_RANK >= 3
    CHECK(microtir_tensor_copy(&tensor, &result), MICROTIR_OK);
#endif
    tensor.shape = other;
    CHECK(microtir_tensor_rows(&tensor, 3, 4, extents, &result), MICROTIR_ERROR_TENSOR_SHAPE);
}

static void test_bytes(void)
{
    const int64_t gaps[] = {24, 8, 2};
    struct microtir_tensor tensor = view_of(values);
    uint64_t bytes = 0;
    CHECK(microtir_tensor_bytes(&tensor, &bytes), MICROTIR_OK);
    CHECK(bytes, 48);
    tensor.strides = gaps;
    CHECK(microtir_tensor_bytes(&tensor, &bytes), MICROTIR_ERROR_TENSOR_STRIDES);
    CHECK(microtir_tensor_bytes(NULL, &bytes), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_tensor_bytes(&tensor, NULL), MICROTIR_ERROR_NULL_POINTER);
}

static void test_rows(void)
{
    struct microtir_tensor tensor = view_of(values);
    struct microtir_tensor rows;
    const struct microtir_tensor scalar = {values, 0, {MICROTIR_ELEMENT_SIGNED, 16}, NULL, NULL, 0};
    int64_t extents[3] = {0};
    tensor.byte_offset = 2;
    CHECK(microtir_tensor_rows(&tensor, 1, 2, extents, &rows), MICROTIR_OK);
    CHECK(rows.byte_offset, 2 + 24);
    CHECK(rows.shape[0], 1);
    CHECK(rows.shape[2], 4);
    CHECK(microtir_tensor_rows(&tensor, 2, 2, extents, &rows), MICROTIR_OK);
    CHECK(microtir_tensor_rows(&tensor, 0, 3, extents, &rows), MICROTIR_ERROR_TENSOR_SHAPE);
    CHECK(microtir_tensor_rows(&tensor, -1, 1, extents, &rows), MICROTIR_ERROR_TENSOR_SHAPE);
    CHECK(microtir_tensor_rows(&tensor, 2, 1, extents, &rows), MICROTIR_ERROR_TENSOR_SHAPE);
    CHECK(microtir_tensor_rows(&scalar, 0, 0, extents, &rows), MICROTIR_ERROR_TENSOR_RANK);
    CHECK(microtir_tensor_rows(NULL, 0, 1, extents, &rows), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_tensor_rows(&tensor, 0, 1, NULL, &rows), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_tensor_rows(&tensor, 0, 1, extents, NULL), MICROTIR_ERROR_NULL_POINTER);
    tensor.dtype.bits = 1;
    CHECK(microtir_tensor_rows(&tensor, 0, 1, extents, &rows), MICROTIR_ERROR_TENSOR_DTYPE);
}

static void test_reshape(void)
{
    const int64_t flat[] = {24};
    const int64_t fewer[] = {23};
    const int64_t gaps[] = {24, 8, 2};
    struct microtir_tensor tensor = view_of(values);
    struct microtir_tensor reshaped;
    tensor.byte_offset = 6;
    CHECK(microtir_tensor_reshape(&tensor, 1, flat, &reshaped), MICROTIR_OK);
    CHECK(reshaped.rank, 1);
    CHECK(reshaped.byte_offset, 6);
    CHECK(microtir_tensor_reshape(&tensor, 1, fewer, &reshaped), MICROTIR_ERROR_TENSOR_SHAPE);
    CHECK(microtir_tensor_reshape(&tensor, 1, flat, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_tensor_reshape(NULL, 1, flat, &reshaped), MICROTIR_ERROR_NULL_POINTER);
    tensor.strides = gaps;
    CHECK(microtir_tensor_reshape(&tensor, 1, flat, &reshaped), MICROTIR_ERROR_TENSOR_STRIDES);
}

#if MICROTIR_MAX_RANK >= 3
static void test_copy(void)
{
    const int64_t transposed[] = {1, 2, 6};
    const int64_t other[] = {2, 4, 3};
    int16_t copies[24] = {0};
    struct microtir_tensor from = view_of(values);
    struct microtir_tensor to = view_of(copies);
    for (int16_t i = 0; i < 24; i++) {
        values[i] = i;
    }
    CHECK(microtir_tensor_copy(&from, &to), MICROTIR_OK);
    CHECK(memcmp(values, copies, sizeof copies), 0);
    to.strides = transposed;
    CHECK(microtir_tensor_copy(&from, &to), MICROTIR_OK);
    CHECK(copies[1], 12);
    CHECK(copies[2], 4);
    CHECK(copies[6], 1);
    CHECK(copies[23], 23);
    to.shape = other;
    CHECK(microtir_tensor_copy(&from, &to), MICROTIR_ERROR_TENSOR_SHAPE);
    to = from;
    to.rank = 2;
    CHECK(microtir_tensor_copy(&from, &to), MICROTIR_ERROR_TENSOR_RANK);
    to.dtype.element = MICROTIR_ELEMENT_UNSIGNED;
    CHECK(microtir_tensor_copy(&from, &to), MICROTIR_ERROR_TENSOR_DTYPE);
    CHECK(microtir_tensor_copy(NULL, &to), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_tensor_copy(&from, NULL), MICROTIR_ERROR_NULL_POINTER);
}
#endif

/* One dimension more than the copy is built for is an error, that many are none. */
static void test_copy_rank(void)
{
    int64_t ones[17];
    int16_t target = 0;
    for (int i = 0; i < 17; i++) {
        ones[i] = 1;
    }
    const struct microtir_tensor from = {values, MICROTIR_MAX_RANK, int16, ones, NULL, 0};
    const struct microtir_tensor to = {&target, MICROTIR_MAX_RANK, int16, ones, NULL, 0};
    struct microtir_tensor deeper = from;
    deeper.rank = MICROTIR_MAX_RANK + 1;
    values[0] = 7;
    CHECK(microtir_tensor_copy(&from, &to), MICROTIR_OK);
    CHECK(target, 7);
    CHECK(microtir_tensor_copy(&deeper, &deeper), MICROTIR_ERROR_TENSOR_RANK);
}

const struct unit_test tensor_tests[] = {
    {"tensor_view", test_view},
    {"tensor_bytes", test_bytes},
    {"tensor_empty", test_empty},
    {"tensor_rows", test_rows},
    {"tensor_reshape", test_reshape},
#if MICROTIR_MAX_RANK >= 3
    {"tensor_copy", test_copy},
#endif
    {"tensor_copy_rank", test_copy_rank},
    {NULL, NULL},
};
