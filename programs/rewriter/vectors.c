// 256-bit vectors kept over calls, and upper halves zeroed where the ABI wants it.
//# needs: avx2
//# flags: -mavx2 -ffp-contract=off
//# twins: floats shuffled
#include <immintrin.h>
#include <stdio.h>

static int calls;
__attribute__((noinline)) static int tiny(int x) { calls++; return x ^ 5; }
__attribute__((noinline)) __m256 floats(__m256 a, __m256 b) {
    __m256 c = _mm256_add_ps(_mm256_mul_ps(a, b), a);
    for (int i = 0; i < 5; i++) {
        c = _mm256_sub_ps(_mm256_mul_ps(c, b), a);
        tiny(i);
    }
    return c;
}
__attribute__((noinline)) long shuffled(const unsigned char *in, int n) {
    __m256i sum = _mm256_setzero_si256(), turn = _mm256_setr_epi32(3, 1, 4, 0, 5, 7, 2, 6);
    for (int i = 0; i + 32 <= n; i += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(in + i));
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(_mm256_permutevar8x32_epi32(v, turn), _mm256_set1_epi8(3)));
        sum = _mm256_xor_si256(sum, _mm256_slli_epi64(v, 5));
    }
    long parts[4];
    _mm256_storeu_si256((__m256i *)parts, sum);
    return parts[0] ^ parts[1] * 3 ^ parts[2] * 5 ^ parts[3] * 7;
}
int main(void) {
    __m256 a = _mm256_setr_ps(1, 2, 3, 4, 5, 6, 7, 8), b = _mm256_setr_ps(.5f, .25f, 1, 2, 1, .5f, 3, .125f);
    float out[8];
    _mm256_storeu_ps(out, floats(a, b));
    for (int i = 0; i < 8; i++) printf("%f ", out[i]);
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++) bytes[i] = (unsigned char)(i * i + 3 * i);
    printf("\n%ld %d\n", shuffled(bytes, 256), calls);
}
