// Files by POSIX calls: positioned reads need no lock and no shared position,
// so one open file serves all arrays that are loaded from it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "io/bytes.h"
#include "io/parallel.h"
#include "mlx/io/load.h"

namespace mlx::core::io {

namespace {

// Linux moves at most 2^31 - 4096 bytes a call.
constexpr size_t kCallBytes = size_t{1} << 30;
// A share of a split read takes over 1 ms even from the page cache, so that
// handing it over costs nothing.
constexpr size_t kShareBytes = size_t{8} << 20;

[[noreturn]] void fail_call(const char* op, const std::string& label) {
  int error = errno;
  fail(op, label, " failed: ", std::strerror(error), ".");
}

int whence(std::ios_base::seekdir way) {
  if (way == std::ios_base::beg) {
    return SEEK_SET;
  }
  return way == std::ios_base::end ? SEEK_END : SEEK_CUR;
}

size_t move_to(int fd, int64_t off, int way, const std::string& label) {
  off_t at = lseek(fd, off, way);
  if (at < 0) {
    fail_call("seek", label);
  }
  return static_cast<size_t>(at);
}

void read_share(
    int fd, char* data, size_t n, size_t offset, const std::string& label) {
  while (n > 0) {
    ssize_t got =
        pread(fd, data, std::min(n, kCallBytes), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail_call("read", label);
    }
    if (got == 0) {
      fail("read", label, " ends ", n, " bytes too early, at ", offset, ".");
    }
    data += got;
    offset += static_cast<size_t>(got);
    n -= static_cast<size_t>(got);
  }
}

}  // namespace

ParallelFileReader::ParallelFileReader(std::string file_path)
    : path_(std::move(file_path)),
      fd_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}

ParallelFileReader::~ParallelFileReader() {
  if (is_open()) {
    close(fd_);
  }
}

size_t ParallelFileReader::tell() {
  return move_to(fd_, 0, SEEK_CUR, label());
}

void ParallelFileReader::seek(int64_t off, std::ios_base::seekdir way) {
  move_to(fd_, off, whence(way), label());
}

void ParallelFileReader::read(char* data, size_t n) {
  size_t at = tell();
  read(data, n, at);
  seek(static_cast<int64_t>(at + n));
}

void ParallelFileReader::read(char* data, size_t n, size_t offset) {
  constexpr size_t kMax = std::numeric_limits<int64_t>::max();
  if (offset > kMax || n > kMax - offset) {
    fail("read", label(), " has no ", n, " bytes at ", offset, ".");
  }
  split_over_threads(n, 1, kShareBytes, [&](size_t begin, size_t end) {
    read_share(fd_, data + begin, end - begin, offset + begin, label());
  });
}

FileWriter::FileWriter(std::string file_path)
    : path_(std::move(file_path)),
      fd_(open(path_.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666)) {
}

FileWriter::FileWriter(FileWriter&& other)
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileWriter::~FileWriter() {
  if (is_open()) {
    close(fd_);
  }
}

size_t FileWriter::tell() {
  return move_to(fd_, 0, SEEK_CUR, label());
}

void FileWriter::seek(int64_t off, std::ios_base::seekdir way) {
  move_to(fd_, off, whence(way), label());
}

void FileWriter::write(const char* data, size_t n) {
  while (n > 0) {
    ssize_t done = ::write(fd_, data, std::min(n, kCallBytes));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done < 0) {
      fail_call("write", label());
    }
    data += done;
    n -= static_cast<size_t>(done);
  }
}

}  // namespace mlx::core::io
