// Pairs of halves. Float has more than twice the bits of a half and two more,
// so a sum or product that is rounded to float and then to a half is the one
// that is rounded at once: packed instructions give the bits of single
// operations. All else is computed for each of the two as float, and both
// results are rounded by one conversion.
#include "backend/cuda/fused_pairs.h"

#include <algorithm>

#include "backend/cuda/fused_steps.h"

namespace mlx::core::cuda {

namespace {

constexpr const char* kPairs = R"(
template <typename T>
__device__ __forceinline__ uint32_t pair_of(T x) {
  return static_cast<uint32_t>(x.bits) * 0x10001u;
}
template <typename T>
__device__ __forceinline__ uint32_t pair_of(T low, T high) {
  return static_cast<uint32_t>(high.bits) << 16 | low.bits;
}
template <typename T>
__device__ __forceinline__ float low_of(uint32_t pair) {
  return to_compute(T{static_cast<unsigned short>(pair)});
}
template <typename T>
__device__ __forceinline__ float high_of(uint32_t pair) {
  if constexpr (std::is_same_v<T, bhalf>) {
    return __uint_as_float(pair & 0xffff0000u);
  } else {
    return to_compute(T{static_cast<unsigned short>(pair >> 16)});
  }
}
template <typename T>
__device__ __forceinline__ uint32_t round_pair(float low, float high) {
  uint32_t pair;
  if constexpr (std::is_same_v<T, bhalf>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}
#define MLX_PAIRS(name, how)                                           \
  template <typename T>                                                \
  __device__ __forceinline__ uint32_t name(uint32_t a, uint32_t b) {   \
    uint32_t pair;                                                     \
    if constexpr (std::is_same_v<T, bhalf>) {                          \
      asm(how ".rn.bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b)); \
    } else {                                                           \
      asm(how ".rn.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));  \
    }                                                                  \
    return pair;                                                       \
  }
MLX_PAIRS(add_pairs, "add")
MLX_PAIRS(subtract_pairs, "sub")
MLX_PAIRS(multiply_pairs, "mul")
#undef MLX_PAIRS
)";

// The packed instruction for both halves of the words, or null.
const char* packed(const FusedStep& step) {
  switch (step.op) {
    case ElementwiseOp::add:
      return "add_pairs<";
    case ElementwiseOp::subtract:
      return "subtract_pairs<";
    case ElementwiseOp::multiply:
    case ElementwiseOp::square:
      return "multiply_pairs<";
    default:
      return nullptr;
  }
}

}  // namespace

bool fused_takes_pairs(const FusedProgram& program, const FusedForm& form) {
  bool has_half =
      std::any_of(program.steps.begin(), program.steps.end(), [](auto& step) {
        return is_half(step.dtype);
      });
  bool fits = form.kind == FusedForm::Kind::elements && form.pack % 2 == 0;
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    bool is_plain = form.outputs[k].layout == 0;
    fits = fits && (is_plain || !is_half(program.dtype(program.outputs[k])));
  }
  return has_half && fits;
}

const char* fused_pair_functions() {
  return kPairs;
}

bool PairText::is_one(int value) const {
  return program_.is_input(value) &&
         (fused_is_number(form_.inputs[value].read) ||
          form_.inputs[value].read == FusedRead::splat);
}

std::string PairText::lane(int value, int which) const {
  std::string name;
  put(name, "v", value);
  if (!is_one(value)) {
    put(name, "_", which);
  }
  return name;
}

void PairText::put_number_word(std::string& text, int input) const {
  if (is_half(program_.dtype(input))) {
    put(text, "  const uint32_t w", input, " = pair_of(h", input, ");\n");
  }
}

void PairText::put_floats(std::string& text, int value) const {
  const char* type = fused_type(program_.dtype(value));
  put(text, "  const float v", value, "_0 = low_of<", type, ">(w", value);
  put(text, ");\n  const float v", value, "_1 = high_of<", type, ">(w", value);
  text += ");\n";
}

void PairText::put_input(std::string& text, int input) const {
  const char* type = fused_type(program_.dtype(input));
  FusedRead read = form_.inputs[input].read;
  bool is_half_type = is_half(program_.dtype(input));
  if (read == FusedRead::splat) {
    std::string element;
    put(element, "x", input, "[p]");
    cuda::put_input(text, program_, input, element);
    put_number_word(text, input);
    return;
  }
  std::string name;
  put(name, read == FusedRead::pack ? "e" : "x", input);
  name += read == FusedRead::pack ? "" : "[p]";
  if (is_half_type) {
    put(text, "  const uint32_t w", input, " = ");
    if (read == FusedRead::pack) {
      put(text, "x", input, "[p].v[j / 2];\n");
    } else {
      put(text, "pair_of(", name, "[j], ", name, "[j + 1]);\n");
    }
    put_floats(text, input);
    return;
  }
  for (int l = 0; l < 2; ++l) {
    put(text, "  const ", type, " v", input, "_", l, " = ", name, "[j + ", l);
    text += "];\n";
  }
}

void PairText::put_step(std::string& text, int value) const {
  const FusedStep& step = program_.step_of(value);
  const auto& from = step.operands;
  bool is_elementwise = step.kind == FusedStep::Kind::elementwise;
  bool is_select = is_elementwise && step.op == ElementwiseOp::select;
  const char* type = fused_type(step.dtype);
  if (!is_half(step.dtype)) {
    const char* compute = fused_compute_type(step.dtype);
    for (int l = 0; l < 2; ++l) {
      put(text, "  const ", compute, " v", value, "_", l, " = ");
      text +=
          fused_made(program_, form_, value, [&](int v) { return lane(v, l); });
      text += ";\n";
    }
    return;
  }
  put(text, "  const uint32_t w", value, " = ");
  if (is_select) {
    // Moves bits.
    put(text, "__byte_perm(", lane(from[0], 0), " ? w", from[1], " : w");
    put(text, from[2], ", ", lane(from[0], 1), " ? w", from[1], " : w");
    put(text, from[2], ", 0x7610);\n");
  } else if (
      is_elementwise && packed(step) && program_.dtype(from[0]) == step.dtype) {
    put(text, packed(step), type, ">(w", from[0], ", w");
    put(text, from[step.arity - 1], ");\n");
  } else {
    put(text, "round_pair<", type, ">(");
    for (int l = 0; l < 2; ++l) {
      text += l == 0 ? "" : ", ";
      if (is_elementwise) {
        text += fused_made(
            program_, form_, value, [&](int v) { return lane(v, l); });
      } else {
        put(text, "convert<float>(", lane(from[0], l), ")");
      }
    }
    text += ");\n";
  }
  put_floats(text, value);
}

void PairText::put_output(std::string& text, int output) const {
  int v = program_.outputs[output];
  if (is_half(program_.dtype(v))) {
    put(text, "      y", output, "[j / 2] = w", v, ";\n");
    return;
  }
  for (int l = 0; l < 2; ++l) {
    put(text, "      y", output, "[j + ", l, "] = ", lane(v, l), ";\n");
  }
}

}  // namespace mlx::core::cuda
