// What the tests of file formats share.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "io/memory_reader.h"

namespace mlx::core::io {

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file that is deleted with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name, const std::string& bytes = "")
      : path_((std::filesystem::temp_directory_path() /
               ("mlx_" + std::to_string(getpid()) + "_" + name))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

template <typename T>
std::string as_bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// The message of the std::runtime_error that `f` raises; fails otherwise.
template <typename F>
std::string error_of(F f) {
  try {
    f();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline void expect_error(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "message: " << text;
}

}  // namespace mlx::core::io
