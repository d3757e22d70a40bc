/* layers.h: the layers of the models. */
#ifndef LAYERS_H
#define LAYERS_H

#include <stdint.h>

/* By the number of the model. */
extern const uint16_t layer_counts[];

/* Bytes of the largest output of each layer of a model. */
extern const uint32_t *const layer_bytes[];

/* The ticks of the layers of the model that ran last; as many as the largest model has layers. */
extern uint32_t layer_ticks[];
extern const uint16_t layer_ticks_bytes;

#endif /* LAYERS_H */
