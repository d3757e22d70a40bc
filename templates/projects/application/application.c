/* application.c: runs every model on its samples and prints the results.
 *
 * Each line starts with the model's name:
 *   <model> sample <number> <output> = <value> ...
 *   <model> sample <number> <output> equal
 *   <model> sample <number> <output> differs at <index>: <value> instead of <value>
 *   <model> stack <bytes>
 * Where a sample is a sequence of runs, `step <number>` follows its number.
 */
#include "application.h"

#include <stddef.h>
#include <string.h>

#include "models.h"
#include "platform.h"
#include "text.h"

/* One element, whatever its type. */
union value {
    uint8_t bytes[8];
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
};

static const void *offset(const void *base, uint32_t bytes)
{
    return (const uint8_t *)base + bytes;
}

static union value computed(const struct tensor *tensor, uint32_t index)
{
    union value value;
    uint8_t bytes = element_bytes(tensor->element);
    memcpy(value.bytes, offset(tensor->data, index * bytes), bytes);
    return value;
}

static union value expected(const struct tensor *tensor, uint16_t run, uint32_t index)
{
    union value value;
    uint8_t bytes = element_bytes(tensor->element);
    uint32_t position = (run * tensor->elements + index) * bytes;
    platform_copy_constant(value.bytes, offset(tensor->samples, position), bytes);
    return value;
}

static int is_real(const struct tensor *tensor)
{
    return tensor->element == ELEMENT_FLOAT32 || tensor->element == ELEMENT_FLOAT64;
}

/* On AVR double has the size of float, and a float64 tensor cannot be used at all. */
static double real(const struct tensor *tensor, union value value)
{
    return tensor->element == ELEMENT_FLOAT32 ? (double)value.f32 : value.f64;
}

static void print_value(const struct tensor *tensor, union value value)
{
    switch (tensor->element) {
    case ELEMENT_INT8:
        text_signed(value.i8);
        break;
    case ELEMENT_INT16:
        text_signed(value.i16);
        break;
    case ELEMENT_INT32:
        text_signed(value.i32);
        break;
    case ELEMENT_INT64:
        text_signed(value.i64);
        break;
    case ELEMENT_UINT16:
        text_unsigned(value.u16);
        break;
    case ELEMENT_UINT32:
        text_unsigned(value.u32);
        break;
    case ELEMENT_UINT64:
        text_unsigned(value.u64);
        break;
    case ELEMENT_FLOAT32:
    case ELEMENT_FLOAT64:
        text_real(real(tensor, value));
        break;
    default:
        text_unsigned(value.u8);
        break;
    }
}

/* Runs of a sample. */
static uint16_t steps_of(const struct model *model)
{
    return model->steps > 1 ? model->steps : 1;
}

static void print_heading(const struct model *model, uint16_t run, const struct tensor *tensor)
{
    uint16_t steps = steps_of(model);
    text_write(model->name);
    text_write(" sample ");
    text_unsigned(run / steps);
    if (steps > 1) {
        text_write(" step ");
        text_unsigned(run % steps);
    }
    text_write(" ");
    text_write(tensor->name);
}

/* Allowed difference of the floats of a run; infinite values say nothing about the scale. */
static double tolerance(const struct tensor *tensor, uint16_t run)
{
    double largest = 0.0;
    for (uint32_t i = 0; is_real(tensor) && i < tensor->elements; i++) {
        double value = real(tensor, expected(tensor, run, i));
        double magnitude = value < 0.0 ? -value : value;
        if (magnitude > largest && magnitude * 0.5 != magnitude) {
            largest = magnitude;
        }
    }
    return largest * (double)tensor->tolerance;
}

static int is_equal(const struct tensor *tensor, union value a, union value b, double allowed)
{
    if (!is_real(tensor)) {
        return memcmp(a.bytes, b.bytes, element_bytes(tensor->element)) == 0;
    }
    double x = real(tensor, a);
    double y = real(tensor, b);
    /* The first test lets equal infinities pass; no test is true of a NaN. */
    return x == y || (x - y <= allowed && y - x <= allowed);
}

static int compare(const struct model *model, uint16_t run, const struct tensor *tensor)
{
    double allowed = tolerance(tensor, run);
    print_heading(model, run, tensor);
    for (uint32_t i = 0; i < tensor->elements; i++) {
        union value value = computed(tensor, i);
        union value wanted = expected(tensor, run, i);
        if (!is_equal(tensor, value, wanted, allowed)) {
            text_write(" differs at ");
            text_unsigned(i);
            text_write(": ");
            print_value(tensor, value);
            text_write(" instead of ");
            print_value(tensor, wanted);
            text_write("\n");
            return APPLICATION_DIFFERS;
        }
    }
    text_write(" equal\n");
    return APPLICATION_OK;
}

static void print_output(const struct model *model, uint16_t run, const struct tensor *tensor)
{
    print_heading(model, run, tensor);
    text_write(" =");
    for (uint32_t i = 0; i < tensor->elements; i++) {
        text_write(" ");
        print_value(tensor, computed(tensor, i));
    }
    text_write("\n");
}

/* Runs a model with the values of one run; a sample begins anew. */
static int32_t run_once(const struct model *model, uint16_t run)
{
    for (uint8_t i = 0; i < model->input_count; i++) {
        const struct tensor *input = &model->inputs[i];
        uint32_t bytes = input->elements * element_bytes(input->element);
        platform_copy_constant(input->data, offset(input->samples, run * bytes), bytes);
    }
    if (model->begin != NULL && run % steps_of(model) == 0) {
        int32_t status = model->begin();
        if (status != 0) {
            return status;
        }
    }
    platform_paint_stack();
    return model->run();
}

static int check_run(const struct model *model, uint16_t run, uint32_t *stack)
{
    int32_t status = run_once(model, run);
    uint32_t used = platform_stack_used();
    *stack = used > *stack ? used : *stack;
    if (status != 0) {
        text_write(model->name);
        text_write(" error: ");
        text_write(model->status_text(status));
        text_write("\n");
        return APPLICATION_FAILED;
    }
    int result = APPLICATION_OK;
    for (uint8_t i = 0; i < model->output_count; i++) {
        const struct tensor *output = &model->outputs[i];
        print_output(model, run, output);
        if (output->samples != NULL && compare(model, run, output) != APPLICATION_OK) {
            result = APPLICATION_DIFFERS;
        }
    }
    return result;
}

int16_t application_run(void)
{
    int result = APPLICATION_OK;
    for (uint8_t m = 0; m < model_count; m++) {
        const struct model *model = &models[m];
        uint32_t stack = 0;
        uint16_t runs = (uint16_t)(model->sample_count * steps_of(model));
        for (uint16_t run = 0; run < runs; run++) {
            int status = check_run(model, run, &stack);
            result = status > result ? status : result;
        }
        text_write(model->name);
        text_write(" stack ");
        text_unsigned(stack);
        text_write("\n");
    }
    return (int16_t)result;
}
