// The encoder of an extension, from whoever has announced that he has one.
#include "backend/extension_encoder.h"

#include <atomic>

#include "backend/backend.h"
#include "types/error.h"

namespace mlx::core {

namespace {

std::atomic<ExtensionEncoders> announced{nullptr};

}  // namespace

void set_extension_encoders(ExtensionEncoders encoders) {
  announced.store(encoders, std::memory_order_release);
}

cu::CommandEncoder& cu::get_command_encoder(Stream s) {
  if (s.device != Device::gpu) {
    invalid(
        "cu::get_command_encoder",
        "the stream is on the cpu. Expected a stream of the gpu.");
  }
  get_backend(Device::gpu);  // which announces it
  return announced.load(std::memory_order_acquire)(s);
}

}  // namespace mlx::core
