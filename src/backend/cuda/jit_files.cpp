// A file is a header, the key and the program. It is written under another name
// and then renamed, so that readers see all of it or nothing.
#include "backend/cuda/jit_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace mlx::core::cuda::jit {

namespace fs = std::filesystem;

namespace {

// Fowler, Noll and Vo's hash (FNV-1a): files are told apart by their keys, it
// only has to spread names and to notice damage.
uint64_t hash(const char* bytes, size_t count) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < count; ++i) {
    h = (h ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3u;
  }
  return h;
}

struct Header {
  char magic[8];
  uint64_t key_bytes;
  uint64_t program_bytes;
  uint64_t hash_of_program;
};
// The last character is the version of the layout.
constexpr char kMagic[9] = "LynxJit1";
constexpr char kSuffix[] = ".kernel";
constexpr char kUnfinished[] = ".tmp";

// How often the folder is looked through: at the first store and then at each
// so many.
constexpr uint32_t kStoresBetweenTrims = 64;

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool close() {
    int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

bool read_all(int fd, std::string& to) {
  size_t done = 0;
  while (done < to.size()) {
    ssize_t n = read(fd, to.data() + done, to.size() - done);
    if (n <= 0) {
      return false;
    }
    done += static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int fd, const void* bytes, size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    ssize_t n = write(fd, at, count);
    if (n <= 0) {
      return false;
    }
    at += n;
    count -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

std::string Files::default_folder() {
  if (const char* folder = std::getenv("MLX_PTX_CACHE_DIR")) {
    return folder;
  }
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/') {
    return std::string(cache) + "/mlx-lynx/cuda";
  }
  const char* home = std::getenv("HOME");
  return home && home[0] == '/' ? std::string(home) + "/.cache/mlx-lynx/cuda"
                                : std::string();
}

std::string Files::path(const std::string& key) const {
  constexpr char digits[] = "0123456789abcdef";
  std::string name;
  for (uint64_t h = hash(key.data(), key.size()); name.size() < 16; h >>= 4) {
    name += digits[h & 15];
  }
  return folder_ + "/" + name + kSuffix;
}

std::string Files::load(const std::string& key) const {
  if (folder_.empty()) {
    return {};
  }
  Descriptor file(path(key), O_RDONLY);
  struct stat found {};
  if (!file.is_open() || fstat(file.get(), &found) != 0 ||
      found.st_size < static_cast<off_t>(sizeof(Header)) ||
      static_cast<uint64_t>(found.st_size) > most_bytes_) {
    return {};
  }
  std::string bytes(static_cast<size_t>(found.st_size), '\0');
  if (!read_all(file.get(), bytes)) {
    return {};
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  size_t rest = bytes.size() - sizeof(header);
  if (std::memcmp(header.magic, kMagic, sizeof(header.magic)) != 0 ||
      header.key_bytes != key.size() || rest < key.size() ||
      header.program_bytes != rest - key.size() ||
      bytes.compare(sizeof(header), key.size(), key) != 0) {
    return {};
  }
  std::string program = bytes.substr(sizeof(header) + key.size());
  if (hash(program.data(), program.size()) != header.hash_of_program) {
    return {};
  }
  futimens(file.get(), nullptr);  // it was used now
  return program;
}

void Files::store(const std::string& key, const std::string& program) {
  if (folder_.empty() || program.empty()) {
    return;
  }
  std::error_code failed;
  if (fs::create_directories(folder_, failed)) {
    // Whoever can write here decides what runs.
    fs::permissions(folder_, fs::perms::owner_all, failed);
  }
  uint32_t number = stored_.fetch_add(1);
  if (number % kStoresBetweenTrims == 0) {
    trim();
  }
  std::string to = path(key);
  std::string unfinished = to + "." + std::to_string(getpid()) + "." +
                           std::to_string(number) + kUnfinished;
  Descriptor file(unfinished, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.is_open()) {
    return;
  }
  Header header{
      {}, key.size(), program.size(), hash(program.data(), program.size())};
  std::memcpy(header.magic, kMagic, sizeof(header.magic));
  if (!write_all(file.get(), &header, sizeof(header)) ||
      !write_all(file.get(), key.data(), key.size()) ||
      !write_all(file.get(), program.data(), program.size()) || !file.close() ||
      rename(unfinished.c_str(), to.c_str()) != 0) {
    unlink(unfinished.c_str());
  }
}

// Leaves three quarters of what is allowed, so that the next one is not due at
// once. Unfinished files of an hour ago were left by processes that ended.
void Files::trim() const {
  struct Found {
    fs::file_time_type used;
    uintmax_t bytes;
    fs::path path;
  };
  std::vector<Found> found;
  uintmax_t total = 0;
  std::error_code failed;
  auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::directory_iterator entries(folder_, failed);
  for (; !failed && entries != fs::directory_iterator();
       entries.increment(failed)) {
    const fs::path& file = entries->path();
    std::error_code gone;
    auto used = fs::last_write_time(file, gone);
    auto bytes = gone ? 0 : fs::file_size(file, gone);
    if (gone) {
      continue;
    }
    if (file.extension() == kUnfinished && used < old) {
      fs::remove(file, gone);
    } else if (file.extension() == kSuffix) {
      found.push_back({used, bytes, file});
      total += bytes;
    }
  }
  if (total <= most_bytes_) {
    return;
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.used < b.used;
  });
  for (const Found& file : found) {
    if (total <= most_bytes_ / 4 * 3) {
      return;
    }
    std::error_code gone;
    fs::remove(file.path, gone);
    total -= file.bytes;
  }
}

}  // namespace mlx::core::cuda::jit
