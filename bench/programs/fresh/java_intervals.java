// expect: load=find data=kind:java level=DRAM|L3 memory=yes
// A balanced search tree of objects that refer to one another, searched for keys in no order.
import java.util.Random;

class java_intervals {
    static final class Range {
        final int from, to;
        Range lower, higher;
        Range(int from) { this.from = from; this.to = from + 8; }
    }

    static Range built(int[] starts, int low, int high) {
        if (low >= high) return null;
        int middle = (low + high) >>> 1;
        Range range = new Range(starts[middle]);
        range.lower = built(starts, low, middle);
        range.higher = built(starts, middle + 1, high);
        return range;
    }

    static int find(Range range, int key) {
        while (range != null) {
            if (key < range.from) // HOT
                range = range.lower; // HOT
            else if (key >= range.to) // HOT
                range = range.higher; // HOT
            else
                return range.from;
        }
        return -1;
    }

    public static void main(String[] args) {
        int[] starts = new int[1 << 22];
        for (int i = 0; i < starts.length; i++)
            starts[i] = i * 16;
        Range root = built(starts, 0, starts.length);
        Random random = new Random(3);
        long sum = 0, ends = System.nanoTime() + 5_000_000_000L;
        while (System.nanoTime() < ends)
            for (int i = 0; i < 10000; i++)
                sum += find(root, random.nextInt(starts.length * 16));
        System.out.println(sum != 0);
    }
}
