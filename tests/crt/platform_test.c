/* platform_test.c: hooks of the platform, the log, devices, checksums. */
#include "unit.h"

/* What the hooks were told. */
static struct {
    int32_t level, value, stopped, ticks, before, after;
    const char *text;
} told;

static uint32_t ticks(void *context)
{
    told.ticks++;
    return *(const uint32_t *)context + (uint32_t)(told.ticks == 2 ? 70 : 0);
}

static void before(void *context)
{
    (void)context;
    told.before++;
}

static void after(void *context)
{
    (void)context;
    told.after++;
}

static void log_line(void *context, int32_t level, const char *text, int32_t value)
{
    (void)context;
    told.level = level;
    told.text = text;
    told.value = value;
}

static void stop(void *context, int32_t status)
{
    (void)context;
    told.stopped = status;
}

static uint32_t clock_start = 0xfffffff0u; /* so that the counter wraps */
static const struct microtir_platform platform = {&clock_start, ticks, before, after, log_line, stop};
static const struct microtir_platform silent = {NULL, NULL, NULL, NULL, NULL, NULL};

static void test_log(void)
{
    memset(&told, 0, sizeof told);
    MICROTIR_LOG_ERROR(&platform, "an error", 1);
    CHECK(told.level, MICROTIR_LOG_LEVEL >= 1 ? 1 : 0);
    CHECK(told.value, MICROTIR_LOG_LEVEL >= 1 ? 1 : 0);
    MICROTIR_LOG_WARNING(&platform, "a warning", 2);
    CHECK(told.level, MICROTIR_LOG_LEVEL >= 2 ? 2 : MICROTIR_LOG_LEVEL);
    MICROTIR_LOG_INFO(&platform, "a fact", 3);
    CHECK(told.level, MICROTIR_LOG_LEVEL >= 3 ? 3 : MICROTIR_LOG_LEVEL);
    MICROTIR_LOG_DEBUG(&platform, "a detail", 4);
    CHECK(told.level, MICROTIR_LOG_LEVEL);
    MICROTIR_LOG_ERROR(&silent, "nobody hears", 5);
    microtir_log(NULL, 1, "nobody hears", 5);
    CHECK(told.value, MICROTIR_LOG_LEVEL);
}

static void test_require(void)
{
    memset(&told, 0, sizeof told);
    microtir_require(&platform, MICROTIR_OK);
    CHECK(told.stopped, 0);
    microtir_require(&platform, MICROTIR_ERROR_NO_MEMORY);
    CHECK(told.stopped, MICROTIR_ERROR_NO_MEMORY);
#if MICROTIR_LOG_LEVEL >= 1
    CHECK(strcmp(told.text, microtir_status_text(MICROTIR_ERROR_NO_MEMORY)), 0);
#endif
    microtir_require(&silent, MICROTIR_ERROR_NO_MEMORY);
    microtir_require(NULL, MICROTIR_ERROR_NO_MEMORY);
}

static int32_t answer(void *argument)
{
    CHECK(told.after, 0);
    return *(int32_t *)argument;
}

static void test_measure(void)
{
    int32_t value = 42;
    uint32_t spent = 9;
    memset(&told, 0, sizeof told);
    CHECK(microtir_measure(&platform, answer, &value, &spent), 42);
    CHECK(spent, 70);
    CHECK(told.before, 1);
    CHECK(told.after, 1);
    told.after = 0;
    CHECK(microtir_measure(&silent, answer, &value, &spent), 42);
    CHECK(spent, 0);
    spent = 9;
    CHECK(microtir_measure(NULL, answer, &value, &spent), 42);
    CHECK(spent, 0);
    CHECK(microtir_measure(&platform, NULL, &value, &spent), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_measure(&platform, answer, &value, NULL), MICROTIR_ERROR_NULL_POINTER);
}

/* --- devices --- */

static int calls[4];
static int32_t open_status;

static int32_t activate(void *context)
{
    calls[0] += *(const int *)context;
    return MICROTIR_OK;
}

static int32_t open(void *context)
{
    calls[1] += *(const int *)context;
    return open_status;
}

static int32_t close(void *context)
{
    calls[2] += *(const int *)context;
    return MICROTIR_OK;
}

static int32_t deactivate(void *context)
{
    calls[3] += *(const int *)context;
    return MICROTIR_OK;
}

static void test_device(void)
{
    static const struct microtir_device_api api = {activate, open, close, deactivate};
    int one = 1;
    struct microtir_device device;
    memset(calls, 0, sizeof calls);
    open_status = MICROTIR_OK;
    CHECK(microtir_device_init(&device, &api, &one), MICROTIR_OK);
    CHECK(microtir_device_activate(&device), MICROTIR_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(microtir_device_open(&device), MICROTIR_OK);
        CHECK(microtir_device_close(&device), MICROTIR_OK);
    }
    CHECK(microtir_device_deactivate(&device), MICROTIR_OK);
    CHECK(device.state, MICROTIR_DEVICE_IDLE);
    CHECK(calls[0], 1);
    CHECK(calls[1], 2);
    CHECK(calls[2], 2);
    CHECK(calls[3], 1);
}

static void test_device_errors(void)
{
    static const struct microtir_device_api nothing = {NULL, NULL, NULL, NULL};
    static const struct microtir_device_api failing = {NULL, open, NULL, NULL};
    int one = 1;
    struct microtir_device device = {NULL, NULL, 0};
    CHECK(microtir_device_init(NULL, &nothing, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_device_init(&device, NULL, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_device_activate(NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_device_activate(&device), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_device_init(&device, &nothing, NULL), MICROTIR_OK);
#if MICROTIR_CHECK_DEVICES
    CHECK(microtir_device_open(&device), MICROTIR_ERROR_DEVICE_STATE);
    CHECK(microtir_device_close(&device), MICROTIR_ERROR_DEVICE_STATE);
    CHECK(microtir_device_deactivate(&device), MICROTIR_ERROR_DEVICE_STATE);
    CHECK(microtir_device_activate(&device), MICROTIR_OK);
    CHECK(microtir_device_activate(&device), MICROTIR_ERROR_DEVICE_STATE);
#else
    CHECK(microtir_device_open(&device), MICROTIR_OK);
#endif
    /* The driver's own status reaches the caller, and the state stays. */
    open_status = -7;
    CHECK(microtir_device_init(&device, &failing, &one), MICROTIR_OK);
    CHECK(microtir_device_activate(&device), MICROTIR_OK);
    CHECK(microtir_device_open(&device), -7);
    CHECK(device.state, MICROTIR_DEVICE_ACTIVE);
}

/* --- checksums and parameters --- */

static void test_crc32(void)
{
    const char *const text = "123456789"; /* the check value of every catalogue of CRCs */
    CHECK(microtir_crc32(0, text, 9) == 0xcbf43926u, 1);
    CHECK(microtir_crc32(microtir_crc32(0, text, 4), text + 4, 5) == 0xcbf43926u, 1);
    CHECK(microtir_crc32(5, text, 0), 5);
    CHECK(microtir_crc32(5, NULL, 9), 5);
}

static void put(uint8_t *place, uint32_t number)
{
    for (int i = 0; i < 4; i++) {
        place[i] = (uint8_t)(number >> (8 * i));
    }
}

static void test_parameters(void)
{
    uint8_t file[20] = "MTIP";
    memset(file + 16, 0x5a, 4);
    put(file + 4, 0x12345678u);
    put(file + 8, sizeof file);
    put(file + 12, microtir_crc32(0, file + 16, 4));
    const uint32_t size = sizeof file;
    const uint32_t known = 0x12345678u;
    CHECK(microtir_parameters_check(file, size, size, known), MICROTIR_OK);
    CHECK(microtir_parameters_check(file, size + 9, size, known), MICROTIR_OK);
    CHECK(microtir_parameters_check(NULL, size, size, known), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_parameters_check(file, size, size, known + 1), MICROTIR_ERROR_PARAMETERS);
    CHECK(microtir_parameters_check(file, size - 1, size, known), MICROTIR_ERROR_PARAMETERS);
    CHECK(microtir_parameters_check(file, 15, size, known), MICROTIR_ERROR_PARAMETERS);
    CHECK(microtir_parameters_check(file, 15, 15, known), MICROTIR_ERROR_PARAMETERS);
    file[19] ^= 1u;
    CHECK(microtir_parameters_check(file, size, size, known),
          MICROTIR_CHECK_PARAMETERS ? MICROTIR_ERROR_PARAMETERS : MICROTIR_OK);
    /* A file of the header alone, undamaged: the weights of the model would be read behind it. */
    put(file + 8, 16);
    put(file + 12, 0);
    CHECK(microtir_parameters_check(file, size, size, known), MICROTIR_ERROR_PARAMETERS);
    CHECK(microtir_parameters_check(file, 16, size, known), MICROTIR_ERROR_PARAMETERS);
    CHECK(microtir_parameters_check(file, 16, 16, known), MICROTIR_OK);
    file[0] = 'm';
    CHECK(microtir_parameters_check(file, size, size, known), MICROTIR_ERROR_PARAMETERS);
}

const struct unit_test platform_tests[] = {
    {"log", test_log},
    {"require", test_require},
    {"measure", test_measure},
    {"device", test_device},
    {"device_errors", test_device_errors},
    {"crc32", test_crc32},
    {"parameters", test_parameters},
    {NULL, NULL},
};
