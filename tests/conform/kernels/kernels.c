#include "kernels.h"

#include <string.h>

/* The high half of 2ab, to nearest. */
static int32_t high_product(int32_t a, int32_t b)
{
    const int64_t product = (int64_t)a * b;
    const int64_t nudge = product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30);
    return a == b && a == INT32_MIN ? INT32_MAX : (int32_t)((product + nudge) / ((int64_t)1 << 31));
}

static int32_t divide_by_power(int32_t value, int32_t exponent)
{
    const int32_t mask = (int32_t)(((int64_t)1 << exponent) - 1);
    const int32_t threshold = (mask >> 1) + (value < 0);
    return (value >> exponent) + ((value & mask) > threshold);
}

static int32_t scale(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    return divide_by_power(high_product(value * (1 << left), multiplier), right);
}

static int8_t clamp(const struct layer *l, int32_t value)
{
    const int32_t above = value < l->low ? l->low : value;
    return (int8_t)(above > l->high ? l->high : above);
}

static int8_t finish(const struct layer *l, int32_t sum, int32_t c)
{
    return clamp(l, scale(sum, l->multipliers[c], l->shifts[c]) + l->out_zero);
}

static int32_t bias_of(const struct layer *l, int32_t c)
{
    return l->bias != NULL ? l->bias[c] : 0;
}

/* Four products at a time, then the rest. */
static int32_t dot(const int8_t *x, const int8_t *w, int32_t count, int32_t zero)
{
    int32_t sum = 0;
    int32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int32_t j = i; j < i + 4; j++) {
            sum += (x[j] - zero) * w[j];
        }
    }
    for (; i < count; i++) {
        sum += (x[i] - zero) * w[i];
    }
    return sum;
}

static int32_t taps_of(const struct layer *l)
{
    return l->window.h * l->window.w * l->in.c;
}

int32_t patch_bytes(const struct layer *l)
{
    return taps_of(l);
}

static void copy_patch(const struct layer *l, const int8_t *x, int32_t row, int32_t col, int8_t *patch)
{
    for (int32_t i = 0; i < l->window.h; i++) {
        for (int32_t j = 0; j < l->window.w; j++) {
            const int32_t y = row * l->stride_h - l->pad_h + i * l->dilation_h;
            const int32_t z = col * l->stride_w - l->pad_w + j * l->dilation_w;
            if (y >= 0 && y < l->in.h && z >= 0 && z < l->in.w) {
                memcpy(patch, &x[(y * l->in.w + z) * l->in.c], (size_t)l->in.c);
            } else {
                memset(patch, l->in_zero, (size_t)l->in.c);
            }
            patch += l->in.c;
        }
    }
}

void convolve(const struct layer *l, const int8_t *x, const int8_t *weights, int8_t *patch, int8_t *y)
{
    const int32_t taps = taps_of(l);
    for (int32_t n = 0; n < l->in.n; n++) {
        const int8_t *image = &x[n * l->in.h * l->in.w * l->in.c];
        for (int32_t i = 0; i < l->out.h * l->out.w; i++) {
            copy_patch(l, image, i / l->out.w, i % l->out.w, patch);
            int32_t c = 0;
            for (; c + 2 <= l->out.c; c += 2) {
                const int8_t *w = &weights[c * taps];
                *y++ = finish(l, bias_of(l, c) + dot(patch, w, taps, l->in_zero), c);
                *y++ = finish(l, bias_of(l, c + 1) + dot(patch, w + taps, taps, l->in_zero), c + 1);
            }
            if (c < l->out.c) {
                *y++ = finish(l, bias_of(l, c) + dot(patch, &weights[c * taps], taps, l->in_zero), c);
            }
        }
    }
}

void convolve_depthwise(const struct layer *l, const int8_t *x, const int8_t *weights, int8_t *y)
{
    for (int32_t i = 0; i < l->out.n * l->out.h * l->out.w * l->out.c; i++) {
        const int32_t c = i % l->out.c;
        const int32_t pixel = i / l->out.c % (l->out.h * l->out.w);
        const int8_t *image = &x[i / l->out.c / (l->out.h * l->out.w) * l->in.h * l->in.w * l->in.c];
        int32_t sum = bias_of(l, c);
        for (int32_t j = 0; j < l->window.h * l->window.w; j++) {
            const int32_t row = pixel / l->out.w * l->stride_h - l->pad_h + j / l->window.w * l->dilation_h;
            const int32_t col = pixel % l->out.w * l->stride_w - l->pad_w + j % l->window.w * l->dilation_w;
            if (row >= 0 && row < l->in.h && col >= 0 && col < l->in.w) {
                const int32_t at = (row * l->in.w + col) * l->in.c + c / l->window.n;
                sum += (image[at] - l->in_zero) * weights[j * l->out.c + c];
            }
        }
        y[i] = finish(l, sum, c);
    }
}

void multiply_rows(const struct layer *l, const int8_t *x, const int8_t *weights, int8_t *y)
{
    for (int32_t n = 0; n < l->in.n; n++) {
        for (int32_t c = 0; c < l->out.c; c++) {
            const int32_t sum = dot(&x[n * l->in.c], &weights[c * l->in.c], l->in.c, l->in_zero);
            y[n * l->out.c + c] = finish(l, bias_of(l, c) + sum, c);
        }
    }
}

struct part {
    int32_t top, bottom, left, right;
};

/* What of a window lies inside of the image. */
static struct part inside(const struct layer *l, int32_t pixel)
{
    const int32_t row = pixel / l->out.w * l->stride_h - l->pad_h;
    const int32_t col = pixel % l->out.w * l->stride_w - l->pad_w;
    struct part p = {row, row + l->window.h, col, col + l->window.w};
    p.top = p.top < 0 ? 0 : p.top;
    p.left = p.left < 0 ? 0 : p.left;
    p.bottom = p.bottom > l->in.h ? l->in.h : p.bottom;
    p.right = p.right > l->in.w ? l->in.w : p.right;
    return p;
}

void pool_average(const struct layer *l, const int8_t *x, int8_t *y)
{
    const int32_t pixels = l->out.n * l->out.h * l->out.w;
    for (int32_t i = 0; i < pixels; i++) {
        const int8_t *image = &x[i / (l->out.h * l->out.w) * l->in.h * l->in.w * l->in.c];
        const struct part p = inside(l, i % (l->out.h * l->out.w));
        for (int32_t c = 0; c < l->in.c; c++) {
            int32_t sum = 0;
            const int32_t count = (p.bottom - p.top) * (p.right - p.left);
            for (int32_t row = p.top; row < p.bottom; row++) {
                for (int32_t col = p.left; col < p.right; col++) {
                    sum += image[(row * l->in.w + col) * l->in.c + c];
                }
            }
            sum = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
            *y++ = clamp(l, sum);
        }
    }
}

void pool_max(const struct layer *l, const int8_t *x, int8_t *y)
{
    for (int32_t i = 0; i < l->out.n * l->out.h * l->out.w; i++) {
        const int8_t *image = &x[i / (l->out.h * l->out.w) * l->in.h * l->in.w * l->in.c];
        const struct part p = inside(l, i % (l->out.h * l->out.w));
        int8_t *pixel = &y[i * l->in.c];
        memset(pixel, -128, (size_t)l->in.c);
        for (int32_t row = p.top; row < p.bottom; row++) {
            for (int32_t col = p.left; col < p.right; col++) {
                const int8_t *from = &image[(row * l->in.w + col) * l->in.c];
                for (int32_t c = 0; c < l->in.c; c++) {
                    pixel[c] = from[c] > pixel[c] ? from[c] : pixel[c];
                }
            }
        }
        for (int32_t c = 0; c < l->in.c; c++) {
            pixel[c] = clamp(l, pixel[c]);
        }
    }
}

void add(const struct layer *l, struct operand a, struct operand b, struct operand sum, int32_t left,
         const int8_t *x0, const int8_t *x1, int8_t *y, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t first = scale((x0[i] - a.zero) * (1 << left), a.multiplier, a.shift);
        const int32_t second = scale((x1[i] - b.zero) * (1 << left), b.multiplier, b.shift);
        y[i] = clamp(l, scale(first + second, sum.multiplier, sum.shift) + sum.zero);
    }
}

void multiply(const struct layer *l, struct operand a, struct operand b, struct operand product,
              const int8_t *x0, const int8_t *x1, int8_t *y, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = (x0[i] - a.zero) * (x1[i] - b.zero);
        y[i] = clamp(l, scale(value, product.multiplier, product.shift) + product.zero);
    }
}

/* e^a for a <= 0 with 5 integer bits; the result has none. */
static int32_t power(int32_t a)
{
    static const int32_t factors[] = {
        1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242,
    };
    const int32_t quarter = 1 << 24;
    const int32_t fraction = (a & (quarter - 1)) - quarter;
    const int32_t rest = fraction - a;
    const int32_t x = fraction * 32 + (1 << 28);
    const int32_t x2 = high_product(x, x);
    const int32_t x3 = high_product(x2, x);
    const int32_t x4 = divide_by_power(high_product(x2, x2), 2);
    const int32_t cubic = high_product(x4 + x3, 715827883) + x2;
    int32_t result = 1895147668 + high_product(1895147668, x + divide_by_power(cubic, 1));
    for (int32_t i = 0; i < 7; i++) {
        if (rest & (1 << (24 + i))) {
            result = high_product(result, factors[i]);
        }
    }
    return a == 0 ? INT32_MAX : result;
}

/* 1 / (1 + a) for a from 0 to 1, by three steps of Newton and Raphson. */
static int32_t reciprocal(int32_t a)
{
    const int32_t half = (int32_t)(((int64_t)a + INT32_MAX + 1) >> 1);
    int32_t x = 1515870810 + high_product(half, -1010580540);
    for (int32_t i = 0; i < 3; i++) {
        x += high_product(x, (1 << 29) - high_product(half, x)) * 4;
    }
    return x > INT32_MAX / 2 ? INT32_MAX : x * 2;
}

void softmax(const int8_t *x, int32_t rows, int32_t width, int32_t multiplier, int32_t shift,
             int32_t difference_min, int8_t *y)
{
    for (int32_t row = 0; row < rows; row++, x += width, y += width) {
        int32_t largest = x[0];
        int32_t sum = 0;
        for (int32_t i = 1; i < width; i++) {
            largest = x[i] > largest ? x[i] : largest;
        }
        for (int32_t i = 0; i < width; i++) {
            const int32_t difference = x[i] - largest;
            sum += difference < difference_min ? 0
                 : divide_by_power(power(scale(difference, multiplier, shift)), 12);
        }
        const int32_t zeros = __builtin_clz((uint32_t)sum);
        const int32_t inverse = reciprocal((int32_t)(((uint32_t)sum << zeros) - 0x80000000u));
        for (int32_t i = 0; i < width; i++) {
            const int32_t difference = x[i] - largest;
            int32_t value = -128;
            if (difference >= difference_min) {
                const int32_t raw = high_product(inverse, power(scale(difference, multiplier, shift)));
                value += divide_by_power(raw, 12 - zeros + 31 - 8);
            }
            y[i] = (int8_t)(value > 127 ? 127 : value);
        }
    }
}
