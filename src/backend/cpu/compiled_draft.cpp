// Linear scan: instructions run in order and each value is made once.
#include "backend/cpu/compiled_draft.h"

namespace mlx::core::cpu {

namespace {

class Assigner {
 public:
  Assigner(const std::vector<uint8_t>& widths, std::vector<uint8_t>& buffers)
      : widths_(widths),
        buffers_(buffers),
        last_use_(widths.size(), 0),
        buffer_of_(widths.size(), 0) {}

  void run(std::vector<Draft>& drafts) {
    for (size_t i = 0; i < drafts.size(); ++i) {
      for_reads(drafts[i], [&](Place& p) { last_use_[p.index] = i; });
    }
    is_free_.assign(buffers_.size(), true);
    for (size_t i = 0; i < drafts.size(); ++i) {
      Draft& draft = drafts[i];
      // A chain writes while it still reads, so its results lie elsewhere. The
      // result of a single step may take the place of an operand.
      for (DraftStage& stage : draft.stages) {
        if (stage.role == DraftStage::Role::write) {
          give(stage.place);
        }
      }
      for_reads(draft, [&](Place& p) {
        uint32_t buffer = buffer_of_[p.index];
        is_free_[buffer] = is_free_[buffer] || last_use_[p.index] == i;
        p.index = buffer;
      });
      if (draft.stages.empty()) {
        give(draft.out);
      }
    }
  }

 private:
  template <typename Fn>
  static void for_reads(Draft& draft, Fn fn) {
    for (int k = 0; k < draft.instruction.arity; ++k) {
      if (draft.in[k].room == Room::block) {
        fn(draft.in[k]);
      }
    }
    for (DraftStage& stage : draft.stages) {
      if (stage.role == DraftStage::Role::read &&
          stage.place.room == Room::block) {
        fn(stage.place);
      }
    }
  }

  void give(Place& p) {
    if (p.room == Room::block) {
      uint32_t value = p.index;
      p.index = buffer_of_[value] = take(widths_[value]);
    }
  }

  uint32_t take(uint8_t width) {
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (is_free_[b] && buffers_[b] == width) {
        is_free_[b] = false;
        return static_cast<uint32_t>(b);
      }
    }
    buffers_.push_back(width);
    is_free_.push_back(false);
    return static_cast<uint32_t>(buffers_.size() - 1);
  }

  const std::vector<uint8_t>& widths_;
  std::vector<uint8_t>& buffers_;
  std::vector<size_t> last_use_;
  std::vector<uint32_t> buffer_of_;
  std::vector<bool> is_free_;
};

}  // namespace

void assign_blocks(
    std::vector<DraftPass>& passes,
    const std::vector<uint8_t>& widths,
    std::vector<uint8_t>& buffers) {
  Assigner assigner(widths, buffers);
  for (DraftPass& pass : passes) {
    assigner.run(pass.elements);
  }
}

}  // namespace mlx::core::cpu
