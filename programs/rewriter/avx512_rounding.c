// Embedded rounding, compression, gathers and scatters under masks: forms of EVEX that other
// programs have none of.
//# needs: avx512f avx512dq avx512bw avx512vl
//# flags: -mavx512f -mavx512dq -mavx512bw -mavx512vl
//# twins: rounds
#include <immintrin.h>
#include <stdio.h>

enum { EXACT = _MM_FROUND_NO_EXC };

__attribute__((noinline)) void rounds(const double *a, const double *b, double *out, __mmask8 mask) {
    __m512d x = _mm512_loadu_pd(a), y = _mm512_loadu_pd(b);
    __m512d r = _mm512_div_round_pd(x, y, _MM_FROUND_TO_NEG_INF | EXACT);
    r = _mm512_mask_add_round_pd(r, mask, r, y, _MM_FROUND_TO_POS_INF | EXACT);
    r = _mm512_maskz_sqrt_round_pd(mask | 3, _mm512_abs_pd(r), _MM_FROUND_TO_ZERO | EXACT);
    __m256i whole = _mm512_cvt_roundpd_epi32(r, _MM_FROUND_TO_POS_INF | EXACT);
    r = _mm512_fmadd_round_pd(r, _mm512_cvtepi32_pd(whole), _mm512_set1_pd(0.1), _MM_FROUND_TO_NEAREST_INT | EXACT);
    __mmask8 less = _mm512_cmp_round_pd_mask(r, y, _CMP_LT_OQ, EXACT);
    _mm512_mask_storeu_pd(out, (__mmask8)~less, r);
    _mm512_mask_compressstoreu_pd(out + 8, less, r);
    __m512i places = _mm512_set_epi64(7, 0, 6, 1, 5, 2, 4, 3);
    __m512d gathered = _mm512_mask_i64gather_pd(r, mask, places, a, 8);
    _mm512_i64scatter_pd(out, places, _mm512_add_pd(gathered, _mm512_loadu_pd(out)), 8);
}
int main(void) {
    double a[8], b[8], out[16] = {0};
    for (int i = 0; i < 8; i++) {
        a[i] = i * 1.375 + 0.125;
        b[i] = 3.25 - i * 0.75;
    }
    for (int mask = 0; mask < 256; mask += 5)
        rounds(a, b, out, mask);
    for (int i = 0; i < 16; i++)
        printf("%a\n", out[i]);
}
