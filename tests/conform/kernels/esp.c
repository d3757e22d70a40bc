/* The kernels in the interface of ESP-NN. */
#include "esp_nn.h"
#include "kernels.h"

static void *patch;

static struct tensor dims(const data_dims_t *d)
{
    return (struct tensor){1, d->height, d->width, d->channels};
}

static struct layer convolution(const conv_params_t *p, const data_dims_t *in,
                                const data_dims_t *window, const data_dims_t *out)
{
    return (struct layer){dims(in), dims(window), dims(out), p->stride.height, p->stride.width,
        p->padding.height, p->padding.width, 1, 1, -p->in_offset, p->out_offset,
        p->activation.min, p->activation.max, NULL, NULL, NULL};
}

int esp_nn_get_conv_scratch_size(const data_dims_t *in, const data_dims_t *window,
                                 const data_dims_t *out, const conv_params_t *p)
{
    const struct layer l = convolution(p, in, window, out);
    return patch_bytes(&l);
}

void esp_nn_set_conv_scratch_buf(void *buffer)
{
    patch = buffer;
}

void esp_nn_conv_s8(const data_dims_t *in, const int8_t *x, const data_dims_t *window,
                    const int8_t *weights, const int32_t *bias, const data_dims_t *out, int8_t *y,
                    const conv_params_t *p, const quant_data_t *factors)
{
    struct layer l = convolution(p, in, window, out);
    l.multipliers = factors->mult;
    l.shifts = factors->shift;
    l.bias = bias;
    convolve(&l, x, weights, patch, y);
}

int esp_nn_get_depthwise_conv_scratch_size(const data_dims_t *in, const data_dims_t *window,
                                           const data_dims_t *out, const dw_conv_params_t *p)
{
    (void)in;
    (void)window;
    (void)out;
    (void)p;
    return 0;
}

void esp_nn_set_depthwise_conv_scratch_buf(void *buffer)
{
    (void)buffer;
}

void esp_nn_depthwise_conv_s8(const data_dims_t *in, const int8_t *x, const data_dims_t *window,
                              const int8_t *weights, const int32_t *bias, const data_dims_t *out,
                              int8_t *y, const dw_conv_params_t *p, const quant_data_t *factors)
{
    const struct layer l = {dims(in), {p->ch_mult, window->height, window->width, 1}, dims(out),
        p->stride.height, p->stride.width, p->padding.height, p->padding.width, 1, 1, -p->in_offset,
        p->out_offset, p->activation.min, p->activation.max, factors->mult, factors->shift, bias};
    convolve_depthwise(&l, x, weights, y);
}

void esp_nn_fully_connected_per_ch_s8(
        const int8_t *x, int32_t offset, uint16_t length, const int8_t *weights, int32_t weight_offset,
        const int32_t *bias, int8_t *y, uint16_t channels, int32_t out_offset, const int32_t *shifts,
        const int32_t *multipliers, int32_t low, int32_t high)
{
    const struct layer l = {{1, 1, 1, length}, {1, 1, 1, length}, {1, 1, 1, channels}, 1, 1, 0, 0,
        1, 1, -offset, out_offset, low, high, multipliers, shifts, bias};
    (void)weight_offset;
    multiply_rows(&l, x, weights, y);
}

static struct layer pooling(const uint16_t *in, const uint16_t *out, const uint16_t *stride,
                            const uint16_t *window, const uint16_t *pad, int32_t low, int32_t high,
                            uint16_t channels)
{
    return (struct layer){{1, in[1], in[0], channels}, {1, window[1], window[0], 1},
        {1, out[1], out[0], channels}, stride[1], stride[0], pad[1], pad[0], 1, 1, 0, 0, low, high,
        NULL, NULL, NULL};
}

void esp_nn_avg_pool_s8(const int8_t *x, uint16_t in_w, uint16_t in_h, int8_t *y, uint16_t out_w,
                        uint16_t out_h, uint16_t stride_w, uint16_t stride_h, uint16_t window_w,
                        uint16_t window_h, uint16_t pad_w, uint16_t pad_h, int32_t low, int32_t high,
                        uint16_t channels)
{
    const uint16_t in[] = {in_w, in_h}, out[] = {out_w, out_h}, stride[] = {stride_w, stride_h};
    const uint16_t window[] = {window_w, window_h}, pad[] = {pad_w, pad_h};
    const struct layer l = pooling(in, out, stride, window, pad, low, high, channels);
    pool_average(&l, x, y);
}

void esp_nn_max_pool_s8(const int8_t *x, uint16_t in_w, uint16_t in_h, int8_t *y, uint16_t out_w,
                        uint16_t out_h, uint16_t stride_w, uint16_t stride_h, uint16_t window_w,
                        uint16_t window_h, uint16_t pad_w, uint16_t pad_h, int32_t low, int32_t high,
                        uint16_t channels)
{
    const uint16_t in[] = {in_w, in_h}, out[] = {out_w, out_h}, stride[] = {stride_w, stride_h};
    const uint16_t window[] = {window_w, window_h}, pad[] = {pad_w, pad_h};
    const struct layer l = pooling(in, out, stride, window, pad, low, high, channels);
    pool_max(&l, x, y);
}

void esp_nn_add_elementwise_s8(
        const int8_t *x0, const int8_t *x1, int32_t offset0, int32_t offset1, int32_t multiplier0,
        int32_t multiplier1, int32_t shift0, int32_t shift1, int32_t left, int8_t *y, int32_t offset,
        int32_t multiplier, int32_t shift, int32_t low, int32_t high, int32_t count)
{
    const struct layer l = {.low = low, .high = high};
    add(&l, (struct operand){-offset0, multiplier0, shift0},
        (struct operand){-offset1, multiplier1, shift1}, (struct operand){offset, multiplier, shift},
        left, x0, x1, y, count);
}

void esp_nn_mul_elementwise_s8(const int8_t *x0, const int8_t *x1, int32_t offset0, int32_t offset1,
                               int8_t *y, int32_t offset, int32_t multiplier, int32_t shift,
                               int32_t low, int32_t high, int32_t count)
{
    const struct layer l = {.low = low, .high = high};
    multiply(&l, (struct operand){-offset0, 0, 0}, (struct operand){-offset1, 0, 0},
             (struct operand){offset, multiplier, shift}, x0, x1, y, count);
}

int32_t esp_nn_get_softmax_scratch_size(int32_t width, int32_t height)
{
    (void)width;
    (void)height;
    return 0;
}

void esp_nn_set_softmax_scratch_buf(void *buffer)
{
    (void)buffer;
}

void esp_nn_softmax_s8(const int8_t *x, int32_t height, int32_t width, int32_t multiplier,
                       int32_t shift, int32_t difference_min, int8_t *y)
{
    softmax(x, height, width, multiplier, shift, difference_min, y);
}
