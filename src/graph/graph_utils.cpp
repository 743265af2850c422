// The graph behind arrays as text: a walk over what is not evaluated, inputs
// before what is made of them.
#include "mlx/graph_utils.h"

#include <functional>
#include <unordered_set>
#include <utility>

#include "graph/claims.h"
#include "mlx/primitives.h"
#include "mlx/utils.h"

namespace mlx::core {

namespace {

struct Graph {
  /// Arrays without operation, in the order of first use.
  std::vector<array> sources;
  /// One output of each operation, inputs first.
  std::vector<array> nodes;
};

// Under the lock, which makes sure that it stays so while the graph is read.
bool has_operation(const array& a) {
  return (a.status() == array::unscheduled || a.is_tracer()) &&
         a.has_primitive();
}

// Several operations may share a primitive, as those of a compiled function do.
std::uintptr_t operation_id(const array& a) {
  return a.outputs().front().id();
}

// With a stack of its own, since graphs may be deep.
Graph walk(const std::vector<array>& outputs) {
  Graph graph;
  std::unordered_set<std::uintptr_t> seen;
  std::vector<std::pair<array, bool>> stack;
  for (auto out = outputs.rbegin(); out != outputs.rend(); ++out) {
    stack.emplace_back(*out, false);
  }
  while (!stack.empty()) {
    auto [a, inputs_done] = stack.back();
    stack.pop_back();
    if (inputs_done) {
      graph.nodes.push_back(a);
      continue;
    }
    auto id = has_operation(a) ? operation_id(a) : a.id();
    if (!seen.insert(id).second) {
      continue;
    }
    if (!has_operation(a)) {
      graph.sources.push_back(a);
      continue;
    }
    stack.emplace_back(a, true);
    const std::vector<array>& inputs = a.inputs();
    for (auto in = inputs.rbegin(); in != inputs.rend(); ++in) {
      stack.emplace_back(*in, false);
    }
  }
  return graph;
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') {
      text += '\\';
    }
    text += c;
  }
  return text + "\"";
}

void print_list(
    std::ostream& os,
    const std::vector<array>& arrays,
    const std::function<void(const array&)>& print) {
  const char* separator = "";
  for (const array& a : arrays) {
    os << separator;
    print(a);
    separator = ", ";
  }
}

}  // namespace

const std::string& NodeNamer::get_name(const array& x) {
  auto found = names.find(x.id());
  if (found != names.end()) {
    return found->second;
  }
  std::string letters;
  for (size_t n = names.size() + 1; n > 0; n = (n - 1) / 26) {
    letters.insert(letters.begin(), static_cast<char>('A' + (n - 1) % 26));
  }
  return names[x.id()] = letters;
}

void NodeNamer::set_name(const array& x, std::string n) {
  names[x.id()] = std::move(n);
}

void print_graph(
    std::ostream& os, NodeNamer namer, const std::vector<array>& outputs) {
  Graph graph;
  detail::GraphLock lock;  // other threads may evaluate meanwhile
  graph = walk(outputs);
  auto name = [&](const array& a) { os << namer.get_name(a); };
  auto full = [&](const array& a) {
    os << namer.get_name(a) << " " << a.shape() << " " << a.dtype();
  };
  os << "inputs: ";
  print_list(os, graph.sources, name);
  os << "\noutputs: ";
  print_list(os, outputs, name);
  os << "\n";
  for (const array& node : graph.nodes) {
    os << node.primitive().name() << " ";
    print_list(os, node.inputs(), full);
    os << " -> ";
    print_list(os, node.outputs(), full);
    os << "\n";
  }
}

void export_to_dot(
    std::ostream& os, NodeNamer namer, const std::vector<array>& outputs) {
  Graph graph;
  detail::GraphLock lock;  // other threads may evaluate meanwhile
  graph = walk(outputs);
  std::unordered_set<std::uintptr_t> last;
  for (const array& out : outputs) {
    last.insert(out.id());
  }
  auto name = [&](const array& a) { return quoted(namer.get_name(a)); };
  os << "digraph {\n";
  for (const array& a : graph.sources) {
    os << "  { rank=source; " << name(a) << "; }\n";
  }
  for (const array& node : graph.nodes) {
    std::uintptr_t id = operation_id(node);
    os << "  " << id << " [label=" << quoted(node.primitive().name())
       << ", shape=rectangle];\n";
    for (const array& in : node.inputs()) {
      os << "  " << name(in) << " -> " << id << ";\n";
    }
    for (const array& out : node.outputs()) {
      if (last.contains(out.id())) {
        os << "  { rank=sink; " << name(out) << "; }\n";
      }
      os << "  " << id << " -> " << name(out) << ";\n";
    }
  }
  os << "}\n";
}

}  // namespace mlx::core
