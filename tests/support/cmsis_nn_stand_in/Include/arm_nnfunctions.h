/* Functions with the prototypes of CMSIS-NN's. */
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include <stddef.h>

#include "arm_nn_types.h"

int32_t arm_convolve_wrapper_s8_get_buffer_size(
        const cmsis_nn_conv_params *conv_params, const cmsis_nn_dims *input_dims,
        const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims);

arm_cmsis_nn_status arm_convolve_wrapper_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_conv_params *conv_params,
        const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims,
        const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
        const cmsis_nn_dims *bias_dims, const int32_t *bias_data,
        const cmsis_nn_dims *output_dims, int8_t *output_data);

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(
        const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
        const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims);

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *dw_conv_params,
        const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims,
        const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
        const cmsis_nn_dims *bias_dims, const int32_t *bias_data,
        const cmsis_nn_dims *output_dims, int8_t *output_data);

arm_cmsis_nn_status arm_fully_connected_wrapper_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_fc_params *fc_params,
        const cmsis_nn_quant_params *quant_params, const cmsis_nn_dims *input_dims,
        const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
        const cmsis_nn_dims *bias_dims, const int32_t *bias_data,
        const cmsis_nn_dims *output_dims, int8_t *output_data);

arm_cmsis_nn_status arm_elementwise_add_s8(
        const int8_t *input_1_vect, const int8_t *input_2_vect, const int32_t input_1_offset,
        const int32_t input_1_mult, const int32_t input_1_shift, const int32_t input_2_offset,
        const int32_t input_2_mult, const int32_t input_2_shift, const int32_t left_shift,
        int8_t *output, const int32_t out_offset, const int32_t out_mult, const int32_t out_shift,
        const int32_t out_activation_min, const int32_t out_activation_max,
        const int32_t block_size);

int32_t arm_avgpool_s8_get_buffer_size(const int dim_dst_width, const int ch_src);

arm_cmsis_nn_status arm_avgpool_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_pool_params *pool_params,
        const cmsis_nn_dims *input_dims, const int8_t *input_data,
        const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims, int8_t *output_data);

arm_cmsis_nn_status arm_max_pool_s8(
        const cmsis_nn_context *ctx, const cmsis_nn_pool_params *pool_params,
        const cmsis_nn_dims *input_dims, const int8_t *input_data,
        const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims, int8_t *output_data);

/* Shared by the functions above. */
int32_t arm_nn_stand_in_scaled(int32_t value, int32_t multiplier, int32_t shift);
int8_t arm_nn_stand_in_clamped(int32_t value, int32_t low, int32_t high);

#endif
