// Groups of a trace: no path leaves one and comes back, neighbours are apart
// only where one would, and long traces take time in proportion.
#include <gtest/gtest.h>

#include <random>

#include "mlx/compile.h"
#include "mlx/ops.h"
#include "transforms/compile/cache.h"
#include "transforms/compile/groups.h"

namespace mlx::core {
namespace {

using Arrays = std::vector<array>;
using detail::Grouping;
using detail::TracedGraph;

// The nodes as the passes before fusing leave them.
TracedGraph traced(const ArrayFn& fun, const Arrays& inputs, bool shapeless) {
  set_compile_mode(CompileMode::no_fuse);
  TracedGraph graph = detail::compile_trace(fun, inputs, shapeless);
  enable_compile();
  return graph;
}

// Operations that join and such that never do, of values made before, the last
// ones more often.
Arrays random_function(const Arrays& in, unsigned seed) {
  std::mt19937 random(seed);
  Arrays made = in;
  auto pick = [&] {
    size_t far = random() % 3 == 0 ? made.size() : 4;
    return made[made.size() - 1 - random() % std::min(far, made.size())];
  };
  for (int i = 0; i < 60; ++i) {
    switch (random() % 5) {
      case 0:
        made.push_back(cumsum(pick(), 1));
        break;
      case 1:
        made.push_back(sin(pick()));
        break;
      default:
        made.push_back(multiply(pick(), add(pick(), pick())));
    }
  }
  return {made.end() - 8, made.end()};
}

// The graph with groups as one: by node the first of its group, and which lead
// to which, by any number of steps.
struct Contracted {
  Contracted(const TracedGraph& graph, const Grouping& found) {
    size_t count = graph.nodes.size();
    first.resize(count);
    leads.assign(count, std::vector<char>(count, 0));
    for (size_t n = 0; n < count; ++n) {
      int group = found.group_of[n];
      first[n] = group < 0 ? static_cast<int>(n) : found.groups[group].nodes[0];
    }
    for (size_t n = 0; n < count; ++n) {
      for (int in : graph.nodes[n].inputs) {
        int producer = graph.values[in].node;
        if (producer >= 0 && first[producer] != first[n]) {
          leads[first[producer]][first[n]] = 1;
        }
      }
    }
    direct = leads;
    for (size_t k = 0; k < count; ++k) {
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; leads[i][k] != 0 && j < count; ++j) {
          leads[i][j] = leads[i][j] != 0 || leads[k][j] != 0;
        }
      }
    }
  }

  bool detour(int a, int b) const {
    for (size_t k = 0; k < first.size(); ++k) {
      bool between = static_cast<int>(k) != a && static_cast<int>(k) != b;
      if (between && leads[a][k] != 0 && leads[k][b] != 0) {
        return true;
      }
    }
    return false;
  }

  std::vector<int> first;
  std::vector<std::vector<char>> direct;
  std::vector<std::vector<char>> leads;
};

TEST(CompileGroups, AreAsLargeAsCirclesLet) {
  size_t joined = 0;
  size_t apart = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    auto fun = [&](const Arrays& in) { return random_function(in, seed); };
    TracedGraph graph = traced(fun, {ones({3, 4}), ones({3, 4})}, false);
    Grouping found = detail::find_groups(graph, nullptr);
    Contracted contracted(graph, found);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      int mine = contracted.first[n];
      ASSERT_EQ(contracted.leads[mine][mine], 0) << "circle, seed " << seed;
      joined += mine != static_cast<int>(n);
      for (size_t m = 0; m < n; ++m) {
        int theirs = contracted.first[m];
        bool could = found.kinds[n] != detail::NodeKind::other &&
                     found.kinds[m] != detail::NodeKind::other;
        if (could && contracted.direct[theirs][mine] != 0) {
          ++apart;
          ASSERT_TRUE(contracted.detour(theirs, mine))
              << m << " and " << n << " could join, seed " << seed;
        }
      }
    }
  }
  // Both happened often enough to be a test.
  EXPECT_GT(joined, 500u);
  EXPECT_GT(apart, 100u);
}

// ---- long traces ------------------------------------------------------------

// A chain with branches to both sides and products between, whose derivatives
// lead back past all of it.
Arrays long_function(const Arrays& in, int count) {
  array x = in[0];
  array t = in[1];
  Arrays saved;
  for (int i = 0; i < count; ++i) {
    t = cumsum(t, 1);
    x = multiply(sin(x), t);
    if (i % 4 == 0) {
      saved.push_back(x);
      x = matmul(x, in[1]);
    }
  }
  array back = sum(x);
  Arrays results;
  for (size_t i = saved.size(); i-- > 0;) {
    back = matmul(multiply(back, cos(saved[i])), in[1]);
    results.push_back(add(multiply(saved[i], array(0.5f)), back));
  }
  return results;
}

TEST(CompileGroups, LongTracesTakeTimeInProportion) {
  for (bool shapeless : {false, true}) {
    for (int count : {100, 1000, 4000}) {
      auto fun = [&](const Arrays& in) { return long_function(in, count); };
      TracedGraph graph = traced(fun, {ones({4, 4}), ones({4, 4})}, shapeless);
      Grouping found = detail::find_groups(graph, nullptr);
      EXPECT_GT(found.looked_at, graph.nodes.size());
      EXPECT_LT(found.looked_at, 20 * graph.nodes.size()) << count;
    }
  }
}

TEST(CompileGroups, PartsHoldNoValuesOfOthers) {
  auto fun = [](const Arrays& in) { return long_function(in, 100); };
  TracedGraph graph = traced(fun, {ones({4, 4}), ones({4, 4})}, true);
  detail::fuse(graph);
  size_t parts = 0;
  for (const detail::TracedNode& node : graph.nodes) {
    if (node.unfused) {
      ++parts;
      EXPECT_EQ(
          node.unfused->values.size(),
          node.inputs.size() + node.unfused->nodes.size());
    }
  }
  EXPECT_GT(parts, 20u);
}

}  // namespace
}  // namespace mlx::core
