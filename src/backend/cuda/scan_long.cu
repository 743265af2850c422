// Running sums of few long rows, in one pass: each element is read once and
// written once. A block takes a tile, tells its total to the blocks after it
// and gathers what those before it told.
#include "backend/cuda/device/scan.cuh"
#include "backend/cuda/work_split.h"

namespace mlx::core::cuda {

namespace {

// Tiles whose totals a warp gathers itself, four a lane. What comes before
// such a group is told by the last tile of the group before, so that the chain
// of those who wait for each other has a link every 4 MiB of floats, and sums
// are added in the same order every time.
constexpr int kGroup = 128;
constexpr int kOfThread = 32;
constexpr int kLongTile = kScanThreads * kOfThread;

using Word = unsigned long long;

// What blocks tell each other: 32 bits of value, above them 1 once they are
// there. Both are written at once, so that no fence is needed.
template <typename A>
__device__ __forceinline__ void tell(Word* to, A x) {
  static_assert(sizeof(A) == 4);
  unsigned bits = 0;
  memcpy(&bits, &x, 4);
  *static_cast<volatile Word*>(to) = Word(1) << 32 | bits;
}
__device__ __forceinline__ Word look(const Word* at) {
  return *static_cast<const volatile Word*>(at);
}
template <typename A>
__device__ __forceinline__ A hear(const Word* at, Word word) {
  while (word >> 32 == 0) {
    word = look(at);
  }
  auto bits = static_cast<unsigned>(word);
  A x;
  memcpy(&x, &bits, 4);
  return x;
}

// Of each tile its total, of each group what comes before it.
struct Ledger {
  Word* tiles;
  Word* groups;
  unsigned groups_of_row;
};

// What comes before a tile, by one warp. `place` is the tile's in its row.
template <typename Op, typename A>
__device__ __forceinline__ A gather_before(
    const Ledger& ledger, unsigned row, unsigned place, A total, int lane) {
  constexpr int kOfLane = kGroup / 32;
  Op op;
  int earlier = static_cast<int>(place % kGroup);
  const Word* tiles = ledger.tiles + (blockIdx.x - earlier);
  Word* group = ledger.groups + row * ledger.groups_of_row + place / kGroup;
  Word words[kOfLane];
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    words[i] = lane + 32 * i < earlier ? look(tiles + lane + 32 * i) : 0;
  }
  Word word = place >= kGroup ? look(group) : 0;
  A x = Op::template neutral<A>();
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    if (lane + 32 * i < earlier) {
      x = op(x, hear<A>(tiles + lane + 32 * i, words[i]));
    }
  }
  __syncwarp();
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    x = op(x, shuffle_xor(x, step));
  }
  if (place >= kGroup) {
    x = op(hear<A>(group, word), x);
  }
  if (lane == 0 && earlier == kGroup - 1 &&
      place / kGroup + 1 < ledger.groups_of_row) {
    tell(group + 1, op(x, total));
  }
  return x;
}

// A tile of 32 elements a thread: a warp has 1024 neighbours, in packs of 16
// bytes of which neighbouring lanes have neighbouring ones. Four blocks a
// processor keep up to 128 KiB in flight. Blocks start in the order of their
// numbers, so that nobody waits for one that cannot run.
template <typename Op, typename T>
__global__ void __launch_bounds__(kScanThreads, 4)
    scan_long(ScanArgs a, Ledger ledger) {
  using A = compute_t<T>;
  constexpr int N = pack_size_v<T>;
  constexpr int K = kOfThread / N;
  constexpr int kWarps = kScanThreads / 32;
  __shared__ A totals[kWarps];
  __shared__ A before_tile;
  Op op;
  A neutral = Op::template neutral<A>();
  int lane = static_cast<int>(threadIdx.x) % 32;
  int warp = static_cast<int>(threadIdx.x) / 32;
  int first = warp * (32 * kOfThread) + lane * N;
  auto chunks = static_cast<unsigned>(a.chunks);
  unsigned row = blockIdx.x / chunks;
  unsigned place = blockIdx.x % chunks;
  int64_t begin = static_cast<int64_t>(place) * kLongTile;
  int here =
      static_cast<int>(a.n - begin < kLongTile ? a.n - begin : kLongTile);
  int64_t at = row * a.n + (a.reverse ? a.n - begin : begin);
  TilePlace<T> from{
      const_cast<T*>(static_cast<const T*>(a.x)) + at,
      here,
      a.reverse,
      a.packed};
  TilePlace<T> to{static_cast<T*>(a.y) + at, here, a.reverse, a.packed};
  bool plain = a.packed && here == kLongTile && !a.reverse;

  Pack<T, N> packs[K];
  if (plain) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      packs[k] = load_pack<N>(from.first + first + k * 32 * N);
    }
  } else {
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int j = 0; j < N; ++j) {
        packs[k][j] = convert<T>(neutral);
      }
      from.load(first + k * 32 * N, packs[k]);
    }
  }

  A v[K][N];
  A before[K];
  A sum = neutral;
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      A x = to_compute(packs[k][j]);
      v[k][j] = j > 0 ? op(v[k][j - 1], x) : x;
    }
    A up_to = scan_lanes(op, v[k][N - 1], lane);
    A earlier = shuffle_up(up_to, 1);
    before[k] = lane > 0 ? op(sum, earlier) : sum;
    sum = op(sum, shuffle_from(up_to, 31));
  }
  if (lane == 0) {
    totals[warp] = sum;
  }
  __syncthreads();
  A total = neutral;
  A before_warp = neutral;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) {
    before_warp = i == warp ? total : before_warp;
    total = op(total, totals[i]);
  }
  if (warp == 0) {
    if (lane == 0) {
      tell(ledger.tiles + blockIdx.x, total);
    }
    A x = gather_before<Op>(ledger, row, place, total, lane);
    if (lane == 0) {
      before_tile = x;
    }
  }
  __syncthreads();
  before_warp = op(before_tile, before_warp);
#pragma unroll
  for (int k = 0; k < K; ++k) {
    A start = op(before_warp, before[k]);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      A up_to = op(start, v[k][j]);
      A shown = j > 0 ? op(start, v[k][j - 1]) : start;
      packs[k][j] = convert<T>(a.inclusive ? up_to : shown);
    }
    if (plain) {
      store_pack(to.first + first + k * 32 * N, packs[k]);
    } else {
      to.store(first + k * 32 * N, packs[k]);
    }
  }
}

template <typename T>
void launch_long(ScanArgs a, Encoder& e) {
  a.chunk = kLongTile;
  a.chunks = ceil_div(a.n, kLongTile);
  int64_t groups = ceil_div(a.chunks, kGroup);
  size_t bytes = a.rows * (a.chunks + groups) * sizeof(Word);
  Scratch words = e.scratch(bytes);
  e.fill_bytes(words.get(), 0, bytes);
  Ledger ledger{
      words.get<Word>(),
      words.get<Word>() + a.rows * a.chunks,
      static_cast<unsigned>(groups)};
  dim3 grid(static_cast<unsigned>(a.rows * a.chunks));
  e.launch(scan_long<Sum, T>, grid, dim3(kScanThreads), 0, a, ledger);
}

}  // namespace

bool scan_long_sum(const ScanArgs& a, Dtype dtype, Encoder& e) {
  // Longer rows than four tiles, too few of them to fill the device.
  if (a.cols != 1 || a.n < 4 * kLongTile ||
      a.rows >= 4 * device_facts().multiprocessors) {
    return false;
  }
  switch (dtype.val()) {
    case Dtype::Val::float32:
      launch_long<float>(a, e);
      return true;
    case Dtype::Val::float16:
      launch_long<half>(a, e);
      return true;
    case Dtype::Val::bfloat16:
      launch_long<bhalf>(a, e);
      return true;
    case Dtype::Val::int32:
    case Dtype::Val::uint32:
      launch_long<uint32_t>(a, e);
      return true;
    default:
      return false;
  }
}

}  // namespace mlx::core::cuda
