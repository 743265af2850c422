#include "graph/composite.h"

#include <exception>
#include <optional>
#include <typeinfo>
#include <utility>

#include "types/error.h"

namespace mlx::core::detail {

namespace {

[[noreturn]] void not_by_itself(const char* name) {
  throw std::runtime_error(
      message(name, "is submitted by eval, never run by itself."));
}

// Computes everything; its own value is nothing.
class Composite final : public Primitive {
 public:
  Composite(Stream s, std::shared_ptr<CompositeWork> work)
      : Primitive(s), work_(std::move(work)) {}

  void eval_cpu(const std::vector<array>&, std::vector<array>&) override {
    not_by_itself(name());
  }
  void eval_gpu(const std::vector<array>&, std::vector<array>&) override {
    not_by_itself(name());
  }
  DEFINE_NAME(Composite)

  void submit(
      std::vector<array> inputs, const std::shared_ptr<EvalContext>& context) {
    keep(work_->submit(std::move(inputs), context));
  }
  void compute(std::vector<array> inputs) {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    try {
      keep(work_->compute(std::move(inputs)));
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }
  /// Gives a result away.
  std::optional<array> take(size_t i) {
    return i < results_.size() ? std::exchange(results_[i], std::nullopt)
                               : std::nullopt;
  }

 private:
  void keep(std::vector<array> results) {
    results_.reserve(results.size());
    for (array& result : results) {
      results_.emplace_back(std::move(result));
    }
  }

  std::shared_ptr<CompositeWork> work_;
  std::vector<std::optional<array>> results_;
  std::exception_ptr failure_;
};

class CompositeResult final : public Primitive {
 public:
  CompositeResult(Stream s, std::shared_ptr<Composite> composite, size_t i)
      : Primitive(s), composite_(std::move(composite)), i_(i) {}

  void eval_cpu(const std::vector<array>&, std::vector<array>&) override {
    not_by_itself(name());
  }
  void eval_gpu(const std::vector<array>&, std::vector<array>&) override {
    not_by_itself(name());
  }
  DEFINE_NAME(CompositeResult)

  std::optional<array> take() { return composite_->take(i_); }

 private:
  std::shared_ptr<Composite> composite_;
  size_t i_;
};

void submit_whole(array& node, const std::shared_ptr<EvalContext>& context) {
  std::shared_ptr<Primitive> whole = node.primitive_ptr();
  std::vector<array> inputs = std::move(node.inputs());
  node.detach();
  if (!context->error.valid()) {
    static_cast<Composite&>(*whole).submit(std::move(inputs), context);
  }
}

// False where the evaluation failed and was given up.
bool take_result(array& node) {
  auto result = static_cast<CompositeResult&>(node.primitive()).take();
  if (result) {
    node.copy_shared_buffer(*result);
  }
  return result.has_value();
}

[[noreturn]] void no_result() {
  throw std::runtime_error(message(
      "eval", "a result of a compiled function whose evaluation failed."));
}

void submit_result(array& node, const std::shared_ptr<EvalContext>& context) {
  if (!take_result(node) && !context->error.valid()) {
    no_result();
  }
  node.detach();
}

void run_whole(array& node) {
  std::shared_ptr<Primitive> whole = node.primitive_ptr();
  std::vector<array> inputs = std::move(node.inputs());
  node.inputs().clear();
  static_cast<Composite&>(*whole).compute(std::move(inputs));
}

void run_result(array& node) {
  if (!take_result(node)) {
    no_result();
  }
}

}  // namespace

std::vector<array> composite_results(
    Stream s,
    std::shared_ptr<CompositeWork> work,
    const std::vector<Shape>& shapes,
    const std::vector<Dtype>& dtypes,
    const std::vector<array>& inputs) {
  auto composite = std::make_shared<Composite>(s, std::move(work));
  array whole(Shape{0}, bool_, composite, inputs);
  std::vector<array> results;
  results.reserve(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    results.emplace_back(
        shapes[i],
        dtypes[i],
        std::make_shared<CompositeResult>(s, composite, i),
        std::vector<array>{whole});
  }
  return results;
}

bool is_composite(const Primitive& op) {
  return typeid(op) == typeid(Composite) ||
         typeid(op) == typeid(CompositeResult);
}

bool run_composite(array& node) {
  const std::type_info& type = typeid(node.primitive());
  if (type == typeid(Composite)) {
    run_whole(node);
  } else if (type == typeid(CompositeResult)) {
    run_result(node);
  } else {
    return false;
  }
  node.set_status(array::available);
  node.detach();
  return true;
}

bool submit_composite(
    array& node, const std::shared_ptr<EvalContext>& context) {
  const std::type_info& type = typeid(node.primitive());
  if (type == typeid(Composite)) {
    submit_whole(node, context);
  } else if (type == typeid(CompositeResult)) {
    submit_result(node, context);
  } else {
    return false;
  }
  array done = std::move(node);
  return true;
}

}  // namespace mlx::core::detail
