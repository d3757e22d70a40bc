/* models.h: the models of this project as a table, so that one application serves them all. */
#ifndef MODELS_H
#define MODELS_H

#include <stdint.h>

enum element {
    ELEMENT_BOOL,
    ELEMENT_INT8,
    ELEMENT_UINT8,
    ELEMENT_INT16,
    ELEMENT_UINT16,
    ELEMENT_INT32,
    ELEMENT_UINT32,
    ELEMENT_INT64,
    ELEMENT_UINT64,
    ELEMENT_FLOAT32,
    ELEMENT_FLOAT64
};

/* An input or output.
 *
 *   data       its memory, elements times the size of one
 *   samples    values of all runs, one after another, a PLATFORM_CONSTANT; the expected ones
 *              for an output; NULL if there are none
 *   tolerance  allowed difference of floats, a share of the run's largest expected magnitude
 */
struct tensor {
    const char *name;
    enum element element;
    uint32_t elements;
    void *data;
    const void *samples;
    float tolerance;
};

/* A model, as this program runs it.
 *
 *   sample_count  samples for which there are values
 *   steps         runs of each sample, one after another, of a model that keeps something from one
 *                 to the next; 0 for others, of which each sample is one run
 *   begin         makes such a model forget what it has seen; NULL for others
 */
struct model {
    const char *name;
    const struct tensor *inputs;
    const struct tensor *outputs;
    uint8_t input_count;
    uint8_t output_count;
    uint16_t sample_count;
    uint16_t steps;
    int32_t (*begin)(void);
    int32_t (*run)(void);
    const char *(*status_text)(int32_t status);
};

extern const struct model models[];
extern const uint8_t model_count;

/* Size of an element in bytes. */
uint8_t element_bytes(enum element element);

#endif /* MODELS_H */
