/* The functions of CMSIS-NN's interface that the kernels of the tests have. */
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include <stddef.h>

#include "arm_nn_types.h"

int32_t arm_convolve_wrapper_s8_get_buffer_size(
        const cmsis_nn_conv_params *, const cmsis_nn_dims *, const cmsis_nn_dims *,
        const cmsis_nn_dims *);
arm_cmsis_nn_status arm_convolve_wrapper_s8(
        const cmsis_nn_context *, const cmsis_nn_conv_params *,
        const cmsis_nn_per_channel_quant_params *, const cmsis_nn_dims *, const int8_t *,
        const cmsis_nn_dims *, const int8_t *, const cmsis_nn_dims *, const int32_t *,
        const cmsis_nn_dims *, int8_t *);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(
        const cmsis_nn_dw_conv_params *, const cmsis_nn_dims *, const cmsis_nn_dims *,
        const cmsis_nn_dims *);
arm_cmsis_nn_status arm_depthwise_conv_s8(
        const cmsis_nn_context *, const cmsis_nn_dw_conv_params *,
        const cmsis_nn_per_channel_quant_params *, const cmsis_nn_dims *, const int8_t *,
        const cmsis_nn_dims *, const int8_t *, const cmsis_nn_dims *, const int32_t *,
        const cmsis_nn_dims *, int8_t *);
arm_cmsis_nn_status arm_fully_connected_per_channel_s8(
        const cmsis_nn_context *, const cmsis_nn_fc_params *,
        const cmsis_nn_per_channel_quant_params *, const cmsis_nn_dims *, const int8_t *,
        const cmsis_nn_dims *, const int8_t *, const cmsis_nn_dims *, const int32_t *,
        const cmsis_nn_dims *, int8_t *);
int32_t arm_avgpool_s8_get_buffer_size(int, int);
arm_cmsis_nn_status arm_avgpool_s8(
        const cmsis_nn_context *, const cmsis_nn_pool_params *, const cmsis_nn_dims *,
        const int8_t *, const cmsis_nn_dims *, const cmsis_nn_dims *, int8_t *);
arm_cmsis_nn_status arm_max_pool_s8(
        const cmsis_nn_context *, const cmsis_nn_pool_params *, const cmsis_nn_dims *,
        const int8_t *, const cmsis_nn_dims *, const cmsis_nn_dims *, int8_t *);
arm_cmsis_nn_status arm_elementwise_add_s8(
        const int8_t *, const int8_t *, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t,
        int32_t, int8_t *, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t);
arm_cmsis_nn_status arm_elementwise_mul_s8(
        const int8_t *, const int8_t *, int32_t, int32_t, int8_t *, int32_t, int32_t, int32_t,
        int32_t, int32_t, int32_t);
void arm_softmax_s8(const int8_t *, int32_t, int32_t, int32_t, int32_t, int32_t, int8_t *);

#endif
