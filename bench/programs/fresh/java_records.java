// expect: load=worth data=kind:java level=DRAM|L3 memory=yes
// Records in an ArrayList that was shuffled.
import java.util.ArrayList;
import java.util.Collections;
import java.util.Random;

class java_records {
    record Trade(long number, long price, int pieces, String venue) {}

    static long worth(ArrayList<Trade> trades) {
        long sum = 0;
        for (int i = 0; i < trades.size(); i++) {
            Trade trade = trades.get(i);
            sum += trade.price() * trade.pieces(); // HOT
        }
        return sum;
    }

    public static void main(String[] args) {
        ArrayList<Trade> trades = new ArrayList<>();
        for (int i = 0; i < 4_000_000; i++)
            trades.add(new Trade(i, i * 31L % 1000, i % 7, null));
        Collections.shuffle(trades, new Random(5));
        long sum = 0, ends = System.nanoTime() + 5_000_000_000L;
        while (System.nanoTime() < ends)
            sum += worth(trades);
        System.out.println(sum > 0);
    }
}
