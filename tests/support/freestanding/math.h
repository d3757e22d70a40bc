/* math.h: what generated code needs of it, for compilers that come without a C library. */
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
float expf(float x);
float logf(float x);
float sqrtf(float x);
float tanhf(float x);
float floorf(float x);
float roundf(float x);
float fabsf(float x);
