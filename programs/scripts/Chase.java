// Goes round a list of two million nodes in random order.
import java.util.Random;

public class Chase {
    static final class Node {
        Node next;
        long[] rest = new long[4];
    }

    static Node chase(Node at, int steps) {
        while (steps-- > 0) {
            at = at.next; // waits
        }
        return at;
    }

    public static void main(String[] words) {
        int count = 1 << 21;
        Node[] nodes = new Node[count];
        for (int i = 0; i < count; i++) nodes[i] = new Node();
        Random random = new Random(7);
        for (int i = count - 1; i > 0; i--) {
            int other = random.nextInt(i);
            Node node = nodes[i];
            nodes[i] = nodes[other];
            nodes[other] = node;
        }
        for (int i = 0; i < count; i++) nodes[i].next = nodes[(i + 1) % count];
        Node at = nodes[0];
        for (int round = 0; round < 150; round++) at = chase(at, 50_000);
        System.out.println(at == nodes[7_500_000 % count]);
    }
}
