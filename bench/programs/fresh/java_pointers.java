// expect: load=balance data=kind:java level=DRAM|L3 memory=yes
// An array of references to objects, in no order.
class java_pointers {
    static final class Account {
        long amount;
        long a, b, c, d, e, f, g;
        Account(long amount) { this.amount = amount; }
    }

    static long balance(Account[] accounts) {
        long sum = 0;
        for (Account account : accounts)
            sum += account.amount; // HOT
        return sum;
    }

    public static void main(String[] args) {
        int count = 3_000_000;
        Account[] accounts = new Account[count];
        for (int i = 0; i < count; i++)
            accounts[i] = new Account(i);
        long draw = 1;
        for (int i = count - 1; i > 0; i--) {
            draw = draw * 6364136223846793005L + 1442695040888963407L;
            int j = (int) (draw >>> 33) % i;
            Account swap = accounts[i];
            accounts[i] = accounts[j];
            accounts[j] = swap;
        }
        long sum = 0, ends = System.nanoTime() + 3_000_000_000L;
        while (System.nanoTime() < ends)
            sum += balance(accounts);
        System.out.println(sum > 0);
    }
}
