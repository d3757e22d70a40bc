/* VPDPBUSD for CPUs without it, so that kernels for VNNI run on every machine with AVX2. */
#include <immintrin.h>

#define __AVXVNNI__ 1
#define _mm256_dpbusd_avx_epi32 emulated_dpbusd

static inline __m256i emulated_dpbusd(__m256i sums, __m256i x, __m256i weights)
{
    const __m256i bytes = _mm256_set1_epi16(0xFF);
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, bytes),
            _mm256_srai_epi16(_mm256_slli_epi16(weights, 8), 8));
    const __m256i odd = _mm256_madd_epi16(
            _mm256_srli_epi16(x, 8), _mm256_srai_epi16(weights, 8));
    return _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
}
