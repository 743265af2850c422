// Kernels of fused programs without reductions. A thread makes packs of up to
// 16 bytes, a block's length apart, and issues the loads of all of them before
// the first use.
#include "backend/cuda/fused_text.h"

#include <algorithm>

#include "backend/cuda/fused_pairs.h"
#include "backend/cuda/fused_prelude.h"
#include "backend/cuda/fused_rows.h"
#include "backend/cuda/fused_steps.h"

namespace mlx::core::cuda {

namespace {

// Which argument a block works for, and as which of its blocks.
constexpr const char* kOne =
    "fused(const __grid_constant__ Args a) {\n"
    "  const uint32_t block = blockIdx.x;\n";
constexpr const char* kMany =
    "fused(const __grid_constant__ Many many) {\n"
    "  uint32_t which = 0;\n"
    "  uint32_t end = static_cast<uint32_t>(many.count);\n"
    "  while (end - which > 1) {\n"
    "    const uint32_t middle = (which + end) / 2;\n"
    "    if (many.begins[middle] <= blockIdx.x) {\n"
    "      which = middle;\n"
    "    } else {\n"
    "      end = middle;\n"
    "    }\n"
    "  }\n"
    "  const Args& a = many.all[which];\n"
    "  const uint32_t block = blockIdx.x - many.begins[which];\n";

class ElementsText {
 public:
  ElementsText(const FusedProgram& program, const FusedForm& form)
      : program_(program),
        form_(form),
        pairs_(program, form),
        takes_pairs_(fused_takes_pairs(program, form)) {}

  std::string made() {
    put(text_, "constexpr int N = ", int(form_.pack));
    put(text_, ", P = ", int(form_.packs), ";\n");
    put(text_, "constexpr int kStep = ", kFusedThreads, " * N;\n");
    text_ += fused_arguments(program_, form_);
    text_ += fused_formulas(program_);
    text_ += takes_pairs_ ? fused_pair_functions() : "";
    put_kernel();
    return std::move(text_);
  }

 private:
  const FusedForm::Input& form(int input) const { return form_.inputs[input]; }
  bool is_number(int input) const { return fused_is_number(form(input).read); }
  const char* type(int value) const {
    return fused_type(program_.dtype(value));
  }
  int num_outputs() const { return static_cast<int>(program_.outputs.size()); }

  // All steps for one element, whose inputs are read by `element`.
  template <typename F>
  void put_steps(F&& element) {
    for (int k = 0; k < program_.num_inputs(); ++k) {
      if (!is_number(k)) {
        put_input(text_, program_, k, element(k));
      }
    }
    int end = program_.num_inputs() + static_cast<int>(program_.steps.size());
    for (int v = program_.num_inputs(); v < end; ++v) {
      put_step(text_, program_, form_, v);
    }
  }

  // Registers decide how many blocks an SM is to hold.
  int blocks() const {
    size_t bytes = 0;
    for (int k = 0; k < program_.num_inputs(); ++k) {
      bytes += is_number(k) ? 0 : program_.dtype(k).size() * form_.packs;
    }
    for (int v : program_.outputs) {
      bytes += program_.dtype(v).size();
    }
    int registers = static_cast<int>(bytes * form_.pack / 4) + 28 +
                    std::min(32, fused_weight(program_, form_) / 4) +
                    2 * form_.layouts * form_.packs;
    return std::clamp(256 / registers, 1, 6);
  }

  void put_kernel() {
    put(text_, "extern \"C\" __global__ void __launch_bounds__(");
    put(text_, kFusedThreads, ", ", blocks(), ")\n");
    text_ += form_.many == 0 ? kOne : kMany;
    text_ += fused_beginning();
    text_ +=
        "  const Index begin = static_cast<Index>(block) * (kStep * P);\n"
        "  const Index first = begin + threadIdx.x * N;\n"
        "  const Index size = static_cast<Index>(a.size);\n";
    for (int k = 0; k < program_.num_inputs(); ++k) {
      if (is_number(k)) {
        put_number(text_, program_, form_, k);
        if (takes_pairs_) {
          pairs_.put_number_word(text_, k);
        }
      }
    }
    put_loads();
    put_results();
    if (form_.has_tail) {
      put_tail();
    }
    text_ += "}\n";
  }

  void put_loads() {
    for (int k = 0; k < program_.num_inputs(); ++k) {
      if (is_number(k)) {
        continue;
      }
      switch (form(k).read) {
        case FusedRead::pack:
          put(text_, "  detail::Held<", type(k), ", N> x", k, "[P];\n");
          break;
        case FusedRead::splat:
          put(text_, "  ", type(k), " x", k, "[P];\n");
          break;
        default:
          put(text_, "  Pack<", type(k), ", N> x", k, "[P];\n");
          break;
      }
    }
    for (int c = 1; c <= form_.layouts; ++c) {
      put(text_, "  Offset o", c, "[P];\n");
    }
    text_ +=
        "#pragma unroll\n"
        "  for (int p = 0; p < P; ++p) {\n"
        "    const Index o0 = first + p * kStep;\n"
        "    if (o0 + N <= size) {\n";
    if (form_.layouts > 0) {
      put_locate();
    }
    for (int k = 0; k < program_.num_inputs(); ++k) {
      if (!is_number(k)) {
        put_load(k);
      }
    }
    text_ += "    }\n  }\n";
  }

  // Offsets of the element number o0 in all layouts.
  void put_locate() {
    std::vector<std::string> names;
    for (int c = 1; c <= form_.layouts; ++c) {
      names.push_back(offset(c));
    }
    text_ += fused_locate(form_, "o0", names);
  }

  std::string offset(int layout) const {
    std::string name;
    put(name, "o", layout, layout == 0 ? "" : "[p]");
    return name;
  }
  // From one element to the next of a layout.
  std::string stride(int layout) const {
    if (layout == 0) {
      return "1";
    }
    std::string found;
    put(found, "static_cast<Offset>(a.strides[", layout - 1, "][");
    put(found, form_.axes - 1, "])");
    return found;
  }

  void put_load(int k) {
    std::string from;
    put(from, "reinterpret_cast<const ", type(k), "*>(a.from[", k, "]) + ");
    from += offset(form(k).layout);
    switch (form(k).read) {
      case FusedRead::pack:
        put(text_, "      x", k, "[p].load(", from, ");\n");
        break;
      case FusedRead::splat:
        put(text_, "      x", k, "[p] = *(", from, ");\n");
        break;
      default:
        text_ += "#pragma unroll\n      for (int j = 0; j < N; ++j) {\n";
        put(text_, "        x", k, "[p][j] = (", from, ")[j * ");
        put(text_, stride(form(k).layout), "];\n      }\n");
        break;
    }
  }

  void put_results() {
    text_ +=
        "#pragma unroll\n"
        "  for (int p = 0; p < P; ++p) {\n"
        "    const Index o0 = first + p * kStep;\n";
    for (int k = 0; k < num_outputs(); ++k) {
      if (is_word(k)) {
        put(text_, "    Pack<uint32_t, N / 2> y", k, ";\n");
      } else {
        put(text_, "    Pack<", type(program_.outputs[k]), ", N> y", k, ";\n");
      }
    }
    for (int k = 0; k < program_.num_inputs(); ++k) {
      if (!is_number(k) && form(k).read == FusedRead::pack) {
        put(text_, "    const auto e", k, " = x", k, "[p].get();\n");
      }
    }
    if (takes_pairs_) {
      put_pairs();
    } else {
      put_elements();
    }
    text_ += "    if (o0 + N <= size) {\n";
    for (int k = 0; k < num_outputs(); ++k) {
      put_store(k);
    }
    text_ += "    }\n  }\n";
  }

  bool is_word(int output) const {
    return takes_pairs_ && is_half(program_.dtype(program_.outputs[output]));
  }

  void put_pairs() {
    text_ += "#pragma unroll\n    for (int j = 0; j < N; j += 2) {\n";
    for (int k = 0; k < program_.num_inputs(); ++k) {
      if (!is_number(k)) {
        pairs_.put_input(text_, k);
      }
    }
    int end = program_.num_inputs() + static_cast<int>(program_.steps.size());
    for (int v = program_.num_inputs(); v < end; ++v) {
      pairs_.put_step(text_, v);
    }
    for (int k = 0; k < num_outputs(); ++k) {
      pairs_.put_output(text_, k);
    }
    text_ += "    }\n";
  }

  void put_elements() {
    text_ += "#pragma unroll\n    for (int j = 0; j < N; ++j) {\n";
    put_steps([&](int k) {
      std::string element;
      FusedRead read = form(k).read;
      put(element, read == FusedRead::pack ? "e" : "x", k);
      element += read == FusedRead::pack    ? "[j]"
                 : read == FusedRead::splat ? "[p]"
                                            : "[p][j]";
      return element;
    });
    for (int k = 0; k < num_outputs(); ++k) {
      put(text_, "      y", k, "[j] = ");
      put(text_, fused_stored(program_, program_.outputs[k]), ";\n");
    }
    text_ += "    }\n";
  }

  void put_store(int k) {
    const FusedForm::Output& form = form_.outputs[k];
    const char* name = type(program_.outputs[k]);
    if (form.layout == 0) {
      put(text_, "      store_pack(reinterpret_cast<");
      put(text_, is_word(k) ? "uint32_t" : name, "*>(a.to[", k, "]) + o0");
      put(text_, is_word(k) ? " / 2, y" : ", y", k, ");\n");
      return;
    }
    text_ += "#pragma unroll\n      for (int j = 0; j < N; ++j) {\n";
    put(text_, "        if (", offset(form.guard), " + j * ");
    put(text_, stride(form.guard), " == 0) {\n          reinterpret_cast<");
    put(text_, name, "*>(a.to[", k, "])[", offset(form.layout), " + j * ");
    put(text_, stride(form.layout), "] = y", k, "[j];\n        }\n      }\n");
  }

  // What fills no pack is left to the last block.
  void put_tail() {
    text_ +=
        "  const Index of_block = size - begin;\n"
        "  if (of_block < kStep * P && threadIdx.x < of_block % N) {\n"
        "    const Index o0 = size - of_block % N + threadIdx.x;\n";
    put_steps([&](int k) {
      std::string element;
      put(element, "reinterpret_cast<const ", type(k), "*>(a.from[", k);
      element += "])[o0]";
      return element;
    });
    for (int k = 0; k < num_outputs(); ++k) {
      int v = program_.outputs[k];
      put(text_, "    reinterpret_cast<", type(v), "*>(a.to[", k, "])[o0] = ");
      put(text_, fused_stored(program_, v), ";\n");
    }
    text_ += "  }\n";
  }

  const FusedProgram& program_;
  const FusedForm& form_;
  const PairText pairs_;
  const bool takes_pairs_;
  std::string text_;
};

bool has_complex(const FusedProgram& program) {
  auto is = [](Dtype t) { return t.val() == Dtype::Val::complex64; };
  return std::any_of(
             program.inputs.begin(),
             program.inputs.end(),
             [&](const auto& in) { return is(in.dtype); }) ||
         std::any_of(
             program.steps.begin(), program.steps.end(), [&](const auto& step) {
               return is(step.dtype);
             });
}

}  // namespace

std::string fused_arguments(
    const FusedProgram& program, const FusedForm& form) {
  std::string text;
  int inputs = program.num_inputs();
  put(text, "using Index = uint", form.wide ? "64" : "32", "_t;\n");
  put(text, "using Offset = int", form.wide ? "64" : "32", "_t;\n");
  put(text, "struct alignas(8) Divisor : FastDivisor {};\nstruct Args {\n");
  if (form.kind == FusedForm::Kind::elements) {
    text += "  uint64_t size;\n";
  } else {
    text += "  uint64_t rows, length;\n";
  }
  put(text, "  uint64_t from[", inputs, "];\n");
  put(text, "  uint64_t to[", program.outputs.size(), "];\n");
  int axes = form.axes;
  if (axes > 0) {
    put(text, "  Divisor sizes[", axes, "];\n");
  }
  // Of rows also from one element to the next, which is all that a single row
  // has.
  int strides = form.kind == FusedForm::Kind::elements ? axes : axes + 1;
  if (form.layouts > 0) {
    put(text, "  int64_t strides[", form.layouts, "][", strides, "];\n");
  }
  text += "};\n";
  if (form.many > 0) {
    put(text, "struct Many {\n  uint64_t count;\n  uint32_t begins[");
    put(text, form.many, "];\n  Args all[", form.many, "];\n};\n");
  }
  return text;
}

std::string fused_locate(
    const FusedForm& form,
    const char* number,
    const std::vector<std::string>& offsets) {
  std::string text;
  if (form.axes > 0) {
    put(text, "      Index left = ", number, ";\n");
  }
  for (const std::string& offset : offsets) {
    put(text, "      ", offset, " = 0;\n");
  }
  const char* divide = form.wide ? "left / a.sizes[" : "a.sizes[";
  const char* divided = form.wide ? "].divisor" : "].quotient(left)";
  for (int i = form.axes - 1; i >= 0; --i) {
    text += "      {\n";
    if (i > 0) {
      put(text, "        const Index outer = ", divide, i, divided, ";\n");
      put(text, "        const Offset at = left - outer * a.sizes[", i);
      text += "].divisor;\n        left = outer;\n";
    } else {
      text += "        const Offset at = left;\n";
    }
    for (size_t c = 0; c < offsets.size(); ++c) {
      put(text, "        ", offsets[c], " += at * static_cast<Offset>(");
      put(text, "a.strides[", c, "][", i, "]);\n");
    }
    text += "      }\n";
  }
  return text;
}

std::string fused_text(const FusedProgram& program, const FusedForm& form) {
  bool is_rows = form.kind != FusedForm::Kind::elements;
  std::string body = is_rows ? fused_rows_text(program, form)
                             : ElementsText(program, form).made();
  std::string text = fused_prelude(body, has_complex(program), is_rows);
  text += "namespace mlx::core::cuda {\n" + body;
  text += "}  // namespace mlx::core::cuda\n";
  return text;
}

}  // namespace mlx::core::cuda
