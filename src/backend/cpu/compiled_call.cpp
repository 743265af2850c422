// Buffers and pointers of fused programs, and the loop over elements in any
// order.
#include "backend/cpu/compiled_call.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/scratch.h"
#include "backend/cpu/streaming.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

namespace {

// What the buffers of a thread may take of the first cache (32 KiB on the
// machines at hand); inputs and outputs pass through the rest.
constexpr size_t kBufferBytes = 20 << 10;
// Buffers whose addresses differ by a multiple of 4 KiB would share the lines
// of the cache.
constexpr size_t kSkew = 192;

bool is_gathered(const FusedCall& call, size_t input) {
  return call.part.key.inputs[input] == InputKind::element &&
         call.inputs[input].kind() == BlockView::Kind::strided;
}

size_t padded(size_t bytes) {
  return (bytes + 63) / 64 * 64 + kSkew;
}

}  // namespace

void FusedCall::begin() {
  table.resize(part.rooms[kNumRooms]);
  ones.resize(part.count(Room::one));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == BlockView::Kind::scalar) {
      table[i] = inputs[i].block(0, 1, nullptr);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    table[part.first(Room::output) + i] = outputs[i].data;
  }
  for (size_t i = 0; i < ones.size(); ++i) {
    table[part.first(Room::one) + i] = &ones[i];
  }
  for (const Instruction& instruction : part.ones) {
    run_instruction(instruction, table.data(), 1);
  }
}

size_t fused_block_size(const FusedCall& call) {
  size_t bytes = 0;
  for (uint8_t width : call.part.block_widths) {
    bytes += width;
  }
  for (const FusedCall::Output& out : call.outputs) {
    bytes += out.streaming ? out.width : 0;
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    bytes += is_gathered(call, i) ? call.inputs[i].item_size() : 0;
  }
  size_t block = bytes == 0 ? kBlock : kBufferBytes / bytes;
  return std::clamp<size_t>(block / 64 * 64, kBlock / 4, kBlock);
}

FusedFrame::FusedFrame(
    const FusedCall& call, size_t block, size_t row, size_t extra)
    : call_(call) {
  const FusedPart& part = call.part;
  size_t num_inputs = call.inputs.size();
  size_t bytes = padded(call.table.size() * sizeof(void*)) +
                 padded(num_inputs * sizeof(void*)) + padded(extra) +
                 padded(part.kept_widths.size() * sizeof(void*));
  for (uint8_t width : part.kept_widths) {
    bytes += padded(row * width);
  }
  for (uint8_t width : part.block_widths) {
    bytes += padded(block * width);
  }
  for (const FusedCall::Output& out : call.outputs) {
    bytes += out.streaming ? padded(block * out.width) : 0;
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    bytes +=
        is_gathered(call, i) ? padded(block * call.inputs[i].item_size()) : 0;
  }
  char* at = static_cast<char*>(scratch(ScratchUse::fused, bytes));
  auto take = [&](size_t size) {
    char* taken = at;
    at += padded(size);
    return taken;
  };
  table_ =
      reinterpret_cast<const void**>(take(call.table.size() * sizeof(void*)));
  std::copy(call.table.begin(), call.table.end(), table_);
  gathered_ = reinterpret_cast<char**>(take(num_inputs * sizeof(void*)));
  for (size_t b = 0; b < part.block_widths.size(); ++b) {
    table_[part.first(Room::block) + b] = take(block * part.block_widths[b]);
  }
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    if (call.outputs[o].streaming) {
      table_[part.first(Room::output) + o] =
          take(block * call.outputs[o].width);
    }
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    gathered_[i] = is_gathered(call, i)
                       ? take(block * call.inputs[i].item_size())
                       : nullptr;
  }
  kept_ =
      reinterpret_cast<char**>(take(part.kept_widths.size() * sizeof(void*)));
  for (size_t k = 0; k < part.kept_widths.size(); ++k) {
    kept_[k] = take(row * part.kept_widths[k]);
  }
  extra_ = take(extra);
}

void FusedFrame::seek_kept(size_t column) {
  const FusedPart& part = call_.part;
  for (size_t k = 0; k < part.kept_widths.size(); ++k) {
    table_[part.first(Room::kept) + k] =
        kept_[k] + column * part.kept_widths[k];
  }
}

void FusedFrame::seek(const FusedPass& pass, size_t begin, size_t n) {
  for (uint32_t i : pass.inputs) {
    table_[i] = call_.inputs[i].block(begin, n, gathered_[i]);
  }
  for (uint32_t o : pass.outputs) {
    const FusedCall::Output& out = call_.outputs[o];
    if (!out.streaming) {
      table_[call_.part.first(Room::output) + o] = out.data + begin * out.width;
    }
  }
}

void FusedFrame::flush(const FusedPass& pass, size_t begin, size_t n) {
  for (uint32_t o : pass.outputs) {
    const FusedCall::Output& out = call_.outputs[o];
    if (out.streaming) {
      copy_streaming(
          table_[call_.part.first(Room::output) + o],
          out.data + begin * out.width,
          n * out.width);
    }
  }
}

void run_flat(FusedCall& call, size_t size) {
  call.begin();
  const FusedPass& pass = call.part.passes[0];
  if (pass.elements.empty()) {
    return;
  }
  size_t block = fused_block_size(call);
  bool streaming = std::any_of(
      call.outputs.begin(), call.outputs.end(), [](const auto& out) {
        return out.streaming;
      });
  // 8192 elements are enough for a thread where there is little to do.
  size_t work = std::max<size_t>(2, pass.elements.size());
  size_t grain = std::max<size_t>(1, 2 * 8192 / (work * block));
  parallel_for(
      (size + block - 1) / block, grain, [&](size_t first, size_t last) {
        FusedFrame frame(call, block);
        for (size_t b = first; b < last; ++b) {
          size_t begin = b * block;
          size_t n = std::min(block, size - begin);
          frame.seek(pass, begin, n);
          for (const Instruction& instruction : pass.elements) {
            run_instruction(instruction, frame.table(), n);
          }
          if (streaming) {
            frame.flush(pass, begin, n);
          }
        }
        if (streaming) {
          finish_streaming();
        }
      });
}

}  // namespace mlx::core::cpu
