// The results of extensions, filled as those of our own operations are.
#include "backend/cpu/streaming.h"
#include "mlx/backend/cpu/parallel.h"

namespace mlx::core::cpu::detail {

namespace {

// Written by one thread at least; a function that does more than move memory
// gains by smaller ones.
constexpr size_t kGrainBytes = 16 << 10;

}  // namespace

void parallel_fill(
    void* out, size_t size, size_t itemsize, void* context, FillFn fill) {
  char* first = static_cast<char*>(out);
  size_t piece = kStreamedPiece / itemsize;
  bool streaming = size * itemsize >= kStreamingBytes && piece > 0;
  size_t grain = std::max<size_t>(1, kGrainBytes / itemsize);
  parallel_for(size, grain, [&](size_t begin, size_t end) {
    if (!streaming) {
      fill(context, begin, end - begin, first + begin * itemsize);
      return;
    }
    alignas(64) char buffer[kStreamedPiece];
    for (size_t i = begin; i < end; i += piece) {
      size_t count = std::min(piece, end - i);
      fill(context, i, count, buffer);
      copy_streaming(buffer, first + i * itemsize, count * itemsize);
    }
    finish_streaming();
  });
}

}  // namespace mlx::core::cpu::detail
