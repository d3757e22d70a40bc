#include "arm_nnfunctions.h"

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(
        const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
        const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    (void)dw_conv_params;
    (void)input_dims;
    (void)filter_dims;
    (void)output_dims;
    return 0;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *dw_conv_params,
        const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims,
        const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
        const cmsis_nn_dims *bias_dims, const int32_t *bias_data,
        const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    const cmsis_nn_dw_conv_params *p = dw_conv_params;
    const int32_t channels = output_dims->c;
    (void)ctx;
    if (bias_dims->c != channels || input_dims->c * p->ch_mult != channels) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t i = 0; i < output_dims->h * output_dims->w * channels; i++) {
        const int32_t c = i % channels;
        const int32_t top = i / channels / output_dims->w * p->stride.h - p->padding.h;
        const int32_t left = i / channels % output_dims->w * p->stride.w - p->padding.w;
        int32_t sum = bias_data != NULL ? bias_data[c] : 0;
        for (int32_t j = 0; j < filter_dims->h * filter_dims->w; j++) {
            const int32_t y = top + j / filter_dims->w * p->dilation.h;
            const int32_t z = left + j % filter_dims->w * p->dilation.w;
            if (y >= 0 && y < input_dims->h && z >= 0 && z < input_dims->w) {
                const int32_t at = (y * input_dims->w + z) * input_dims->c + c / p->ch_mult;
                sum += (input_data[at] + p->input_offset) * filter_data[j * channels + c];
            }
        }
        sum = arm_nn_stand_in_scaled(sum, quant_params->multiplier[c], quant_params->shift[c]);
        output_data[i] = arm_nn_stand_in_clamped(
                sum + p->output_offset, p->activation.min, p->activation.max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}
