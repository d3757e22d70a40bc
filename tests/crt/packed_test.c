/* packed_test.c: the registry, packed arguments, and statuses. */
#include "unit.h"

/* --- two modules of functions that return a number --- */

static int32_t seven(const union microtir_value *args, const int32_t *kinds, int32_t count,
                     union microtir_value *result, int32_t *result_kind, void *resource)
{
    (void)args;
    (void)kinds;
    (void)count;
    (void)result;
    (void)result_kind;
    (void)resource;
    return 7;
}

static int32_t eight(const union microtir_value *args, const int32_t *kinds, int32_t count,
                     union microtir_value *result, int32_t *result_kind, void *resource)
{
    return seven(args, kinds, count, result, result_kind, resource) + 1;
}

static const struct microtir_function first_functions[] = {{"seven", seven}, {"eight", eight}};
static const struct microtir_module first = {"first", first_functions, 2};
static const struct microtir_function second_functions[] = {{"nine", seven}};
static const struct microtir_module second = {"second", second_functions, 1};
static const struct microtir_function clash_functions[] = {{"ten", seven}, {"eight", seven}};
static const struct microtir_module clash = {"clash", clash_functions, 2};

static void test_find(void)
{
    microtir_packed_function found = NULL;
    CHECK(microtir_module_find(&first, "eight", &found), MICROTIR_OK);
    CHECK(found(NULL, NULL, 0, NULL, NULL, NULL), 8);
    CHECK(microtir_module_find(&first, "eigh", &found), MICROTIR_ERROR_FUNCTION_NOT_FOUND);
    CHECK(microtir_module_find(&first, "", &found), MICROTIR_ERROR_FUNCTION_NOT_FOUND);
    CHECK(microtir_module_find(NULL, "eight", &found), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_module_find(&first, NULL, &found), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_module_find(&first, "eight", NULL), MICROTIR_ERROR_NULL_POINTER);
}

static void test_at(void)
{
    const struct microtir_function *found = NULL;
    CHECK(microtir_module_at(&first, 1, &found), MICROTIR_OK);
    CHECK(strcmp(found->name, "eight"), 0);
    CHECK(microtir_module_at(&first, 2, &found), MICROTIR_ERROR_FUNCTION_NOT_FOUND);
    CHECK(microtir_module_at(&first, -1, &found), MICROTIR_ERROR_FUNCTION_NOT_FOUND);
    CHECK(microtir_module_at(NULL, 0, &found), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_module_at(&first, 0, NULL), MICROTIR_ERROR_NULL_POINTER);
}

static void test_registry(void)
{
    struct microtir_registry registry = {{NULL}, 0};
    microtir_packed_function found = NULL;
    CHECK(microtir_registry_find(&registry, "nine", &found), MICROTIR_ERROR_FUNCTION_NOT_FOUND);
    CHECK(microtir_registry_add(&registry, &first), MICROTIR_OK);
    CHECK(microtir_registry_add(&registry, &second), MICROTIR_OK);
    CHECK(microtir_registry_find(&registry, "nine", &found), MICROTIR_OK);
    CHECK(found(NULL, NULL, 0, NULL, NULL, NULL), 7);
    CHECK(microtir_registry_add(&registry, &clash), MICROTIR_ERROR_NAME_TAKEN);
    CHECK(microtir_registry_find(&registry, "ten", &found), MICROTIR_ERROR_FUNCTION_NOT_FOUND);
    CHECK(registry.module_count, 2);
    CHECK(microtir_registry_add(NULL, &first), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_registry_add(&registry, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_registry_find(NULL, "nine", &found), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_registry_find(&registry, NULL, &found), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_registry_find(&registry, "nine", NULL), MICROTIR_ERROR_NULL_POINTER);
}

static void test_registry_full(void)
{
    static const struct microtir_module empty = {"empty", NULL, 0};
    struct microtir_registry registry = {{NULL}, 0};
    for (int32_t i = 0; i < MICROTIR_MAX_MODULES; i++) {
        CHECK(microtir_registry_add(&registry, &empty), MICROTIR_OK);
    }
    CHECK(microtir_registry_add(&registry, &empty), MICROTIR_ERROR_REGISTRY_FULL);
    CHECK(registry.module_count, MICROTIR_MAX_MODULES);
}

/* --- arguments --- */

static int32_t values[12];
static const int64_t shape[] = {3, 4};
static const int32_t expected_shape[] = {3, 4};
static const struct microtir_tensor_type type = {
    {MICROTIR_ELEMENT_SIGNED, 32}, 2, expected_shape, 4};

static int32_t tensor_status(const struct microtir_tensor *tensor)
{
    const union microtir_value args[] = {{.v_tensor = tensor}};
    const int32_t kinds[] = {MICROTIR_KIND_TENSOR};
    void *data = NULL;
    return microtir_tensor_argument(args, kinds, 0, &type, &data);
}

static void test_tensor(void)
{
    const int64_t compact[] = {4, 1};
    struct microtir_tensor tensor = {values, 2, {MICROTIR_ELEMENT_SIGNED, 32}, shape, NULL, 0};
    CHECK(tensor_status(&tensor), MICROTIR_OK);
    tensor.strides = compact;
    CHECK(tensor_status(&tensor), MICROTIR_OK);
    tensor.data = NULL;
    CHECK(tensor_status(&tensor), MICROTIR_ERROR_NULL_POINTER);
    CHECK(tensor_status(NULL), MICROTIR_ERROR_NULL_POINTER);
}

static void test_tensor_offset(void)
{
    struct microtir_tensor tensor = {values, 2, {MICROTIR_ELEMENT_SIGNED, 32}, shape, NULL, 4};
    const union microtir_value args[] = {{.v_tensor = &tensor}};
    const int32_t kinds[] = {MICROTIR_KIND_TENSOR};
    void *data = NULL;
    CHECK(microtir_tensor_argument(args, kinds, 0, &type, &data), MICROTIR_OK);
    CHECK(data == &values[1], 1);
}

static void test_kinds(void)
{
    const union microtir_value args[] = {{.v_integer = 5}};
    const int32_t integer[] = {MICROTIR_KIND_INTEGER};
    const int32_t real[] = {MICROTIR_KIND_FLOAT};
    void *data = NULL;
    int64_t value = 0;
    CHECK(microtir_tensor_argument(args, integer, 0, &type, &data), MICROTIR_ERROR_ARGUMENT_KIND);
    CHECK(microtir_integer_argument(args, integer, 0, 1, 5, &value), MICROTIR_OK);
    CHECK(value, 5);
    CHECK(microtir_integer_argument(args, real, 0, 1, 5, &value), MICROTIR_ERROR_ARGUMENT_KIND);
    CHECK(microtir_integer_argument(args, integer, 0, 6, 9, &value),
          MICROTIR_ERROR_ARGUMENT_RANGE);
    CHECK(microtir_integer_argument(args, integer, 0, 0, 4, &value),
          MICROTIR_ERROR_ARGUMENT_RANGE);
}

static void test_count(void)
{
    const union microtir_value args[] = {{.v_integer = 5}};
    const int32_t kinds[] = {MICROTIR_KIND_INTEGER};
    CHECK(microtir_check_count(args, kinds, 1, 1), MICROTIR_OK);
    CHECK(microtir_check_count(args, kinds, 1, 2), MICROTIR_ERROR_ARGUMENT_COUNT);
    CHECK(microtir_check_count(args, kinds, -1, 1), MICROTIR_ERROR_ARGUMENT_COUNT);
    CHECK(microtir_check_count(NULL, kinds, 1, 1), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_check_count(args, NULL, 1, 1), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_check_count(NULL, NULL, 0, 0), MICROTIR_OK);
}

static void test_no_workspace(void)
{
    const union microtir_value args[] = {{.v_handle = NULL}};
    const int32_t kinds[] = {MICROTIR_KIND_NONE};
    void *data = values;
    CHECK(microtir_workspace_argument(args, kinds, 0, 0, 8, &data), MICROTIR_OK);
    CHECK(data == NULL, 1);
    CHECK(microtir_workspace_argument(args, kinds, 0, 4, 8, &data), MICROTIR_ERROR_ARGUMENT_KIND);
}

#if MICROTIR_CHECK_TENSORS
static void test_wrong_tensors(void)
{
    const int64_t other_shape[] = {4, 3};
    const int64_t transposed[] = {1, 3};
    const struct microtir_tensor good = {values, 2, {MICROTIR_ELEMENT_SIGNED, 32}, shape, NULL, 0};
    struct microtir_tensor tensor = good;
    tensor.dtype.bits = 16;
    CHECK(tensor_status(&tensor), MICROTIR_ERROR_TENSOR_DTYPE);
    tensor = good;
    tensor.dtype.element = MICROTIR_ELEMENT_FLOAT;
    CHECK(tensor_status(&tensor), MICROTIR_ERROR_TENSOR_DTYPE);
    tensor = good;
    tensor.rank = 1;
    CHECK(tensor_status(&tensor), MICROTIR_ERROR_TENSOR_RANK);
    tensor = good;
    tensor.shape = other_shape;
    CHECK(tensor_status(&tensor), MICROTIR_ERROR_TENSOR_SHAPE);
    tensor.shape = NULL;
    CHECK(tensor_status(&tensor), MICROTIR_ERROR_NULL_POINTER);
    tensor = good;
    tensor.strides = transposed;
    CHECK(tensor_status(&tensor), MICROTIR_ERROR_TENSOR_STRIDES);
    tensor = good;
    tensor.byte_offset = 2;
    CHECK(tensor_status(&tensor), MICROTIR_ERROR_TENSOR_ALIGNMENT);
}

static void test_strides_of_single_elements(void)
{
    static const int32_t row_shape[] = {1, 4};
    static const struct microtir_tensor_type row = {
        {MICROTIR_ELEMENT_SIGNED, 32}, 2, row_shape, 4};
    const int64_t extents[] = {1, 4};
    const int64_t strides[] = {99, 1};
    const struct microtir_tensor tensor = {values, 2, {MICROTIR_ELEMENT_SIGNED, 32},
                                           extents, strides, 0};
    const union microtir_value args[] = {{.v_tensor = &tensor}};
    const int32_t kinds[] = {MICROTIR_KIND_TENSOR};
    void *data = NULL;
    CHECK(microtir_tensor_argument(args, kinds, 0, &row, &data), MICROTIR_OK);
}

static void test_rank_zero(void)
{
    static const struct microtir_tensor_type scalar = {{MICROTIR_ELEMENT_SIGNED, 32}, 0, NULL, 4};
    const struct microtir_tensor tensor = {values, 0, {MICROTIR_ELEMENT_SIGNED, 32}, NULL, NULL, 0};
    const union microtir_value args[] = {{.v_tensor = &tensor}};
    const int32_t kinds[] = {MICROTIR_KIND_TENSOR};
    void *data = NULL;
    CHECK(microtir_tensor_argument(args, kinds, 0, &scalar, &data), MICROTIR_OK);
    CHECK(data == values, 1);
}

static int32_t workspace_status(const struct microtir_tensor *tensor)
{
    const union microtir_value args[] = {{.v_tensor = tensor}};
    const int32_t kinds[] = {MICROTIR_KIND_TENSOR};
    void *data = NULL;
    return microtir_workspace_argument(args, kinds, 0, 16, 4, &data);
}

static void test_workspace(void)
{
    const int64_t extent[] = {sizeof values};
    const int64_t small[] = {15};
    const int64_t strided[] = {2};
    const struct microtir_tensor good = {values, 1, {MICROTIR_ELEMENT_UNSIGNED, 8}, extent, NULL, 0};
    struct microtir_tensor tensor = good;
    CHECK(workspace_status(&tensor), MICROTIR_OK);
    tensor.shape = small;
    CHECK(workspace_status(&tensor), MICROTIR_ERROR_WORKSPACE_SIZE);
    tensor.shape = NULL;
    CHECK(workspace_status(&tensor), MICROTIR_ERROR_NULL_POINTER);
    tensor = good;
    tensor.byte_offset = 1;
    CHECK(workspace_status(&tensor), MICROTIR_ERROR_TENSOR_ALIGNMENT);
    tensor = good;
    tensor.rank = 2;
    CHECK(workspace_status(&tensor), MICROTIR_ERROR_TENSOR_RANK);
    tensor = good;
    tensor.dtype.bits = 32;
    CHECK(workspace_status(&tensor), MICROTIR_ERROR_TENSOR_DTYPE);
    tensor = good;
    tensor.strides = strided;
    CHECK(workspace_status(&tensor), MICROTIR_ERROR_TENSOR_STRIDES);
}
#endif

static void test_texts(void)
{
    CHECK(strcmp(microtir_status_text(MICROTIR_OK), "done"), 0);
#if MICROTIR_STATUS_TEXTS
    /* Every status has a sentence of its own. */
    for (int32_t a = MICROTIR_ERROR_NULL_POINTER; a >= MICROTIR_ERROR_DEVICE_STATE; a--) {
        CHECK(strcmp(microtir_status_text(a), microtir_status_text(-1)) != 0, 1);
        for (int32_t b = a - 1; b >= MICROTIR_ERROR_DEVICE_STATE; b--) {
            CHECK(strcmp(microtir_status_text(a), microtir_status_text(b)) != 0, 1);
        }
    }
#else
    CHECK(strcmp(microtir_status_text(MICROTIR_ERROR_NAME_TAKEN), "failed"), 0);
#endif
}

const struct unit_test packed_tests[] = {
    {"find", test_find},
    {"at", test_at},
    {"registry", test_registry},
    {"registry_full", test_registry_full},
    {"tensor", test_tensor},
    {"tensor_offset", test_tensor_offset},
    {"kinds", test_kinds},
    {"count", test_count},
    {"no_workspace", test_no_workspace},
#if MICROTIR_CHECK_TENSORS
    {"wrong_tensors", test_wrong_tensors},
    {"strides_of_single_elements", test_strides_of_single_elements},
    {"rank_zero", test_rank_zero},
    {"workspace", test_workspace},
#endif
    {"texts", test_texts},
    {NULL, NULL},
};
