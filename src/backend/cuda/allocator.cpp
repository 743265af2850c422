// The pool, and copies from the device to the host.
#include "backend/cuda/allocator.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/check.h"

namespace mlx::core::cuda {

namespace {

constexpr size_t kChunk = size_t(32) << 20;
constexpr size_t kCutMost = size_t(1) << 20;
constexpr size_t kStaging = size_t(4) << 20;

// Blocks are aligned for the widest loads, and rows of small arrays for whole
// cache lines.
constexpr size_t kAlignment = 256;

size_t cut_bytes(SizeClass wanted) {
  return (wanted.bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool is_cut(const Block* block) {
  return block->bytes <= kCutMost;
}

}  // namespace

CudaMemory::CudaMemory() {
  size_t free_bytes = 0;
  size_t total = 0;
  check(cudaMemGetInfo(&free_bytes, &total), "asking for the memory size");
  memory_limit_ = total / 20 * 19;
  cache_limit_ = total / 20 * 19;
  check(
      cudaEventCreateWithFlags(&crossing_, cudaEventDisableTiming),
      "creating an event");
}

Block* CudaMemory::malloc(size_t bytes, Lane& lane) {
  if (bytes > SizeClass::max_bytes) {
    out_of_memory(bytes);
  }
  auto wanted = SizeClass::of(bytes);
  Block* block;
  {
    std::lock_guard lock(mutex_);
    block = take(lane, wanted);
    if (block == nullptr) {
      block = fresh(lane, wanted, bytes);
    } else if (!is_cut(block)) {
      cached_.fetch_sub(block->bytes, relaxed);
    }
    active_.fetch_add(block->bytes, relaxed);
  }
  block->device.store(block, relaxed);
  block->is_copy = false;
  note_peak_memory();
  return block;
}

Block* CudaMemory::pop(Lane& lane, int size_class) {
  Block*& first = lane.free_blocks[size_class];
  Block* block = first;
  if (block != nullptr) {
    first = block->next;
    block->next = nullptr;
  }
  return block;
}

void CudaMemory::push(Lane& lane, Block* block) {
  Block*& first = lane.free_blocks[block->size_class];
  block->next = first;
  first = block;
}

// Of the class, or for large blocks of the next two, up to an eighth larger.
Block* CudaMemory::take(Lane& lane, SizeClass wanted) {
  int most = wanted.bytes >= SizeClass::large ? 2 : 0;
  for (int more = 0; more <= most; ++more) {
    if (wanted.index + more < SizeClass::count) {
      if (Block* block = pop(lane, wanted.index + more)) {
        return block;
      }
    }
  }
  return lane.is_private ? nullptr : take_from_others(lane, wanted);
}

// What another stream has freed, once that stream has come so far.
Block* CudaMemory::take_from_others(Lane& lane, SizeClass wanted) {
  for (Lane* other : lanes_) {
    if (other == &lane || other->is_private || other->heir != nullptr ||
        other->has_unlaunched.load(relaxed)) {
      continue;
    }
    if (Block* block = pop(*other, wanted.index)) {
      wait_for(lane.stream, other->stream);
      block->lane = &lane;
      return block;
    }
  }
  return nullptr;
}

Block* CudaMemory::fresh(Lane& lane, SizeClass wanted, size_t asked) {
  size_t limit = memory_limit_.load(relaxed);
  size_t needed = active_.load(relaxed) + wanted.bytes;
  if (needed + cached_.load(relaxed) > limit) {
    shrink_cache(limit > needed ? limit - needed : 0);
  }
  void* address = from_device(wanted);
  if (address == nullptr) {
    shrink_cache(0);
    address = from_device(wanted);
  }
  if (address == nullptr) {
    out_of_memory(asked);
  }
  lane.bytes += wanted.bytes;
  auto* block = new Block;
  block->address = address;
  block->bytes = wanted.bytes;
  block->size_class = wanted.index;
  block->lane = &lane;
  return block;
}

// Null when the device has no more.
void* CudaMemory::from_device(SizeClass wanted) {
  void* address = nullptr;
  if (wanted.bytes > kCutMost) {
    if (cudaMalloc(&address, wanted.bytes) != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
    return address;
  }
  size_t bytes = cut_bytes(wanted);
  if (chunk_left_ < bytes) {
    if (cudaMalloc(&address, kChunk) != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
    chunk_ = static_cast<char*>(address);
    chunk_left_ = kChunk;
  }
  address = chunk_;
  chunk_ += bytes;
  chunk_left_ -= bytes;
  return address;
}

void CudaMemory::out_of_memory(size_t asked) {
  size_t free_bytes = 0;
  size_t total = 0;
  cudaMemGetInfo(&free_bytes, &total);
  throw std::runtime_error(
      "[malloc] not enough memory on the gpu: " + std::to_string(asked) +
      " bytes asked, " + std::to_string(active_memory()) + " in use, " +
      std::to_string(cache_memory()) + " cached, " +
      std::to_string(free_bytes) + " free of " + std::to_string(total) +
      ", limit " + std::to_string(memory_limit()) + ".");
}

void CudaMemory::wait_for(cudaStream_t waiting, cudaStream_t first) {
  check(cudaEventRecord(crossing_, first), "recording an event");
  check(cudaStreamWaitEvent(waiting, crossing_, 0), "waiting for an event");
}

void CudaMemory::use(Block* block, cudaStream_t stream) {
  if (block->lane->stream == stream) {
    return;
  }
  std::lock_guard lock(mutex_);
  if (block->is_copy) {
    wait_for(stream, block->lane->stream);
  }
  auto& users = block->users;
  if (std::find(users.begin(), users.end(), stream) == users.end()) {
    users.push_back(stream);
  }
}

bool CudaMemory::is_only_of(const Block* block, cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  return block->lane->stream == stream && block->users.empty();
}

void CudaMemory::free(BufferRecord* record) {
  Block* block = block_of(record);
  allocator::Buffer host_copy = block->host_copy;
  if (host_copy.ptr() != nullptr) {
    block->host_copy = allocator::Buffer(nullptr);
    block->host.store(nullptr, relaxed);
    allocator::free(host_copy);
  }
  std::lock_guard lock(mutex_);
  while (block->lane->heir != nullptr) {
    block->lane = block->lane->heir;
  }
  for (cudaStream_t user : block->users) {
    // After the end of the process there is nobody left to wait for.
    if (cudaEventRecord(crossing_, user) == cudaSuccess) {
      cudaStreamWaitEvent(block->lane->stream, crossing_, 0);
    }
  }
  block->users.clear();
  active_.fetch_sub(block->bytes, relaxed);
  if (is_cut(block)) {
    if (block->lane->holds_freed.load(relaxed)) {
      block->next = block->lane->held;
      block->lane->held = block;
    } else {
      push(*block->lane, block);
    }
    return;
  }
  push(*block->lane, block);
  cached_.fetch_add(block->bytes, relaxed);
  size_t limit = cache_limit_.load(relaxed);
  if (cached_.load(relaxed) > limit) {
    shrink_cache(limit);
  }
}

// The largest go first. cudaFree waits until nothing runs on the device.
void CudaMemory::shrink_cache(size_t most) {
  for (int i = SizeClass::count - 1; i >= 0; --i) {
    for (Lane* lane : lanes_) {
      while (cached_.load(relaxed) > most && !lane->is_private &&
             lane->free_blocks[i] != nullptr && !is_cut(lane->free_blocks[i])) {
        Block* block = pop(*lane, i);
        cached_.fetch_sub(block->bytes, relaxed);
        cudaFree(block->address);
        delete block;
      }
    }
  }
}

size_t CudaMemory::set_cache_limit(size_t limit) {
  std::lock_guard lock(mutex_);
  size_t before = cache_limit_.exchange(limit, relaxed);
  shrink_cache(limit);
  return before;
}

void CudaMemory::clear_cache() {
  std::lock_guard lock(mutex_);
  shrink_cache(0);
}

void CudaMemory::add_lane(Lane& lane) {
  std::lock_guard lock(mutex_);
  lanes_.push_back(&lane);
}

void CudaMemory::release_held(Lane& lane) {
  std::lock_guard lock(mutex_);
  lane.holds_freed.store(false, relaxed);
  push_held(lane);
}

void CudaMemory::push_held(Lane& lane) {
  while (Block* block = lane.held) {
    lane.held = block->next;
    push(lane, block);
  }
}

void CudaMemory::end_lane(Lane& from, Lane& heir) {
  std::lock_guard lock(mutex_);
  push_held(from);
  for (int i = 0; i < SizeClass::count; ++i) {
    while (Block* block = pop(from, i)) {
      block->lane = &heir;
      push(heir, block);
    }
  }
  from.heir = &heir;
  lanes_.erase(std::remove(lanes_.begin(), lanes_.end(), &from), lanes_.end());
}

void* CudaMemory::fetch(BufferRecord* record) {
  std::lock_guard lock(copy_mutex_);
  if (void* there = record->host.load(std::memory_order_acquire)) {
    return there;  // another thread was faster
  }
  allocator::Buffer copy = allocator::malloc(record->bytes);
  Block* block = block_of(record);
  try {
    copy_out(block, 0, record->bytes, copy.raw_ptr());
  } catch (...) {
    allocator::free(copy);
    throw;
  }
  block->host_copy = copy;
  record->host.store(copy.raw_ptr(), std::memory_order_release);
  return copy.raw_ptr();
}

void CudaMemory::read(
    BufferRecord* record, size_t offset, size_t bytes, void* to) {
  std::lock_guard lock(copy_mutex_);
  copy_out(block_of(record), offset, bytes, to);
}

// Two pieces of pinned memory in turn: while one is filled by the device the
// other is emptied here. Who wrote the block has been waited for.
void CudaMemory::copy_out(Block* block, size_t offset, size_t bytes, void* to) {
  if (copy_stream_ == nullptr) {
    check(
        cudaStreamCreateWithFlags(&copy_stream_, cudaStreamNonBlocking),
        "creating a stream");
    for (size_t i = 0; i < 2; ++i) {
      check(
          cudaHostAlloc(&staging_[i], kStaging, cudaHostAllocDefault),
          "allocating pinned memory");
      check(
          cudaEventCreateWithFlags(&staged_[i], cudaEventDisableTiming),
          "creating an event");
    }
  }
  const char* from = static_cast<char*>(block->address) + offset;
  char* out = static_cast<char*>(to);
  size_t pieces = (bytes + kStaging - 1) / kStaging;
  auto size_of = [&](size_t piece) {
    return std::min(kStaging, bytes - piece * kStaging);
  };
  for (size_t i = 0; i <= pieces; ++i) {
    if (i < pieces) {
      check(
          cudaMemcpyAsync(
              staging_[i % 2],
              from + i * kStaging,
              size_of(i),
              cudaMemcpyDeviceToHost,
              copy_stream_),
          "copying to the host");
      check(
          cudaEventRecord(staged_[i % 2], copy_stream_), "recording an event");
    }
    if (i > 0) {
      check(cudaEventSynchronize(staged_[(i - 1) % 2]), "copying to the host");
      std::memcpy(
          out + (i - 1) * kStaging, staging_[(i - 1) % 2], size_of(i - 1));
    }
  }
}

CudaMemory& memory() {
  static auto* the_memory = [] {
    auto* made = new CudaMemory;
    set_device_memory(made);
    return made;
  }();
  return *the_memory;
}

}  // namespace mlx::core::cuda
