// Kernels of fused programs with reductions. The threads of a block share a
// row, or those of a few lanes where rows are short. Registers hold the row
// from its only reading to its only writing, as far as it fits; longer rows are
// walked once for each reduction that waits for another, and once more for what
// comes out. What several of these passes need is computed anew in each, but
// for what costs much: that is kept with the row that registers hold.
#include "backend/cuda/fused_rows.h"

#include <algorithm>
#include <set>

#include "backend/cuda/fused_steps.h"

namespace mlx::core::cuda {

namespace {

// Instructions that are worth a register, and the most registers kept.
constexpr int kWorthKeeping = 12;
constexpr size_t kMostKept = 64;

// The type in which elements are combined; integers wrap as unsigned ones.
Dtype combined_in(const FusedProgram& program, const FusedStep& step) {
  Dtype t = reduce_accumulator(step.reduce, program.dtype(step.operands[0]));
  bool is_sum =
      step.reduce == ReduceType::sum || step.reduce == ReduceType::prod;
  if (is_sum && t.val() == Dtype::Val::int32) {
    return uint32;
  }
  return is_sum && t.val() == Dtype::Val::int64 ? uint64 : t;
}

// Of truth values sums are "or" and products "and".
const char* combination(ReduceType type) {
  static constexpr const char* kNames[] = {
      "Prod", "Sum", "Sum", "Prod", "Min", "Max"};
  return kNames[static_cast<int>(type)];
}

class RowsText {
 public:
  RowsText(const FusedProgram& program, const FusedForm& form)
      : program_(program),
        form_(form),
        inputs_(program.num_inputs()),
        values_(inputs_ + static_cast<int>(program.steps.size())) {
    sort_values();
    plan_passes();
  }

  std::string made() {
    put(text_, "constexpr int N = ", int(form_.pack));
    put(text_, ", P = ", int(form_.packs), ";\n");
    text_ += fused_arguments(program_, form_);
    text_ += fused_formulas(program_);
    for (int v = inputs_; v < values_; ++v) {
      if (fused_divides_by_row(program_, form_, of_row_, v)) {
        text_ += fused_row_divisor();
        break;
      }
    }
    put(text_, "extern \"C\" __global__ void __launch_bounds__(");
    put(text_, kFusedRowThreads, ", ", blocks(), ")\n");
    text_ += "fused(const __grid_constant__ Args a) {\n";
    text_ += fused_beginning();
    text_ +=
        "  const Index row = static_cast<Index>(blockIdx.x) * blockDim.y +\n"
        "      threadIdx.y;\n"
        "  const bool is_row = row < a.rows;\n"
        "  const Index length = is_row ? static_cast<Index>(a.length) : 0;\n"
        "  const Index o0 = row * static_cast<Index>(a.length);\n";
    put_locate();
    put_row_inputs();
    if (is_held()) {
      text_ += "  const Index base = 0;\n";
      put_loads(all_element_inputs());
    }
    put_row_steps(0);
    for (int pass = 0; pass < passes_; ++pass) {
      put_pass(pass);
    }
    put_outputs();
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  bool is_held() const { return form_.kind == FusedForm::Kind::held; }
  const char* type(int value) const {
    return fused_type(program_.dtype(value));
  }
  const FusedStep& step(int value) const { return program_.step_of(value); }
  bool is_reduction(int value) const {
    return value >= inputs_ && step(value).kind == FusedStep::Kind::reduce;
  }

  // Which values are one for a row, and how many reductions one after the
  // other each waits for.
  void sort_values() {
    of_row_.resize(values_);
    level_.resize(values_, 0);
    for (int v = 0; v < values_; ++v) {
      if (v < inputs_) {
        FusedRead read = form_.inputs[v].read;
        of_row_[v] = read != FusedRead::pack && read != FusedRead::pieces;
        continue;
      }
      const FusedStep& s = step(v);
      of_row_[v] = true;
      for (int k = 0; k < s.arity; ++k) {
        of_row_[v] = of_row_[v] && of_row_[s.operands[k]];
        level_[v] = std::max(level_[v], level_[s.operands[k]]);
      }
      if (is_reduction(v)) {
        of_row_[v] = true;
        passes_ = std::max(passes_, ++level_[v]);
      }
    }
  }

  // What a pass is for: operands of its reductions, or the outputs.
  std::vector<int> targets_of(int pass) const {
    std::vector<int> found;
    for (int v = inputs_; v < values_; ++v) {
      if (is_reduction(v) && level_[v] == pass + 1) {
        found.push_back(step(v).operands[0]);
      }
    }
    for (size_t o = 0; pass == passes_ && o < program_.outputs.size(); ++o) {
      if (!form_.outputs[o].is_row) {
        found.push_back(program_.outputs[o]);
      }
    }
    return found;
  }

  // Which values are kept from the first pass that computes them.
  void plan_passes() {
    kept_.assign(values_, false);
    made_in_.assign(values_, -1);
    std::vector<int> cost(values_, 0);  // of computing it anew
    size_t words = 0;
    for (int pass = 0; pass <= passes_; ++pass) {
      // The last of a chain is kept, which may make the rest of it needless.
      for (int v = values_ - 1; v >= inputs_; --v) {
        bool is_again = made_in_[v] >= 0 && cost[v] >= kWorthKeeping &&
                        needed_for(pass, targets_of(pass))[v];
        if (is_held() && is_again && !kept_[v] && words < kMostKept) {
          kept_[v] = true;
          words += size_t(form_.pack) * form_.packs;
        }
      }
      std::vector<bool> needed = needed_for(pass, targets_of(pass));
      for (int v = inputs_; v < values_; ++v) {
        if (!needed[v] || made_in_[v] >= 0) {
          continue;
        }
        made_in_[v] = pass;
        cost[v] = fused_step_weight(program_, form_, step(v));
        for (int k = 0; k < step(v).arity; ++k) {
          int from = step(v).operands[k];
          cost[v] += kept_[from] ? 0 : cost[from];
        }
      }
    }
    kept_words_ = words;
  }

  // Registers decide how many blocks an SM is to hold.
  int blocks() const {
    size_t bytes = 4 * kept_words_;
    for (int k : all_element_inputs()) {
      bytes += program_.dtype(k).size() * form_.pack * form_.packs;
    }
    int registers = static_cast<int>(bytes / 4) + 36;
    return std::clamp(128 / registers, 1, 3);
  }

  std::vector<int> all_element_inputs() const {
    std::vector<int> found;
    for (int k = 0; k < inputs_; ++k) {
      if (!of_row_[k]) {
        found.push_back(k);
      }
    }
    return found;
  }

  std::string offset(int layout) const {
    std::string name;
    put(name, "o", layout);
    return name;
  }
  std::string stride(int layout) const {
    std::string found;
    if (layout == 0) {
      return "1";
    }
    put(found, "static_cast<Offset>(a.strides[", layout - 1, "][");
    put(found, int(form_.axes), "])");
    return found;
  }

  // Where the row begins.
  void put_locate() {
    std::vector<std::string> names;
    for (int c = 1; c <= form_.layouts; ++c) {
      names.push_back(offset(c));
      put(text_, "  Offset ", names.back(), ";\n");
    }
    if (!names.empty()) {
      put(text_, "  {\n", fused_locate(form_, "row", names), "  }\n");
    }
  }

  // Numbers, and what is one for a row. Threads without a row read the first.
  void put_row_inputs() {
    for (int k = 0; k < inputs_; ++k) {
      switch (form_.inputs[k].read) {
        case FusedRead::number:
        case FusedRead::value:
        case FusedRead::literal:
          put_number(text_, program_, form_, k);
          break;
        case FusedRead::splat: {
          std::string from;
          put(from, "reinterpret_cast<const ", type(k), "*>(a.from[", k);
          put(from, "])[is_row ? ", offset(form_.inputs[k].layout), " : 0]");
          put_input(text_, program_, k, from);
          break;
        }
        default:
          break;
      }
    }
  }

  // Packs of the inputs that begin at element `base` of the row. Those that
  // the row has not are zero and count for nothing.
  void put_loads(const std::vector<int>& inputs) {
    for (int k : inputs) {
      bool is_pack = form_.inputs[k].read == FusedRead::pack;
      put(text_, "  ", is_pack ? "detail::Held<" : "Pack<", type(k), ", N> x");
      put(text_, k, "[P] = {};\n");
    }
    text_ +=
        "#pragma unroll\n"
        "  for (int p = 0; p < P; ++p) {\n"
        "    const Index at = base + (p * blockDim.x + threadIdx.x) * N;\n"
        "    if (at < length) {\n";
    for (int k : inputs) {
      int layout = form_.inputs[k].layout;
      std::string from;
      put(from, "reinterpret_cast<const ", type(k), "*>(a.from[", k, "]) + ");
      from += offset(layout);
      if (form_.inputs[k].read == FusedRead::pack) {
        put(text_, "      x", k, "[p].load(", from, " + at);\n");
        continue;
      }
      text_ += "#pragma unroll\n      for (int j = 0; j < N; ++j) {\n";
      put(text_, "        x", k, "[p][j] = (", from, ")[static_cast<Offset>(");
      put(text_, "at + j) * ", stride(layout), "];\n      }\n");
    }
    text_ += "    }\n  }\n";
  }

  // Steps that are one for a row and wait for `level` reductions.
  void put_row_steps(int level) {
    for (int v = inputs_; v < values_; ++v) {
      if (of_row_[v] && level_[v] == level && !is_reduction(v)) {
        put_step(text_, program_, form_, v);
      }
    }
  }

  // What is read or computed of each element to get at `targets` in a pass.
  std::vector<bool> needed_for(
      int pass, const std::vector<int>& targets) const {
    std::vector<bool> needed(values_, false);
    for (int v : targets) {
      needed[v] = !of_row_[v];
    }
    for (int v = values_ - 1; v >= inputs_; --v) {
      bool is_made = needed[v] && !is_kept_before(pass, v);
      for (int k = 0; is_made && k < step(v).arity; ++k) {
        int from = step(v).operands[k];
        needed[from] = needed[from] || !of_row_[from];
      }
    }
    return needed;
  }

  bool is_kept_before(int pass, int v) const {
    return kept_[v] && made_in_[v] < pass;
  }

  // Declares what divides all elements of a row.
  void put_row_divisors(const std::vector<bool>& needed) {
    for (int v = inputs_; v < values_; ++v) {
      if (needed[v] && fused_divides_by_row(program_, form_, of_row_, v)) {
        int by = step(v).operands[1];
        if (divisors_.insert(by).second) {
          put(text_, "  const RowDivisor<", type(by), "> d", by, "(v", by);
          text_ += ");\n";
        }
      }
    }
  }

  // Opens the loops over the elements of a thread, with what the pass needs to
  // get at `targets` computed; `before` stands between the two loops.
  void open_elements(
      int pass, const std::vector<int>& targets, const std::string& before) {
    std::vector<bool> needed = needed_for(pass, targets);
    put_row_divisors(needed);
    for (int v = inputs_; v < values_; ++v) {
      if (needed[v] && kept_[v] && made_in_[v] == pass) {
        const char* name = fused_compute_type(program_.dtype(v));
        put(text_, "  ", name, " k", v, "[P * N];\n");
      }
    }
    if (!is_held()) {
      text_ +=
          "#pragma unroll 1\n"
          "  for (Index base = 0; base < length; base += blockDim.x * N * P) "
          "{\n";
      std::vector<int> read;
      for (int k = 0; k < inputs_; ++k) {
        if (needed[k]) {
          read.push_back(k);
        }
      }
      put_loads(read);
    }
    text_ +=
        "#pragma unroll\n"
        "  for (int p = 0; p < P; ++p) {\n"
        "    const Index at = base + (p * blockDim.x + threadIdx.x) * N;\n";
    text_ += before;
    for (int k = 0; k < inputs_; ++k) {
      if (needed[k] && form_.inputs[k].read == FusedRead::pack) {
        put(text_, "    const auto e", k, " = x", k, "[p].get();\n");
      }
    }
    text_ += "#pragma unroll\n    for (int j = 0; j < N; ++j) {\n";
    for (int v = 0; v < values_; ++v) {
      if (needed[v] && v < inputs_) {
        bool is_pack = form_.inputs[v].read == FusedRead::pack;
        std::string element;
        put(element, is_pack ? "e" : "x", v, is_pack ? "[j]" : "[p][j]");
        put_input(text_, program_, v, element);
      } else if (needed[v] && is_kept_before(pass, v)) {
        put_kept(v);
      } else if (needed[v]) {
        put_element_step(pass, v);
      }
    }
  }

  void put_kept(int v) {
    const char* name = fused_compute_type(program_.dtype(v));
    put(text_, "  const ", name, " v", v, " = k", v, "[p * N + j];\n");
    if (is_half(program_.dtype(v))) {
      put(text_, "  const ", type(v), " h", v, " = convert<", type(v), ">(v");
      put(text_, v, ");\n");
    }
  }

  void put_element_step(int pass, int v) {
    if (fused_divides_by_row(program_, form_, of_row_, v)) {
      std::string made;
      put(made, "d", step(v).operands[1], "(v", step(v).operands[0], ")");
      put_made(text_, program_, v, made);
    } else {
      put_step(text_, program_, form_, v);
    }
    if (kept_[v] && made_in_[v] == pass) {
      put(text_, "  k", v, "[p * N + j] = v", v, ";\n");
    }
  }

  // All reductions of what waits for `pass` others.
  void put_pass(int pass) {
    std::vector<int> reductions;
    for (int v = inputs_; v < values_; ++v) {
      if (is_reduction(v) && level_[v] == pass + 1) {
        reductions.push_back(v);
        const char* in = fused_type(combined_in(program_, step(v)));
        put(text_, "  ", in, " c", v, " = ", combination(step(v).reduce));
        put(text_, "::neutral<", in, ">();\n");
      }
    }
    // What the row has not is made neutral, not left out: no branches.
    open_elements(pass, targets_of(pass), "");
    for (int v : reductions) {
      const char* in = fused_type(combined_in(program_, step(v)));
      const char* name = combination(step(v).reduce);
      put(text_, "      c", v, " = ", name, "()(c", v, ", at < length ? ");
      put(text_, "convert<", in, ">(v", step(v).operands[0], ") : ", name);
      put(text_, "::neutral<", in, ">());\n");
    }
    text_ += is_held() ? "    }\n  }\n" : "    }\n  }\n  }\n";
    for (int v : reductions) {
      put_combination(v);
    }
    put_row_steps(pass + 1);
  }

  void put_combination(int v) {
    const FusedStep& s = step(v);
    Dtype in = combined_in(program_, s);
    Dtype operand = program_.dtype(s.operands[0]);
    const char* name = fused_type(in);
    put(text_, "  __shared__ ", name, " s", v, "[64];\n  c", v);
    put(text_, " = RowCombiner<", name, ">(s", v, ")(c", v, ", ");
    put(text_, combination(s.reduce), "::neutral<", name, ">(), ");
    put(text_, combination(s.reduce), "());\n");
    // Back to the sign.
    const char* seen = fused_type(reduce_accumulator(s.reduce, operand));
    const char* to = fused_type(s.dtype);
    put(text_, "  const ", to, " ", fused_stored(program_, v), " = convert<");
    put(text_, to, ">(static_cast<", seen, ">(c", v, "));\n");
    if (is_half(s.dtype)) {
      put(text_, "  const float v", v, " = to_compute(h", v, ");\n");
    }
  }

  void put_outputs() {
    std::vector<int> elements;
    std::string packs;
    for (int o = 0; o < static_cast<int>(program_.outputs.size()); ++o) {
      int v = program_.outputs[o];
      const FusedForm::Output& form = form_.outputs[o];
      if (form.is_row) {
        put(text_, "  if (is_row && threadIdx.x == 0 && ");
        put(text_, offset(form.guard), " == 0) {\n    reinterpret_cast<");
        put(text_, type(v), "*>(a.to[", o, "])[", offset(form.layout), "] = ");
        put(text_, fused_stored(program_, v), ";\n  }\n");
        continue;
      }
      elements.push_back(o);
      put(packs, "    Pack<", type(v), ", N> y", o, ";\n");
    }
    if (elements.empty()) {
      return;
    }
    open_elements(passes_, targets_of(passes_), packs);
    for (int o : elements) {
      put(text_, "      y", o, "[j] = ");
      put(text_, fused_stored(program_, program_.outputs[o]), ";\n");
    }
    text_ += "    }\n    if (at < length) {\n";
    for (int o : elements) {
      put_store(o);
    }
    text_ += is_held() ? "    }\n  }\n" : "    }\n  }\n  }\n";
  }

  void put_store(int o) {
    const FusedForm::Output& form = form_.outputs[o];
    const char* name = type(program_.outputs[o]);
    if (form.layout == 0) {
      put(text_, "      store_pack(reinterpret_cast<", name, "*>(a.to[", o);
      put(text_, "]) + o0 + at, y", o, ");\n");
      return;
    }
    text_ += "#pragma unroll\n      for (int j = 0; j < N; ++j) {\n";
    put(text_, "        const Offset column = static_cast<Offset>(at + j);\n");
    put(text_, "        if (", offset(form.guard), " + column * ");
    put(text_, stride(form.guard), " == 0) {\n          reinterpret_cast<");
    put(text_, name, "*>(a.to[", o, "])[", offset(form.layout));
    put(text_, " + column * ", stride(form.layout), "] = y", o, "[j];\n");
    text_ += "        }\n      }\n";
  }

  const FusedProgram& program_;
  const FusedForm& form_;
  const int inputs_;
  const int values_;
  std::vector<bool> of_row_;
  std::vector<int> level_;
  std::vector<bool> kept_;
  std::vector<int> made_in_;  // the first pass that computes it
  size_t kept_words_ = 0;
  std::set<int> divisors_;  // declared ones
  int passes_ = 0;
  std::string text_;
};

}  // namespace

std::string fused_rows_text(
    const FusedProgram& program, const FusedForm& form) {
  return RowsText(program, form).made();
}

}  // namespace mlx::core::cuda
