// One growing block per thread and use. Large blocks ask for huge pages: fresh
// 4 KiB pages cost more than the packing that fills them.
#include "backend/cpu/scratch.h"

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace mlx::core::cpu {

namespace {

constexpr size_t kHugePage = size_t(2) << 20;

struct Free {
  void operator()(void* p) const { std::free(p); }
};

struct Block {
  std::unique_ptr<void, Free> data;
  size_t size = 0;

  void grow(size_t bytes) {
    bool large = bytes >= kHugePage;
    size_t alignment = large ? kHugePage : 4096;
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    data.reset();
    size = 0;
    data.reset(std::aligned_alloc(alignment, rounded));
    if (!data) {
      throw std::bad_alloc();
    }
    size = rounded;
    if (large) {
      madvise(data.get(), rounded, MADV_HUGEPAGE);
    }
  }
};

}  // namespace

void* scratch(ScratchUse use, size_t bytes) {
  thread_local Block blocks[4];
  Block& block = blocks[static_cast<int>(use)];
  if (bytes > block.size) {
    block.grow(bytes);
  }
  return block.data.get();
}

}  // namespace mlx::core::cpu
