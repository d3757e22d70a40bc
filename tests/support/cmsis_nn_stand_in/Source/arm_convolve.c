#include "arm_nnfunctions.h"

int32_t arm_convolve_wrapper_s8_get_buffer_size(
        const cmsis_nn_conv_params *conv_params, const cmsis_nn_dims *input_dims,
        const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    (void)conv_params;
    (void)output_dims;
    return filter_dims->h * filter_dims->w * input_dims->c;
}

/* A patch is copied to the buffer first, so that too small a buffer would be noticed. */
static void patch_at(
        int8_t *patch, const cmsis_nn_conv_params *p, const cmsis_nn_dims *in, const int8_t *x,
        const cmsis_nn_dims *f, int32_t row, int32_t col)
{
    for (int32_t i = 0; i < f->h; i++) {
        for (int32_t j = 0; j < f->w; j++) {
            const int32_t y = row * p->stride.h - p->padding.h + i * p->dilation.h;
            const int32_t z = col * p->stride.w - p->padding.w + j * p->dilation.w;
            for (int32_t c = 0; c < in->c; c++) {
                const int inside = y >= 0 && y < in->h && z >= 0 && z < in->w;
                *patch++ = (int8_t)(inside ? x[(y * in->w + z) * in->c + c] : -p->input_offset);
            }
        }
    }
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_conv_params *conv_params,
        const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims,
        const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
        const cmsis_nn_dims *bias_dims, const int32_t *bias_data,
        const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    int8_t *patch = ctx->buf;
    const int32_t taps = filter_dims->h * filter_dims->w * filter_dims->c;
    if (ctx->size < taps || bias_dims->c != output_dims->c || filter_dims->h > 7) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t row = 0; row < output_dims->h; row++) {
        for (int32_t col = 0; col < output_dims->w; col++) {
            patch_at(patch, conv_params, input_dims, input_data, filter_dims, row, col);
            for (int32_t c = 0; c < output_dims->c; c++) {
                int32_t sum = bias_data != NULL ? bias_data[c] : 0;
                for (int32_t i = 0; i < taps; i++) {
                    sum += (patch[i] + conv_params->input_offset) * filter_data[c * taps + i];
                }
                sum = arm_nn_stand_in_scaled(
                        sum, quant_params->multiplier[c], quant_params->shift[c]);
                *output_data++ = arm_nn_stand_in_clamped(
                        sum + conv_params->output_offset, conv_params->activation.min,
                        conv_params->activation.max);
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
