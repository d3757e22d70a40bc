#include "arm_nnfunctions.h"

arm_cmsis_nn_status arm_elementwise_add_s8(
        const int8_t *input_1_vect, const int8_t *input_2_vect, const int32_t input_1_offset,
        const int32_t input_1_mult, const int32_t input_1_shift, const int32_t input_2_offset,
        const int32_t input_2_mult, const int32_t input_2_shift, const int32_t left_shift,
        int8_t *output, const int32_t out_offset, const int32_t out_mult, const int32_t out_shift,
        const int32_t out_activation_min, const int32_t out_activation_max,
        const int32_t block_size)
{
    const int32_t wide = (int32_t)(1u << left_shift);
    for (int32_t i = 0; i < block_size; i++) {
        const int32_t a = arm_nn_stand_in_scaled(
                (input_1_vect[i] + input_1_offset) * wide, input_1_mult, input_1_shift);
        const int32_t b = arm_nn_stand_in_scaled(
                (input_2_vect[i] + input_2_offset) * wide, input_2_mult, input_2_shift);
        output[i] = arm_nn_stand_in_clamped(
                arm_nn_stand_in_scaled(a + b, out_mult, out_shift) + out_offset,
                out_activation_min, out_activation_max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}
