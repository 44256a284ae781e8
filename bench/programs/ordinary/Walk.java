import java.util.HashMap;

public class Walk {
    public static void main(String[] arguments) {
        HashMap<Integer, Integer> map = new HashMap<>();
        for (int i = 0; i < 2000000; i++) map.put((int) ((long) i * 7919 % 15000017), i);
        long sum = 0;
        for (int i = 0; i < 6000000; i++) {
            Integer found = map.get((int) ((long) i * 104729 % 15000017));
            if (found != null) sum += found;
        }
        System.out.println(sum);
    }
}
