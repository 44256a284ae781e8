// expect: load=total data=kind:java level=DRAM|L3 memory=yes
// An array of numbers, read in the order that another one gives.
import java.util.Random;

class java_prices {
    static long total(int[] prices, int[] basket) {
        long sum = 0;
        for (int article : basket)
            sum += prices[article]; // HOT
        return sum;
    }

    public static void main(String[] args) {
        int[] prices = new int[48 << 20], basket = new int[4 << 20];
        Random random = new Random(11);
        for (int i = 0; i < prices.length; i++)
            prices[i] = i & 1023;
        for (int i = 0; i < basket.length; i++)
            basket[i] = random.nextInt(prices.length);
        long sum = 0, ends = System.nanoTime() + 5_000_000_000L;
        while (System.nanoTime() < ends)
            sum += total(prices, basket);
        System.out.println(sum > 0);
    }
}
