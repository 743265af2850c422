// Sorting rows of keys: least-significant-digit radix sort for long rows (8-bit
// digits: more would scatter to more pages than the first translation cache
// holds; digits that all keys share cost no pass), a comparison sort for short
// ones. Both are stable. Rows are spread over the threads; where they are too
// few, the threads share each pass of a long row.
#include "backend/cpu/sort.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "backend/cpu/copy.h"
#include "backend/cpu/sort_keys.h"
#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

constexpr int kDigitBits = 8;
constexpr size_t kDigits = size_t{1} << kDigitBits;
constexpr size_t kRadixLength = 1024;
// Keys of a long row that one thread takes at least.
constexpr size_t kPartLength = 1 << 15;

template <typename U>
struct Indexed {
  U key;
  uint32_t index;
};

template <typename U>
U key_of(U x) {
  return x;
}
template <typename U>
U key_of(const Indexed<U>& x) {
  return x.key;
}

using Counts = std::array<size_t, kDigits>;

// Counts of each part become the places of its first item of each digit.
// False if all items share the digit.
bool to_places(std::vector<Counts>& parts, size_t n) {
  size_t sum = 0;
  for (size_t digit = 0; digit < kDigits; ++digit) {
    size_t before = sum;
    for (Counts& counts : parts) {
      sum += std::exchange(counts[digit], sum);
    }
    if (sum - before == n) {
      return false;
    }
  }
  return true;
}

// Sorts n items by their keys; `spare` has room for n. The result is in
// `items`.
template <typename Item>
void radix_sort(Item* items, Item* spare, size_t n) {
  using U = decltype(key_of(*items));
  size_t most = in_parallel() ? 1 : static_cast<size_t>(num_threads());
  std::vector<Counts> parts(std::clamp<size_t>(n / kPartLength, 1, most));
  auto for_parts = [&](auto f) {
    parallel_for(parts.size(), 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        f(n * i / parts.size(), n * (i + 1) / parts.size(), parts[i]);
      }
    });
  };
  Item* from = items;
  Item* to = spare;
  for (size_t shift = 0; shift < 8 * sizeof(U); shift += kDigitBits) {
    auto digit = [shift](const Item& item) {
      return (key_of(item) >> shift) & (kDigits - 1);
    };
    for_parts([&](size_t begin, size_t end, Counts& counts) {
      counts.fill(0);
      for (size_t i = begin; i < end; ++i) {
        ++counts[digit(from[i])];
      }
    });
    if (!to_places(parts, n)) {
      continue;
    }
    for_parts([&](size_t begin, size_t end, Counts& places) {
      for (size_t i = begin; i < end; ++i) {
        to[places[digit(from[i])]++] = from[i];
      }
    });
    std::swap(from, to);
  }
  if (from != items) {
    std::copy(from, from + n, items);
  }
}

template <typename Item>
void sort_items(Item* items, Item* spare, size_t n) {
  if (n >= kRadixLength) {
    radix_sort(items, spare, n);
    return;
  }
  std::stable_sort(items, items + n, [](const Item& a, const Item& b) {
    return key_of(a) < key_of(b);
  });
}

// Rows along the sorted axis: where row i begins in x and in out.
struct Rows {
  size_t count;
  size_t length;
  int64_t in_stride;
  int64_t out_stride;
  ContiguousIterator in;
  ContiguousIterator out;
};

Rows rows_of(const array& x, const array& out, int axis) {
  Rows rows;
  rows.length = x.shape(axis);
  rows.count = rows.length ? x.size() / rows.length : 0;
  rows.in_stride = x.strides(axis);
  rows.out_stride = out.strides(axis);
  Shape shape = remove_index(x.shape(), axis);
  int dims = static_cast<int>(shape.size());
  rows.in = ContiguousIterator(shape, remove_index(x.strides(), axis), dims);
  rows.out = ContiguousIterator(shape, remove_index(out.strides(), axis), dims);
  return rows;
}

// Calls f(in offset, out offset) for every row, on several threads.
template <typename F>
void for_each_row(const Rows& rows, F&& f) {
  size_t grain = std::max<size_t>(1, 4096 / std::max<size_t>(rows.length, 1));
  parallel_for(rows.count, grain, [&](size_t begin, size_t end) {
    ContiguousIterator in = rows.in;
    ContiguousIterator out = rows.out;
    in.seek(static_cast<int64_t>(begin));
    out.seek(static_cast<int64_t>(begin));
    for (size_t i = begin; i < end; ++i) {
      f(in.loc, out.loc);
      in.step();
      out.step();
    }
  });
}

template <typename T>
void sort_rows(const array& x, array& out, int axis) {
  using U = UnsignedOf<sizeof(T)>;
  Rows rows = rows_of(x, out, axis);
  const T* from = x.data<T>();
  T* to = out.data<T>();
  for_each_row(rows, [&](int64_t in, int64_t at) {
    thread_local std::vector<U> keys;
    keys.resize(2 * rows.length);
    U* key = keys.data();
    parallel_for(rows.length, kPartLength, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        key[i] =
            to_key(from[in + static_cast<int64_t>(i) * rows.in_stride], false);
      }
    });
    sort_items(key, key + rows.length, rows.length);
    parallel_for(rows.length, kPartLength, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        to[at + static_cast<int64_t>(i) * rows.out_stride] =
            from_key<T>(key[i]);
      }
    });
  });
}

template <typename T>
void arg_sort_rows(const array& x, array& out, int axis) {
  using U = UnsignedOf<sizeof(T)>;
  Rows rows = rows_of(x, out, axis);
  const T* from = x.data<T>();
  auto* to = out.data<uint32_t>();
  for_each_row(rows, [&](int64_t in, int64_t at) {
    thread_local std::vector<Indexed<U>> items;
    items.resize(2 * rows.length);
    Indexed<U>* item = items.data();
    parallel_for(rows.length, kPartLength, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        item[i] = {
            to_key(from[in + static_cast<int64_t>(i) * rows.in_stride], true),
            static_cast<uint32_t>(i)};
      }
    });
    sort_items(item, item + rows.length, rows.length);
    parallel_for(rows.length, kPartLength, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        to[at + static_cast<int64_t>(i) * rows.out_stride] = item[i].index;
      }
    });
  });
}

}  // namespace

void sort(const Sort& op, const array& x, array& out) {
  allocate_output(out);
  mlx::core::detail::visit_dtype(x.dtype(), [&](auto tag) {
    sort_rows<decltype(tag)>(x, out, op.params().axis);
  });
}

void arg_sort(const ArgSort& op, const array& x, array& out) {
  allocate_output(out);
  mlx::core::detail::visit_dtype(x.dtype(), [&](auto tag) {
    arg_sort_rows<decltype(tag)>(x, out, op.params().axis);
  });
}

void search_sorted(
    const SearchSorted& op,
    const array& sequence,
    const array& values,
    array& out) {
  allocate_output(out);
  array dense = row_contiguous(values);
  auto* to = out.data<uint32_t>();
  mlx::core::detail::visit_dtype(values.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using U = UnsignedOf<sizeof(T)>;
    std::vector<U> keys(sequence.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = to_key(
          sequence.data<T>()[static_cast<int64_t>(i) * sequence.strides(0)],
          true);
    }
    parallel_for(dense.size(), 2048, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        U key = to_key(dense.data<T>()[i], true);
        auto it = op.params().right
                      ? std::upper_bound(keys.begin(), keys.end(), key)
                      : std::lower_bound(keys.begin(), keys.end(), key);
        to[i] = static_cast<uint32_t>(it - keys.begin());
      }
    });
  });
}

}  // namespace mlx::core::cpu
