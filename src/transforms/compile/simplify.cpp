// Making a traced graph smaller without changing what it computes.
#include <cstring>
#include <string>
#include <typeinfo>
#include <unordered_map>

#include "mlx/ops.h"
#include "ops/elementwise_primitive.h"
#include "ops/join.h"
#include "ops/views.h"
#include "transforms/compile/traced_graph.h"

namespace mlx::core::detail {

namespace {

template <typename Op>
const Op* as(const Primitive& p) {
  return typeid(p) == typeid(Op) ? static_cast<const Op*>(&p) : nullptr;
}

// One walk from inputs to outputs: since equal nodes have equal inputs by the
// time that they are met, nothing is left for a second walk.
class Simplifier {
 public:
  explicit Simplifier(TracedGraph& graph) : graph_(graph) {
    for (size_t v = 0; v < graph.values.size(); ++v) {
      stands_for_.push_back(static_cast<int>(v));
    }
  }

  void run() {
    merge_numbers();
    for (TracedNode& node : graph_.nodes) {
      for (int& in : node.inputs) {
        in = stands_for_[in];
      }
      if (does_nothing(node)) {
        stands_for_[node.outputs[0]] = node.inputs[0];
      } else if (int source = undone_transpose(node); source >= 0) {
        stands_for_[node.outputs[0]] = source;
      } else if (!fold(node)) {
        skip_broadcasts(node);
        merge_node(node);
      }
    }
    for (int& out : graph_.outputs) {
      out = stands_for_[out];
    }
    graph_.remove_unused();
  }

 private:
  static std::string number_key(const array& a) {
    std::string key(1, static_cast<char>(a.dtype().val()));
    return key.append(a.data<char>(), a.itemsize());
  }

  void merge_numbers() {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      int value = static_cast<int>(v);
      if (graph_.is_number(value)) {
        std::string key = number_key(*graph_.values[v].constant);
        stands_for_[v] = numbers_.emplace(std::move(key), value).first->second;
      }
    }
  }

  bool does_nothing(const TracedNode& node) const {
    if (node.inputs.size() != 1 || node.outputs.size() != 1) {
      return false;
    }
    const TracedValue& in = graph_.values[node.inputs[0]];
    const TracedValue& out = graph_.values[node.outputs[0]];
    const Primitive& p = *node.primitive;
    if (in.dtype != out.dtype) {
      return false;
    }
    if (as<Copy>(p) || as<StopGradient>(p) || as<AsType>(p)) {
      return true;
    }
    // What keeps the shape now may not keep another one.
    return !graph_.shapeless && in.shape == out.shape &&
           (as<Reshape>(p) || as<Broadcast>(p) || as<Full>(p) ||
            as<Flatten>(p));
  }

  // The value that a transpose of a transpose gives back, or -1.
  int undone_transpose(const TracedNode& node) const {
    const auto* outer = as<Transpose>(*node.primitive);
    int n = outer ? graph_.values[node.inputs[0]].node : -1;
    const auto* inner =
        n < 0 ? nullptr : as<Transpose>(*graph_.nodes[n].primitive);
    if (!inner) {
      return -1;
    }
    const std::vector<int>& axes = outer->params().axes;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (inner->params().axes[axes[i]] != static_cast<int>(i)) {
        return -1;
      }
    }
    return graph_.nodes[n].inputs[0];
  }

  // What only depends on shapes and numbers is a number.
  bool fold(const TracedNode& node) {
    const Primitive& p = *node.primitive;
    bool counts = as<NumberOfElements>(p) && !graph_.shapeless;
    bool casts = as<AsType>(p) && graph_.is_number(node.inputs[0]);
    if (!counts && !casts) {
      return false;
    }
    int out = node.outputs[0];
    array number = casts ? astype(
                               *graph_.values[node.inputs[0]].constant,
                               graph_.values[out].dtype,
                               Device::cpu)
                         : count(node);
    number.eval();
    auto [known, is_new] = numbers_.emplace(number_key(number), out);
    stands_for_[out] = known->second;
    if (is_new) {
      graph_.values[out].constant = std::move(number);
    }
    return true;
  }

  // The same operation on an array of that shape that has no data to speak of.
  array count(const TracedNode& node) const {
    const auto& params =
        static_cast<const NumberOfElements&>(*node.primitive).params();
    array like = broadcast_to(
        array(0.0f), graph_.values[node.inputs[0]].shape, Device::cpu);
    return number_of_elements(
        like, params.axes, params.inverted, params.dtype, Device::cpu);
  }

  // Elementwise operations broadcast by themselves, so they can read what was
  // broadcast if the shape of the result still comes from another operand.
  void skip_broadcasts(TracedNode& node) {
    if (graph_.shapeless || !as<Elementwise>(*node.primitive)) {
      return;
    }
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      int source = source_of_broadcast(node.inputs[k]);
      if (source < 0) {
        continue;
      }
      Shape shape = graph_.values[source].shape;
      for (size_t j = 0; j < node.inputs.size(); ++j) {
        if (j != k) {
          shape = broadcast_shapes(shape, graph_.values[node.inputs[j]].shape);
        }
      }
      if (shape == graph_.values[node.outputs[0]].shape) {
        node.inputs[k] = source;
      }
    }
  }

  int source_of_broadcast(int value) const {
    int n = graph_.values[value].node;
    if (n < 0) {
      return -1;
    }
    const TracedNode& node = graph_.nodes[n];
    bool broadcasts =
        as<Broadcast>(*node.primitive) || as<Full>(*node.primitive);
    return broadcasts ? node.inputs[0] : -1;
  }

  // Of all that many nodes with the same inputs can differ by: their shapes,
  // and the beginnings of slices.
  size_t hash_of(const TracedNode& node) const {
    const Primitive& p = *node.primitive;
    size_t hash = typeid(p).hash_code();
    auto add = [&](size_t part) {
      hash = (hash ^ part) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    };
    for (int in : node.inputs) {
      add(static_cast<size_t>(in));
    }
    for (int out : node.outputs) {
      for (ShapeElem n : graph_.values[out].shape) {
        add(static_cast<size_t>(n));
      }
    }
    if (const auto* slice = as<Slice>(p)) {
      for (ShapeElem n : slice->params().start) {
        add(static_cast<size_t>(n));
      }
    }
    return hash;
  }

  void merge_node(const TracedNode& node) {
    if (node.postponed) {
      return;  // equal to no other
    }
    size_t hash = hash_of(node);
    auto [first, last] = nodes_.equal_range(hash);
    for (; first != last; ++first) {
      const TracedNode& other = *first->second;
      if (other.inputs == node.inputs && same_results(other, node)) {
        for (size_t i = 0; i < node.outputs.size(); ++i) {
          stands_for_[node.outputs[i]] = other.outputs[i];
        }
        return;
      }
    }
    nodes_.emplace(hash, &node);
  }

  bool same_results(const TracedNode& a, const TracedNode& b) const {
    Primitive& p = *a.primitive;
    Primitive& q = *b.primitive;
    if (a.outputs.size() != b.outputs.size() || typeid(p) != typeid(q) ||
        p.stream() != q.stream() || !p.is_equivalent(q)) {
      return false;
    }
    for (size_t i = 0; i < a.outputs.size(); ++i) {
      const TracedValue& x = graph_.values[a.outputs[i]];
      const TracedValue& y = graph_.values[b.outputs[i]];
      if (x.shape != y.shape || x.dtype != y.dtype) {
        return false;
      }
    }
    return true;
  }

  TracedGraph& graph_;
  std::vector<int> stands_for_;
  std::unordered_map<std::string, int> numbers_;
  std::unordered_multimap<size_t, const TracedNode*> nodes_;
};

}  // namespace

void simplify(TracedGraph& graph) {
  Simplifier(graph).run();
}

}  // namespace mlx::core::detail
