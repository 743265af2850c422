// Fused programs row by row: each pass goes over a row block by block and ends
// with the results of its reductions, which the next pass may use. A row that
// fits the caches is read from memory once. Long rows are cut into pieces of
// fixed length that all threads share, pass by pass; so results do not depend
// on the number of threads.
#include <algorithm>
#include <cstring>

#include "backend/cpu/compiled_call.h"
#include "backend/cpu/reduce.h"
#include "backend/cpu/streaming.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

namespace {

// Partial results of a reduction before they are combined: as many as the
// loops have accumulators, so that sums stay as exact as within a block.
constexpr size_t kPartials = 64;
// Elements of a piece of a long row.
constexpr size_t kPiece = 1 << 16;
// Elements that a thread takes at least where there is little to do.
constexpr size_t kGrain = 16384;

// Accumulators of a pass: number i of reduction k.
struct Accumulators {
  char* data;
  size_t count;
  size_t first = 0;

  char* at(size_t k, size_t width) const {
    return data + k * count * 8 + first * width;
  }
};

size_t most_reductions(const FusedPart& part) {
  size_t most = 0;
  for (const FusedPass& pass : part.passes) {
    most = std::max(most, pass.reductions.size());
  }
  return most;
}

// Points the table to what inputs and outputs have for `count` rows; strided
// values are gathered in `buffer`, 8 * count bytes for each input.
void seek_rows(
    const FusedCall& call,
    const void** table,
    size_t row,
    size_t count,
    char* buffer) {
  const FusedPart& part = call.part;
  for (uint32_t i : part.row_inputs) {
    table[i] = call.inputs[i].block(row, count, buffer);
    buffer += count * 8;
  }
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    if (part.output_extents[o] == Extent::row) {
      table[part.first(Room::output) + o] =
          call.outputs[o].data + row * call.outputs[o].width;
    }
  }
}

void run_row_values(const FusedPass& pass, const void** table, size_t count) {
  for (const Instruction& instruction : pass.rows) {
    run_instruction(
        instruction, table, instruction.is_padded ? padded_rows(count) : count);
  }
}

// From accumulators to results.
void finish(
    const FusedPass& pass,
    const void** table,
    size_t count,
    const Accumulators& from) {
  for (size_t k = 0; k < pass.reductions.size(); ++k) {
    const FusedReduction& reduction = pass.reductions[k];
    const void* in = from.at(k, reduction.width);
    void* out = const_cast<void*>(table[reduction.out]);
    if (reduction.convert) {
      reduction.convert(&in, out, count);
    } else if (count == 1 && reduction.width == 4) {
      std::memcpy(out, in, 4);
    } else {
      std::memcpy(out, in, count * reduction.width);
    }
  }
}

// Rows of n elements, `group` of them at once or in blocks.
struct RowShape {
  size_t n;
  size_t block;
  size_t group;

  RowShape(const FusedCall& call, size_t length) : n(length), group(1) {
    block = fused_block_size(call);
    if (call.part.key.grouped) {
      group = std::max<size_t>(1, block / n);
      block = group * n;
    } else if (n <= block || block != kReducedBlock) {
      // Blocks of one length.
      size_t count = std::max<size_t>(1, (n + block - 1) / block);
      block = ((n + count - 1) / count + 63) / 64 * 64;
    }
  }
};

// One thread's way through rows.
class RowWalker {
 public:
  // The values of rows are this thread's own, or those in the call's table.
  RowWalker(const FusedCall& call, const RowShape& shape, bool own_rows);

  void run(size_t row, size_t count);

  // The columns [begin, end) of `count` rows; all of them if count > 1.
  void elements(
      const FusedPass& pass,
      size_t row,
      size_t count,
      size_t begin,
      size_t end,
      const Accumulators& to);

 private:
  void run_block(
      const FusedPass& pass, size_t count, size_t n, const Accumulators& to);
  void merge(const FusedPass& pass, size_t partials, const Accumulators& to);

  const FusedCall& call_;
  const FusedPart& part_;
  RowShape shape_;
  size_t reductions_;
  // Whether outputs are moved past the caches block by block.
  bool streaming_;
  // Sizes of what lies in the frame: values of rows, gathered ones, partial
  // and final accumulators.
  size_t values_;
  size_t gathered_;
  size_t partials_;
  FusedFrame frame_;
};

RowWalker::RowWalker(
    const FusedCall& call, const RowShape& shape, bool own_rows)
    : call_(call),
      part_(call.part),
      shape_(shape),
      reductions_(most_reductions(part_)),
      streaming_(std::any_of(
          call.outputs.begin(),
          call.outputs.end(),
          [](const auto& out) { return out.streaming; })),
      values_(part_.count(Room::row) * padded_rows(shape.group) * 8),
      gathered_(part_.row_inputs.size() * shape.group * 8),
      partials_(reductions_ * kPartials * 8),
      frame_(
          call,
          shape.block,
          shape.group * shape.n,
          values_ + gathered_ + partials_ + reductions_ * shape.group * 8) {
  std::memset(frame_.extra(), 0, values_);
  for (size_t i = 0; own_rows && i < part_.count(Room::row); ++i) {
    frame_.table()[part_.first(Room::row) + i] =
        frame_.extra() + i * padded_rows(shape.group) * 8;
  }
}

void RowWalker::run(size_t row, size_t count) {
  seek_rows(call_, frame_.table(), row, count, frame_.extra() + values_);
  Accumulators results{
      frame_.extra() + values_ + gathered_ + partials_, shape_.group};
  for (const FusedPass& pass : part_.passes) {
    run_row_values(pass, frame_.table(), count);
    if (!pass.elements.empty()) {
      elements(pass, row, count, 0, shape_.n, results);
      finish(pass, frame_.table(), count, results);
    }
  }
}

void RowWalker::elements(
    const FusedPass& pass,
    size_t row,
    size_t count,
    size_t begin,
    size_t end,
    const Accumulators& to) {
  if (begin == end) {
    for (size_t k = 0; k < pass.reductions.size(); ++k) {
      const FusedReduction& reduction = pass.reductions[k];
      reduction.combine(nullptr, 0, count, 0, to.at(k, reduction.width));
    }
    return;
  }
  bool at_once = count > 1 || end - begin <= shape_.block;
  Accumulators partial{frame_.extra() + values_ + gathered_, kPartials};
  for (size_t column = begin; column < end; column += shape_.block) {
    size_t length = count > 1 ? shape_.n : std::min(shape_.block, end - column);
    size_t first = row * shape_.n + column;
    frame_.seek(pass, first, count * length);
    frame_.seek_kept(column);
    run_block(pass, count, length, at_once ? to : partial);
    if (streaming_) {
      frame_.flush(pass, first, count * length);
    }
    if (!at_once && ++partial.first == kPartials) {
      partial.first = 0;
      merge(pass, kPartials, partial);
      partial.first = 1;
    }
    if (count > 1) {
      break;
    }
  }
  if (!at_once) {
    merge(pass, partial.first, to);
  }
}

void RowWalker::run_block(
    const FusedPass& pass, size_t count, size_t n, const Accumulators& to) {
  const void** table = frame_.table();
  for (const Instruction& instruction : pass.elements) {
    if (instruction.kind == Instruction::Kind::reduce) {
      const FusedReduction& reduction = pass.reductions[instruction.which];
      if (instruction.arity == 2) {
        sum_products(
            static_cast<const float*>(table[instruction.in[0]]),
            static_cast<const float*>(table[instruction.in[1]]),
            count,
            n,
            reinterpret_cast<float*>(to.at(instruction.which, sizeof(float))));
        continue;
      }
      reduction.combine(
          table[instruction.in[0]],
          static_cast<int64_t>(n),
          count,
          n,
          to.at(instruction.which, reduction.width));
    } else if (instruction.kind == Instruction::Kind::expand) {
      const char* from = static_cast<const char*>(table[instruction.in[0]]);
      char* out = static_cast<char*>(const_cast<void*>(table[instruction.out]));
      size_t width = instruction.width;
      for (size_t r = 0; r < count; ++r) {
        gather_block(from + r * width, 0, out + r * n * width, n, width);
      }
    } else {
      frame_.run(instruction, count * n);
    }
  }
}

// The first `partials` partial results of each reduction into one.
void RowWalker::merge(
    const FusedPass& pass, size_t partials, const Accumulators& to) {
  Accumulators from{frame_.extra() + values_ + gathered_, kPartials};
  for (size_t k = 0; k < pass.reductions.size(); ++k) {
    const FusedReduction& reduction = pass.reductions[k];
    reduction.merge(
        from.at(k, reduction.width), 0, 1, partials, to.at(k, reduction.width));
  }
}

// Long rows, one after the other: all threads share a pass. They are too long
// to be kept.
void run_pieces(FusedCall& call, size_t rows, const RowShape& shape) {
  const FusedPart& part = call.part;
  const void** table = call.table.data();
  std::vector<uint64_t> values(part.count(Room::row) * kRowPad);
  std::vector<uint64_t> gathered(part.row_inputs.size());
  for (size_t i = 0; i < part.count(Room::row); ++i) {
    table[part.first(Room::row) + i] = &values[i * kRowPad];
  }
  size_t pieces = (shape.n + kPiece - 1) / kPiece;
  size_t reductions = most_reductions(part);
  std::vector<uint64_t> partials(reductions * pieces);
  std::vector<uint64_t> results(reductions);
  char* to = reinterpret_cast<char*>(partials.data());
  Accumulators result{reinterpret_cast<char*>(results.data()), 1};
  for (size_t row = 0; row < rows; ++row) {
    seek_rows(call, table, row, 1, reinterpret_cast<char*>(gathered.data()));
    for (const FusedPass& pass : part.passes) {
      run_row_values(pass, table, 1);
      if (pass.elements.empty()) {
        continue;
      }
      parallel_for(pieces, 1, [&](size_t first, size_t last) {
        RowWalker walker(call, shape, false);
        for (size_t p = first; p < last; ++p) {
          size_t begin = p * kPiece;
          size_t end = std::min(begin + kPiece, shape.n);
          walker.elements(pass, row, 1, begin, end, {to, pieces, p});
        }
        finish_streaming();
      });
      for (size_t k = 0; k < pass.reductions.size(); ++k) {
        pass.reductions[k].merge(
            to + k * pieces * 8, 0, 1, pieces, result.at(k, 0));
      }
      finish(pass, table, 1, result);
    }
  }
}

}  // namespace

void run_rows(FusedCall& call, size_t rows, size_t n) {
  call.begin();
  RowShape shape(call, n);
  if (n >= 2 * kPiece) {
    run_pieces(call, rows, shape);
    return;
  }
  size_t work = 1;
  for (const FusedPass& pass : call.part.passes) {
    work += pass.elements.size();
  }
  size_t groups = (rows + shape.group - 1) / shape.group;
  size_t grain = kGrain / (work * std::max<size_t>(1, shape.group * n));
  parallel_for(
      groups, std::max<size_t>(1, grain), [&](size_t first, size_t last) {
        RowWalker walker(call, shape, true);
        for (size_t g = first; g < last; ++g) {
          size_t row = g * shape.group;
          walker.run(row, std::min(shape.group, rows - row));
        }
        finish_streaming();
      });
}

}  // namespace mlx::core::cpu
