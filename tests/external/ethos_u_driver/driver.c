/* A stand-in for Arm's driver and for the NPU behind it.
 *
 * It prints what it is asked, checks what the real one checks, and computes what the commands say
 * behind their header: pairs of bytes are the places of an input and an output in the scratch, in
 * units of 16 bytes, and their size. Each output byte is an input byte exclusive or a weight. What
 * else there is in scratch and fast scratch is overwritten.
 */
#include "ethosu_driver.h"

#include <stdio.h>
#include <string.h>

extern int failure;
extern int nothing_free;

static uint8_t own_memory[4096];
static struct ethosu_driver drivers[1];
static int reserved;

struct ethosu_driver *ethosu_reserve_driver(void);
void ethosu_release_driver(struct ethosu_driver *drv);

struct ethosu_driver *ethosu_reserve_driver(void)
{
    printf("reserve\n");
    if (nothing_free) {
        return NULL;
    }
    reserved++;
    return drivers;
}

void ethosu_release_driver(struct ethosu_driver *drv)
{
    printf("release%s\n", drv == drivers && reserved == 1 ? "" : " of what is not reserved");
    reserved--;
}

void give_fast_memory(size_t size);
void give_fast_memory(size_t size)
{
    drivers->fast_memory = (uint64_t)(uintptr_t)own_memory;
    drivers->fast_memory_size = size;
}

static uint8_t *at(uint64_t address)
{
    return (uint8_t *)(uintptr_t)address;
}

static int compute(
    const uint8_t *commands, int size, const uint64_t *addresses, const size_t *sizes)
{
    uint8_t result[256];
    const uint8_t *weights = at(addresses[0]);
    uint8_t *scratch = at(addresses[1]);
    const size_t bytes = commands[6];
    if (size < 7 || bytes > sizeof result) {
        return -3;
    }
    for (size_t i = 0; i < bytes; i++) {
        result[i] = scratch[commands[4] * 16u + i] ^ weights[i % sizes[0]];
    }
    memset(scratch, 0xA5, sizes[1]);
    memset(at(addresses[2]), 0x5A, sizes[2]);
    memcpy(&scratch[commands[5] * 16u], result, bytes);
    return 0;
}

static int run(
    const struct ethosu_driver *drv, const void *data, int size, const uint64_t *addresses,
    const size_t *sizes, int count)
{
    uint64_t used[8];
    printf("invoke %d bytes, %d addresses:", size, count);
    for (int i = 0; i < count; i++) {
        printf(" %d", (int)sizes[i]);
    }
    printf("\n");
    if (drv != drivers || count > 8 || memcmp(data, "COP1", 4) != 0) {
        return -2;
    }
    if ((uintptr_t)data % 16 != 0) {
        printf("commands are not aligned\n");
        return -2;
    }
    for (int i = 0; i < count; i++) {
        used[i] = addresses[i];
        if (addresses[i] % 16 != 0) {
            printf("address %d is not aligned\n", i);
            return -2;
        }
        if (i > 2) {
            printf("address %d is byte %d of the scratch\n", i, (int)(addresses[i] - addresses[1]));
        }
    }
    if (drv->fast_memory != 0) {
        used[2] = drv->fast_memory;
    }
    return failure != 0 ? failure : compute(data, size, used, sizes);
}

#ifdef OLD_DRIVER
int ethosu_invoke(
    struct ethosu_driver *drv, const void *custom_data_ptr, const int custom_data_size,
    const uint64_t *base_addr, const size_t *base_addr_size, const int num_base_addr)
{
    return run(drv, custom_data_ptr, custom_data_size, base_addr, base_addr_size, num_base_addr);
}
#else
int ethosu_invoke_v3(
    struct ethosu_driver *drv, const void *custom_data_ptr, const int custom_data_size,
    uint64_t *const base_addr, const size_t *base_addr_size, const int num_base_addr,
    void *user_arg)
{
    if (user_arg != NULL) {
        return -4;
    }
    return run(drv, custom_data_ptr, custom_data_size, base_addr, base_addr_size, num_base_addr);
}
#endif
