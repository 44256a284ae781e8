// expect: load=longest data=site level=DRAM|L3 memory=yes
// A std::list that was sorted: its nodes lie in no order.
#include "fresh.h"
#include <list>

struct Job {
    uint64_t priority, length;
    char name[80];
    bool operator<(const Job &other) const { return priority < other.priority; }
};

__attribute__((noinline)) static uint64_t longest(const std::list<Job> &jobs) {
    uint64_t most = 0;
    for (const Job &job : jobs) // HOT
        if (job.length > most)  // HOT
            most = job.length;  // HOT
    return most;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    std::list<Job> jobs;
    for (int i = 0; i < 500000; i++)
        jobs.push_back(Job{draw(), draw() >> 8, "job"}); // DATA
    jobs.sort();
    uint64_t most = 0;
    begin_work(4);
    while (goes_on())
        most = longest(jobs);
    printf("%d\n", most > 0);
}
