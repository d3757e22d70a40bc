/* qemu_profiler.c: a TCG plugin for QEMU that counts the instructions of each layer.
 *
 * Arguments: regions=FILE (see regions.h), out=FILE, limit=N inferences to count.
 * Besides the lines of regions.h the result has, for each block of code that ran inside an
 * inference, "block REGION START END INSTRUCTIONS EXECUTIONS TAKEN" with addresses in hexadecimal;
 * TAKEN says how often something else than the code behind it came next.
 *
 * Distributions package QEMU without the header of the plugin interface: what is used of version 1
 * is declared here, from its documentation ("QEMU TCG Plugins").
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "regions.h"

typedef uint64_t qemu_plugin_id_t;
struct qemu_info {
    const char *target_name; /* the first member; the others are not used */
};
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

typedef void (*translate_callback)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*execute_callback)(unsigned int, void *);
typedef void (*exit_callback)(qemu_plugin_id_t, void *);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translate_callback);
void qemu_plugin_register_vcpu_tb_exec_cb(
    struct qemu_plugin_tb *, execute_callback, enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, exit_callback, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
const uint8_t *qemu_plugin_insn_data(const struct qemu_plugin_insn *);

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int qemu_plugin_version = 1;

struct tally {
    uint64_t executions;
    uint64_t taken;
};

/* Code that QEMU translated as one piece; it runs from its start to its end. */
struct block {
    uint64_t start;
    uint64_t end;
    uint64_t instructions;
    long region;
    int is_call; /* its last instruction calls a function */
    struct tally *tallies; /* by the region that was active; NULL before the first */
    struct block *next;
};

static struct profile profile;
static struct block *blocks;
static const char *out_path;
static const struct block *last_block; /* that was counted, and what for */
static struct tally *last_tally;
static int (*is_call)(const uint8_t *instruction, size_t size);
static size_t (*size_of)(const uint8_t *instruction);

/* Return addresses of the functions that are active: a function that jumps into another leaves
 * its own return address to it, so that what was called last need not be where this returns to.
 * What is too deep is forgotten first. */
#define DEPTH 256
static uint64_t returns[DEPTH];
static uint32_t depth;

static uint32_t halfword(const uint8_t *bytes)
{
    return (uint32_t)(bytes[0] | (bytes[1] << 8));
}

/* Thumb: BL, and BLX of a register. */
static int is_arm_call(const uint8_t *instruction, size_t size)
{
    uint32_t first = halfword(instruction);
    if (size == 2) {
        return (first & 0xFF87u) == 0x4780u;
    }
    return (first & 0xF800u) == 0xF000u && (halfword(instruction + 2) & 0xD000u) == 0xD000u;
}

/* RISC-V: JAL and JALR that link to ra, and their compressed forms on RV32. */
static int is_riscv_call(const uint8_t *instruction, size_t size)
{
    uint32_t first = halfword(instruction);
    if (size == 2) {
        return (first & 0xE003u) == 0x2001u || ((first & 0xF07Fu) == 0x9002u && first != 0x9002u);
    }
    return (first & 0xFFFu) == 0x0EFu || (first & 0xFFFu) == 0x0E7u;
}

/* QEMU 7.2 counts the first half of an instruction that crosses a page to the one before it, and
 * then leaves it to the next block: the length must come from the instruction itself. */
static size_t arm_size(const uint8_t *instruction)
{
    return halfword(instruction) >= 0xE800u ? 4 : 2;
}

static size_t riscv_size(const uint8_t *instruction)
{
    return (halfword(instruction) & 3u) == 3u ? 4 : 2;
}

static void push_return(uint64_t address)
{
    if (depth == DEPTH) {
        memmove(returns, returns + 1, sizeof returns - sizeof returns[0]);
        depth--;
    }
    returns[depth] = address;
    depth++;
}

/* Forgets the functions that have returned when code at this address runs. */
static void pop_returns(uint64_t address)
{
    for (uint32_t i = depth; i > 0; i--) {
        if (returns[i - 1] == address) {
            depth = i - 1;
            return;
        }
    }
}

static void execute(unsigned int cpu, void *data)
{
    struct block *block = data;
    pop_returns(block->start);
    uint64_t return_address = depth > 0 ? returns[depth - 1] : 0;
    long active = regions_step(&profile, block->start, block->region, return_address);
    (void)cpu;
    if (block->is_call) {
        push_return(block->end);
    }
    if (last_tally != NULL && block->start != last_block->end) {
        last_tally->taken++;
    }
    last_tally = NULL;
    if (active == OUTSIDE) {
        return;
    }
    profile.regions[active].instructions += block->instructions;
    if (block->tallies == NULL) {
        block->tallies = calloc((size_t)profile.count, sizeof *block->tallies);
    }
    if (block->tallies != NULL) {
        last_block = block;
        last_tally = &block->tallies[active];
        last_tally->executions++;
    }
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t count = qemu_plugin_tb_n_insns(tb);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);
    const uint8_t *code = qemu_plugin_insn_data(last);
    struct block *block = calloc(1, sizeof *block);
    (void)id;
    if (block == NULL) {
        return;
    }
    block->start = qemu_plugin_tb_vaddr(tb);
    block->end = qemu_plugin_insn_vaddr(last) + size_of(code);
    block->instructions = count;
    block->is_call = is_call(code, size_of(code));
    block->region = regions_find(&profile, block->start);
    block->next = blocks;
    blocks = block;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, execute, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void finish(qemu_plugin_id_t id, void *data)
{
    FILE *file = fopen(out_path, "w");
    (void)id;
    (void)data;
    if (file == NULL) {
        return;
    }
    regions_write(&profile, file);
    for (const struct block *block = blocks; block != NULL; block = block->next) {
        for (long i = 0; block->tallies != NULL && i < profile.count; i++) {
            const struct tally *tally = &block->tallies[i];
            if (tally->executions != 0) {
                fprintf(file,
                    "block %ld %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i,
                    block->start, block->end, block->instructions, tally->executions,
                    tally->taken);
            }
        }
    }
    fclose(file);
}

EXPORTED int qemu_plugin_install(
    qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
    const char *regions_path = NULL;
    uint64_t limit = 1;
    int is_arm = strcmp(info->target_name, "arm") == 0;
    is_call = is_arm ? is_arm_call : is_riscv_call;
    size_of = is_arm ? arm_size : riscv_size;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "regions=", 8) == 0) {
            regions_path = argv[i] + 8;
        } else if (strncmp(argv[i], "out=", 4) == 0) {
            out_path = argv[i] + 4;
        } else if (strncmp(argv[i], "limit=", 6) == 0) {
            limit = strtoull(argv[i] + 6, NULL, 10);
        }
    }
    if (out_path == NULL || regions_path == NULL ||
        !regions_read(&profile, regions_path, limit)) {
        fprintf(stderr, "qemu_profiler: needs regions=FILE and out=FILE\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, finish, NULL);
    return 0;
}
