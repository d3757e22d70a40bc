/* memory_test.c: the memory managers. */
#include "unit.h"

#define UNIT MICROTIR_MEMORY_ALIGNMENT
#define HEADER (MICROTIR_CHECK_STACK ? UNIT : 0)

/* Room for eight alignments; the first byte is aligned to the largest that can be configured. */
static __attribute__((aligned(128))) uint8_t memory[8 * UNIT + 1];

static void test_stack(void)
{
    struct microtir_stack stack;
    void *first = NULL;
    void *second = NULL;
    CHECK(microtir_stack_init(&stack, memory, 8 * UNIT), MICROTIR_OK);
    CHECK(microtir_stack_allocate(&stack, 1, &first), MICROTIR_OK);
    CHECK(microtir_stack_allocate(&stack, UNIT + 1, &second), MICROTIR_OK);
    CHECK((uintptr_t)first % UNIT, 0);
    CHECK((uint8_t *)second - (uint8_t *)first, UNIT + HEADER);
    CHECK(stack.used, 3 * UNIT + 2 * HEADER);
    memset(first, 0xff, UNIT);
    memset(second, 0xff, 2 * UNIT);
    CHECK(microtir_stack_free(&stack, second), MICROTIR_OK);
    CHECK(microtir_stack_free(&stack, first), MICROTIR_OK);
    CHECK(stack.used, 0);
    CHECK(stack.peak, 3 * UNIT + 2 * HEADER);
}

static void test_stack_full(void)
{
    struct microtir_stack stack;
    void *block = NULL;
    CHECK(microtir_stack_init(&stack, memory, 2 * UNIT + HEADER), MICROTIR_OK);
    CHECK(microtir_stack_allocate(&stack, 2 * UNIT + 1, &block), MICROTIR_ERROR_NO_MEMORY);
    CHECK(microtir_stack_allocate(&stack, UINT32_MAX, &block), MICROTIR_ERROR_NO_MEMORY);
    CHECK(stack.used, 0);
    CHECK(microtir_stack_allocate(&stack, 2 * UNIT, &block), MICROTIR_OK);
    CHECK(microtir_stack_allocate(&stack, 0, &block), MICROTIR_ERROR_NO_MEMORY);
    CHECK(microtir_stack_init(&stack, memory, 0), MICROTIR_OK);
    CHECK(microtir_stack_allocate(&stack, 1, &block), MICROTIR_ERROR_NO_MEMORY);
}

static void test_stack_wrong_free(void)
{
    struct microtir_stack stack;
    void *first = NULL;
    void *second = NULL;
    CHECK(microtir_stack_init(&stack, memory, 8 * UNIT), MICROTIR_OK);
    CHECK(microtir_stack_allocate(&stack, 0, &first), MICROTIR_OK);
    CHECK(microtir_stack_free(&stack, (uint8_t *)first + 1), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_stack_free(&stack, memory + 8 * UNIT), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_stack_free(&stack, &stack), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_stack_allocate(&stack, 1, &second), MICROTIR_OK);
#if MICROTIR_CHECK_STACK
    CHECK(microtir_stack_free(&stack, first), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_stack_free(&stack, second), MICROTIR_OK);
    CHECK(microtir_stack_free(&stack, second), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_stack_free(&stack, first), MICROTIR_OK);
    /* A block that was given back long ago, inside of one that ends where it did. */
    CHECK(microtir_stack_allocate(&stack, 1, &first), MICROTIR_OK);
    CHECK(microtir_stack_allocate(&stack, 1, &second), MICROTIR_OK);
    const uint32_t end = stack.used;
    CHECK(microtir_stack_free(&stack, second), MICROTIR_OK);
    CHECK(microtir_stack_free(&stack, first), MICROTIR_OK);
    CHECK(microtir_stack_allocate(&stack, 2 * UNIT + HEADER, &first), MICROTIR_OK);
    CHECK(stack.used, end);
    CHECK(microtir_stack_free(&stack, second), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_stack_free(&stack, first), MICROTIR_OK);
#else
    CHECK(microtir_stack_free(&stack, first), MICROTIR_OK);
#endif
    CHECK(stack.used, 0);
}

static void test_stack_arguments(void)
{
    struct microtir_stack stack;
    void *block = NULL;
    CHECK(microtir_stack_init(NULL, memory, 1), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_stack_init(&stack, NULL, 1), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_stack_init(&stack, memory + 1, 1), MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_stack_init(&stack, memory, UNIT), MICROTIR_OK);
    CHECK(microtir_stack_allocate(NULL, 1, &block), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_stack_allocate(&stack, 1, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_stack_free(NULL, memory), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_stack_free(&stack, NULL), MICROTIR_ERROR_NULL_POINTER);
}

/* The table takes up to one alignment of the eight: there are six pages of one or more of two. */
static void test_pages(void)
{
    struct microtir_pages pages;
    void *blocks[7] = {NULL};
    CHECK(microtir_pages_init(&pages, memory, 8 * UNIT, UNIT), MICROTIR_OK);
    CHECK(pages.page_count >= 5, 1);
    for (uint32_t i = 0; i < pages.page_count; i++) {
        CHECK(microtir_pages_allocate(&pages, i == 0 ? 0 : UNIT, &blocks[i]), MICROTIR_OK);
        CHECK((uintptr_t)blocks[i] % UNIT, 0);
        memset(blocks[i], 0xff, UNIT);
    }
    CHECK((uint8_t *)blocks[pages.page_count - 1] + UNIT <= memory + 8 * UNIT, 1);
    CHECK(microtir_pages_allocate(&pages, 1, &blocks[6]), MICROTIR_ERROR_NO_MEMORY);
    CHECK(microtir_pages_free(&pages, blocks[3]), MICROTIR_OK);
    CHECK(microtir_pages_free(&pages, blocks[1]), MICROTIR_OK);
    CHECK(microtir_pages_allocate(&pages, UNIT + 1, &blocks[6]), MICROTIR_ERROR_NO_MEMORY);
    CHECK(microtir_pages_free(&pages, blocks[2]), MICROTIR_OK);
    CHECK(microtir_pages_allocate(&pages, 2 * UNIT + 1, &blocks[6]), MICROTIR_OK);
    CHECK(blocks[6] == blocks[1], 1);
    CHECK(pages.used, pages.page_count);
    CHECK(pages.peak, pages.page_count);
    CHECK(microtir_pages_free(&pages, blocks[6]), MICROTIR_OK);
    CHECK(microtir_pages_free(&pages, blocks[6]), MICROTIR_ERROR_BAD_FREE);
    CHECK(pages.used, pages.page_count - 3);
}

static void test_pages_wrong_free(void)
{
    struct microtir_pages pages;
    void *block = NULL;
    CHECK(microtir_pages_init(&pages, memory, 8 * UNIT, UNIT), MICROTIR_OK);
    CHECK(microtir_pages_allocate(&pages, 2 * UNIT, &block), MICROTIR_OK);
    CHECK(microtir_pages_free(&pages, (uint8_t *)block + 1), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_pages_free(&pages, (uint8_t *)block + UNIT), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_pages_free(&pages, memory), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_pages_free(&pages, memory + 8 * UNIT), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_pages_free(&pages, &pages), MICROTIR_ERROR_BAD_FREE);
    CHECK(microtir_pages_free(&pages, block), MICROTIR_OK);
}

static void test_pages_arguments(void)
{
    struct microtir_pages pages;
    void *block = NULL;
    CHECK(microtir_pages_init(NULL, memory, 64, UNIT), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_pages_init(&pages, NULL, 64, UNIT), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_pages_init(&pages, memory + 1, 64, UNIT), MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_pages_init(&pages, memory, 8 * UNIT, UNIT / 2), MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_pages_init(&pages, memory, 8 * UNIT, 3 * UNIT), MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_pages_init(&pages, memory, UNIT, UNIT), MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_pages_init(&pages, memory, 0, UNIT), MICROTIR_ERROR_MEMORY_LAYOUT);
    /* More pages than there are numbers for: refused before any memory is touched. */
    CHECK(microtir_pages_init(&pages, memory, UINT32_MAX, UNIT), MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_pages_init(&pages, memory, 8 * UNIT, UNIT), MICROTIR_OK);
    CHECK(microtir_pages_allocate(NULL, 1, &block), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_pages_allocate(&pages, 1, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_pages_allocate(&pages, UINT32_MAX, &block), MICROTIR_ERROR_NO_MEMORY);
    CHECK(microtir_pages_free(NULL, memory), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_pages_free(&pages, NULL), MICROTIR_ERROR_NULL_POINTER);
}

const struct unit_test memory_tests[] = {
    {"stack", test_stack},
    {"stack_full", test_stack_full},
    {"stack_wrong_free", test_stack_wrong_free},
    {"stack_arguments", test_stack_arguments},
    {"pages", test_pages},
    {"pages_wrong_free", test_pages_wrong_free},
    {"pages_arguments", test_pages_arguments},
    {NULL, NULL},
};
