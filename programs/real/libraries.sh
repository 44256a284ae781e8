# The C and C++ libraries as shared objects, under every process of the workload: a program that
# uses much of both.
#: program /usr/lib/x86_64-linux-gnu/libc.so.6
#: program /usr/lib/x86_64-linux-gnu/libm.so.6
#: program /usr/lib/x86_64-linux-gnu/libstdc++.so.6
#: program /usr/lib/x86_64-linux-gnu/libgcc_s.so.1
#: program /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
#: needs g++ g++
#: quick
cat >use.cpp <<'CPP'
#include <algorithm>
#include <any>
#include <atomic>
#include <bitset>
#include <charconv>
#include <chrono>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <iomanip>
#include <iostream>
#include <list>
#include <locale>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <valarray>
#include <variant>
#include <vector>
extern "C" {
#include <dlfcn.h>
#include <execinfo.h>
#include <fnmatch.h>
#include <ftw.h>
#include <glob.h>
#include <iconv.h>
#include <langinfo.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <wchar.h>
#include <arpa/inet.h>
}
using namespace std;
static uint64_t mix(uint64_t h, uint64_t v) { h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2); return h * 0xff51afd7ed558ccdull; }
static void strings() {
    uint64_t h = 0; char a[600], b[600]; mt19937 r(1);
    for (int round = 0; round < 20000; round++) {
        size_t n = r() % 500, o = r() % 40; for (size_t i = 0; i < n; i++) a[o + i] = 'a' + r() % 26; a[o + n] = 0;
        memcpy(b + o / 2, a + o, n + 1); memmove(b + o, b + o / 2, n + 1); h = mix(h, strlen(b + o)); h = mix(h, strcmp(a + o, b + o)); b[o + n / 2] ^= 1;
        h = mix(h, (strcmp(a + o, b + o) > 0) + 2 * (memcmp(a + o, b + o, n) > 0) + 4 * (strncasecmp(a + o, b + o, n) > 0)); auto at = [&](const char *p) { return p ? p - a : -1; };
        h = mix(h, at(strchr(a + o, 'q'))); h = mix(h, at(strrchr(a + o, 'q'))); h = mix(h, at((char *)memchr(a + o, 'z', n))); h = mix(h, at(strstr(a + o, "ab"))); h = mix(h, strspn(a + o, "abcdefghijklm")); h = mix(h, strcspn(a + o, "xyz")); memset(b, round, r() % 600); h = mix(h, strnlen(a + o, 50)); h = mix(h, at((char *)memmem(a + o, n, "cd", 2)));
    }
    cout << "strings " << hex << h << dec << '\n';
}
static void figures() {
    uint64_t h = 0; mt19937_64 r(2); uniform_real_distribution<double> u(-700, 700); char s[64];
    auto put = [&](double d) { uint64_t v; if (d != d) d = 1; memcpy(&v, &d, 8); h = mix(h, v); };
    for (int i = 0; i < 20000; i++) { double x = u(r), y = u(r) / 100; put(sin(x)); put(cos(x)); put(tan(x)); put(exp(y)); put(log(fabs(x))); put(pow(fabs(x), y)); put(atan2(x, y)); put(sqrt(fabs(y))); put(cbrt(x)); put(erf(y)); put(lgamma(fabs(x))); put(sinh(y)); put(fmod(x, y)); put(hypot(x, y)); put(floor(x) + rint(y)); put(expf(y)); put(sinf(x)); put((double)expl(y)); put((double)sinl(x)); put(jn(2, y)); int e; put(frexp(x, &e)); put(ldexp(y, e)); put(fma(x, y, 1));
        snprintf(s, 64, "%.17g %a %.3Lf %-8.2e", x, y, (long double)x, y); for (char *p = s; *p; p++) h = mix(h, *p); put(strtod(s, nullptr)); put(strtold(s, nullptr)); h = mix(h, strtoll(s, nullptr, 10)); auto [p, ec] = to_chars(s, s + 64, x); *p = 0; double back; from_chars(s, p, back); if (back != x) cout << "bad\n"; }
    cout << "numbers " << hex << h << dec << ' ' << setprecision(12) << exp(complex<double>(1, 2)) << ' ' << hypot(3.0, 4.0) << ' ' << fixed << 2.0 / 3 << defaultfloat << hexfloat << 0.1 << defaultfloat << '\n';
}
struct noisy { string s; ~noisy() { if (s.size() > 3) s.clear(); } };
static int thrower(int n) { noisy x{to_string(n)}; if (n % 7 == 0) throw runtime_error("seven " + x.s); if (n % 11 == 0) throw n; try { return n % 5 ? n : thrower(n + 2); } catch (int i) { throw make_pair(i, n); } }
static void exceptions() { long sum = 0; for (int i = 1; i < 5000; i++) try { sum += thrower(i); } catch (const exception &e) { sum += strlen(e.what()); } catch (int j) { sum -= j; } catch (pair<int, int> &p) { sum += p.first ^ p.second; }
    try { try { vector<int>().at(3); } catch (...) { throw_with_nested(logic_error("outer")); } } catch (exception &e) { cout << e.what(); try { rethrow_if_nested(e); } catch (exception &in) { cout << ' ' << in.what(); } }
    try { any_cast<int>(any(2.0)); } catch (bad_any_cast &e) { cout << ' ' << e.what(); } try { stoi("x"); } catch (invalid_argument &e) { cout << ' ' << e.what(); } try { volatile size_t huge = ~0ull >> 2; delete[] new char[huge]; } catch (bad_alloc &e) { cout << ' ' << e.what(); } qsort_r(nullptr, 0, 1, [](const void *, const void *, void *) { return 0; }, nullptr);
    int a[] = {5, 3, 1}; try { qsort(a, 3, 4, [](const void *, const void *) -> int { throw 5; }); } catch (int i) { sum += i; } cout << " exceptions " << sum << '\n'; }
static void containers() { map<string, int> m; unordered_map<int, string> u; set<int> s; deque<int> d; list<int> l; mt19937 r(3); for (int i = 0; i < 50000; i++) { int k = r() % 9973; m["k" + to_string(k)]++; u[k] += 'x'; s.insert(k); if (i & 1) d.push_back(k); else d.push_front(k); l.push_back(k); if (i % 3 == 0) { l.pop_front(); d.pop_back(); s.erase(k / 2); } } l.sort(); l.unique(); vector<int> v(d.begin(), d.end()); stable_sort(v.begin(), v.end()); nth_element(v.begin(), v.begin() + 9, v.end()); shuffle(v.begin(), v.end(), r); partial_sort(v.begin(), v.begin() + 50, v.end());
    size_t n = 0; for (auto &[k, t] : u) n += t.size() * k; cout << "containers " << m.size() << ' ' << n << ' ' << s.size() << ' ' << l.size() << ' ' << v[49] << ' ' << accumulate(v.begin(), v.end(), 0L) << ' ' << bitset<70>(12345).count() << ' ' << valarray<int>{1, 2, 3}.sum() << '\n'; }
static void threads() { mutex m; condition_variable c; deque<int> q; atomic<long> sum{0}; vector<thread> t; bool done = false; for (int i = 0; i < 4; i++) t.emplace_back([&] { for (;;) { unique_lock l(m); c.wait(l, [&] { return done || !q.empty(); }); if (q.empty()) return; int v = q.front(); q.pop_front(); l.unlock(); sum += v; } }); for (int i = 0; i < 20000; i++) { lock_guard l(m); q.push_back(i); c.notify_one(); } { lock_guard l(m); done = true; } c.notify_all(); for (auto &x : t) x.join();
    auto f = async(launch::async, [] { static thread_local int v = 40; return v += 2; }); cout << "threads " << sum << ' ' << f.get(); once_flag o; for (int i = 0; i < 3; i++) call_once(o, [] { cout << " once"; }); promise<int> p; auto pf = p.get_future(); thread([&] { try { throw 3; } catch (...) { p.set_exception(current_exception()); } }).join(); try { pf.get(); } catch (int i) { cout << ' ' << i; } pthread_t pt; pthread_create(&pt, 0, [](void *) -> void * { noisy guard{"guard"}; for (;;) pause(); }, 0); usleep(20000); pthread_cancel(pt); void *ret; pthread_join(pt, &ret); cout << ' ' << (ret == PTHREAD_CANCELED); sem_t s; sem_init(&s, 0, 1); sem_wait(&s); timespec ts{1, 0}; cout << ' ' << sem_timedwait(&s, &ts) << ' ' << strerror(errno) << '\n'; }
static void streams() { stringstream s; s << setw(10) << setfill('*') << left << "ab" << right << setw(8) << 3.14159 << hex << showbase << 255 << oct << ' ' << 8 << dec << boolalpha << true << quoted("q\"x"); string a; int i = 0; s >> a; cout << s.str() << ' ' << a; istringstream in("12 0x1f 3.5 word"); double d; in >> i >> hex >> ws; int x; in >> x >> d >> a; cout << ' ' << i << ' ' << x << ' ' << d << ' ' << a << ' ' << in.eof(); ofstream("f") << "line 1\nline 2\n" << 3 << endl; ifstream fi("f"); while (getline(fi, a)) cout << '|' << a; filesystem::create_directories("x/y/z"); filesystem::copy("f", "x/y/f"); for (auto &e : set<filesystem::path>{filesystem::recursive_directory_iterator("x"), {}}) cout << ' ' << e.string(); cout << ' ' << regex_replace(string("the quick fox"), regex("(\\w+) (\\w+)"), "$2 $1") << ' ' << put_time(gmtime(new time_t(1000000000)), "%c %V") << '\n'; wstring w = L"wide é ß"; cout << w.size() << ' ' << (int)towupper(L'é'); locale::global(locale("C.UTF-8")); char mb[64]; wcstombs(mb, w.c_str(), 64); cout << ' ' << mb << ' ' << use_facet<ctype<char>>(locale()).toupper('q') << '\n'; }
static jmp_buf env; static volatile int hits; static ucontext_t one, two;
static void libc() { struct sigaction sa {}; sa.sa_handler = [](int) { hits++; void *b[8]; hits += backtrace(b, 8) > 2; }; stack_t st{malloc(65536), 0, 65536}; sigaltstack(&st, 0); sa.sa_flags = SA_ONSTACK; sigaction(SIGUSR1, &sa, 0); for (int i = 0; i < 50; i++) raise(SIGUSR1); if (int v = setjmp(env)) cout << "jumped " << v << ' ' << hits; else longjmp(env, 5); sigaction(SIGSEGV, (sa.sa_handler = [](int) { siglongjmp(env, 9); }, sa.sa_flags = SA_NODEFER, &sa), 0); if (sigsetjmp(env, 1) == 0) *(volatile int *)8 = 1; else cout << " faulted"; getcontext(&two); two.uc_stack = {malloc(65536), 0, 65536}; two.uc_link = &one; makecontext(&two, (void (*)())[] { cout << " context"; }, 0); swapcontext(&one, &two);
    glob_t g; glob("/usr/share/common-licenses/*GPL*", 0, 0, &g); cout << ' ' << g.gl_pathc << fnmatch("*.[ch]", "a.c", 0); regex_t re; regcomp(&re, "^(a|b)*c+[[:digit:]]{2,3}$", REG_EXTENDED); for (auto t : {"abac12", "abc1", "ccc123", "x"}) cout << regexec(&re, t, 0, 0, 0); passwd *p = getpwnam("root"); cout << ' ' << (p ? p->pw_dir : "?") << ' '; iconv_t cd = iconv_open("UTF-16LE", "UTF-8"); char in[] = "aé☺", out[32], *i = in, *o = out; size_t il = sizeof in, ol = 32; cout << iconv(cd, &i, &il, &o, &ol) << 32 - ol; int n = 0, k = 0; float f; char w[10]; cout << ' ' << sscanf("12 3.5 word [abc]", "%d %f %9s [%n%*[a-c]", &n, &f, w, &k) << n << f << w << k; FILE *pp = popen("echo piped; exit 3", "r"); char line[20]; fgets(line, 20, pp); cout << ' ' << line << WEXITSTATUS(pclose(pp)) << system("exit 4") / 256; pid_t child; const char *argv[] = {"true", nullptr}; int status; posix_spawnp(&child, "true", 0, 0, (char **)argv, environ); waitpid(child, &status, 0); cout << status; if (vfork() == 0) _exit(0); wait(&status); char buf[100]; tm t{}; strptime("2024-02-29 12:34:56", "%Y-%m-%d %H:%M:%S", &t); t.tm_mday += 366; cout << ' ' << timegm(&t); strftime(buf, 100, "%A %d %B %Y %U", &t); cout << ' ' << buf << ' ' << inet_ntop(AF_INET6, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", buf, 100); void *root = 0; for (long v : {5, 2, 8, 1, 9, 2}) tsearch((void *)v, &root, [](const void *a, const void *b) { return (a > b) - (a < b); }); twalk(root, [](const void *n, VISIT v, int) { if (v == postorder || v == leaf) cout << ' ' << *(long *)n; }); hcreate(10); hsearch({(char *)"k", (void *)7}, ENTER); cout << ' ' << (long)hsearch({(char *)"k", 0}, FIND)->data; srand(5); srandom(5); srand48(5); cout << ' ' << rand() << ' ' << random() << ' ' << drand48(); void *h = dlopen("libm.so.6", RTLD_NOW); cout << ' ' << ((double (*)(double))dlsym(h, "cos"))(0) << ' ' << (dlopen("none.so", RTLD_NOW) == nullptr) << nl_langinfo(DAY_1) << ' ' << getenv("TZ") << '\n'; vector<void *> ps; mt19937 r(9); for (int j = 0; j < 200000; j++) { if (ps.size() > 500 || (ps.size() && r() % 3 == 0)) { size_t at = r() % ps.size(); if (r() % 2) { ps[at] = realloc(ps[at], r() % 5000 + 1); } else { free(ps[at]); ps[at] = ps.back(); ps.pop_back(); } } else ps.push_back(r() % 4 ? malloc(r() % 3000) : aligned_alloc(64, 64 * (r() % 2000 + 1))); } for (auto q : ps) free(q); char *big = (char *)malloc(10 << 20); memset(big, 1, 10 << 20); free(big); cout << "allocated\n"; }
int main() { strings(); figures(); exceptions(); containers(); threads(); streams(); libc(); set_terminate([] { cout << "terminated" << endl; _exit(7); }); [&]() noexcept { throw 1; }(); }
CPP
g++ -std=c++20 -O1 -o use use.cpp -pthread 2>&1 | head -20; ./use; echo "status $?"
getent passwd root; locale -a | head -3; iconv -f latin1 -t utf-8 <<<$'\xe9'; date -u -d @0; ldd ./use | awk '{ print $1 }'; rm -rf x f; LD_DEBUG=statistics ./use 2>&1 | grep -c 'number of relocations'; rm -rf x f; LD_BIND_NOW=1 ./use 2>&1 | cksum; LD_PRELOAD=libm.so.6 /bin/true; echo $?
