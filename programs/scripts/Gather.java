// Reads an array of 256 MiB in the random order of another one.
public class Gather {
    static long gather(long[] from, int[] order) {
        long sum = 0;
        for (int i = 0; i < order.length; i++) {
            sum += from[order[i]]; // waits
        }
        return sum;
    }

    public static void main(String[] words) {
        long[] from = new long[1 << 25];
        int[] order = new int[1 << 23];
        long at = 1;
        for (int i = 0; i < order.length; i++) {
            at = at * 6364136223846793005L + 1442695040888963407L;
            order[i] = (int) (at >>> 39);
        }
        long sum = 0;
        for (int round = 0; round < 12; round++) sum += gather(from, order);
        System.out.println(sum);
    }
}
