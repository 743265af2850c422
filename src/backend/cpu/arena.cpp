// Pieces are cut one behind the other. What is given back is not cut again: the
// allocator above keeps freed blocks, so only its limits lead here.
#include "backend/cpu/arena.h"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <new>

namespace mlx::core::cpu {

namespace {

constexpr size_t kRegion = size_t(8) << 20;
constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;

size_t round_up(size_t n, size_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace

void* map_aligned(size_t bytes, size_t alignment) {
  size_t asked = bytes + alignment;
  void* got = mmap(
      nullptr,
      asked,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS,
      -1,
      0);
  if (got == MAP_FAILED) {
    return nullptr;
  }
  auto start = reinterpret_cast<uintptr_t>(got);
  uintptr_t data = round_up(start, alignment);
  if (data != start) {
    munmap(got, data - start);
  }
  munmap(reinterpret_cast<void*>(data + bytes), start + asked - data - bytes);
  // Only a wish: without huge pages everything works, slower.
  madvise(reinterpret_cast<void*>(data), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(data);
}

// Lies at the begin of its memory.
struct Arena::Region {
  size_t used = round_up(sizeof(Region), kLine);
  size_t pieces = 0;

  static Region* of(void* piece) {
    auto address = reinterpret_cast<uintptr_t>(piece);
    return reinterpret_cast<Region*>(address / kRegion * kRegion);
  }
};

// From the current region; null when it has no room. Wants the lock.
void* Arena::cut(size_t bytes) {
  if (!current_ || current_->used + bytes > kRegion) {
    return nullptr;
  }
  void* piece = reinterpret_cast<char*>(current_) + current_->used;
  current_->used += bytes;
  ++current_->pieces;
  return piece;
}

void* Arena::take(size_t bytes) {
  bytes = round_up(bytes, kLine);
  {
    std::lock_guard guard(lock_);
    if (void* piece = cut(bytes)) {
      return piece;
    }
  }
  void* memory = map_aligned(kRegion, kRegion);
  if (!memory) {
    return nullptr;
  }
  auto* fresh = new (memory) Region;
  void* piece;
  Region* left = fresh;
  {
    std::lock_guard guard(lock_);
    piece = cut(bytes);  // another thread may have brought a region
    if (!piece) {
      left = current_ && current_->pieces == 0 ? current_ : nullptr;
      current_ = fresh;
      piece = cut(bytes);
    }
  }
  if (left) {
    munmap(left, kRegion);
  }
  return piece;
}

void Arena::give_back(void* piece, size_t bytes) {
  Region* region = Region::of(piece);
  auto start = round_up(reinterpret_cast<uintptr_t>(piece), kPage);
  auto end = (reinterpret_cast<uintptr_t>(piece) + bytes) / kPage * kPage;
  if (start < end) {
    madvise(reinterpret_cast<void*>(start), end - start, MADV_DONTNEED);
  }
  bool is_left;
  {
    std::lock_guard guard(lock_);
    is_left = --region->pieces == 0 && region != current_;
    if (region->pieces == 0 && region == current_) {
      region->used = round_up(sizeof(Region), kLine);
    }
  }
  if (is_left) {
    munmap(region, kRegion);
  }
}

}  // namespace mlx::core::cpu
