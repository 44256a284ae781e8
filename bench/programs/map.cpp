// Looks words up in an ordered map, as programs count what they read: map MIB MILLIONS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

int main(int argc, char **argv) {
  const std::uint64_t entries = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64) * 8192;
  const std::uint64_t lookups = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1) * 1000000;
  std::map<std::uint64_t, std::string> counted;
  std::uint64_t state = 1, found = 0;
  auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  for (std::uint64_t i = 0; i < entries; i++)
    counted.emplace(i * 0x9e3779b97f4a7c15u >> 40, std::string(24, char('a' + i % 26)));
  for (std::uint64_t i = 0; i < lookups; i++) {
    auto it = counted.find((next() % entries) * 0x9e3779b97f4a7c15u >> 40);
    if (it != counted.end()) found += it->second[i % 24];
  }
  std::printf("%lu of %zu\n", found, counted.size());
}
