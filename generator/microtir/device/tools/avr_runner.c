/* avr_runner.c: runs a program for an AVR on libsimavr.
 *
 *   avr_runner [--regions FILE --out FILE --limit N] MCU HERTZ PROGRAM.elf
 *
 * The serial port 0 is standard input and output, byte for byte. A program ends by sleeping with
 * interrupts off; the exit status is what it left in GPIOR0, or one of the numbers below. With
 * --regions the instructions and cycles of N inferences are counted (see regions.h).
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>

#include "regions.h"

enum {
    STATUS_USAGE = 125,
    STATUS_STACK = 97,  /* the stack reached the variables */
    STATUS_CRASHED = 98 /* an address or an instruction that the MCU does not have */
};

#define GPIOR0_ADDRESS 0x3E /* of the ATmegas with 64 registers of extended input and output */
#define INPUT_INTERVAL 256  /* instructions between looks at standard input */

static int uart_is_ready = 1;

static void uart_output(struct avr_irq_t *irq, uint32_t value, void *data)
{
    (void)irq;
    (void)data;
    putchar((int)(value & 0xFF));
    fflush(stdout);
}

static void uart_flow(struct avr_irq_t *irq, uint32_t value, void *data)
{
    (void)irq;
    (void)value;
    uart_is_ready = *(const int *)data;
}

static void connect_uart(avr_t *avr)
{
    static const int off = 0;
    static const int on = 1;
    const uint32_t uart = AVR_IOCTL_UART_GETIRQ('0');
    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    /* Otherwise simavr prints by itself, by lines, and sleeps while the program polls. */
    flags &= ~(uint32_t)(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    avr_irq_register_notify(avr_io_getirq(avr, uart, UART_IRQ_OUTPUT), uart_output, NULL);
    avr_irq_register_notify(
        avr_io_getirq(avr, uart, UART_IRQ_OUT_XOFF), uart_flow, (void *)(uintptr_t)&off);
    avr_irq_register_notify(
        avr_io_getirq(avr, uart, UART_IRQ_OUT_XON), uart_flow, (void *)(uintptr_t)&on);
}

/* Hands on the bytes of standard input while the serial port can take them. */
static void feed_uart(avr_t *avr)
{
    static int is_open = 1;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    uint8_t byte;
    while (is_open && uart_is_ready && poll(&input, 1, 0) > 0) {
        if (read(STDIN_FILENO, &byte, 1) != 1) {
            is_open = 0;
            return;
        }
        avr_raise_irq(
            avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT), byte);
    }
}

static void log_errors(avr_t *avr, const int level, const char *format, va_list arguments)
{
    (void)avr;
    if (level <= LOG_ERROR) {
        vfprintf(stderr, format, arguments);
    }
}

/* Where the function that starts now returns to: the words on top of the stack, high byte first. */
static uint64_t return_address(const avr_t *avr)
{
    uint32_t stack = (uint32_t)(avr->data[R_SPL] | (avr->data[R_SPH] << 8));
    uint64_t words = 0;
    for (uint32_t i = 1; i <= avr->address_size && stack + i <= avr->ramend; i++) {
        words = (words << 8) | avr->data[stack + i];
    }
    return words * 2;
}

/* Runs to the end and returns the exit status. */
static int run(avr_t *avr, struct profile *profile, uint32_t variables_end)
{
    unsigned long steps = 0;
    for (;;) {
        uint32_t pc = avr->pc;
        avr_cycle_count_t before = avr->cycle;
        long active = OUTSIDE;
        if (profile->count != 0) {
            active = regions_step(profile, pc, regions_find(profile, pc), return_address(avr));
        }
        int state = avr_run(avr);
        if (active != OUTSIDE) {
            profile->regions[active].instructions++;
            profile->regions[active].cycles += avr->cycle - before;
        }
        if (state == cpu_Done) {
            return avr->data[GPIOR0_ADDRESS];
        }
        if (state == cpu_Crashed) {
            return STATUS_CRASHED;
        }
        uint32_t stack = (uint32_t)(avr->data[R_SPL] | (avr->data[R_SPH] << 8));
        if (stack != 0 && stack < variables_end && stack > avr->ioend) {
            fprintf(stderr, "fault: the stack reached the variables\n");
            return STATUS_STACK;
        }
        if (steps++ % INPUT_INTERVAL == 0) {
            feed_uart(avr);
        }
    }
}

static int usage(const char *reason)
{
    fprintf(stderr, "avr_runner: %s\n", reason);
    return STATUS_USAGE;
}

int main(int argc, char **argv)
{
    struct profile profile = {.count = 0};
    const char *regions = NULL;
    const char *out = NULL;
    uint64_t limit = 1;
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (strcmp(argv[i], "--regions") == 0) {
            regions = argv[i + 1];
        } else if (strcmp(argv[i], "--out") == 0) {
            out = argv[i + 1];
        } else if (strcmp(argv[i], "--limit") == 0) {
            limit = strtoull(argv[i + 1], NULL, 10);
        } else {
            return usage("unknown option");
        }
    }
    if (argc - i != 3 || (regions == NULL) != (out == NULL)) {
        return usage("[--regions FILE --out FILE --limit N] MCU HERTZ PROGRAM.elf");
    }
    if (regions != NULL && !regions_read(&profile, regions, limit)) {
        return usage("the file of regions cannot be read");
    }
    avr_global_logger_set(log_errors);
    elf_firmware_t firmware;
    memset(&firmware, 0, sizeof firmware);
    if (elf_read_firmware(argv[i + 2], &firmware) != 0) {
        return usage("the program cannot be read");
    }
    avr_t *avr = avr_make_mcu_by_name(argv[i]);
    if (avr == NULL) {
        return usage("libsimavr does not know this MCU");
    }
    avr_init(avr);
    avr_load_firmware(avr, &firmware);
    avr->frequency = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    connect_uart(avr);
    int status = run(avr, &profile, avr->ioend + 1u + firmware.datasize + firmware.bsssize);
    if (out != NULL) {
        FILE *file = fopen(out, "w");
        if (file == NULL) {
            return usage("the result cannot be written");
        }
        regions_write(&profile, file);
        fclose(file);
    }
    return status;
}
