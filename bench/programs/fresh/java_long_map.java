// expect: load=visits|getNode|get|hash|equals data=kind:java level=DRAM|L3 memory=yes
// Counters by a number of 64 bits in a HashMap, looked up by numbers that come in no order.
import java.util.HashMap;

class java_long_map {
    static long mixed(long number) {
        number *= 0x9e3779b97f4a7c15L;
        return number ^ number >>> 29;
    }

    static long visits(HashMap<Long, Long> counters, long from, int users) {
        long sum = 0;
        for (int i = 0; i < 20000; i++) {
            long user = Long.remainderUnsigned(mixed(from + i), users);
            Long count = counters.get(mixed(user)); // HOT
            if (count != null)
                sum += count; // HOT
        }
        return sum;
    }

    public static void main(String[] args) {
        int users = 2_000_000;
        HashMap<Long, Long> counters = new HashMap<>();
        for (long user = 0; user < users; user++)
            counters.put(mixed(user), user % 100 + 1000);
        long sum = 0, from = 0, ends = System.nanoTime() + 5_000_000_000L;
        while (System.nanoTime() < ends) {
            sum += visits(counters, from, users);
            from += 20000;
        }
        System.out.println(sum > 0);
    }
}
