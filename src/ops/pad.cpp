// Padding: a constant border is a node of its own, borders made of the array's
// elements are reads at computed positions.
#include <algorithm>
#include <numeric>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/join.h"
#include "types/error.h"

namespace mlx::core {

namespace {

// The position in [0, n) whose element stands at `i`, which may be outside.
using BorderRule = int (*)(int64_t i, int64_t n);

int nearest(int64_t i, int64_t n) {
  return static_cast<int>(std::clamp<int64_t>(i, 0, n - 1));
}

// Mirrored at the border elements, which stand once: the period is 2 (n - 1).
int mirrored_once(int64_t i, int64_t n) {
  int64_t period = std::max<int64_t>(2 * (n - 1), 1);
  int64_t at = (i % period + period) % period;
  return static_cast<int>(std::min(at, period - at));
}

// Mirrored between elements, so that border elements stand twice: the period is
// 2 n.
int mirrored_twice(int64_t i, int64_t n) {
  int64_t at = (i % (2 * n) + 2 * n) % (2 * n);
  return static_cast<int>(std::min(at, 2 * n - 1 - at));
}

BorderRule border_rule(const std::string& mode) {
  if (mode == "edge") {
    return nearest;
  }
  if (mode == "reflect") {
    return mirrored_once;
  }
  if (mode == "symmetric") {
    return mirrored_twice;
  }
  invalid(
      "pad",
      "unknown mode: ",
      mode,
      ". Expected constant, edge, reflect or symmetric.");
}

array pad_from_within(
    const array& a, const PadParams& widths, BorderRule rule, Stream s) {
  array out = a;
  for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
    int low = widths.low[axis];
    int high = widths.high[axis];
    if (low == 0 && high == 0) {
      continue;
    }
    int n = a.shape(axis);
    if (n == 0) {
      invalid(
          "pad",
          "no element to repeat: axis ",
          axis,
          " of ",
          a.shape(),
          " is empty. Expected mode constant.");
    }
    Shape shape = {safe_cast(int64_t{low} + n + high, "pad")};
    std::vector<int> positions;
    for (int i = 0; i < shape[0]; ++i) {
      positions.push_back(rule(int64_t{i} - low, n));
    }
    out = take(out, array(positions.data(), shape, int32), axis, s);
  }
  return out;
}

}  // namespace

array pad(
    const array& a,
    const std::vector<int>& axes,
    const Shape& low_pad_size,
    const Shape& high_pad_size,
    const array& pad_value,
    const std::string& mode,
    StreamOrDevice s) {
  MLX_POSTPONE(
      "pad",
      pad(in[0], axes, low_pad_size, high_pad_size, in[1], mode, s),
      a,
      pad_value);
  if (axes.size() != low_pad_size.size() ||
      axes.size() != high_pad_size.size()) {
    invalid(
        "pad",
        "axes, low and high sizes differ in length: ",
        axes,
        ", ",
        low_pad_size,
        ", ",
        high_pad_size,
        ".");
  }
  PadParams widths{Shape(a.ndim(), 0), Shape(a.ndim(), 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    if (low_pad_size[i] < 0 || high_pad_size[i] < 0) {
      invalid(
          "pad", "negative width: ", low_pad_size, " and ", high_pad_size, ".");
    }
    int axis = checked_axis("pad", axes[i], static_cast<int>(a.ndim()));
    widths.low[axis] = low_pad_size[i];
    widths.high[axis] = high_pad_size[i];
  }
  if (mode != "constant") {
    return pad_from_within(a, widths, border_rule(mode), to_stream(s));
  }
  if (pad_value.size() != 1) {
    invalid("pad", "the value is not a single one: ", pad_value.shape(), ".");
  }
  array value = reshape(astype(pad_value, a.dtype(), s), {}, s);
  auto op = std::make_shared<Pad>(to_stream(s), widths);
  Shape shape = op->output_shapes({a, value})[0];
  return shape == a.shape() ? a : array(shape, a.dtype(), op, {a, value});
}

array pad(
    const array& a,
    const std::vector<std::pair<int, int>>& pad_width,
    const array& pad_value,
    const std::string& mode,
    StreamOrDevice s) {
  if (pad_width.size() == 1) {
    return pad(a, pad_width[0], pad_value, mode, s);
  }
  if (pad_width.size() != a.ndim()) {
    invalid(
        "pad",
        pad_width.size(),
        " widths given for an array of ",
        a.ndim(),
        " dimensions. Expected one pair for each, or one for all.");
  }
  std::vector<int> axes(a.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  Shape low, high;
  for (auto [l, h] : pad_width) {
    low.push_back(l);
    high.push_back(h);
  }
  return pad(a, axes, low, high, pad_value, mode, s);
}

array pad(
    const array& a,
    const std::pair<int, int>& pad_width,
    const array& pad_value,
    const std::string& mode,
    StreamOrDevice s) {
  std::vector<int> axes(a.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  Shape low(a.ndim(), pad_width.first);
  Shape high(a.ndim(), pad_width.second);
  return pad(a, axes, low, high, pad_value, mode, s);
}

array pad(
    const array& a,
    int pad_width,
    const array& pad_value,
    const std::string& mode,
    StreamOrDevice s) {
  return pad(a, std::make_pair(pad_width, pad_width), pad_value, mode, s);
}

}  // namespace mlx::core
