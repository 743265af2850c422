// Keys, bits and the calling thread's key sequence.
#include "random/random_bits.h"

#include <chrono>

#include "mlx/ops.h"
#include "mlx/random.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

std::pair<std::vector<array>, std::vector<int>> RandomBits::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array keys = batch_to_front(inputs[0], axes[0], stream());
  auto op = std::make_shared<RandomBits>(stream(), params());
  Shape shape = op->output_shapes({keys})[0];
  Dtype dtype = params().width == 4   ? uint32
                : params().width == 2 ? uint16
                                      : uint8;
  return {{array(std::move(shape), dtype, op, {keys})}, {0}};
}

std::vector<Shape> RandomBits::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  if (shape.empty() || shape.back() != 2) {
    invalid("random", "a key of shape ", shape, ". Expected two numbers.");
  }
  shape.pop_back();
  shape.insert(shape.end(), params().shape.begin(), params().shape.end());
  return {shape};
}

namespace random {

namespace {

void check_key(const array& key) {
  if (key.dtype() != uint32 || key.shape() != Shape{2}) {
    invalid(
        "random",
        "not a key: ",
        key.shape(),
        " ",
        key.dtype(),
        ". Expected shape (2,) of uint32.");
  }
}

}  // namespace

KeySequence::KeySequence(uint64_t seed) : key_(random::key(seed)) {}

void KeySequence::seed(uint64_t seed) {
  key_ = random::key(seed);
}

array KeySequence::next() {
  auto [state, drawn] = random::split(key_, StreamOrDevice{});
  key_ = state;
  return drawn;
}

KeySequence& KeySequence::default_() {
  // Unseeded threads start from one moment, the first use in the process.
  static const uint64_t moment = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  thread_local KeySequence sequence(moment);
  return sequence;
}

array key(uint64_t seed) {
  return array(
      {static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(seed)});
}

void seed(uint64_t seed) {
  KeySequence::default_().seed(seed);
}

array bits(
    const Shape& shape,
    int width,
    const std::optional<array>& key,
    StreamOrDevice s) {
  array k = key ? *key : KeySequence::default_().next();
  check_key(k);
  if (width != 1 && width != 2 && width != 4) {
    invalid("bits", "bad width: ", width, ". Expected 1, 2 or 4 bytes.");
  }
  Dtype dtype = width == 4 ? uint32 : width == 2 ? uint16 : uint8;
  return make_node<RandomBits>(
      shape, dtype, {k}, to_stream(s), RandomBitsParams{shape, width});
}

array split(const array& key, int num, StreamOrDevice s) {
  if (num < 0) {
    invalid("split", "negative number of keys: ", num, ".");
  }
  return bits({num, 2}, 4, key, s);
}

std::pair<array, array> split(const array& key, StreamOrDevice s) {
  array both = random::split(key, 2, s);
  std::vector<array> rows = unstack(both, 0, s);
  return {rows[0], rows[1]};
}

}  // namespace random

}  // namespace mlx::core
