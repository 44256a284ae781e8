// expect: memory=no
// Text from numbers, and its hash.
class java_none_text {
    public static void main(String[] args) {
        long sum = 0, ends = System.nanoTime() + 2_000_000_000L;
        while (System.nanoTime() < ends) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < 100; i++)
                text.append("line ").append(i).append(": ").append(i * 7).append('\n');
            sum += text.toString().hashCode();
        }
        System.out.println(sum != 0);
    }
}
