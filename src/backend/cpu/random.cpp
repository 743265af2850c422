// Random bits: counters 0 .. words - 1 in two halves, hashed in pairs.
#include "backend/cpu/random.h"

#include <cstring>
#include <vector>

#include "backend/cpu/copy.h"
#include "backend/cpu/kernels/threefry.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

namespace {

// About 20 us of hashing.
constexpr size_t kGrainPairs = 8192;

// One key's numbers: `nbytes` at `out`. Words i and i + half + odd come from
// the pair of counters of that name; with an odd number of words the middle
// one is the first half of hash(half, 0).
void fill(uint32_t key0, uint32_t key1, char* out, size_t nbytes) {
  size_t words = (nbytes + 3) / 4;
  size_t half = words / 2;
  size_t odd = words % 2;
  std::vector<uint32_t> rest;
  auto* target = reinterpret_cast<uint32_t*>(out);
  if (nbytes % 4 != 0) {
    rest.resize(words);
    target = rest.data();
  }
  parallel_for(half, kGrainPairs, [&](size_t begin, size_t end) {
    threefry_pairs(
        key0,
        key1,
        static_cast<uint32_t>(begin),
        static_cast<uint32_t>(end),
        static_cast<uint32_t>(half + odd),
        target + begin,
        target + half + odd + begin);
  });
  if (odd) {
    uint32_t unused;
    auto middle = static_cast<uint32_t>(half);
    // Partner 0: middle + (0 - middle).
    threefry_pairs(
        key0, key1, middle, middle + 1, 0u - middle, target + half, &unused);
  }
  if (!rest.empty()) {
    std::memcpy(out, rest.data(), nbytes);
  }
}

}  // namespace

void random_bits(const RandomBits&, const array& keys, array& out) {
  char* to = allocate_output(out);
  array rows = row_contiguous(keys);
  const auto* key = rows.data<uint32_t>();
  size_t count = keys.size() / 2;
  size_t nbytes = count ? out.nbytes() / count : 0;
  for (size_t i = 0; i < count && nbytes > 0; ++i) {
    fill(key[2 * i], key[2 * i + 1], to + i * nbytes, nbytes);
  }
}

}  // namespace mlx::core::cpu
