// expect: load=total data=site level=DRAM memory=yes
// A vector of pointers to objects, in no order.
#include "fresh.h"
#include <memory>
#include <vector>

struct Account {
    long balance;
    char owner[96];
};

__attribute__((noinline)) static long total(const std::vector<std::unique_ptr<Account>> &accounts) {
    long sum = 0;
    for (const auto &account : accounts)
        sum += account->balance; // HOT
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    std::vector<std::unique_ptr<Account>> accounts;
    for (uint64_t bytes = 0; bytes < dram_bytes(); bytes += sizeof(Account) + 8) {
        accounts.push_back(std::make_unique<Account>()); // DATA
        accounts.back()->balance = bytes;
    }
    for (size_t i = accounts.size() - 1; i > 0; i--)
        accounts[i].swap(accounts[draw() % i]);
    long sum = 0;
    begin_work(3);
    while (goes_on())
        sum += total(accounts);
    printf("%d\n", sum > 0);
}
