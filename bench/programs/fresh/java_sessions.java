// expect: load=serve|ConcurrentHashMap|equals|hashCode data=kind:java level=DRAM|L3 memory=yes
// Two threads look up sessions by text in one ConcurrentHashMap.
import java.util.concurrent.ConcurrentHashMap;

class java_sessions {
    static final class Session {
        long used;
        final long began;
        Session(long began) { this.began = began; }
    }

    static final int COUNT = 1_000_000;
    static final ConcurrentHashMap<String, Session> sessions = new ConcurrentHashMap<>();
    static final String[] names = new String[COUNT];

    static long serve(long draw, int requests) {
        long sum = 0;
        for (int i = 0; i < requests; i++) {
            draw = draw * 6364136223846793005L + 1442695040888963407L;
            String name = names[(int) ((draw >>> 33) % COUNT)]; // HOT
            sum += sessions.get(name).began; // HOT
        }
        return sum;
    }

    public static void main(String[] args) throws InterruptedException {
        for (int i = 0; i < COUNT; i++) {
            names[i] = "session-" + i;
            sessions.put(names[i], new Session(i));
        }
        long ends = System.nanoTime() + 4_000_000_000L;
        long[] sums = new long[64];
        Thread[] threads = new Thread[2];
        for (int t = 0; t < threads.length; t++) {
            int own = t;
            threads[t] = new Thread(() -> {
                for (long round = own; System.nanoTime() < ends; round += 2)
                    sums[32 * own] += serve(round * 77777, 10000);
            });
            threads[t].start();
        }
        for (Thread thread : threads)
            thread.join();
        System.out.println(sums[0] + sums[32] > 0);
    }
}
