// 512-bit vectors with masks: merging, zeroing, compares into masks, compress, masks kept in k
// registers over calls, and the registers 16 to 31.
//# needs: avx512f avx512bw avx512dq avx512vl
//# flags: -mavx512f -mavx512bw -mavx512dq -mavx512vl
//# twins: masked high_registers
#include <immintrin.h>
#include <stdio.h>

static int calls;
__attribute__((noinline)) static void tiny(void) { calls++; }
__attribute__((noinline)) long masked(const int *in, int n) {
    __m512i sum = _mm512_setzero_si512(), kept = _mm512_set1_epi32(-1);
    long bits = 0;
    for (int i = 0; i + 16 <= n; i += 16) {
        __m512i v = _mm512_loadu_si512(in + i);
        __mmask16 small = _mm512_cmplt_epi32_mask(v, _mm512_set1_epi32(500));
        __mmask16 odd = _mm512_test_epi32_mask(v, _mm512_set1_epi32(1));
        __mmask16 both = _kxor_mask16(small, odd);
        tiny();
        sum = _mm512_mask_add_epi32(sum, both, sum, v);
        kept = _mm512_mask_compress_epi32(kept, small, v);
        sum = _mm512_xor_si512(sum, _mm512_maskz_rol_epi32(odd, kept, 7));
        bits = bits * 5 + both;
    }
    return bits % 1000003 + _mm512_reduce_add_epi32(sum) + (unsigned)_mm512_reduce_max_epi32(kept);
}
__attribute__((noinline)) long high_registers(long a, long b) {
    long out[8];
    __asm__ volatile("vpbroadcastq %1, %%zmm17\n vpbroadcastq %2, %%zmm31\n kxnorw %%k5, %%k5, %%k5\n kshiftrw $11, %%k5, %%k5\n"
                     "vpaddq %%zmm17, %%zmm31, %%zmm24\n vpaddq %%zmm24, %%zmm24, %%zmm24%{%%k5%}\n"
                     "vpsubq %%zmm17, %%zmm24, %%zmm16%{%%k5%}%{z%}\n vmovdqu64 %%zmm16, (%0)"
                     : : "r"(out), "r"(a), "r"(b) : "memory", "xmm16", "xmm17", "xmm24", "xmm31", "k5");
    long sum = 0;
    for (int i = 0; i < 8; i++) sum = sum * 3 + out[i];
    return sum;
}
int main(void) {
    int in[320];
    for (int i = 0; i < 320; i++) in[i] = (i * 7919) % 1001;
    long sum = masked(in, 320);
    printf("%ld %d\n", sum, calls);
    printf("%ld\n", high_registers(1234567, -98765));
}
