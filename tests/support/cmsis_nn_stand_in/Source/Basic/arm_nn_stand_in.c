#include "arm_nnfunctions.h"

/* value * multiplier * 2^(shift - 31), rounded twice, as TFLite does. */
int32_t arm_nn_stand_in_scaled(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    const int64_t product = (int64_t)(value * (int32_t)(1u << left)) * multiplier;
    const int64_t nudge = product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30);
    const int32_t high = (int32_t)((product + nudge) / ((int64_t)1 << 31));
    const int32_t mask = (int32_t)((1u << right) - 1u);
    const int32_t rest = high & mask;
    return (high >> right) + (rest > (mask >> 1) + (high < 0 ? 1 : 0) ? 1 : 0);
}

int8_t arm_nn_stand_in_clamped(int32_t value, int32_t low, int32_t high)
{
    return (int8_t)(value < low ? low : value > high ? high : value);
}
