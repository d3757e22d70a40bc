/* layers.h: how many layers the models have. */
#ifndef LAYERS_H
#define LAYERS_H

#include <stdint.h>

/* By the number of the model. */
extern const uint16_t layer_counts[];

/* The ticks of the layers of the model that ran last; as many as the largest model has layers. */
extern uint32_t layer_ticks[];
extern const uint16_t layer_ticks_bytes;

#endif /* LAYERS_H */
