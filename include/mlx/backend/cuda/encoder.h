// What an extension's eval_gpu uses to launch kernels of its own on an NVIDIA
// GPU. No header of CUDA is needed here, nor is a library of CUDA linked: the
// backend behind it is loaded when the program runs.
//
//   void Mine::eval_gpu(const std::vector<array>& inputs,
//                       std::vector<array>& outputs) {
//     auto& encoder = mlx::core::cu::get_command_encoder(stream());
//     encoder.allocate(outputs[0]);
//     my_kernel<<<blocks, threads, 0, encoder.stream()>>>(
//         encoder.input<float>(inputs[0]), encoder.output<float>(outputs[0]));
//   }
//
// Launch and return: eval waits, and frees what the kernels use when they are
// done.
#pragma once

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/stream.h"

/// cudaStream_t points to it.
struct CUstream_st;

namespace mlx::core::cu {

/// One per stream; may be used by any thread.
class MLX_API CommandEncoder {
 public:
  CommandEncoder() = default;
  virtual ~CommandEncoder() = default;
  CommandEncoder(const CommandEncoder&) = delete;
  CommandEncoder& operator=(const CommandEncoder&) = delete;

  /// Gives `out` new row-major memory on the device.
  virtual void allocate(array& out) = 0;
  /// Gives `out` the memory of `in` where nobody else needs that (shapes and
  /// strides should be equal); says whether it did.
  virtual bool donate(const array& in, array& out) = 0;
  /// Memory for work: it lasts until the array goes out of scope, and then
  /// until what has been launched is done.
  virtual array temporary(Shape shape, Dtype dtype) = 0;
  /// `in` itself where it is row-major, else a row-major copy.
  virtual array row_contiguous(const array& in) = 0;

  /// The address on the device of an input's first element.
  template <typename T>
  const T* input(const array& in) {
    return static_cast<const T*>(address(in));
  }
  /// The same of an output or a temporary array.
  template <typename T>
  T* output(array& out) {
    return static_cast<T*>(const_cast<void*>(address(out)));
  }

  /// Where to launch. Call it after the rest: work that it has to wait for is
  /// in the stream by then.
  virtual CUstream_st* stream() = 0;

 protected:
  virtual const void* address(const array& a) = 0;
};

/// The encoder of a stream of the gpu. Raises std::invalid_argument for a
/// stream of the cpu and std::runtime_error where no gpu is usable.
MLX_API CommandEncoder& get_command_encoder(Stream s);

}  // namespace mlx::core::cu
