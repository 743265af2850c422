// Kernels whose blocks may take their places before earlier work is done: what
// Encoder::launch_overlapped asks of them.
//
// Such a kernel first works out its addresses, and may ask the L2 cache, which
// all of the device shares, for what it will read. Then every thread calls
// begin_after, and only after that memory is read or written: inputs may still
// be on their way, and the memory of the output may still be read by whom it
// belonged to before, for memory is used again in the order of the stream.
//
// Why this is enough:
// - The wait ends when all grids that this one depends on are complete and what
//   they wrote can be seen. It is the same as an ordinary launch's, only later.
//   Without the attribute, or after a kernel that never lets go (any other of
//   ours or of a library), the wait ends at once: the launch has waited.
// - The kernel lets the next one begin only behind its own wait. So while a
//   kernel waits, at most the one before it is still running, which itself saw
//   all else complete; and when a kernel is complete, so is all before it, as
//   every one waits. What follows without the attribute (kernels, copies,
//   events, other streams behind an event) waits for the whole kernel.
// - A first-level cache is emptied when a kernel begins; what was read since
//   then on behalf of the kernel before is none of its results, for these
//   kernels do not read what other blocks of theirs write (a list is one block
//   and reads its own). So nothing stale is found in it.
// - No block waits for one that has no place: the next kernel begins when the
//   last block of this one has its place.
// - In a recording the launch becomes a programmatic edge between two kernels,
//   with the same meaning, and an ordinary edge elsewhere.
#pragma once

namespace mlx::core::cuda {

/// Asks the second-level cache for the sector of an address.
__device__ __forceinline__ void ask_for(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

/// The same for `bytes`, of which each thread of the block asks for some.
__device__ __forceinline__ void ask_for(const void* begin, int bytes) {
  constexpr int kSector = 32;
  auto* from = static_cast<const char*>(begin);
  for (auto at = static_cast<int>(threadIdx.x) * kSector; at < bytes;
       at += static_cast<int>(blockDim.x) * kSector) {
    ask_for(from + at);
  }
}

template <typename P>
__device__ __forceinline__ void renew(P*& address) {
  asm volatile("" : "+l"(address));
  __builtin_assume(__isGlobal(address));
}
template <typename P, int N>
__device__ __forceinline__ void renew(P* (&addresses)[N]) {
#pragma unroll
  for (P*& address : addresses) {
    renew(address);
  }
}

/// Waits. Addresses, or arrays of them, that are read from later come out new
/// to the compiler: not even a load of what it takes for constant is moved
/// before the wait.
template <typename... A>
__device__ __forceinline__ void begin_after(A&... addresses) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  (renew(addresses), ...);
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace mlx::core::cuda
