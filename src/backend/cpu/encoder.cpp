// Encoders for extensions: one a thread and stream.
#include "mlx/backend/cpu/encoder.h"

#include "backend/cpu/backend.h"

namespace mlx::core::cpu {

bool CommandEncoder::runs_here() const {
  return is_executing(stream_);
}

void CommandEncoder::enqueue(std::function<void()> task) {
  cpu::enqueue(
      stream_,
      [task = std::move(task), kept = std::move(temporaries_)] { task(); });
  temporaries_.clear();
}

CommandEncoder& get_command_encoder(Stream s) {
  thread_local std::unordered_map<int, CommandEncoder> encoders;
  return encoders.try_emplace(s.index, s).first->second;
}

}  // namespace mlx::core::cpu
