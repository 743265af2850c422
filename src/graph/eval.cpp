// eval and async_eval: order the nodes, then run or submit them one by one.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "backend/backend.h"
#include "graph/claims.h"
#include "graph/composite.h"
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

// Whether a value is there or will be without anyone's claim; so it stays.
bool is_underway(const array& a) {
  return a.status() == array::available || a.status() == array::evaluated;
}

bool same_stream(const array& a, Stream s) {
  return a.primitive().stream() == s;
}

// One eval: claims its nodes, then runs them in order. What may run on this
// thread runs at once, the rest is submitted with events where one stream
// needs another's result.
class Run {
 public:
  explicit Run(bool async) : async_(async) {}

  void run(const std::vector<array>& outputs) {
    claim_nodes(outputs);
    try {
      await_others();
      if (several_streams_) {
        find_crossings();
      }
      for (; next_ < tape_.size(); ++next_) {
        compute(tape_[next_]);
      }
    } catch (...) {
      finish();
      throw;
    }
    finish();
  }

 private:
  struct StreamHash {
    size_t operator()(const Stream& s) const {
      return static_cast<size_t>(s.index);
    }
  };

  struct Frame {
    const array* node;
    size_t next;
  };

  // Handles on what a node gives; the node itself forgets its siblings when it
  // has run. Most have none, and then nothing is allocated.
  class Outputs {
   public:
    explicit Outputs(const array& node)
        : node_(node), siblings_(node.siblings()) {}

    template <typename F>
    void each(F&& f) const {
      f(node_);
      for (const array& sibling : siblings_) {
        f(sibling);
      }
    }

   private:
    array node_;
    std::vector<array> siblings_;
  };

  // Fills the tape with unscheduled nodes, each behind its inputs (depth
  // first, so that a value is used soon after it was made).
  void claim_nodes(const std::vector<array>& outputs) {
    detail::GraphLock lock;
    std::vector<Frame> stack;
    try {
      for (const array& output : outputs) {
        visit(output, stack);
        while (!stack.empty()) {
          Frame& top = stack.back();
          const std::vector<array>& inputs = top.node->inputs();
          if (top.next < inputs.size()) {
            visit(inputs[top.next++], stack);
          } else {
            tape_.push_back(*top.node);
            stack.pop_back();
          }
        }
      }
    } catch (...) {
      for (const Frame& frame : stack) {
        detail::Claimant::give_back(*frame.node);
      }
      for (const array& node : tape_) {
        detail::Claimant::give_back(node);
      }
      throw;
    }
  }

  void visit(const array& a, std::vector<Frame>& stack) {
    if (a.status() == array::unscheduled) {
      check_can_run(a);
      stack.push_back({&a, 0});
      claimant_.take(a);
      Stream s = a.primitive().stream();
      several_streams_ = several_streams_ || s != stream_.value_or(s);
      stream_ = s;
    } else if (!detail::is_settled(a) && !claimant_.owns(a)) {
      others_.push_back(a);
    }
  }

  // Other threads' nodes come first, so that everything below this graph is
  // done or has an event that will be signaled.
  void await_others() {
    for (array& node : others_) {
      detail::wait_until_settled(node);
      while (!is_underway(node)) {
        mlx::core::eval({node});  // the other eval failed, perhaps elsewhere
      }
    }
    others_.clear();
  }

  // Nodes whose result another stream reads get an event of their own.
  void find_crossings() {
    for (const array& node : tape_) {
      Stream s = node.primitive().stream();
      for (const array& in : node.inputs()) {
        if (in.status() == array::running && !same_stream(in, s)) {
          crossings_.emplace(in.id(), Event{});
        }
      }
    }
  }

  void compute(array& slot) {
    Stream s = slot.primitive().stream();
    Backend& backend = get_backend(s.device.type);
    if (!async_ && backend.runs_inline(s)) {
      wait_for_inputs(slot);
      backend.run_inline(slot);
      array done = std::move(slot);
      detail::wake_waiters();
    } else {
      submit(backend, s, slot);
    }
  }

  // After an error too: what was submitted ends with an event, what was not
  // even begun is there to be claimed again.
  void finish() {
    for (auto& [s, event] : ends_) {
      Backend& backend = get_backend(s.device.type);
      backend.signal(s, event, context_);
      event.set_posted();
      backend.flush(s);
    }
    if (next_ < tape_.size()) {
      give_back_rest();
    }
    detail::wake_waiters();
  }

  void give_back_rest() {
    detail::GraphLock lock;
    for (; next_ < tape_.size(); ++next_) {
      if (tape_[next_].id() != 0) {
        detail::Claimant::give_back(tape_[next_]);
      }
    }
  }

  void wait_for_inputs(const array& node) {
    for (const array& in : node.inputs()) {
      if (in.status() == array::available) {
        continue;
      }
      auto it = crossings_.find(in.id());
      if (it != crossings_.end() && it->second.valid()) {
        get_backend(it->second.stream().device.type).flush(it->second.stream());
        it->second.wait();
      } else {
        const_cast<array&>(in).wait();
      }
    }
  }

  const Event& end_event(Stream s) {
    if (last_end_ == nullptr || last_end_->stream() != s) {
      auto it = ends_.find(s);
      if (it == ends_.end()) {
        it = ends_.emplace(s, Event(s)).first;
      }
      last_end_ = &it->second;
    }
    return *last_end_;
  }

  // For an input that was submitted, by whomever.
  void wait_on_stream(Backend& backend, Stream s, const array& in) {
    if (!crossings_.empty()) {
      auto it = crossings_.find(in.id());
      if (it != crossings_.end() && it->second.valid()) {
        if (it->second.stream() != s) {
          backend.wait(s, it->second, context_);
        }
        return;
      }
    }
    if (in.event().valid() && !own_event(in)) {
      backend.wait(s, in.event(), context_);
    }
  }

  void submit(Backend& backend, Stream s, array& slot) {
    if (!context_) {
      context_ = std::make_shared<EvalContext>();
    }
    for (const array& in : slot.inputs()) {
      if (in.status() == array::evaluated) {
        wait_on_stream(backend, s, in);
      }
    }
    const Event& end = end_event(s);
    Outputs outputs(slot);
    outputs.each([&](const array& out) {
      out.attach_event(end);
      out.set_status(array::evaluated);
    });
    try {
      submit_node(backend, std::move(slot));
    } catch (const std::exception& e) {
      fail(backend, s, outputs, e.what());
      throw;
    }
    if (!crossings_.empty()) {
      outputs.each([&](const array& out) { signal_crossing(backend, s, out); });
    }
  }

  void signal_crossing(Backend& backend, Stream s, const array& out) {
    auto it = crossings_.find(out.id());
    if (it != crossings_.end()) {
      it->second = Event(s);
      backend.signal(s, it->second, context_);
      it->second.set_posted();
    }
  }

  void submit_node(Backend& backend, array node) {
    bool as_one = backend.records(node.primitive().stream()) &&
                  detail::submit_composite(node, context_);
    if (!as_one) {
      backend.submit(std::move(node), context_);
    }
  }

  // What was not even submitted gets an event of its own with the error: what
  // came before it is not lost.
  static void fail(
      Backend& backend, Stream s, const Outputs& outputs, const char* message) {
    auto context = std::make_shared<EvalContext>();
    context->error.set_message(std::make_shared<std::string>(message));
    Event event(s);
    outputs.each([&](const array& out) { out.attach_event(event); });
    backend.signal(s, event, context);
    event.set_posted();
  }

  // Whether the array was submitted by this run: its stream's order, or a
  // crossing, already takes care of it.
  bool own_event(const array& a) const {
    const Error* error = a.event().load_error();
    if (last_end_ != nullptr && last_end_->load_error() == error) {
      return true;
    }
    auto it = ends_.find(a.event().stream());
    return it != ends_.end() && it->second.load_error() == error;
  }

  bool async_;
  detail::Claimant claimant_;
  std::vector<array> tape_;
  size_t next_ = 0;  // what comes before it in the tape is done or submitted
  std::optional<Stream> stream_;
  bool several_streams_ = false;
  std::vector<array> others_;
  std::shared_ptr<EvalContext> context_;  // once something is submitted
  std::unordered_map<std::uintptr_t, Event> crossings_;
  std::unordered_map<Stream, Event, StreamHash> ends_;
  const Event* last_end_ = nullptr;  // the one asked for last
};

bool all_done(const std::vector<array>& arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [](const array& a) {
    return a.status() == array::available;
  });
}

}  // namespace

// More than once only when another thread had claimed an output, and failed.
void eval(std::vector<array> outputs) {
  while (!all_done(outputs)) {
    Run(false).run(outputs);
    for (array& a : outputs) {
      a.wait();
    }
  }
}

void async_eval(std::vector<array> outputs) {
  if (detail::in_tracing()) {
    invalid(
        "async_eval",
        "called while a function is transformed. Call it "
        "outside of compile, grad or vmap.");
  }
  if (!all_done(outputs)) {
    Run(true).run(outputs);
  }
}

}  // namespace mlx::core
