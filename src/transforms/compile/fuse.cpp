// Finding what can be computed together: nodes of one iteration shape that are
// connected join a group, and each group of two or more becomes one node.
#include <algorithm>
#include <set>
#include <sstream>
#include <typeinfo>

#include "mlx/utils.h"
#include "ops/compiled.h"
#include "ops/elementwise_primitive.h"
#include "ops/reduce.h"
#include "ops/views.h"
#include "transforms/compile/traced_graph.h"

namespace mlx::core::detail {

namespace {

// Beyond these a part would not fit where kernels keep their arguments, or
// would take long to be made; chains go on in the next part.
constexpr size_t kMostArrays = 256;
constexpr size_t kMostSteps = 512;

// Rows are combined by one worker each: few long ones would leave the others
// idle.
constexpr int64_t kLongRow = 1 << 16;
constexpr int64_t kManyRows = 256;

enum class Kind { other, elementwise, cast, reduce };

int64_t size_of(const Shape& shape) {
  int64_t size = 1;
  for (ShapeElem n : shape) {
    size *= n;
  }
  return size;
}

// The shape of one value for each row.
Shape row_shape(Shape shape) {
  if (!shape.empty()) {
    shape.back() = 1;
  }
  return shape;
}

struct Group {
  std::vector<int> nodes;  // ascending
  Shape shape;             // what its elements go over
  bool reduces = false;
};

class Fuser {
 public:
  Fuser(TracedGraph& graph, std::string* report)
      : graph_(graph),
        report_(report),
        users_(graph.users()),
        is_output_(graph.output_marks()),
        kinds_(graph.nodes.size()),
        group_of_(graph.nodes.size(), -1) {}

  void run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      kinds_[n] = kind_of(graph_.nodes[n]);
      if (kinds_[n] != Kind::other) {
        place(static_cast<int>(n));
      }
    }
    drop_small_groups();
    rewrite();
    if (report_) {
      *report_ = parts_.str() + boundaries_.str();
    }
  }

 private:
  Kind kind_of(const TracedNode& node) const {
    const Primitive& p = *node.primitive;
    if (typeid(p) == typeid(Elementwise)) {
      return Kind::elementwise;
    }
    if (typeid(p) == typeid(AsType)) {
      return Kind::cast;
    }
    if (typeid(p) == typeid(Reduce)) {
      const auto& params = static_cast<const Reduce&>(p).params();
      const TracedValue& in = graph_.values[node.inputs[0]];
      int last = static_cast<int>(in.shape.size()) - 1;
      bool over_rows = params.axes == std::vector<int>{last};
      return over_rows && suits_rows(graph_, in) ? Kind::reduce : Kind::other;
    }
    return Kind::other;
  }

  const Shape& result_shape(int n) const {
    return graph_.values[graph_.nodes[n].outputs[0]].shape;
  }
  const Shape& element_shape(int n) const {
    return kinds_[n] == Kind::reduce
               ? graph_.values[graph_.nodes[n].inputs[0]].shape
               : result_shape(n);
  }
  Stream stream_of(int n) const { return graph_.nodes[n].primitive->stream(); }

  // Gives a node a group of its own and joins it with those it reads from.
  void place(int n) {
    int mine = static_cast<int>(groups_.size());
    groups_.push_back({{n}, element_shape(n), kinds_[n] == Kind::reduce});
    group_of_[n] = mine;
    for (int in : graph_.nodes[n].inputs) {
      int producer = graph_.values[in].node;
      if (producer < 0) {
        continue;
      }
      int theirs = group_of_[producer];
      if (theirs < 0) {
        note(producer, n, "it is of another kind");
      } else if (theirs != group_of_[n]) {
        join(theirs, group_of_[n], producer, n);
      }
    }
  }

  void join(int a, int b, int producer, int n) {
    const char* obstacle = nullptr;
    Shape shape;
    if (stream_of(producer) != stream_of(n)) {
      obstacle = "they run on different streams";
    } else if (!common_shape(groups_[a], groups_[b], n, shape)) {
      obstacle = "their shapes differ";
    } else if (
        groups_[a].nodes.size() + groups_[b].nodes.size() > kMostSteps ||
        count_arrays(a, b) > kMostArrays) {
      obstacle = "the part would be too large";
    } else if (makes_circle(a, b, n)) {
      obstacle = "what lies between them cannot be part of it";
    }
    if (obstacle) {
      note(producer, n, obstacle);
      return;
    }
    Group& whole = groups_[a];
    Group& rest = groups_[b];
    whole.nodes.insert(whole.nodes.end(), rest.nodes.begin(), rest.nodes.end());
    std::sort(whole.nodes.begin(), whole.nodes.end());
    whole.shape = shape;
    whole.reduces = whole.reduces || rest.reduces;
    for (int node : rest.nodes) {
      group_of_[node] = a;
    }
    rest.nodes.clear();
  }

  // The shape that both groups can go over, a's results being read by node n
  // of b.
  bool common_shape(const Group& a, const Group& b, int n, Shape& shape) const {
    if (a.shape == b.shape) {
      shape = a.shape;
      return true;
    }
    if (a.reduces && row_shape(a.shape) == b.shape && !b.reduces) {
      // Goes on with the rows' values.
      shape = a.shape;
      return true;
    }
    if (a.reduces || kinds_[n] == Kind::other) {
      return false;
    }
    shape = b.shape;
    bool for_rows = !graph_.shapeless && row_shape(b.shape) == a.shape;
    return for_rows || (a.shape.empty() && only_read_by(a, group_of_[n]));
  }

  // A single value that others read too is better computed once, alone.
  bool only_read_by(const Group& a, int b) const {
    int index = group_of_[a.nodes[0]];
    return std::none_of(a.nodes.begin(), a.nodes.end(), [&](int node) {
      return leaves(graph_.nodes[node].outputs[0], {index, b});
    });
  }

  size_t count_arrays(int a, int b) const {
    std::set<int> arrays;
    for (int group : {a, b}) {
      for (int node : groups_[group].nodes) {
        const TracedNode& member = graph_.nodes[node];
        arrays.insert(member.inputs.begin(), member.inputs.end());
        arrays.insert(member.outputs[0]);
      }
    }
    std::erase_if(arrays, [&](int value) {
      int producer = graph_.values[value].node;
      bool inside = producer >= 0 &&
                    (group_of_[producer] == a || group_of_[producer] == b);
      return inside && !leaves(value, {a, b});
    });
    return arrays.size();
  }

  // Whether a path leaves the two groups and comes back, which one operation
  // could not do. No node behind `last` has been placed yet, and paths only go
  // forward.
  bool makes_circle(int a, int b, int last) const {
    auto inside = [&](int node) {
      return group_of_[node] == a || group_of_[node] == b;
    };
    std::vector<int> stack;
    std::vector<char> seen(static_cast<size_t>(last) + 1, 0);
    auto leave = [&](int node) {
      for (int out : graph_.nodes[node].outputs) {
        for (int user : users_[out]) {
          if (user <= last && seen[user] == 0) {
            seen[user] = 1;
            stack.push_back(user);
          }
        }
      }
    };
    auto push_outside = [&](const Group& group) {
      for (int node : group.nodes) {
        leave(node);
      }
    };
    push_outside(groups_[a]);
    push_outside(groups_[b]);
    // Members read each other directly; only what comes from outside counts.
    std::vector<int> outside;
    for (int node : stack) {
      if (!inside(node)) {
        outside.push_back(node);
      }
    }
    stack = std::move(outside);
    std::fill(seen.begin(), seen.end(), 0);
    while (!stack.empty()) {
      int node = stack.back();
      stack.pop_back();
      if (inside(node)) {
        return true;
      }
      // A group is entered and left as one.
      if (group_of_[node] >= 0) {
        push_outside(groups_[group_of_[node]]);
      } else {
        leave(node);
      }
    }
    return false;
  }

  bool worth_it(const Group& group) const {
    if (group.nodes.size() < 2) {
      return false;
    }
    if (!group.reduces) {
      return true;
    }
    return std::any_of(group.nodes.begin(), group.nodes.end(), [&](int node) {
      return kinds_[node] != Kind::reduce && result_shape(node) == group.shape;
    });
  }

  void drop_small_groups() {
    for (Group& group : groups_) {
      if (!group.nodes.empty() && !worth_it(group)) {
        for (int node : group.nodes) {
          group_of_[node] = -1;
        }
        group.nodes.clear();
      }
    }
  }

  // ---- making the new nodes ----------------------------------------------

  Extent input_extent(const Shape& shape, const Shape& whole) const {
    if (shape.empty()) {
      return Extent::one;
    }
    if (!graph_.shapeless && size_of(shape) == 1) {
      return Extent::one;
    }
    bool for_rows = !graph_.shapeless && shape.back() == 1 && whole.back() > 1;
    return for_rows ? Extent::row : Extent::element;
  }

  TracedNode fused_node(int index) const {
    const Group& group = groups_[index];
    FusedProgram program;
    TracedNode node;
    std::vector<int> number(graph_.values.size(), -1);
    for (int member : group.nodes) {
      for (int in : graph_.nodes[member].inputs) {
        int producer = graph_.values[in].node;
        if (number[in] < 0 && (producer < 0 || group_of_[producer] != index)) {
          number[in] = program.num_inputs();
          node.inputs.push_back(in);
          program.inputs.push_back(
              {graph_.values[in].dtype,
               input_extent(graph_.values[in].shape, group.shape)});
        }
      }
    }
    for (int member : group.nodes) {
      const TracedNode& old = graph_.nodes[member];
      int result =
          program.num_inputs() + static_cast<int>(program.steps.size());
      program.steps.push_back(step_of(member, number, program));
      number[old.outputs[0]] = result;
      if (leaves(old.outputs[0], {index})) {
        program.outputs.push_back(result);
        node.outputs.push_back(old.outputs[0]);
      }
    }
    if (graph_.shapeless) {
      node.unfused = unfused(node, group);
    }
    node.primitive = std::make_shared<Compiled>(
        stream_of(group.nodes[0]), std::move(program));
    return node;
  }

  // The part as it was, for shapes that the fused one does not suit.
  std::shared_ptr<const TracedGraph> unfused(
      const TracedNode& node, const Group& group) const {
    auto part = std::make_shared<TracedGraph>();
    part->shapeless = true;
    part->values = graph_.values;
    for (TracedValue& value : part->values) {
      value.node = -1;
      value.constant.reset();
    }
    part->inputs = node.inputs;
    part->outputs = node.outputs;
    for (int member : group.nodes) {
      part->nodes.push_back(graph_.nodes[member]);
    }
    return part;
  }

  FusedStep step_of(
      int member,
      const std::vector<int>& number,
      const FusedProgram& program) const {
    const TracedNode& node = graph_.nodes[member];
    FusedStep step;
    step.dtype = graph_.values[node.outputs[0]].dtype;
    step.arity = static_cast<uint8_t>(node.inputs.size());
    step.extent = Extent::one;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      step.operands[k] = number[node.inputs[k]];
      step.extent = std::max(step.extent, program.extent(step.operands[k]));
    }
    switch (kinds_[member]) {
      case Kind::elementwise:
        step.kind = FusedStep::Kind::elementwise;
        step.op = static_cast<const Elementwise&>(*node.primitive).op();
        break;
      case Kind::cast:
        step.kind = FusedStep::Kind::cast;
        break;
      default:
        step.kind = FusedStep::Kind::reduce;
        step.reduce = static_cast<const Reduce&>(*node.primitive).params().type;
        step.extent = Extent::row;
    }
    return step;
  }

  // Whether a value is wanted outside of these groups.
  bool leaves(int value, std::initializer_list<int> groups) const {
    auto outside = [&](int user) {
      return std::find(groups.begin(), groups.end(), group_of_[user]) ==
             groups.end();
    };
    return is_output_[value] != 0 ||
           std::any_of(users_[value].begin(), users_[value].end(), outside);
  }

  // Nodes again behind what they read, groups as one.
  void rewrite() {
    std::vector<TracedNode> nodes;
    std::vector<char> done(graph_.nodes.size(), 0);
    std::vector<int> stack;
    auto members = [&](int n) {
      return group_of_[n] < 0 ? std::vector<int>{n}
                              : groups_[group_of_[n]].nodes;
    };
    for (size_t start = 0; start < graph_.nodes.size(); ++start) {
      stack.push_back(static_cast<int>(start));
      while (!stack.empty()) {
        int n = stack.back();
        if (done[n] != 0) {
          stack.pop_back();
          continue;
        }
        size_t waiting = stack.size();
        for (int member : members(n)) {
          for (int in : graph_.nodes[member].inputs) {
            int producer = graph_.values[in].node;
            bool same = producer >= 0 && group_of_[n] >= 0 &&
                        group_of_[producer] == group_of_[n];
            if (producer >= 0 && !same && done[producer] == 0) {
              stack.push_back(producer);
            }
          }
        }
        if (stack.size() > waiting) {
          continue;
        }
        for (int member : members(n)) {
          done[member] = 1;
        }
        if (group_of_[n] < 0) {
          nodes.push_back(graph_.nodes[n]);
        } else {
          nodes.push_back(fused_node(group_of_[n]));
          note_part(nodes.back(), groups_[group_of_[n]]);
        }
        stack.pop_back();
      }
    }
    graph_.nodes = std::move(nodes);
    graph_.remove_unused();
  }

  // ---- the report ----------------------------------------------------------

  void note(int producer, int n, const char* why) {
    if (report_) {
      boundaries_ << "  " << graph_.nodes[producer].primitive->name()
                  << " of shape " << result_shape(producer)
                  << " is not part of " << graph_.nodes[n].primitive->name()
                  << " of shape " << result_shape(n) << ": " << why << "\n";
    }
  }

  void note_part(const TracedNode& node, const Group& group) {
    if (report_) {
      parts_ << "  " << node.primitive->name() << " over " << group.shape
             << ": " << node.inputs.size() << " inputs, " << group.nodes.size()
             << " operations, " << node.outputs.size() << " outputs\n";
    }
  }

  TracedGraph& graph_;
  std::string* report_;
  std::ostringstream parts_;
  std::ostringstream boundaries_;
  std::vector<std::vector<int>> users_;
  std::vector<char> is_output_;
  std::vector<Kind> kinds_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
};

}  // namespace

bool suits_rows(const TracedGraph& graph, const TracedValue& value) {
  if (value.dtype == complex64 || value.shape.empty()) {
    return false;
  }
  if (graph.shapeless) {
    return true;
  }
  int64_t length = value.shape.back();
  int64_t size = size_of(value.shape);
  return length > 1 && size > 0 &&
         (length <= kLongRow || size / length >= kManyRows);
}

void fuse(TracedGraph& graph, std::string* report) {
  Fuser(graph, report).run();
}

}  // namespace mlx::core::detail
