// Looks up keys in an unbalanced tree of a million nodes.
import java.util.Random;

public class Walk {
    static final class Node {
        Node left, right;
        long key;
    }

    static Node insert(Node root, long key) {
        Node added = new Node();
        added.key = key;
        if (root == null) return added;
        Node at = root;
        while (true) {
            Node next = key < at.key ? at.left : at.right; // waits
            if (next == null) {
                if (key < at.key) at.left = added;
                else at.right = added;
                return root;
            }
            at = next;
        }
    }

    static long walk(Node root, long key) {
        Node at = root;
        long steps = 0;
        while (at != null && at.key != key) { // waits
            at = key < at.key ? at.left : at.right; // waits
            steps++;
        }
        return steps;
    }

    public static void main(String[] words) {
        int count = 1_000_000;
        Random random = new Random(42);
        long[] keys = new long[count];
        Node root = null;
        for (int i = 0; i < count; i++) {
            keys[i] = random.nextLong();
            root = insert(root, keys[i]);
        }
        long sum = 0;
        for (int i = 0; i < 4 * count; i++) sum += walk(root, keys[random.nextInt(count)]);
        System.out.println(sum);
    }
}
