// eval and async_eval: order the nodes, then run or submit them one by one.
#include <unordered_map>
#include <unordered_set>

#include "backend/backend.h"
#include "graph/tracing.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "types/error.h"

namespace mlx::core {

namespace {

void check_can_run(const array& a) {
  if (a.is_tracer() && !detail::in_grad_tracing()) {
    invalid(
        "eval",
        "an array has no value while a function is transformed: ",
        a.shape(),
        " ",
        a.dtype(),
        ". Inside compile or vmap an array cannot be evaluated, printed "
        "or read; return it instead, or disable compile.");
  }
  if (!a.has_primitive()) {
    throw std::runtime_error(
        "[eval] an array has neither data nor an operation: it was made "
        "while a function was transformed and left behind. Return it from "
        "the function, or declare it as captured output.");
  }
}

// Nodes in an order in which inputs come first (depth first, so that a
// value is used soon after it was made).
std::vector<array> make_tape(const std::vector<array>& outputs) {
  std::vector<array> tape;
  std::unordered_set<std::uintptr_t> seen;
  struct Frame {
    array node;
    size_t next;
  };
  std::vector<Frame> stack;
  auto visit = [&](const array& a) {
    if (a.status() != array::unscheduled || !seen.insert(a.id()).second) {
      return;
    }
    check_can_run(a);
    for (const array& sibling : a.siblings()) {
      seen.insert(sibling.id());
    }
    stack.push_back({a, 0});
  };
  for (const array& output : outputs) {
    visit(output);
    while (!stack.empty()) {
      Frame& top = stack.back();
      const std::vector<array>& inputs = top.node.inputs();
      if (top.next < inputs.size()) {
        visit(inputs[top.next++]);
      } else {
        tape.push_back(std::move(top.node));
        stack.pop_back();
      }
    }
  }
  return tape;
}

bool same_stream(const array& a, Stream s) {
  return a.has_primitive() && a.primitive().stream() == s;
}

// Runs a tape: what may run on this thread runs at once, the rest is
// submitted with events where one stream needs another's result.
class Run {
 public:
  explicit Run(bool async) : async_(async) {}

  void run(std::vector<array> tape) {
    find_crossings(tape);
    for (array& slot : tape) {
      array node = std::move(slot);
      Stream s = node.primitive().stream();
      Backend& backend = get_backend(s.device.type);
      if (!async_ && backend.runs_inline(s)) {
        wait_for_inputs(node);
        backend.run_inline(node);
      } else {
        submit(backend, s, std::move(node));
      }
    }
    for (auto& [s, event] : ends_) {
      Backend& backend = get_backend(s.device.type);
      backend.signal(s, event, context_);
      backend.flush(s);
    }
  }

 private:
  struct StreamHash {
    size_t operator()(const Stream& s) const {
      return static_cast<size_t>(s.index);
    }
  };

  // Nodes whose result another stream reads get an event of their own.
  void find_crossings(const std::vector<array>& tape) {
    for (const array& node : tape) {
      Stream s = node.primitive().stream();
      for (const array& in : node.inputs()) {
        if (in.status() == array::unscheduled && !same_stream(in, s)) {
          crossings_.emplace(in.id(), Event{});
        }
      }
    }
  }

  void wait_for_inputs(const array& node) {
    for (const array& in : node.inputs()) {
      if (auto it = crossings_.find(in.id());
          it != crossings_.end() && it->second.valid()) {
        get_backend(it->second.stream().device.type).flush(it->second.stream());
        it->second.wait();
      } else {
        const_cast<array&>(in).wait();
      }
    }
  }

  Event end_event(Stream s) {
    auto it = ends_.find(s);
    if (it == ends_.end()) {
      it = ends_.emplace(s, Event(s)).first;
    }
    return it->second;
  }

  void submit(Backend& backend, Stream s, array node) {
    for (const array& in : node.inputs()) {
      auto it = crossings_.find(in.id());
      if (it != crossings_.end() && it->second.valid() &&
          it->second.stream() != s) {
        backend.wait(s, it->second, context_);
      } else if (
          in.status() == array::evaluated && in.event().valid() &&
          !in.event().is_signaled() && !own_event(in)) {
        backend.wait(s, in.event(), context_);
      }
    }
    Event end = end_event(s);
    std::vector<array> outputs = node.outputs();
    for (const array& out : outputs) {
      out.attach_event(end);
      out.set_status(array::evaluated);
    }
    backend.submit(std::move(node), context_);
    for (const array& out : outputs) {
      auto it = crossings_.find(out.id());
      if (it != crossings_.end()) {
        it->second = Event(s);
        backend.signal(s, it->second, context_);
      }
    }
  }

  // Whether the array was submitted by this run: its stream's order, or a
  // crossing, already takes care of it.
  bool own_event(const array& a) const {
    auto it = ends_.find(a.event().stream());
    return it != ends_.end() &&
           it->second.load_error() == a.event().load_error();
  }

  bool async_;
  std::shared_ptr<EvalContext> context_ = std::make_shared<EvalContext>();
  std::unordered_map<std::uintptr_t, Event> crossings_;
  std::unordered_map<Stream, Event, StreamHash> ends_;
};

}  // namespace

void eval(std::vector<array> outputs) {
  bool pending = false;
  for (const array& a : outputs) {
    pending = pending || a.status() == array::unscheduled;
  }
  if (pending) {
    Run(false).run(make_tape(outputs));
  }
  for (array& a : outputs) {
    a.wait();
  }
}

void async_eval(std::vector<array> outputs) {
  if (detail::in_tracing()) {
    invalid(
        "async_eval",
        "called while a function is transformed. Call it "
        "outside of compile, grad or vmap.");
  }
  std::vector<array> tape = make_tape(outputs);
  if (!tape.empty()) {
    Run(true).run(std::move(tape));
  }
}

}  // namespace mlx::core
