/* regions.h: which layer function an instruction belongs to.
 *
 * A model's run function and its layer functions are address ranges. Code outside all of them, a
 * helper of the compiler's or memcpy, belongs to the range that was active when it was called. An
 * inference starts at the first instruction of a run function and ends at the address that the
 * function returns to; nothing is counted before, after and between.
 */
#ifndef REGIONS_H
#define REGIONS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OUTSIDE (-1)

struct region {
    uint64_t start;
    uint64_t end; /* behind the last byte */
    int is_run;
    uint64_t instructions;
    uint64_t cycles;
    uint64_t calls;
};

struct profile {
    struct region *regions;
    long count;
    long active;
    uint64_t return_address;
    uint64_t inferences;
    uint64_t limit; /* inferences to count */
};

/* Reads lines "START END run|layer", addresses in hexadecimal; 0 if the file is not like that. */
static int regions_read(struct profile *profile, const char *path, uint64_t limit)
{
    FILE *file = fopen(path, "r");
    unsigned long long start;
    unsigned long long end;
    char kind[8];
    profile->regions = NULL;
    profile->count = 0;
    profile->active = OUTSIDE;
    profile->inferences = 0;
    profile->limit = limit;
    if (file == NULL) {
        return 0;
    }
    while (fscanf(file, "%llx %llx %7s", &start, &end, kind) == 3) {
        size_t bytes = (size_t)(profile->count + 1) * sizeof(struct region);
        struct region *more = realloc(profile->regions, bytes);
        if (more == NULL) {
            break;
        }
        profile->regions = more;
        profile->regions[profile->count] = (struct region){
            .start = start, .end = end, .is_run = kind[0] == 'r'};
        profile->count++;
    }
    int is_complete = feof(file) && profile->count > 0;
    fclose(file);
    return is_complete;
}

/* The region that an address lies in, or OUTSIDE. */
static long regions_find(const struct profile *profile, uint64_t address)
{
    for (long i = 0; i < profile->count; i++) {
        if (address >= profile->regions[i].start && address < profile->regions[i].end) {
            return i;
        }
    }
    return OUTSIDE;
}

/* Called before code at `address`, which lies in region `found`, runs; `return_address` is where a
 * function that starts here returns to. Returns the region to count for, or OUTSIDE. */
static long regions_step(
    struct profile *profile, uint64_t address, long found, uint64_t return_address)
{
    if (profile->active != OUTSIDE && address == profile->return_address) {
        profile->active = OUTSIDE;
        profile->inferences++;
    }
    if (found != OUTSIDE) {
        struct region *region = &profile->regions[found];
        int is_entry = address == region->start;
        if (profile->active == OUTSIDE) {
            if (!region->is_run || !is_entry || profile->inferences >= profile->limit) {
                return OUTSIDE;
            }
            profile->return_address = return_address;
        }
        region->calls += (uint64_t)is_entry;
        profile->active = found;
    }
    return profile->active;
}

/* Writes "inferences N", then "region INDEX INSTRUCTIONS CYCLES CALLS" for each. */
static void regions_write(const struct profile *profile, FILE *file)
{
    fprintf(file, "inferences %llu\n", (unsigned long long)profile->inferences);
    for (long i = 0; i < profile->count; i++) {
        const struct region *region = &profile->regions[i];
        fprintf(file, "region %ld %llu %llu %llu\n", i, (unsigned long long)region->instructions,
            (unsigned long long)region->cycles, (unsigned long long)region->calls);
    }
}

#endif /* REGIONS_H */
