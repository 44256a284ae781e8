// Sorts references to objects by a field of theirs.
import java.util.Random;

public class Sorted {
    static final class Item {
        final int key;
        final long[] rest = new long[3];

        Item(int key) {
            this.key = key;
        }
    }

    static void sift(Item[] heap, int from, int count) {
        Item moved = heap[from];
        int at = from;
        while (true) {
            int child = 2 * at + 1;
            if (child >= count) break;
            if (child + 1 < count && heap[child + 1].key > heap[child].key) child++; // waits
            if (heap[child].key <= moved.key) break; // waits
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = moved;
    }

    public static void main(String[] words) {
        Random random = new Random(3);
        Item[] items = new Item[1_500_000];
        for (int i = 0; i < items.length; i++) items[i] = new Item(random.nextInt());
        for (int i = items.length / 2; i >= 0; i--) sift(items, i, items.length);
        for (int count = items.length - 1; count > 0; count--) {
            Item most = items[0];
            items[0] = items[count];
            items[count] = most;
            sift(items, 0, count);
        }
        System.out.println(items[0].key);
    }
}
