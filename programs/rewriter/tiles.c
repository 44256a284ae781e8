// Matrix tiles: their layout is set in one function, they are filled and multiplied in others, and
// kept over calls.
//# needs: amx_tile amx_int8 amx_bf16
//# flags: -mamx-tile -mamx-int8 -mamx-bf16
//# twins: multiply blend keeps
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const long REQUEST_PERMISSION = 0x1023, TILE_DATA = 18;

struct layout {
    unsigned char palette, start, reserved[14];
    unsigned short bytes[16];
    unsigned char rows[16];
};

static signed char a[16 * 64], b[16 * 64];
static int c[16 * 16];
static unsigned short x[16 * 32], y[16 * 32];
static float z[16 * 16];

__attribute__((noinline)) static long sum(int n) {
    long all = 0;
    for (int i = 0; i < n; i++)
        all += c[i] * (long)(i + 1);
    return all;
}

__attribute__((noinline)) void multiply(void) {
    _tile_zero(0);
    _tile_loadd(1, a, 64);
    _tile_loadd(2, b, 64);
    _tile_dpbssd(0, 1, 2);
    _tile_dpbsud(0, 1, 2);
    _tile_stored(0, c, 64);
}

__attribute__((noinline)) void blend(void) {
    _tile_zero(3);
    _tile_loadd(4, x, 64);
    _tile_loadd(5, y, 64);
    for (int i = 0; i < 3; i++)
        _tile_dpbf16ps(3, 4, 5);
    _tile_stored(3, z, 64);
}

__attribute__((noinline)) long keeps(void) {
    _tile_loadd(6, a, 64);
    long found = sum(16 * 16);
    _tile_stored(6, c, 64);
    return found;
}

int main(void) {
    struct layout set, got;
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA)) {
        puts("no permission");
        return 0;
    }
    memset(&set, 0, sizeof set);
    set.palette = 1;
    for (int i = 0; i < 8; i++) {
        set.bytes[i] = 64;
        set.rows[i] = 16;
    }
    for (int i = 0; i < 16 * 64; i++) {
        a[i] = i * 7;
        b[i] = i * 13 + 5;
    }
    for (int i = 0; i < 16 * 32; i++) {
        x[i] = 0x3f80 + i % 5 * 16;
        y[i] = 0x4000 + i % 7 * 8;
    }
    _tile_loadconfig(&set);
    multiply();
    printf("%ld\n", sum(16 * 16));
    blend();
    double all = 0;
    for (int i = 0; i < 16 * 16; i++)
        all += z[i] * (i % 9);
    printf("%.2f\n", all);
    printf("%ld\n", keeps());
    printf("%ld\n", sum(16 * 16));
    _tile_storeconfig(&got);
    printf("%d\n", memcmp(&set, &got, sizeof set));
    _tile_release();
    return 0;
}
