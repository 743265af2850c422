// Compiled kernels that outlive the process: one file a program in a folder of
// the user's. No header of CUDA here, so that the tests need none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace mlx::core::cuda::jit {

/// Never raises: what cannot be read or written is as if it was not there.
/// Several processes may share a folder.
class Files {
 public:
  /// An empty folder name keeps nothing. When the files come to more than
  /// `most_bytes`, those used longest ago go.
  explicit Files(std::string folder, size_t most_bytes = size_t(256) << 20)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  /// MLX_PTX_CACHE_DIR (empty: none), else mlx-lynx/cuda in XDG_CACHE_HOME or
  /// ~/.cache.
  static std::string default_folder();

  /// The program stored under `key`, which is compared as a whole, or an empty
  /// string. A damaged file is none.
  std::string load(const std::string& key) const;
  void store(const std::string& key, const std::string& program);

  /// Where the program of `key` is kept.
  std::string path(const std::string& key) const;

 private:
  void trim() const;

  std::string folder_;
  size_t most_bytes_;
  std::atomic<uint32_t> stored_{0};
};

}  // namespace mlx::core::cuda::jit
