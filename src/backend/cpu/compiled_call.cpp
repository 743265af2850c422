// Buffers and pointers of fused programs, and the loop over elements in any
// order.
#include "backend/cpu/compiled_call.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/reduce.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/streaming.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

namespace {

// What the buffers of a thread may take of the first cache (32 KiB on the
// machines at hand); inputs and outputs pass through the rest.
constexpr size_t kBufferBytes = 20 << 10;
// The same where chains read many inputs in turn, which then come from memory
// in longer runs: 26 inputs at 22 GB/s, 18 with the blocks of others (Zen 3).
// The buffers may leave the first cache.
constexpr size_t kLongBlock = 4096;
constexpr size_t kLongBufferBytes = 80 << 10;
// Where chains need no buffers, blocks only spread the work; long ones save
// beginnings of chains, and with so many of them all threads still end
// together.
constexpr size_t kManyBlocks = 256;
// Bytes that a chain asks for ahead, which carries it over the ends of pages,
// where the prefetchers of the machine have to start anew.
constexpr size_t kAhead = 1024;
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

size_t fused_block_size(const FusedCall& call, size_t size) {
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
  if (bytes == 0 && call.part.key.by_rows) {
    return kReducedBlock;
  }
  bool is_long = call.part.has_many_streams && !call.part.key.by_rows;
  is_long = is_long || (bytes == 0 && size >= kLongBlock * kManyBlocks);
  size_t most = is_long ? kLongBlock : kBlock;
  size_t room = is_long ? kLongBufferBytes : kBufferBytes;
  size_t block = bytes == 0 ? most : room / bytes;
  return std::clamp<size_t>(block / 64 * 64, kBlock / 4, most);
}

FusedFrame::FusedFrame(
    const FusedCall& call, size_t block, size_t row, size_t extra)
    : call_(call) {
  // Once to see how much is needed, once to take it.
  size_t bytes = lay_out(nullptr, block, row, extra);
  lay_out(
      static_cast<char*>(scratch(ScratchUse::fused, bytes)), block, row, extra);
  for (const FusedChain& chain : call.part.chains) {
    for (size_t k = 0; k < chain.stages.size(); ++k) {
      const FusedStage& stage = chain.stages[k];
      bool moves = stage.role == FusedStage::Role::read ||
                   stage.role == FusedStage::Role::write;
      stages_[chain.first + k] = {
          stage.run,
          nullptr,
          moves ? size_t(stage.width) : 0,
          !stage.is_last_read ? 0
          : row > 0           ? row * stage.width
                              : kAhead};
      if (stage.streaming && is_direct(stage.at)) {
        // Of joined stages the first one has the code.
        size_t code = k;
        while (!chain.stages[code].run) {
          --code;
        }
        stages_[chain.first + code].run = stage.streaming;
      }
    }
  }
}

// Whether this place in the table is an output that chains stream.
bool FusedFrame::is_direct(uint32_t at) const {
  uint32_t output = at - call_.part.first(Room::output);
  return output < call_.outputs.size() && call_.outputs[output].direct;
}

size_t FusedFrame::lay_out(
    char* memory, size_t block, size_t row, size_t extra) {
  const FusedPart& part = call_.part;
  size_t used = 0;
  auto take = [&](size_t bytes) {
    char* taken = memory ? memory + used : nullptr;
    used += padded(bytes);
    return taken;
  };
  auto take_for = [&](Room room, size_t index, size_t bytes) {
    char* taken = take(bytes);
    if (memory) {
      table_[part.first(room) + index] = taken;
    }
  };
  size_t num_inputs = call_.inputs.size();
  table_ =
      reinterpret_cast<const void**>(take(call_.table.size() * sizeof(void*)));
  gathered_ = reinterpret_cast<char**>(take(num_inputs * sizeof(void*)));
  kept_ =
      reinterpret_cast<char**>(take(part.kept_widths.size() * sizeof(void*)));
  stages_ =
      reinterpret_cast<ChainStage*>(take(part.num_stages * sizeof(ChainStage)));
  if (memory) {
    std::copy(call_.table.begin(), call_.table.end(), table_);
  }
  constexpr size_t kGroupBytes = kMaxChainGroup * sizeof(float);
  for (size_t t = 0; t < part.count(Room::temporary); ++t) {
    take_for(Room::temporary, t, kGroupBytes);
  }
  size_t stages = 0;
  for (const FusedChain& chain : part.chains) {
    stages = std::max(stages, chain.stages.size());
  }
  group_ = take(stages * kGroupBytes);
  for (size_t b = 0; b < part.block_widths.size(); ++b) {
    take_for(Room::block, b, block * part.block_widths[b]);
  }
  for (size_t o = 0; o < call_.outputs.size(); ++o) {
    if (call_.outputs[o].streaming) {
      take_for(Room::output, o, block * call_.outputs[o].width);
    }
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    char* buffer = is_gathered(call_, i)
                       ? take(block * call_.inputs[i].item_size())
                       : nullptr;
    if (memory) {
      gathered_[i] = buffer;
    }
  }
  for (size_t k = 0; k < part.kept_widths.size(); ++k) {
    char* buffer = take(row * part.kept_widths[k]);
    if (memory) {
      kept_[k] = buffer;
    }
  }
  extra_ = take(extra);
  return used;
}

void FusedFrame::run_stages(const FusedChain& chain, size_t n) {
  ChainStage* stages = stages_ + chain.first;
  for (size_t k = 0; k < chain.stages.size(); ++k) {
    stages[k].at = table_[chain.stages[k].at];
  }
  size_t whole = n / chain_group() * chain_group();
  run_chain(stages, chain.stages.size(), whole);
  if (n > whole) {
    run_last_group(chain, whole, n - whole);
  }
}

// Elements that do not fill a group are worked on in buffers that do.
void FusedFrame::run_last_group(
    const FusedChain& chain, size_t begin, size_t n) {
  ChainStage* stages = stages_ + chain.first;
  char* buffer = group_;
  for (size_t k = 0; k < chain.stages.size(); ++k) {
    size_t width = chain.stages[k].width;
    if (width > 0) {
      const char* from = static_cast<const char*>(stages[k].at) + begin * width;
      if (chain.stages[k].role == FusedStage::Role::read) {
        std::memcpy(buffer, from, n * width);
      }
      stages[k].at = buffer;
      buffer += kMaxChainGroup * sizeof(float);
    }
  }
  run_chain(stages, chain.stages.size(), chain_group());
  for (size_t k = 0; k < chain.stages.size(); ++k) {
    const FusedStage& stage = chain.stages[k];
    if (stage.role == FusedStage::Role::write) {
      char* to = static_cast<char*>(const_cast<void*>(table_[stage.at]));
      std::memcpy(to + begin * stage.width, stages[k].at, n * stage.width);
    }
  }
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
  size_t block = fused_block_size(call, size);
  bool streaming = std::any_of(
      call.outputs.begin(), call.outputs.end(), [](const auto& out) {
        return out.streaming || out.direct;
      });
  // 8192 elements are enough for a thread where there is little to do; four
  // stages of a chain count as one instruction.
  size_t work =
      std::max<size_t>(2, pass.elements.size() + call.part.num_stages / 4);
  size_t grain = std::max<size_t>(1, 2 * 8192 / (work * block));
  parallel_for(
      (size + block - 1) / block, grain, [&](size_t first, size_t last) {
        FusedFrame frame(call, block);
        for (size_t b = first; b < last; ++b) {
          size_t begin = b * block;
          size_t n = std::min(block, size - begin);
          frame.seek(pass, begin, n);
          for (const Instruction& instruction : pass.elements) {
            frame.run(instruction, n);
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
