// Mask registers and the upper parts of vectors, live over several instructions. Compiled, never
// run.
#include <immintrin.h>

__attribute__((noinline)) __m512i choose(__m512i a, __m512i b, __m512i c) {
    __mmask16 greater = _mm512_cmpgt_epi32_mask(a, b);
    return _mm512_mask_add_epi32(c, greater, _mm512_add_epi32(a, b), c);
}
__attribute__((noinline)) __m256d product(__m256d a, __m256d b) {
    return _mm256_sub_pd(_mm256_mul_pd(a, b), _mm256_add_pd(b, _mm256_div_pd(a, b)));
}
int main(int argc, char **argv) {
    __m512i a = _mm512_set1_epi32(argc);
    __m256d b = _mm256_set1_pd(argc);
    return _mm512_reduce_add_epi32(choose(a, a, a)) + (int)product(b, b)[0] + !argv;
}
