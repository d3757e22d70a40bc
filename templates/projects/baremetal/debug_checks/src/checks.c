/* checks.c: words around memory that nobody writes, to find out who does. */
#include "checks.h"

#include "platform.h"
#include "text.h"

/* Each word has a value of its own, so that bytes that were moved are found, too. */
#define CANARY(word) (0xC0DEFACEu + (word))

static uint32_t first_changed_byte(const struct canary *canary)
{
    for (uint32_t word = 0; word < CANARY_WORDS; word++) {
        const uint32_t changed = ((volatile uint32_t *)canary->words)[word] ^ CANARY(word);
        for (uint32_t byte = 0; byte < 4u; byte++) {
            if (((changed >> (8u * byte)) & 0xFFu) != 0) {
                return 4u * word + byte;
            }
        }
    }
    return 4u * CANARY_WORDS;
}

int32_t checked_run(const char *model, int32_t (*run)(void), const struct canary *canaries,
        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t word = 0; word < CANARY_WORDS; word++) {
            ((volatile uint32_t *)canaries[i].words)[word] = CANARY(word);
        }
    }
    const int32_t status = run();
    uint32_t is_broken = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t byte = first_changed_byte(&canaries[i]);
        if (byte < 4u * CANARY_WORDS) {
            text_write("fault: ");
            text_write(model);
            text_write(" wrote ");
            text_write(canaries[i].where);
            text_write(": byte ");
            text_unsigned(byte);
            text_write(" of the canary\n");
            is_broken = 1;
        }
    }
    if (is_broken) {
        platform_exit(CANARY_STATUS);
    }
    return status;
}
