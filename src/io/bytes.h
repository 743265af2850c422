// What all file formats share: errors, checked arithmetic on numbers that
// come from a file, and a reader that never goes past the file's end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "mlx/io/load.h"

namespace mlx::core::io {

/// Raises std::runtime_error with `[op] parts...`.
template <typename... Parts>
[[noreturn]] void fail(std::string_view op, const Parts&... parts) {
  std::ostringstream os;
  os << "[" << op << "] ";
  (os << ... << parts);
  throw std::runtime_error(os.str());
}

/// a * b and a + b, or nothing when 64 bits do not hold them.
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result)) {
    return std::nullopt;
  }
  return result;
}
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_add_overflow(a, b, &result)) {
    return std::nullopt;
  }
  return result;
}

/// Text from a file made fit for a message: printable and short.
inline std::string in_quotes(std::string_view text) {
  constexpr size_t kLimit = 80;
  std::string result = "'";
  for (char c : text.substr(0, kLimit)) {
    bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    result += control ? '?' : c;
  }
  return result + (text.size() > kLimit ? "...'" : "'");
}

/// The bytes from the reader's position to its end.
inline uint64_t remaining_bytes(Reader& reader) {
  size_t begin = reader.tell();
  reader.seek(0, std::ios_base::end);
  size_t end = reader.tell();
  reader.seek(static_cast<int64_t>(begin));
  return end < begin ? 0 : end - begin;
}

/// Sequential little-endian reading of `size` bytes at the reader's
/// position. Each access is checked against what is left.
class ByteReader {
 public:
  ByteReader(std::string_view op, Reader& reader, uint64_t size)
      : op_(op), reader_(reader), size_(size) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return size_ - position_; }

  /// Raises unless `count` items of `item_bytes` can still be there.
  void expect(uint64_t count, uint64_t item_bytes, std::string_view what) {
    if (count > left() / item_bytes) {
      fail(
          op_,
          what,
          " need ",
          count,
          " times ",
          item_bytes,
          " bytes at ",
          position_,
          ", but ",
          reader_.label(),
          " has ",
          left(),
          " bytes left.");
    }
  }

  template <typename T>
  T number(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    bytes(&value, sizeof(T), what);
    return value;
  }

  std::string text(uint64_t length, std::string_view what) {
    expect(length, 1, what);
    std::string result(length, '\0');
    bytes(result.data(), length, what);
    return result;
  }

  void bytes(void* out, uint64_t n, std::string_view what) {
    expect(n, 1, what);
    auto* to = static_cast<char*>(out);
    uint64_t ready = std::min<uint64_t>(n, filled_ - next_);
    std::copy_n(buffer_.get() + next_, ready, to);
    next_ += ready;
    if (ready < n) {
      refill(to + ready, n - ready);
    }
    position_ += n;
  }

 private:
  static constexpr uint64_t kBufferBytes = 1 << 16;

  void refill(char* to, uint64_t n) {
    uint64_t fresh = size_ - taken_;
    if (n >= kBufferBytes) {
      reader_.read(to, n);
      taken_ += n;
      return;
    }
    if (!buffer_) {
      buffer_ = std::make_unique<char[]>(kBufferBytes);
    }
    filled_ = std::min(kBufferBytes, fresh);
    reader_.read(buffer_.get(), filled_);
    taken_ += filled_;
    std::copy_n(buffer_.get(), n, to);
    next_ = n;
  }

  std::string op_;
  Reader& reader_;
  uint64_t size_;
  uint64_t position_ = 0;  // of the next byte handed out
  uint64_t taken_ = 0;     // from the reader
  std::unique_ptr<char[]> buffer_;
  uint64_t filled_ = 0;
  uint64_t next_ = 0;
};

}  // namespace mlx::core::io
