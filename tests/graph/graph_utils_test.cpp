// Checks src/graph/graph_utils.cpp: names of arrays, graphs as text.
#include "mlx/graph_utils.h"

#include <gtest/gtest.h>

#include <sstream>

#include "mlx/ops.h"

namespace mlx::core {
namespace {

TEST(NodeNamer, CountsInLetters) {
  NodeNamer namer;
  std::vector<array> arrays;
  for (int i = 0; i < 28; ++i) {
    arrays.emplace_back(i);
  }
  EXPECT_EQ(namer.get_name(arrays[0]), "A");
  for (int i = 1; i < 27; ++i) {
    namer.get_name(arrays[i]);
  }
  EXPECT_EQ(namer.get_name(arrays[25]), "Z");
  EXPECT_EQ(namer.get_name(arrays[26]), "AA");
  EXPECT_EQ(namer.get_name(arrays[0]), "A");
  namer.set_name(arrays[27], "x");
  EXPECT_EQ(namer.get_name(arrays[27]), "x");
}

TEST(PrintGraph, LinesInOrderOfDependence) {
  array x(1.0f), y(2.0f);
  std::ostringstream os;
  print_graph(os, exp(x) + y);
  EXPECT_EQ(
      os.str(),
      "inputs: A, B\n"
      "outputs: C\n"
      "Exp A () float32 -> D () float32\n"
      "Add D () float32, B () float32 -> C () float32\n");
}

TEST(ExportToDot, SharedNodesOnceAndNamesQuoted) {
  array x(1.0f);
  array y = exp(x);
  NodeNamer namer;
  namer.set_name(x, "the \"x\"");
  std::ostringstream os;
  export_to_dot(os, namer, y * y);
  std::string text = os.str();
  auto count = [&](const std::string& what) {
    int n = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) {
      ++n;
    }
    return n;
  };
  EXPECT_EQ(count("label=\"Exp\""), 1);
  EXPECT_EQ(count("label=\"Multiply\""), 1);
  EXPECT_EQ(count("rank=source; \"the \\\"x\\\"\""), 1);
  EXPECT_EQ(count("rank=sink"), 1);
  EXPECT_EQ(text.substr(0, 10), "digraph {\n");
}

TEST(ExportToDot, EvaluatedArraysAreSources) {
  array y = exp(array(1.0f));
  y.eval();
  std::ostringstream os;
  export_to_dot(os, y);
  EXPECT_EQ(os.str(), "digraph {\n  { rank=source; \"A\"; }\n}\n");
}

TEST(ExportToDot, DeepGraphs) {
  array x(1.0f);
  array y = x;
  for (int i = 0; i < 200000; ++i) {
    y = y + x;
  }
  std::ostringstream os;
  export_to_dot(os, y);
  EXPECT_GT(os.str().size(), 200000u);
  y.eval();
}

}  // namespace
}  // namespace mlx::core
