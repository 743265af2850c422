// A block carries its record with it through its life: up to 1 MiB the record
// is the 64 bytes in front of the data, so that a small block is one piece of
// memory; larger blocks, whose data is aligned further, have it elsewhere.
#include "backend/cpu/allocator.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include "backend/cpu/arena.h"
#include "backend/cpu/host.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)
#define ASAN_UNPOISON_MEMORY_REGION(address, size)
#endif

namespace mlx::core::cpu {
namespace {

// For finding bugs: each block ends at a page that nobody may touch and goes
// back to the system at once, so that reading or writing beyond it, or after
// it was freed, ends the process at the place.
#ifdef MLX_GUARD_PAGES
constexpr bool guarded = true;
#else
constexpr bool guarded = false;
#endif
// Of guarded blocks: that of the largest type, so that nothing lies between
// the last element and the page.
constexpr size_t guarded_alignment = 8;
constexpr size_t page = 4096;

constexpr size_t alignment = 64;
constexpr size_t large_alignment = 128;
constexpr size_t in_front_most = Arena::most;
constexpr size_t huge_page = size_t(2) << 20;

// Never destroyed, as the allocator.
Arena& arena() {
  static auto* const the_arena = new Arena;
  return *the_arena;
}

// The address sanitizer knows the ends of blocks of the C library only.
bool is_from_arena(size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  return bytes == SIZE_MAX;  // none
#else
  return bytes >= Arena::least && bytes <= Arena::most;
#endif
}

constexpr size_t whole_pages(size_t bytes) {
  return (bytes + page - 1) / page * page;
}

// `bytes` at the end of pages of their own between two that cannot be touched.
// They hold a pattern, so that results that were never written are seen.
void* map_guarded(size_t bytes) {
  size_t open = whole_pages(bytes);
  void* got = mmap(
      nullptr,
      open + 2 * page,
      PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
      -1,
      0);
  if (got == MAP_FAILED) {
    return nullptr;
  }
  char* data = static_cast<char*>(got) + page;
  if (mprotect(data, open, PROT_READ | PROT_WRITE) != 0) {
    munmap(got, open + 2 * page);
    return nullptr;
  }
  std::memset(data, 0xa5, open);
  return data + open - bytes;
}

void unmap_guarded(void* block, size_t bytes) {
  char* end = static_cast<char*>(block) + bytes;
  size_t open = whole_pages(bytes);
  munmap(end - open - page, open + 2 * page);
}

}  // namespace

struct alignas(alignment) CpuAllocator::Block : BufferRecord {
  Block* newer = nullptr;
  Block* older = nullptr;
  uint64_t freed_at = 0;
  int size_class = foreign;

  static constexpr int foreign = -1;  // memory of the caller
};

CpuAllocator::CpuAllocator(size_t memory_limit, size_t cache_limit)
    : memory_limit_(memory_limit), cache_limit_(cache_limit) {
  static_assert(sizeof(Block) == alignment);
}

CpuAllocator::~CpuAllocator() {
  clear_cache();
}

allocator::Buffer CpuAllocator::malloc(size_t size) {
  if (size > SizeClass::max_bytes) {
    fail(size);
  }
  auto wanted = SizeClass::of(size);
  if constexpr (guarded) {
    wanted.bytes = (std::max(size, size_t(1)) + guarded_alignment - 1) /
                   guarded_alignment * guarded_alignment;
  }
  Block* block;
  {
    std::lock_guard guard(lock_);
    block = take_cached(wanted, size);
  }
  if (block == nullptr) {
    block = fresh(wanted, size);
  }
  ASAN_UNPOISON_MEMORY_REGION(block->host, block->bytes);
  return allocator::Buffer(static_cast<BufferRecord*>(block));
}

void CpuAllocator::free(allocator::Buffer buffer) {
  BufferRecord* record = record_of(buffer);
  if (record == nullptr) {
    return;
  }
  if (BufferRecord* on_device = record->device.load(relaxed)) {
    record->device.store(nullptr, relaxed);
    device_memory()->free(on_device);
    if (on_device == record) {
      return;
    }
  }
  auto* block = static_cast<Block*>(record);
  if (block->size_class == Block::foreign) {
    release(buffer);
    return;
  }
  ASAN_POISON_MEMORY_REGION(block->host, block->bytes);
  size_t bytes = block->bytes;
  Block* leaving = nullptr;
  {
    std::lock_guard guard(lock_);
    active_.store(active_.load(relaxed) - bytes, relaxed);
    size_t limit = cache_limit_.load(relaxed);
    if (guarded || bytes > limit) {
      block->older = nullptr;
      leaving = block;
    } else {
      put_cached(block);
      if (cached_.load(relaxed) > limit) {
        leaving = shrink_cache(limit);
      }
    }
  }
  all_to_system(leaving);
}

size_t CpuAllocator::size(allocator::Buffer buffer) const {
  auto* record = record_of(buffer);
  return record == nullptr ? 0 : record->bytes;
}

allocator::Buffer CpuAllocator::make_buffer(void* ptr, size_t size) {
  auto* block = new Block;
  block->host = ptr;
  block->bytes = size;
  return allocator::Buffer(static_cast<BufferRecord*>(block));
}

void CpuAllocator::release(allocator::Buffer buffer) {
  auto* block = static_cast<Block*>(record_of(buffer));
  if (block != nullptr &&
      (block->device != nullptr || block->size_class != Block::foreign)) {
    free(buffer);
    return;
  }
  delete block;
}

void CpuAllocator::reset_peak_memory() {
  std::lock_guard guard(lock_);
  peak_.store(0, relaxed);
}

void CpuAllocator::note_peak(size_t active) {
  std::lock_guard guard(lock_);
  if (active > peak_.load(relaxed)) {
    peak_.store(active, relaxed);
  }
}

size_t CpuAllocator::set_memory_limit(size_t limit) {
  return memory_limit_.exchange(limit, relaxed);
}

size_t CpuAllocator::set_cache_limit(size_t limit) {
  size_t before;
  Block* leaving;
  {
    std::lock_guard guard(lock_);
    before = cache_limit_.exchange(limit, relaxed);
    leaving = shrink_cache(limit);
  }
  all_to_system(leaving);
  return before;
}

void CpuAllocator::clear_cache() {
  Block* leaving;
  {
    std::lock_guard guard(lock_);
    leaving = shrink_cache(0);
  }
  all_to_system(leaving);
}

// The newest block of the class, else of a class up to a quarter larger.
CpuAllocator::Block* CpuAllocator::take_cached(SizeClass wanted, size_t size) {
  int word = wanted.index / 64;
  uint64_t bits = nonempty_[word] >> (wanted.index % 64) << (wanted.index % 64);
  // A quarter spans at most 8 classes, so the next word is far enough.
  if (bits == 0 && ++word < words) {
    bits = nonempty_[word];
  }
  if (bits == 0) {
    return nullptr;
  }
  Block* block = lists_[word * 64 + std::countr_zero(bits)].newest;
  if (block->bytes > std::max(wanted.bytes, size + size / 4)) {
    return nullptr;
  }
  unlink(block);
  cached_.store(cached_.load(relaxed) - block->bytes, relaxed);
  count_in(block->bytes);
  return block;
}

void CpuAllocator::put_cached(Block* block) {
  List& list = lists_[block->size_class];
  block->freed_at = ++clock_;
  block->newer = nullptr;
  block->older = list.newest;
  (list.newest != nullptr ? list.newest->newer : list.oldest) = block;
  list.newest = block;
  nonempty_[block->size_class / 64] |= uint64_t(1) << (block->size_class % 64);
  cached_.store(cached_.load(relaxed) + block->bytes, relaxed);
}

void CpuAllocator::unlink(Block* block) {
  List& list = lists_[block->size_class];
  (block->newer != nullptr ? block->newer->older : list.newest) = block->older;
  (block->older != nullptr ? block->older->newer : list.oldest) = block->newer;
  if (list.newest == nullptr) {
    nonempty_[block->size_class / 64] &=
        ~(uint64_t(1) << (block->size_class % 64));
  }
}

CpuAllocator::Block* CpuAllocator::oldest_cached() const {
  Block* oldest = nullptr;
  for (int word = 0; word < words; ++word) {
    for (uint64_t bits = nonempty_[word]; bits != 0; bits &= bits - 1) {
      Block* block = lists_[word * 64 + std::countr_zero(bits)].oldest;
      if (oldest == nullptr || block->freed_at < oldest->freed_at) {
        oldest = block;
      }
    }
  }
  return oldest;
}

// Unlinks blocks until at most `most` bytes are cached; returns them as a chain
// through `older`, to be given back once the lock is released.
CpuAllocator::Block* CpuAllocator::shrink_cache(size_t most) {
  Block* chain = nullptr;
  while (cached_.load(relaxed) > most) {
    Block* block = oldest_cached();
    unlink(block);
    cached_.store(cached_.load(relaxed) - block->bytes, relaxed);
    block->older = chain;
    chain = block;
  }
  return chain;
}

void CpuAllocator::count_in(size_t bytes) {
  size_t active = active_.load(relaxed) + bytes;
  active_.store(active, relaxed);
  if (DeviceMemory* device = device_memory()) {
    active += device->active_memory();
  }
  if (active > peak_.load(relaxed)) {
    peak_.store(active, relaxed);
  }
}

// A new block from the system. The memory limit is soft: cached blocks go
// first, then the allocation is tried whatever the sum is.
CpuAllocator::Block* CpuAllocator::fresh(SizeClass wanted, size_t size) {
  Block* leaving;
  {
    std::lock_guard guard(lock_);
    size_t limit = memory_limit_.load(relaxed);
    size_t needed = active_.load(relaxed) + wanted.bytes;
    leaving = shrink_cache(limit > needed ? limit - needed : 0);
  }
  all_to_system(leaving);
  Block* block = from_system(wanted);
  if (block == nullptr) {
    clear_cache();
    block = from_system(wanted);
  }
  if (block == nullptr) {
    fail(size);
  }
  std::lock_guard guard(lock_);
  count_in(wanted.bytes);
  return block;
}

CpuAllocator::Block* CpuAllocator::from_system(SizeClass wanted) {
  size_t bytes = wanted.bytes;
  Block* block;
  if (!guarded && bytes <= in_front_most) {
    size_t all = sizeof(Block) + bytes;
    void* memory = is_from_arena(bytes) ? arena().take(all)
                                        : std::aligned_alloc(alignment, all);
    if (memory == nullptr) {
      return nullptr;
    }
    block = new (memory) Block;
    block->host = block + 1;
  } else {
    void* data = guarded ? map_guarded(bytes)
                 : bytes < SizeClass::large
                     ? std::aligned_alloc(large_alignment, bytes)
                     : map_aligned(bytes, huge_page);
    if (data == nullptr) {
      return nullptr;
    }
    block = new Block;
    block->host = data;
  }
  block->bytes = bytes;
  block->size_class = wanted.index;
  return block;
}

void CpuAllocator::to_system(Block* block) {
  ASAN_UNPOISON_MEMORY_REGION(block->host, block->bytes);
  if constexpr (guarded) {
    unmap_guarded(block->host, block->bytes);
    delete block;
    return;
  }
  if (is_from_arena(block->bytes)) {
    arena().give_back(block, sizeof(Block) + block->bytes);
    return;
  }
  if (block->bytes <= in_front_most) {
    std::free(block);
    return;
  }
  if (block->bytes < SizeClass::large) {
    std::free(block->host);
  } else {
    munmap(block->host, block->bytes);
  }
  delete block;
}

void CpuAllocator::all_to_system(Block* chain) {
  while (chain != nullptr) {
    Block* next = chain->older;
    to_system(chain);
    chain = next;
  }
}

void CpuAllocator::fail(size_t size) const {
  throw std::runtime_error(
      "[malloc] not enough memory: " + std::to_string(size) + " bytes asked, " +
      std::to_string(active_memory()) + " in use, " +
      std::to_string(cache_memory()) + " cached, limit " +
      std::to_string(memory_limit()) + ".");
}

static void unlock_both() {
  arena().unlock();
  cpu_allocator().unlock();
}

CpuAllocator& cpu_allocator() {
  // Never destroyed: arrays may outlive every static object.
  static CpuAllocator* const the_allocator = [] {
    size_t memory = available_memory();
    auto* made = new CpuAllocator(memory / 10 * 8, memory / 4);
    pthread_atfork(
        [] {
          cpu_allocator().lock();
          arena().lock();
        },
        unlock_both,
        unlock_both);
    return made;
  }();
  return *the_allocator;
}

// Made while the library is loaded: a fork in the midst of a first use by
// another thread would leave the child with a half-made allocator.
[[maybe_unused]] static CpuAllocator& made_at_load = cpu_allocator();

}  // namespace mlx::core::cpu
