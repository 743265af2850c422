// A reader over bytes in memory that takes reading past the end as a bug.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

#include "mlx/io/load.h"

namespace mlx::core::io {

class MemoryReader : public Reader {
 public:
  explicit MemoryReader(std::string bytes) : bytes_(std::move(bytes)) {}

  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return at_; }
  void seek(int64_t off, std::ios_base::seekdir way) override {
    size_t base = way == std::ios_base::beg   ? 0
                  : way == std::ios_base::cur ? at_
                                              : bytes_.size();
    at_ = base + static_cast<size_t>(off);
  }
  void read(char* data, size_t n) override {
    read(data, n, at_);
    at_ += n;
  }
  void read(char* data, size_t n, size_t offset) override {
    if (offset > bytes_.size() || n > bytes_.size() - offset) {
      throw std::logic_error("a parser read past the end");
    }
    std::memcpy(data, bytes_.data() + offset, n);
  }
  std::string label() const override { return "memory"; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace mlx::core::io
