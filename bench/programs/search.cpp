// Breadth-first searches as people write them: reads a graph (nodes, edges, and a pair for each),
// searches from one node after another, and prints a line for each until SECONDS are over or
// SEARCHES are made.
// search GRAPH SECONDS [SEARCHES]
#include <chrono>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <queue>
#include <vector>

struct Visitor {
  virtual void visit(int node, int depth) = 0;
  virtual ~Visitor() {}
};

struct Depths : Visitor {
  long sum = 0;
  void visit(int, int depth) override { sum += depth; }
};

int main(int count, char **argv) {
  std::ifstream file(argv[1]);
  int nodes;
  long edges;
  file >> nodes >> edges;
  std::vector<std::vector<int>> graph(nodes);
  for (long edge = 0; edge < edges; edge++) {
    int a, b;
    file >> a >> b;
    graph[a].push_back(b);
    graph[b].push_back(a);
  }
  auto begin = std::chrono::steady_clock::now();
  unsigned seed = 1;
  int searches = count > 3 ? atoi(argv[3]) : INT_MAX;
  while (searches-- > 0 &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < atof(argv[2])) {
    seed = seed * 1103515245 + 12345;
    int root = (seed >> 8) % nodes;
    std::vector<int> depth(nodes, -1);
    std::queue<int> queue;
    auto visitor = std::make_unique<Depths>();
    queue.push(root);
    depth[root] = 0;
    while (!queue.empty()) {
      int node = queue.front();
      queue.pop();
      static_cast<Visitor &>(*visitor).visit(node, depth[node]);
      for (int next : graph[node])
        if (depth[next] < 0) {
          depth[next] = depth[node] + 1;
          queue.push(next);
        }
    }
    std::cout << root << ' ' << visitor->sum << std::endl;
  }
}
