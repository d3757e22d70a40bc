/* fault.c: says what a fault of an Arm Cortex-M was and where.
 *
 * One line, from which `microtir micro run` finds the function and the layer:
 *   fault: <exception>, <causes>, PC 0x<8 digits>, LR 0x<8 digits>, address 0x<8 digits>
 * The address is that of the access, where the processor knows it. A second line tells how much of
 * the stack was used since it was painted.
 */
#include "fault.h"

#include <stddef.h>

#include "board.h"
#include "cpu.h"
#include "platform.h"
#include "text.h"

#if !defined(__ARM_ARCH_6M__) && !defined(__ARM_ARCH_8M_BASE__)
#define HAS_FAULT_STATUS 1
#endif

#define SCB_CFSR REGISTER(0xE000ED28u)
#define SCB_HFSR REGISTER(0xE000ED2Cu)
#define SCB_MMFAR REGISTER(0xE000ED34u)
#define SCB_BFAR REGISTER(0xE000ED38u)

#define HFSR_VECTTBL (1u << 1)
#define CFSR_MMARVALID (1u << 7)
#define CFSR_BFARVALID (1u << 15)

/* Words of what the processor stacks: r0 to r3, r12, lr, pc, xpsr. */
#define FRAME_LR 5
#define FRAME_PC 6

__attribute__((aligned(8))) uint8_t fault_stack[FAULT_STACK_BYTES];

extern uint32_t __stack_top[];

static const uint32_t *noted;

void fault_note(const uint32_t *frame)
{
    noted = frame;
}

static void write_hexadecimal(uint32_t value)
{
    char text[] = "0x00000000";
    for (uint32_t digit = 0; digit < 8u; digit++) {
        const uint32_t nibble = (value >> (28u - 4u * digit)) & 0xFu;
        text[2u + digit] = "0123456789abcdef"[nibble];
    }
    text_write(text);
}

static const char *exception_name(uint32_t number)
{
    switch (number) {
    case 2:
        return "NMI";
    case 3:
        return "HardFault";
    case 4:
        return "MemManage";
    case 5:
        return "BusFault";
    case 6:
        return "UsageFault";
    case 7:
        return "SecureFault";
    default:
        return "exception";
    }
}

#ifdef HAS_FAULT_STATUS
static void write_causes(uint32_t status)
{
    static const struct {
        uint32_t bit;
        const char *text;
    } causes[] = {
        {0, "IACCVIOL: code in memory that has none"},
        {1, "DACCVIOL: an access that memory protection forbids"},
        {3, "MUNSTKERR: memory protection at the return from an exception"},
        {4, "MSTKERR: memory protection below the stack"},
        {5, "MLSPERR: memory protection while floats were saved"},
        {8, "IBUSERR: code that cannot be fetched"},
        {9, "PRECISERR: an access to what is no memory"},
        {10, "IMPRECISERR: an earlier write to what is no memory"},
        {11, "UNSTKERR: no memory at the return from an exception"},
        {12, "STKERR: no memory below the stack"},
        {13, "LSPERR: no memory while floats were saved"},
        {16, "UNDEFINSTR: no instruction"},
        {17, "INVSTATE: a jump to code that is not Thumb"},
        {18, "INVPC: a damaged return from an exception"},
        {19, "NOCP: the FPU or a coprocessor is off or missing"},
        {20, "STKOF: the stack is too small"},
        {24, "UNALIGNED: an access that is not aligned"},
        {25, "DIVBYZERO: a division by zero"},
    };
    for (uint32_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if ((status >> causes[i].bit) & 1u) {
            text_write(", ");
            text_write(causes[i].text);
        }
    }
}
#endif

static void describe_stack(void)
{
    const uint32_t size = (uint32_t)((uint8_t *)__stack_top - cpu_stack_limit());
    const uint32_t used = platform_stack_used();
    if (used > 0 && used <= size) { /* else it was not painted */
        text_write("fault: stack ");
        text_unsigned(used);
        text_write(" of ");
        text_unsigned(size);
        text_write(" bytes used\n");
    }
}

void fault_describe(void)
{
    uint32_t exception;
    __asm volatile("mrs %0, ipsr" : "=r"(exception));
    text_write("fault: ");
    text_write(exception_name(exception));
#ifdef HAS_FAULT_STATUS
    if (SCB_HFSR & HFSR_VECTTBL) {
        text_write(", VECTTBL: a vector cannot be read");
    }
    write_causes(SCB_CFSR);
#endif
    if (noted != NULL) {
        text_write(", PC ");
        write_hexadecimal(noted[FRAME_PC]);
        text_write(", LR ");
        write_hexadecimal(noted[FRAME_LR]);
    }
#ifdef HAS_FAULT_STATUS
    if (SCB_CFSR & (CFSR_MMARVALID | CFSR_BFARVALID)) {
        text_write(", address ");
        write_hexadecimal(SCB_CFSR & CFSR_MMARVALID ? SCB_MMFAR : SCB_BFAR);
    }
#endif
    text_write("\n");
    describe_stack();
}
