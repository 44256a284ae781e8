// Requests for random keys of a server on this host, redis or memcached, over TCP:
//   open_load redis|memcached PORT fill KEYS          stores KEYS values
//   open_load redis|memcached PORT most KEYS SECONDS  as fast as they are answered
//   open_load redis|memcached PORT RATE KEYS SECONDS  RATE a second, at random times
// The last two say how many were answered a second, and the median, the 95th and the 99th
// percentile of the times from when a request was due to its answer, in microseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 32, VALUE = 100, WAITING = 1 << 16 };

static int sockets[CONNECTIONS], is_redis;
static size_t answer_size;
static struct waiting {
    double due[WAITING];
    unsigned first, last;
    size_t bytes;
} waiting[CONNECTIONS];
static uint64_t state = 88172645463325252ull;

static uint64_t random_number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int connected(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int it = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (it < 0 || connect(it, (struct sockaddr *)&to, sizeof to))
        fail("connect");
    setsockopt(it, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return it;
}

static void all(int to, const char *text, size_t size) {
    while (size) {
        ssize_t sent = write(to, text, size);
        if (sent < 0)
            fail("write");
        text += sent;
        size -= (size_t)sent;
    }
}

static void fill(int port, long keys) {
    int to = connected(port);
    char value[VALUE + 1], text[512], answer[64];
    memset(value, 'v', VALUE);
    value[VALUE] = 0;
    size_t stored = is_redis ? 5 : 8; // +OK and STORED
    for (long key = 0; key < keys; key++) {
        int size = is_redis ? sprintf(text, "SET k%09ld %s\r\n", key, value)
                            : sprintf(text, "set k%09ld 0 0 %d\r\n%s\r\n", key, VALUE, value);
        all(to, text, (size_t)size);
        for (size_t got = 0; got < stored;) {
            ssize_t more = read(to, answer, stored - got);
            if (more <= 0)
                fail("read");
            got += (size_t)more;
        }
    }
}

static void ask(int which, long keys, double due) {
    char text[64];
    int size = sprintf(text, is_redis ? "GET k%09ld\r\n" : "get k%09ld\r\n", (long)(random_number() % (uint64_t)keys));
    struct waiting *it = &waiting[which];
    if (it->last - it->first >= WAITING) {
        fprintf(stderr, "the server is behind by more than %d requests\n", WAITING);
        exit(1);
    }
    it->due[it->last++ % WAITING] = due;
    all(sockets[which], text, (size_t)size);
}

static float *times;
static size_t answered, most;

// Takes the answers that came. Returns how many there were.
static unsigned take(int which) {
    char bytes[1 << 14];
    ssize_t got = recv(sockets[which], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0)
        fail("recv");
    struct waiting *it = &waiting[which];
    it->bytes += (size_t)got;
    unsigned many = 0;
    for (double at = now(); it->bytes >= answer_size; it->bytes -= answer_size, many++) {
        double took = at - it->due[it->first++ % WAITING];
        if (answered < most)
            times[answered++] = (float)(took * 1e6);
    }
    return many;
}

static int by_size(const void *a, const void *b) { return (*(float *)a > *(float *)b) - (*(float *)a < *(float *)b); }

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    is_redis = !strcmp(argv[1], "redis");
    int port = atoi(argv[2]);
    long keys = atol(argv[4]);
    if (!strcmp(argv[3], "fill"))
        return fill(port, keys), 0;
    double seconds = atof(argv[5]), rate = atof(argv[3]);
    answer_size = is_redis ? strlen("$100\r\n") + VALUE + 2 : strlen("VALUE k000000000 0 100\r\n") + VALUE + 2 + strlen("END\r\n");
    most = 1 << 23;
    times = malloc(most * sizeof *times);
    for (int i = 0; i < CONNECTIONS; i++)
        sockets[i] = connected(port);
    double begin = now(), end = begin + seconds, next = begin;
    unsigned turn = 0;
    int closed = !strcmp(argv[3], "most");
    if (closed)
        for (int i = 0; i < CONNECTIONS; i++)
            ask(i, keys, begin);
    for (double at; (at = now()) < end;) {
        if (!closed)
            for (; next <= at; next += -log(1 - (double)(random_number() >> 11) * 0x1p-53) / rate)
                ask((int)(turn++ % CONNECTIONS), keys, next);
        for (int i = 0; i < CONNECTIONS; i++)
            if (waiting[i].first != waiting[i].last)
                for (unsigned many = take(i); closed && many > 0; many--)
                    ask(i, keys, now());
    }
    qsort(times, answered, sizeof *times, by_size);
    printf("%.0f %.1f %.1f %.1f\n", (double)answered / seconds, times[answered / 2], times[answered * 95 / 100], times[answered * 99 / 100]);
}
