#include "arm_nnfunctions.h"

int32_t arm_avgpool_s8_get_buffer_size(const int dim_dst_width, const int ch_src)
{
    return dim_dst_width > 0 ? 4 * ch_src : 0;
}

static arm_cmsis_nn_status pool(
        const cmsis_nn_pool_params *p, const cmsis_nn_dims *in, const int8_t *x,
        const cmsis_nn_dims *window, const cmsis_nn_dims *out, int8_t *result, int is_average)
{
    for (int32_t i = 0; i < out->h * out->w * out->c; i++) {
        const int32_t top = i / out->c / out->w * p->stride.h - p->padding.h;
        const int32_t left = i / out->c % out->w * p->stride.w - p->padding.w;
        int32_t sum = 0, count = 0, largest = -128;
        for (int32_t j = 0; j < window->h * window->w; j++) {
            const int32_t y = top + j / window->w;
            const int32_t z = left + j % window->w;
            if (y >= 0 && y < in->h && z >= 0 && z < in->w) {
                const int32_t value = x[(y * in->w + z) * in->c + i % out->c];
                largest = value > largest ? value : largest;
                sum += value;
                count++;
            }
        }
        if (count == 0) {
            return ARM_CMSIS_NN_ARG_ERROR;
        }
        sum = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
        result[i] = arm_nn_stand_in_clamped(
                is_average ? sum : largest, p->activation.min, p->activation.max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_avgpool_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_pool_params *pool_params,
        const cmsis_nn_dims *input_dims, const int8_t *input_data,
        const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    if (ctx->size < 4 * input_dims->c) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return pool(pool_params, input_dims, input_data, filter_dims, output_dims, output_data, 1);
}

arm_cmsis_nn_status arm_max_pool_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_pool_params *pool_params,
        const cmsis_nn_dims *input_dims, const int8_t *input_data,
        const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    (void)ctx;
    return pool(pool_params, input_dims, input_data, filter_dims, output_dims, output_data, 0);
}
