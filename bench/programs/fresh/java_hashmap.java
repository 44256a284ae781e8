// expect: load=score|getNode|get data=kind:java level=DRAM|L3 memory=yes
// Look-ups in a HashMap of boxed numbers.
import java.util.HashMap;

class java_hashmap {
    static long score(HashMap<Integer, Integer> points, long draw, int players) {
        long sum = 0;
        for (int i = 0; i < 10000; i++) {
            draw = draw * 6364136223846793005L + 1442695040888963407L;
            sum += points.get((int) ((draw >>> 33) % players)); // HOT
        }
        return sum + draw;
    }

    public static void main(String[] args) {
        int players = 2_000_000;
        HashMap<Integer, Integer> points = new HashMap<>(2 * players);
        for (int i = 0; i < players; i++)
            points.put(i, i);
        long sum = 0, ends = System.nanoTime() + 3_000_000_000L;
        while (System.nanoTime() < ends)
            sum += score(points, sum, players);
        System.out.println(sum != 0);
    }
}
