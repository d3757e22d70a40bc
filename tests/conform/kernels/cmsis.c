/* The kernels in the interface of CMSIS-NN. */
#include "arm_nnfunctions.h"
#include "kernels.h"

static struct tensor dims(const cmsis_nn_dims *d)
{
    return (struct tensor){d->n, d->h, d->w, d->c};
}

static struct layer convolution(const cmsis_nn_conv_params *p, const cmsis_nn_dims *in,
                                const cmsis_nn_dims *window, const cmsis_nn_dims *out)
{
    return (struct layer){dims(in), {1, window->h, window->w, window->c}, dims(out),
        p->stride.h, p->stride.w, p->padding.h, p->padding.w, p->dilation.h, p->dilation.w,
        -p->input_offset, p->output_offset, p->activation.min, p->activation.max, NULL, NULL, NULL};
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(
        const cmsis_nn_conv_params *params, const cmsis_nn_dims *in, const cmsis_nn_dims *window,
        const cmsis_nn_dims *out)
{
    const struct layer l = convolution(params, in, window, out);
    return patch_bytes(&l);
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(
        const cmsis_nn_context *context, const cmsis_nn_conv_params *params,
        const cmsis_nn_per_channel_quant_params *factors, const cmsis_nn_dims *in, const int8_t *x,
        const cmsis_nn_dims *window, const int8_t *weights, const cmsis_nn_dims *bias_dims,
        const int32_t *bias, const cmsis_nn_dims *out, int8_t *y)
{
    struct layer l = convolution(params, in, window, out);
    (void)bias_dims;
    l.multipliers = factors->multiplier;
    l.shifts = factors->shift;
    l.bias = bias;
    convolve(&l, x, weights, context->buf, y);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_depthwise_conv_s8(
        const cmsis_nn_context *context, const cmsis_nn_dw_conv_params *p,
        const cmsis_nn_per_channel_quant_params *factors, const cmsis_nn_dims *in, const int8_t *x,
        const cmsis_nn_dims *window, const int8_t *weights, const cmsis_nn_dims *bias_dims,
        const int32_t *bias, const cmsis_nn_dims *out, int8_t *y)
{
    const struct layer l = {dims(in), {p->ch_mult, window->h, window->w, 1}, dims(out),
        p->stride.h, p->stride.w, p->padding.h, p->padding.w, p->dilation.h, p->dilation.w,
        -p->input_offset, p->output_offset, p->activation.min, p->activation.max,
        factors->multiplier, factors->shift, bias};
    (void)context;
    (void)bias_dims;
    convolve_depthwise(&l, x, weights, y);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_fully_connected_per_channel_s8(
        const cmsis_nn_context *context, const cmsis_nn_fc_params *p,
        const cmsis_nn_per_channel_quant_params *factors, const cmsis_nn_dims *in, const int8_t *x,
        const cmsis_nn_dims *window, const int8_t *weights, const cmsis_nn_dims *bias_dims,
        const int32_t *bias, const cmsis_nn_dims *out, int8_t *y)
{
    const struct layer l = {dims(in), {1, 1, 1, window->n}, dims(out), 1, 1, 0, 0, 1, 1,
        -p->input_offset, p->output_offset, p->activation.min, p->activation.max,
        factors->multiplier, factors->shift, bias};
    (void)context;
    (void)bias_dims;
    multiply_rows(&l, x, weights, y);
    return ARM_CMSIS_NN_SUCCESS;
}

static struct layer pooling(const cmsis_nn_pool_params *p, const cmsis_nn_dims *in,
                            const cmsis_nn_dims *window, const cmsis_nn_dims *out)
{
    return (struct layer){dims(in), {1, window->h, window->w, 1}, dims(out), p->stride.h,
        p->stride.w, p->padding.h, p->padding.w, 1, 1, 0, 0, p->activation.min, p->activation.max,
        NULL, NULL, NULL};
}

int32_t arm_avgpool_s8_get_buffer_size(int width, int channels)
{
    (void)width;
    (void)channels;
    return 0;
}

arm_cmsis_nn_status arm_avgpool_s8(
        const cmsis_nn_context *context, const cmsis_nn_pool_params *params, const cmsis_nn_dims *in,
        const int8_t *x, const cmsis_nn_dims *window, const cmsis_nn_dims *out, int8_t *y)
{
    const struct layer l = pooling(params, in, window, out);
    (void)context;
    pool_average(&l, x, y);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_max_pool_s8(
        const cmsis_nn_context *context, const cmsis_nn_pool_params *params, const cmsis_nn_dims *in,
        const int8_t *x, const cmsis_nn_dims *window, const cmsis_nn_dims *out, int8_t *y)
{
    const struct layer l = pooling(params, in, window, out);
    (void)context;
    pool_max(&l, x, y);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_elementwise_add_s8(
        const int8_t *x0, const int8_t *x1, int32_t offset0, int32_t multiplier0, int32_t shift0,
        int32_t offset1, int32_t multiplier1, int32_t shift1, int32_t left, int8_t *y, int32_t offset,
        int32_t multiplier, int32_t shift, int32_t low, int32_t high, int32_t count)
{
    const struct layer l = {.low = low, .high = high};
    add(&l, (struct operand){-offset0, multiplier0, shift0},
        (struct operand){-offset1, multiplier1, shift1}, (struct operand){offset, multiplier, shift},
        left, x0, x1, y, count);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_elementwise_mul_s8(
        const int8_t *x0, const int8_t *x1, int32_t offset0, int32_t offset1, int8_t *y,
        int32_t offset, int32_t multiplier, int32_t shift, int32_t low, int32_t high, int32_t count)
{
    const struct layer l = {.low = low, .high = high};
    multiply(&l, (struct operand){-offset0, 0, 0}, (struct operand){-offset1, 0, 0},
             (struct operand){offset, multiplier, shift}, x0, x1, y, count);
    return ARM_CMSIS_NN_SUCCESS;
}

void arm_softmax_s8(const int8_t *x, int32_t rows, int32_t width, int32_t multiplier, int32_t shift,
                    int32_t difference_min, int8_t *y)
{
    softmax(x, rows, width, multiplier, shift, difference_min, y);
}
