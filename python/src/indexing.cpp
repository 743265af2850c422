// a[index], a[index] = value and a.at[index]: index expressions as slices,
// gathers and scatters.
#include "indexing.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "convert.h"
#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/slice_update.h"
#include "selection.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Kind = Entry::Kind;

// Ranges and integers; whole axes where an index array stands.
mx::SliceParams slice_bounds(const Selection& selected) {
  mx::SliceParams bounds;
  for (const Entry& e : selected.entries) {
    if (e.kind == Kind::new_axis) {
      continue;
    }
    bool whole = e.kind == Kind::indices;
    bounds.start.push_back(whole ? 0 : e.start);
    bounds.stop.push_back(whole ? selected.source.shape(e.axis) : e.stop);
    bounds.strides.push_back(e.step);
  }
  return bounds;
}

// What ranges and integers select, the axes of the integers gone.
mx::array without_integers(const Selection& selected) {
  std::vector<int> axes;
  for (const Entry& e : selected.entries) {
    if (e.kind == Kind::at) {
      axes.push_back(e.axis);
    }
  }
  return mx::take_slice(
      selected.source, slice_bounds(selected), axes, mx::to_stream({}));
}

// `a` with `count` axes moved from one place to another.
mx::array move_axes(const mx::array& a, int from, int to, int count) {
  if (from == to || count == 0) {
    return a;
  }
  std::vector<int> axes(a.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  std::vector<int> block(axes.begin() + from, axes.begin() + from + count);
  axes.erase(axes.begin() + from, axes.begin() + from + count);
  axes.insert(axes.begin() + to, block.begin(), block.end());
  return mx::transpose(a, axes);
}

mx::array gather_selected(const Selection& selected) {
  mx::array part = without_integers(selected);
  std::vector<mx::array> indices;
  std::vector<int> axes;
  int axis = 0;
  for (const Entry& e : selected.entries) {
    if (e.kind == Kind::indices) {
      indices.push_back(*e.indices);
      axes.push_back(axis);
    }
    axis += e.kind == Kind::indices || e.kind == Kind::range;
  }
  int position = selected.index_position();
  if (indices.size() == 1) {
    mx::array taken = mx::take(part, indices[0], axes[0]);
    int ndim = static_cast<int>(indices[0].ndim());
    return move_axes(taken, axes[0], position, ndim);
  }
  mx::Shape sizes = part.shape();
  for (int a : axes) {
    sizes[a] = 1;
  }
  mx::Shape index_shape = selected.index_shape();
  int ndim = static_cast<int>(index_shape.size());
  mx::array gathered = mx::gather(part, indices, axes, sizes);
  for (int& a : axes) {
    a += ndim;
  }
  return move_axes(mx::squeeze(gathered, axes), 0, position, ndim);
}

bool has_no_elements(const mx::Shape& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

mx::array read_selected(const Selection& selected) {
  if (selected.has_indices && has_no_elements(selected.index_shape())) {
    return mx::zeros(selected.shape(), selected.source.dtype());
  }
  mx::array found = selected.has_indices ? gather_selected(selected)
                                         : without_integers(selected);
  std::vector<int> axes = selected.new_axes();
  return axes.empty() ? found : mx::expand_dims(found, axes);
}

// ---- writing

/// A write in the terms of scatter.
struct ScatterPlan {
  std::vector<mx::array> indices;
  std::vector<int> axes;
  /// The updates' shape.
  mx::Shape shape;
  /// Axes of the selected elements in the order of the updates.
  std::vector<int> order;
};

mx::array constant_index(mx::ShapeElem at) {
  return mx::array(at, mx::int32);
}

// The positions of a range along the first of `ndim` axes.
mx::array range_index(const Entry& range, size_t ndim) {
  mx::Shape shape(ndim, 1);
  shape[0] = range.length();
  mx::array steps =
      mx::multiply(mx::arange(range.length()), constant_index(range.step));
  return mx::reshape(mx::add(steps, constant_index(range.start)), shape);
}

template <typename To, typename From>
void append(To& to, const From& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Ranges with step 1 become slices at a constant position, others index
// arrays of their own behind the common axes of the given ones.
ScatterPlan plan_scatter(const Selection& selected) {
  ScatterPlan plan;
  mx::Shape common = selected.index_shape();
  int ndim = static_cast<int>(common.size());
  int position = selected.index_position();
  size_t stepped = std::count_if(
      selected.entries.begin(), selected.entries.end(), [](const Entry& e) {
        return e.kind == Kind::range && e.step != 1;
      });
  mx::Shape slice_shape;
  std::vector<int> kept_axes;
  std::vector<int> stepped_axes;
  mx::Shape stepped_shape;
  int ranges = 0;
  for (const Entry& e : selected.entries) {
    if (e.kind == Kind::new_axis) {
      continue;
    }
    if (e.kind == Kind::range) {
      // The axis among those of the selected elements.
      int axis = ranges < position ? ranges : ranges + ndim;
      ++ranges;
      if (e.step == 1) {
        kept_axes.push_back(axis);
        slice_shape.push_back(e.length());
        if (e.start != 0) {
          plan.indices.push_back(constant_index(e.start));
          plan.axes.push_back(e.axis);
        }
        continue;
      }
      plan.indices.push_back(range_index(e, stepped - stepped_axes.size()));
      stepped_axes.push_back(axis);
      stepped_shape.push_back(e.length());
    } else if (e.kind == Kind::at) {
      plan.indices.push_back(constant_index(e.start));
    } else {
      mx::Shape shape = e.indices->shape();
      shape.insert(shape.end(), stepped, 1);
      plan.indices.push_back(mx::reshape(*e.indices, shape));
    }
    plan.axes.push_back(e.axis);
    slice_shape.push_back(1);
  }
  for (int i = 0; i < ndim; ++i) {
    plan.order.push_back(position + i);
  }
  append(plan.order, stepped_axes);
  append(plan.order, kept_axes);
  plan.shape = common;
  append(plan.shape, stepped_shape);
  append(plan.shape, slice_shape);
  return plan;
}

// `value` as it broadcasts to the selected elements, without the new axes.
mx::array fitted(const mx::array& value, const Selection& selected) {
  mx::Shape wanted = selected.shape();
  mx::Shape shape = value.shape();
  while (shape.size() > wanted.size() && shape[0] == 1) {
    shape.erase(shape.begin());
  }
  bool fits = shape.size() <= wanted.size();
  size_t missing = fits ? wanted.size() - shape.size() : 0;
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] == wanted[i + missing] || shape[i] == 1;
  }
  if (!fits) {
    mx::invalid(
        "index",
        "cannot broadcast a value of shape ",
        value.shape(),
        " to the selected elements of shape ",
        wanted,
        ".");
  }
  std::vector<int> axes = selected.new_axes();
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i] >= static_cast<int>(missing)) {
      shape.erase(shape.begin() + (axes[i] - missing));
    }
  }
  return mx::reshape(value, shape);
}

// Whether `shape` is what ranges alone select, as where a cache is extended.
bool is_each_range(const mx::Shape& shape, const Selection& selected) {
  const std::vector<Entry>& entries = selected.entries;
  bool same = shape.size() == entries.size();
  for (size_t i = 0; same && i < entries.size(); ++i) {
    same = entries[i].kind == Kind::range && entries[i].length() == shape[i];
  }
  return same;
}

// The same for a slice without index arrays: axes of length 1 where integers
// stand.
mx::array fitted_to_slice(const mx::array& value, const Selection& selected) {
  if (value.ndim() == 0 || is_each_range(value.shape(), selected)) {
    return value;
  }
  mx::array fit = fitted(value, selected);
  mx::Shape shape = fit.shape();
  auto left = static_cast<int>(shape.size());
  for (size_t i = selected.entries.size(); i-- > 0;) {
    if (selected.entries[i].kind == Kind::at) {
      shape.insert(shape.begin() + left, 1);
    } else if (selected.entries[i].kind == Kind::range && left > 0) {
      --left;
    }
  }
  return mx::reshape(fit, shape);
}

mx::array fitted_to_scatter(
    const mx::array& value,
    const Selection& selected,
    const ScatterPlan& plan) {
  if (value.ndim() == 0) {
    return mx::broadcast_to(value, plan.shape);
  }
  mx::array fit = fitted(value, selected);
  size_t ndim = plan.order.size();
  mx::Shape shape = fit.shape();
  shape.insert(shape.begin(), ndim - shape.size(), 1);
  fit = mx::transpose(mx::reshape(fit, shape), plan.order);
  // Axes of length 1 for what has an index.
  shape = fit.shape();
  mx::Shape full;
  size_t leading = plan.shape.size() - selected.source.ndim();
  size_t next = 0;
  for (; next < leading; ++next) {
    full.push_back(shape[next]);
  }
  for (const Entry& e : selected.entries) {
    if (e.kind != Kind::new_axis) {
      bool kept = e.kind == Kind::range && e.step == 1;
      full.push_back(kept ? shape[next++] : 1);
    }
  }
  return mx::broadcast_to(mx::reshape(fit, full), plan.shape);
}

mx::array write_slice(
    const Selection& selected, const mx::array& value, mx::Accumulate mode) {
  return mx::slice_update(
      selected.source,
      fitted_to_slice(value, selected),
      slice_bounds(selected),
      mode,
      mx::to_stream({}));
}

mx::array write_scattered(
    const Selection& selected, const mx::array& value, mx::Accumulate mode) {
  const mx::array& a = selected.source;
  ScatterPlan plan = plan_scatter(selected);
  mx::array updates = fitted_to_scatter(value, selected, plan);
  switch (mode) {
    case mx::Accumulate::none:
      return mx::scatter(a, plan.indices, updates, plan.axes);
    case mx::Accumulate::sum:
      return mx::scatter_add(a, plan.indices, updates, plan.axes);
    case mx::Accumulate::prod:
      return mx::scatter_prod(a, plan.indices, updates, plan.axes);
    case mx::Accumulate::max:
      return mx::scatter_max(a, plan.indices, updates, plan.axes);
    default:
      return mx::scatter_min(a, plan.indices, updates, plan.axes);
  }
}

mx::array write_selected(
    const mx::array& a,
    const Selection& selected,
    const mx::array& value,
    mx::Accumulate mode) {
  mx::array typed = mx::astype(value, a.dtype());
  mx::array result = selected.has_indices
                         ? write_scattered(selected, typed, mode)
                         : write_slice(selected, typed, mode);
  return mx::reshape(result, a.shape());
}

mx::array value_array(nb::handle value, mx::Dtype beside) {
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    return create_array(value, beside);
  }
  return to_array(value, beside);
}

// In a shapeless trace the expression is kept until lengths are certain.
// `with` takes the array, the parts of the expression and the value.
using IndexFn = std::function<mx::array(
    const mx::array&,
    const std::vector<IndexPart>&,
    const std::optional<mx::array>&)>;

std::optional<mx::array> postponed(
    const char* name,
    const mx::array& a,
    const std::vector<IndexPart>& parts,
    const std::optional<mx::array>& value,
    IndexFn with) {
  std::vector<mx::array> inputs = {a};
  if (value) {
    inputs.push_back(*value);
  }
  size_t first = inputs.size();
  for (const IndexPart& part : parts) {
    if (part.values) {
      inputs.push_back(*part.values);
    }
  }
  if (!mx::detail::lengths_open(inputs)) {
    return std::nullopt;
  }
  // Kept without the arrays, which come again.
  std::vector<IndexPart> kept = parts;
  for (IndexPart& part : kept) {
    if (part.values) {
      part.values = mx::array(0, part.values->dtype());
    }
  }
  return mx::detail::postpone(
      name,
      inputs,
      mx::to_stream({}),
      [parts = std::move(kept), first, with = std::move(with)](
          const std::vector<mx::array>& in) {
        std::vector<IndexPart> now = parts;
        size_t next = first;
        for (IndexPart& part : now) {
          if (part.values) {
            part.values = in[next++];
          }
        }
        std::optional<mx::array> value;
        if (first == 2) {
          value = in[1];
        }
        return std::vector<mx::array>{with(in[0], now, value)};
      })[0];
}

bool is_one_mask(const std::vector<IndexPart>& parts) {
  return parts.size() == 1 && parts[0].is_mask();
}

// ---- a.at[index]

// Quotients of integers are computed as floats and truncated.
mx::array divided(
    const mx::array& a, const Selection& selected, const mx::array& value) {
  if (!selected.has_indices) {
    mx::array quotient = mx::divide(read_selected(selected), value);
    return write_selected(a, selected, quotient, mx::Accumulate::none);
  }
  if (mx::issubdtype(a.dtype(), mx::inexact)) {
    mx::array factor = mx::reciprocal(mx::astype(value, a.dtype()));
    return write_selected(a, selected, factor, mx::Accumulate::prod);
  }
  Selection floats = selected;
  floats.source = mx::astype(selected.source, mx::float32);
  mx::array factor = mx::reciprocal(mx::astype(value, mx::float32));
  mx::array result = write_selected(
      mx::astype(a, mx::float32), floats, factor, mx::Accumulate::prod);
  return mx::astype(result, a.dtype());
}

mx::array updated_selected(
    const mx::array& a,
    const Selection& selected,
    const mx::array& value,
    AtUpdate update) {
  switch (update) {
    case AtUpdate::add:
      return write_selected(a, selected, value, mx::Accumulate::sum);
    case AtUpdate::subtract:
      return write_selected(
          a,
          selected,
          mx::negative(mx::astype(value, a.dtype())),
          mx::Accumulate::sum);
    case AtUpdate::multiply:
      return write_selected(a, selected, value, mx::Accumulate::prod);
    case AtUpdate::divide:
      return divided(a, selected, value);
    case AtUpdate::maximum:
      return write_selected(a, selected, value, mx::Accumulate::max);
    default:
      return write_selected(a, selected, value, mx::Accumulate::min);
  }
}

mx::array apply(AtUpdate update, const mx::array& a, const mx::array& b) {
  switch (update) {
    case AtUpdate::add:
      return mx::add(a, b);
    case AtUpdate::subtract:
      return mx::subtract(a, b);
    case AtUpdate::multiply:
      return mx::multiply(a, b);
    case AtUpdate::divide:
      return mx::divide(a, b);
    case AtUpdate::maximum:
      return mx::maximum(a, b);
    default:
      return mx::minimum(a, b);
  }
}

}  // namespace

mx::array get_item(const mx::array& a, const nb::object& index) {
  // The most frequent index by a short way.
  if (PyLong_CheckExact(index.ptr()) && a.ndim() > 0) {
    int overflow = 0;
    long at = PyLong_AsLongAndOverflow(index.ptr(), &overflow);
    long n = a.shape(0);
    if (!overflow && at >= -n && at < n) {
      return mx::take(a, static_cast<int>(at), 0);
    }
  }
  std::vector<IndexPart> parts = index_parts(index);
  if (is_one_mask(parts) && parts[0].axes() == 0) {
    // True adds an axis of length 1, False one of length 0.
    mx::array one = mx::expand_dims(a, 0);
    mx::array flag = *parts[0].values;
    flag = evaluated(flag);
    if (flag.item<bool>()) {
      return one;
    }
    mx::Shape none = one.shape();
    none[0] = 0;
    return mx::slice(one, mx::Shape(one.ndim(), 0), none);
  }
  std::optional<mx::array> later;
  if (mx::detail::in_shapeless_tracing()) {
    later = postponed(
        "index", a, parts, std::nullopt, [](auto& x, auto& at, auto&) {
          return read_selected(select(x, at));
        });
  }
  return later ? *later : read_selected(select(a, parts));
}

void set_item(mx::array& a, const nb::object& index, const nb::object& value) {
  std::vector<IndexPart> parts = index_parts(index);
  mx::array v = value_array(value, a.dtype());
  if (is_one_mask(parts)) {
    a = mx::masked_scatter(a, *parts[0].values, v);
    return;
  }
  std::optional<mx::array> later;
  if (mx::detail::in_shapeless_tracing()) {
    later = postponed(
        "index_update", a, parts, v, [](auto& x, auto& at, auto& put) {
          return write_selected(x, select(x, at), *put, mx::Accumulate::none);
        });
  }
  if (later) {
    a = *later;
    return;
  }
  // No other handle on the old node may live on, or the new one could not take
  // its memory over.
  a = write_selected(a, select(a, parts), v, mx::Accumulate::none);
}

mx::array updated_at(
    const mx::array& a,
    const nb::object& index,
    const nb::object& value,
    AtUpdate update) {
  std::vector<IndexPart> parts = index_parts(index);
  mx::array v = value_array(value, a.dtype());
  if (is_one_mask(parts)) {
    // Every element is meant at most once.
    const mx::array& mask = *parts[0].values;
    mx::array operand = mx::masked_scatter(a, mask, v);
    mx::array result = mx::astype(apply(update, a, operand), a.dtype());
    mx::Shape shape = mask.shape();
    shape.resize(a.ndim(), 1);
    return mx::where(mx::reshape(mask, shape), result, a);
  }
  if (!mx::detail::in_shapeless_tracing()) {
    return updated_selected(a, select(a, parts), v, update);
  }
  auto later = postponed(
      "index_update", a, parts, v, [update](auto& x, auto& at, auto& by) {
        return updated_selected(x, select(x, at), *by, update);
      });
  return later ? *later : updated_selected(a, select(a, parts), v, update);
}

}  // namespace mlx::python
