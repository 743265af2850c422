// Prepares runs of fused programs: plans, which are kept with the primitive,
// layouts and memory of the arrays.
#include "backend/cpu/compiled.h"

#include <algorithm>

#include "backend/common/layouts.h"
#include "backend/cpu/compiled_call.h"
#include "backend/cpu/compiled_split.h"
#include "backend/cpu/copy.h"
#include "backend/cpu/streaming.h"

namespace mlx::core::cpu {

namespace {

// Rows up to this length are taken several at a time.
constexpr size_t kShortRow = 256;
// Rows up to this length are kept between passes: four of float32 fill half of
// a second cache.
constexpr size_t kKeptRow = 16384;

// The arrays as one share of the outputs sees them.
class Run {
 public:
  Run(const Compiled& op,
      const FusedShare& share,
      const std::vector<array>& inputs,
      std::vector<array>& outputs)
      : program_(op.program()),
        share_(share),
        inputs_(&inputs),
        outputs_(outputs) {
    find_inputs();
  }

  const FusedKey& key() const { return key_; }
  void run(const FusedPart& part);

 private:
  size_t row_length() const {
    return share_.shape.empty() ? 1 : share_.shape.back();
  }
  size_t num_rows() const {
    size_t rows = 1;
    for (size_t i = 0; i + 1 < share_.shape.size(); ++i) {
      rows *= share_.shape[i];
    }
    return rows;
  }
  bool is_used(size_t input) const {
    return key_.inputs[input] != InputKind::none;
  }
  bool has_row_inputs() const;
  bool is_one_for_all_rows(const array& in) const;
  void find_inputs();
  void look_at_inputs();
  InputKind kind_of(const array& in, BlockView& view) const;
  void prepare_output(FusedCall& call, size_t position);
  bool donate(const FusedPart& part, size_t position, array& out);

  const FusedProgram& program_;
  const FusedShare& share_;
  const std::vector<array>* inputs_;
  std::vector<array>& outputs_;
  // Row-major copies of transposed inputs, with the others beside them.
  std::vector<array> copies_;
  const array* layout_ = nullptr;
  FusedKey key_;
  std::vector<BlockView> views_;
  // Inputs whose memory outputs took over.
  std::vector<size_t> taken_;
};

// Leaves InputKind::none to inputs that this share does without.
void Run::find_inputs() {
  key_.outputs = share_.outputs;
  key_.inputs.assign(inputs_->size(), InputKind::element);
  if (!share_.is_whole) {
    std::vector<bool> wanted(inputs_->size() + program_.steps.size(), false);
    for (uint32_t o : share_.outputs) {
      wanted[program_.outputs[o]] = true;
    }
    for (size_t s = program_.steps.size(); s-- > 0;) {
      const FusedStep& step = program_.steps[s];
      for (int k = 0; wanted[inputs_->size() + s] && k < step.arity; ++k) {
        wanted[step.operands[k]] = true;
      }
    }
    for (size_t i = 0; i < inputs_->size(); ++i) {
      key_.inputs[i] = wanted[i] ? InputKind::element : InputKind::none;
    }
  }
  key_.by_rows = share_.has_reductions || has_row_inputs();
  if (key_.by_rows) {
    size_t n = row_length();
    key_.grouped = n > 0 && n <= kShortRow && num_rows() > 1;
    key_.keep = n <= kKeptRow;
  } else if (share_.is_whole) {
    layout_ = common_layout(*inputs_, outputs_[share_.outputs[0]]);
  }
  if (!layout_) {
    for (size_t i = 0; i < inputs_->size(); ++i) {
      const array& in = (*inputs_)[i];
      if (is_used(i) &&
          (is_transposed(in, share_.shape) || is_one_for_all_rows(in))) {
        copies_ = copies_.empty() ? *inputs_ : copies_;
        copies_[i] = row_contiguous(in);
      }
    }
    inputs_ = copies_.empty() ? inputs_ : &copies_;
  }
  look_at_inputs();
}

// A value for each row that is the same one in memory: it counts as a value of
// rows only when each has its own.
bool Run::is_one_for_all_rows(const array& in) const {
  if (!key_.by_rows || in.size() <= 1 || in.shape(-1) != 1 ||
      row_length() == 1) {
    return false;
  }
  for (size_t k = 0; k < in.ndim(); ++k) {
    if (in.shape(static_cast<int>(k)) != 1 &&
        in.strides(static_cast<int>(k)) != 0) {
      return false;
    }
  }
  return true;
}

// Values of rows are spread over elements unless rows are long.
bool Run::has_row_inputs() const {
  if (row_length() <= kShortRow) {
    return false;
  }
  for (size_t i = 0; i < inputs_->size(); ++i) {
    const array& in = (*inputs_)[i];
    if (is_used(i) && in.size() > 1 && in.shape(-1) == 1) {
      return true;
    }
  }
  return false;
}

InputKind Run::kind_of(const array& in, BlockView& view) const {
  using Kind = BlockView::Kind;
  bool is_one = in.size() == 1;
  if (is_one || in.data_size() == 1) {
    view = BlockView(in.data<char>(), in.itemsize(), Kind::scalar);
    return is_one ? InputKind::one : InputKind::repeated;
  }
  if (layout_) {
    view = BlockView(in.data<char>(), in.itemsize(), Kind::contiguous);
    return InputKind::element;
  }
  Shape shape = share_.shape;
  Strides strides = broadcast_strides(in, shape);
  bool of_rows = key_.by_rows && in.shape(-1) == 1 && shape.back() != 1;
  if (of_rows) {
    shape.pop_back();
    strides.pop_back();
  }
  view = BlockView(in.data<char>(), in.itemsize(), shape, strides);
  return view.kind() == Kind::scalar ? InputKind::repeated
         : of_rows                   ? InputKind::row
                                     : InputKind::element;
}

void Run::look_at_inputs() {
  views_.resize(inputs_->size());
  for (size_t i = 0; i < inputs_->size(); ++i) {
    if (is_used(i)) {
      key_.inputs[i] = kind_of((*inputs_)[i], views_[i]);
    }
  }
}

bool Run::donate(const FusedPart& part, size_t position, array& out) {
  for (size_t i = 0; i < inputs_->size(); ++i) {
    const array& in = (*inputs_)[i];
    if (part.may_donate[position * inputs_->size() + i] &&
        std::count(taken_.begin(), taken_.end(), i) == 0 &&
        is_donatable(in, out) && in.shape() == out.shape() &&
        (layout_ ? in.strides() == layout_->strides()
                 : in.flags().row_contiguous)) {
      taken_.push_back(i);
      out.copy_shared_buffer(in);
      return true;
    }
  }
  return false;
}

void Run::prepare_output(FusedCall& call, size_t position) {
  array& out = outputs_[share_.outputs[position]];
  bool donated = share_.is_whole && donate(call.part, position, out);
  if (!donated) {
    allocator::Buffer buffer = allocator::malloc(out.nbytes());
    if (layout_) {
      out.set_data(buffer, out.size(), layout_->strides(), layout_->flags());
    } else {
      out.set_data(buffer);
    }
  }
  bool streaming = !donated && out.nbytes() >= kStreamingBytes &&
                   call.part.output_extents[position] == Extent::element &&
                   !call.part.is_read_again(static_cast<uint32_t>(position));
  // Chains store past the caches themselves where all their groups are full
  // and aligned.
  char* data = out.data<char>();
  bool direct = streaming && call.part.is_streamable[position] &&
                reinterpret_cast<uintptr_t>(data) % 64 == 0 &&
                (!key_.by_rows || row_length() % kMaxChainGroup == 0);
  call.outputs.push_back(
      {data,
       static_cast<uint8_t>(out.itemsize()),
       streaming && !direct,
       direct});
}

void Run::run(const FusedPart& part) {
  FusedCall call(part);
  for (size_t position = 0; position < share_.outputs.size(); ++position) {
    prepare_output(call, position);
  }
  call.inputs = std::move(views_);
  if (num_rows() > 0 && key_.by_rows) {
    run_rows(call, num_rows(), row_length());
  } else if (num_rows() * row_length() > 0) {
    run_flat(call, num_rows() * row_length());
  }
}

}  // namespace

void compiled(
    const Compiled& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  auto plan =
      std::static_pointer_cast<const CpuFusedPlan>(op.plan(Device::cpu));
  auto fresh = plan ? nullptr : std::make_shared<CpuFusedPlan>();
  std::vector<FusedShare> shares = split_outputs(op.program(), inputs, outputs);
  for (size_t i = 0; i < shares.size(); ++i) {
    Run run(op, shares[i], inputs, outputs);
    if (plan && i < plan->parts.size() && plan->parts[i].key == run.key()) {
      run.run(plan->parts[i]);
      continue;
    }
    FusedPart part = make_fused_part(op.program(), run.key());
    run.run(part);
    if (fresh) {
      fresh->parts.push_back(std::move(part));
    }
  }
  if (fresh) {
    op.set_plan(Device::cpu, fresh);
  }
}

}  // namespace mlx::core::cpu
