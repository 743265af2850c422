// Constants: one value everywhere, numbers in steps, counts. Values that the
// host knows travel with the launch; the bytes moved are those of the result.
#include "backend/cuda/copy.h"
#include "backend/cuda/create.h"
#include "backend/cuda/device/index.cuh"
#include "backend/cuda/dispatch.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;

struct alignas(8) Value {
  unsigned char bytes[8];
};

// One value in `count` elements: 16 bytes a thread and step, as the result's
// memory begins at a multiple of that. `from` is null when the launch has it.
template <typename T>
__global__ void fill(Value known, const T* from, T* to, size_t count) {
  constexpr int kPack = pack_size_v<T>;
  T value = from ? *from : *reinterpret_cast<const T*>(known.bytes);
  Pack<T, kPack> pack;
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    pack[i] = value;
  }
  size_t packs = count / kPack;
  size_t first = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  size_t step = gridDim.x * size_t(blockDim.x);
  for (size_t i = first; i < packs; i += step) {
    store_pack(to + i * kPack, pack);
  }
  size_t tail = packs * kPack + first;
  if (tail < count) {
    to[tail] = value;
  }
}

void fill_output(Value known, const void* from, array& out, Encoder& e) {
  visit_width(out.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    size_t packs = (out.size() + pack_size_v<T> - 1) / pack_size_v<T>;
    e.launch(
        fill<T>,
        grid_for(packs, kThreads),
        kThreads,
        0,
        known,
        static_cast<const T*>(from),
        e.out<T>(out),
        out.size());
  });
}

// As the host does: integers count in 64 bits from start and step rounded
// first; floats are a product and a sum, each rounded.
struct Steps {
  double start;
  double step;
  int64_t first;
  int64_t by;
};

template <typename T>
__global__ void arange_steps(Steps steps, T* to, int64_t count) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  int64_t step = gridDim.x * int64_t(blockDim.x);
  for (; i < count; i += step) {
    if constexpr (std::is_integral_v<T>) {
      auto value = static_cast<uint64_t>(steps.first) +
                   static_cast<uint64_t>(i) * static_cast<uint64_t>(steps.by);
      to[i] = convert<T>(static_cast<int64_t>(value));
    } else {
      // An infinite step has no multiple of 0.
      double value =
          i == 0
              ? steps.start
              : __dadd_rn(
                    steps.start, __dmul_rn(static_cast<double>(i), steps.step));
      to[i] = convert<T>(value);
    }
  }
}

// Notes few whole numbers in the encoder's list.
bool note_arange(const Steps& steps, array& out, Encoder& e) {
  if (out.size() > BatchEntry::most_elements ||
      !batches_whole(out.dtype().val()) || !e.can_batch()) {
    return false;
  }
  BatchEntry entry{};
  entry.kind = BatchKind::elementwise;
  entry.size = static_cast<uint32_t>(out.size());
  entry.types[0] = entry.types[3] = batch_type(out.dtype());
  entry.elementwise.from[0] = static_cast<uint64_t>(steps.first);
  entry.elementwise.from[1] = static_cast<uint64_t>(steps.by);
  entry.elementwise.to = e.out(out);
  e.batch(entry);
  return true;
}

}  // namespace

void full(const Full&, const array& value, array& out, Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  alignas(16) unsigned char bytes[16] = {};
  if (Encoder::host_scalar(value, bytes)) {
    Value known;
    std::memcpy(known.bytes, bytes, sizeof(known));
    fill_output(known, nullptr, out, e);
  } else if (value.data_size() == 1) {
    fill_output({}, e.in(value), out, e);
  } else {
    copy_strided(
        e.in(value),
        broadcast_strides(value, out.shape()),
        e.out(out),
        out.strides(),
        out.shape(),
        out.itemsize(),
        e);
  }
}

void arange(
    const Arange& op, const std::vector<array>&, array& out, Encoder& e) {
  const auto& [start, step, count] = op.params();
  e.allocate(out);
  Steps steps{start, step, 0, 0};
  if (issubdtype(out.dtype(), integer) || out.dtype() == bool_) {
    steps.first = static_cast<int64_t>(start);
    // The step of a single element may be infinite.
    steps.by = count > 1 ? static_cast<int64_t>(start + step) - steps.first : 0;
  }
  if (note_arange(steps, out, e)) {
    return;
  }
  visit_type(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    e.launch(
        arange_steps<T>,
        grid_for(out.size(), kThreads),
        kThreads,
        0,
        steps,
        e.out<T>(out),
        count);
  });
}

void number_of_elements(
    const NumberOfElements& op, const array& x, array& out, Encoder& e) {
  const auto& [axes, inverted, dtype] = op.params();
  double count = 1;
  for (int axis : axes) {
    count *= x.shape(axis);
  }
  double number = inverted ? 1.0 / count : count;
  e.allocate(out);
  Value known{};
  mlx::core::detail::visit_dtype(dtype, [&](auto tag) {
    using T = decltype(tag);
    T value = mlx::core::detail::convert<T>(number);
    std::memcpy(known.bytes, &value, sizeof(T));
  });
  fill_output(known, nullptr, out, e);
}

}  // namespace mlx::core::cuda
