/* Plain kernels on int8, to be broken: what both interfaces of the tests call. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stddef.h>
#include <stdint.h>

struct tensor {
    int32_t n, h, w, c;
};

struct layer {
    struct tensor in, window, out; /* window.n is the depth multiplier */
    int32_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
    int32_t in_zero, out_zero, low, high;
    const int32_t *multipliers, *shifts, *bias;
};

struct operand {
    int32_t zero, multiplier, shift;
};

int32_t patch_bytes(const struct layer *l);
void convolve(const struct layer *l, const int8_t *x, const int8_t *weights, int8_t *patch, int8_t *y);
void convolve_depthwise(const struct layer *l, const int8_t *x, const int8_t *weights, int8_t *y);
void multiply_rows(const struct layer *l, const int8_t *x, const int8_t *weights, int8_t *y);
void pool_average(const struct layer *l, const int8_t *x, int8_t *y);
void pool_max(const struct layer *l, const int8_t *x, int8_t *y);
void add(const struct layer *l, struct operand a, struct operand b, struct operand sum, int32_t left,
         const int8_t *x0, const int8_t *x1, int8_t *y, int32_t count);
void multiply(const struct layer *l, struct operand a, struct operand b, struct operand product,
              const int8_t *x0, const int8_t *x1, int8_t *y, int32_t count);
void softmax(const int8_t *x, int32_t rows, int32_t width, int32_t multiplier, int32_t shift,
             int32_t difference_min, int8_t *y);

#endif
