/* An application that calls the main function with the tensors, as microTVM's for Arduino did. */
#include <stdint.h>
#include <stdio.h>
#include <tvm/runtime/c_runtime_api.h>

int32_t tvmgen_default___tvm_main__(void *, void *);

static void TVMExecute(void *input_data, void *output_data)
{
    if (tvmgen_default___tvm_main__(input_data, output_data) != 0) {
        printf("0x%03x\n", (unsigned int)kTvmErrorPlatformCheckFailure);
    }
}

int main(void)
{
    int8_t image[12], scores[5];
    unsigned int i;

    for (i = 0; i < sizeof(image); i++) {
        image[i] = (int8_t)(11 * i);
    }
    TVMExecute(image, scores);
    for (i = 0; i < sizeof(scores); i++) {
        printf("%d\n", scores[i]);
    }
    return 0;
}
