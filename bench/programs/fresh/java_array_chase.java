// expect: load=chase data=kind:java level=DRAM|L3 memory=yes
// An array of 128 MiB, whose elements say where to go next.
class java_array_chase {
    static int chase(int[] next, int at, int steps) {
        for (int i = 0; i < steps; i++)
            at = next[at]; // HOT
        return at;
    }

    public static void main(String[] args) {
        int count = 1 << 25;
        int[] next = new int[count];
        for (int i = 0; i < count; i++)
            next[i] = (i * 1664525 + 1013904223) & (count - 1);
        int at = 0;
        long ends = System.nanoTime() + 3_000_000_000L;
        while (System.nanoTime() < ends)
            at = chase(next, at, 100_000);
        System.out.println(at < count);
    }
}
