// A program that reads its own program headers: what is mapped, where its unwind table is, and that
// it covers its code.
//# twins: each covers
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int objects, loads, with_unwind, dynamic;
__attribute__((noinline)) int covers(const struct dl_phdr_info *info, uintptr_t address) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && address >= from && address < from + p->p_memsz) return p->p_flags;
    }
    return 0;
}
__attribute__((noinline)) int each(struct dl_phdr_info *info, size_t size, void *of_main) {
    objects++;
    if (!covers(info, (uintptr_t)of_main)) return 0;
    printf("main is in a segment with flags %d\n", covers(info, (uintptr_t)of_main));
    printf("data is in a segment with flags %d\n", covers(info, (uintptr_t)&objects));
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        dynamic |= p->p_type == PT_DYNAMIC;
        loads += p->p_type == PT_LOAD && p->p_memsz > 0;
        if (p->p_type == PT_GNU_EH_FRAME) {
            const uint8_t *table = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);
            uint32_t count;
            memcpy(&count, table + 8, 4);
            with_unwind += table[0] == 1 && count > 2 && covers(info, (uintptr_t)table) != 0;
        }
    }
    return size == 0;
}
int main(void) {
    int stopped = dl_iterate_phdr(each, (void *)main);
    // Static programs may have no such header.
    printf("%d %d %d\n", objects > 0, loads >= 3, with_unwind == 1 || !dynamic);
    return stopped || loads < 3;
}
