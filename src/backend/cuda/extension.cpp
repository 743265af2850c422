// What extensions see of an encoder. Each call takes the lock: between two of
// them other threads may launch, which the stream's order allows for.
#include "backend/cuda/extension.h"

#include <unordered_map>

#include "backend/cuda/copy.h"
#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

namespace {

class ExtensionEncoder final : public cu::CommandEncoder {
 public:
  explicit ExtensionEncoder(Encoder& e) : e_(e) {}

  void allocate(array& out) override {
    std::lock_guard lock(e_.mutex());
    e_.allocate(out);
  }
  bool donate(const array& in, array& out) override {
    std::lock_guard lock(e_.mutex());
    return e_.donate(in, out);
  }
  array temporary(Shape shape, Dtype dtype) override {
    std::lock_guard lock(e_.mutex());
    return e_.temporary(std::move(shape), dtype);
  }
  array row_contiguous(const array& in) override {
    std::lock_guard lock(e_.mutex());
    return cuda::row_contiguous(in, e_);
  }
  CUstream_st* stream() override {
    std::lock_guard lock(e_.mutex());
    return e_.stream();
  }

 protected:
  const void* address(const array& a) override {
    std::lock_guard lock(e_.mutex());
    return e_.in(a);
  }

 private:
  Encoder& e_;
};

}  // namespace

cu::CommandEncoder& extension_encoder(Stream s) {
  Encoder& e = encoder(s);
  static std::mutex mutex;
  // As long as encoders: until the process ends.
  static auto* made = new std::unordered_map<Encoder*, ExtensionEncoder*>;
  std::lock_guard lock(mutex);
  ExtensionEncoder*& slot = (*made)[&e];
  if (slot == nullptr) {
    slot = new ExtensionEncoder(e);
  }
  return *slot;
}

}  // namespace mlx::core::cuda
