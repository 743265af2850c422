// The list of free blocks of each thread.
#include "graph/node_memory.h"

#include <new>

namespace mlx::core::detail {

namespace {

constexpr size_t kBlockBytes = 512;
#ifdef __SANITIZE_ADDRESS__  // which finds uses of what was freed
constexpr int kMostKept = 0;
#else
constexpr int kMostKept = 4096;
#endif

struct Block {
  Block* next;
};

// Without constructor and destructor, so that it is there for nodes that are
// freed while the thread ends, after `Cleaner`.
struct FreeList {
  Block* first;
  int count;
  bool has_cleaner;
  bool closed;
};
thread_local FreeList list{};

struct Cleaner {
  ~Cleaner() {
    list.closed = true;
    while (list.first != nullptr) {
      Block* block = list.first;
      list.first = block->next;
      ::operator delete(block);
    }
    list.count = 0;
  }
};

// Once a thread, when it keeps its first block.
void add_cleaner(FreeList& mine) {
  thread_local Cleaner cleaner;
  static_cast<void>(cleaner);
  mine.has_cleaner = true;
}

}  // namespace

void* take_node_memory(size_t bytes) {
  if (bytes > kBlockBytes) {
    return ::operator new(bytes);
  }
  FreeList& mine = list;
  if (Block* block = mine.first) {
    mine.first = block->next;
    --mine.count;
    return block;
  }
  return ::operator new(kBlockBytes);
}

void give_node_memory(void* memory, size_t bytes) noexcept {
  FreeList& mine = list;
  if (bytes > kBlockBytes || mine.closed || mine.count >= kMostKept) {
    ::operator delete(memory);
    return;
  }
  if (!mine.has_cleaner) {
    add_cleaner(mine);
  }
  auto* block = static_cast<Block*>(memory);
  block->next = mine.first;
  mine.first = block;
  ++mine.count;
}

}  // namespace mlx::core::detail
