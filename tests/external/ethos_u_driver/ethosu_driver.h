/* A stand-in for the header of Arm's driver, in two generations: with OLD_DRIVER that of 21.05. */
#ifndef ETHOSU_DRIVER_H
#define ETHOSU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

struct ethosu_driver {
    uint64_t fast_memory;
    size_t fast_memory_size;
};

struct ethosu_driver *ethosu_reserve_driver(void);
void ethosu_release_driver(struct ethosu_driver *drv);

#ifdef OLD_DRIVER
int ethosu_invoke(
    struct ethosu_driver *drv, const void *custom_data_ptr, const int custom_data_size,
    const uint64_t *base_addr, const size_t *base_addr_size, const int num_base_addr);
#else
int ethosu_invoke_v3(
    struct ethosu_driver *drv, const void *custom_data_ptr, const int custom_data_size,
    uint64_t *const base_addr, const size_t *base_addr_size, const int num_base_addr,
    void *user_arg);
#define ethosu_invoke(drv, data, size, base_addr, base_addr_size, count) \
    ethosu_invoke_v3(drv, data, size, base_addr, base_addr_size, count, 0)
#endif

static inline int ethosu_invoke_v2(
    const void *custom_data_ptr, const int custom_data_size, uint64_t *const base_addr,
    const size_t *base_addr_size, const int num_base_addr)
{
    struct ethosu_driver *drv = ethosu_reserve_driver();
    const int result = ethosu_invoke(
        drv, custom_data_ptr, custom_data_size, base_addr, base_addr_size, num_base_addr);
    ethosu_release_driver(drv);
    return result;
}

#endif
