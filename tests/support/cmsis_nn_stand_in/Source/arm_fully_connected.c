#include "arm_nnfunctions.h"

arm_cmsis_nn_status arm_fully_connected_wrapper_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_fc_params *fc_params,
        const cmsis_nn_quant_params *quant_params, const cmsis_nn_dims *input_dims,
        const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
        const cmsis_nn_dims *bias_dims, const int32_t *bias_data,
        const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    const int32_t depth = filter_dims->n;
#if defined(__ARM_FEATURE_MVE)
    /* As the kernels for Helium: what is besides the products comes from the caller. */
    const int32_t *const sums = ctx->buf;
    if (sums == NULL || ctx->size != 4 * output_dims->c) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    (void)bias_data;
#else
    (void)ctx;
#endif
    if (input_dims->n != output_dims->n || bias_dims->c != output_dims->c) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t row = 0; row < output_dims->n; row++) {
        for (int32_t c = 0; c < output_dims->c; c++) {
            const int32_t q = quant_params->is_per_channel ? c : 0;
#if defined(__ARM_FEATURE_MVE)
            const int32_t offset = 0;
            int32_t sum = sums[c];
#else
            const int32_t offset = fc_params->input_offset;
            int32_t sum = bias_data != NULL ? bias_data[c] : 0;
#endif
            for (int32_t i = 0; i < depth; i++) {
                sum += (input_data[row * depth + i] + offset) *
                       (filter_data[c * depth + i] + fc_params->filter_offset);
            }
            sum = arm_nn_stand_in_scaled(sum, quant_params->multiplier[q], quant_params->shift[q]);
            *output_data++ = arm_nn_stand_in_clamped(
                    sum + fc_params->output_offset, fc_params->activation.min,
                    fc_params->activation.max);
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
