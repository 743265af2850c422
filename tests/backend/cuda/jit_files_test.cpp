// Compiled kernels on disk: what is stored comes back, damage is noticed, the
// folder stays within its bound.
#include "backend/cuda/jit_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace mlx::core::cuda::jit {
namespace {

namespace fs = std::filesystem;

class JitFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "jit_files_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    folder_ = root_ + "/made/on/demand";
  }
  void TearDown() override { fs::remove_all(root_); }

  size_t count() const {
    size_t n = 0;
    for (const auto& file : fs::directory_iterator(folder_)) {
      n += file.is_regular_file();
    }
    return n;
  }

  std::string root_;
  std::string folder_;
};

TEST_F(JitFiles, WhatIsStoredComesBack) {
  std::string program("a\0program\xff", 10);
  Files files(folder_);
  EXPECT_EQ(files.load("key"), "");
  files.store("key", program);
  EXPECT_EQ(files.load("key"), program);
  EXPECT_EQ(Files(folder_).load("key"), program);
  EXPECT_EQ(files.load("another key"), "");
  files.store("key", "a second one");
  EXPECT_EQ(files.load("key"), "a second one");
  EXPECT_EQ(count(), 1u);
}

TEST_F(JitFiles, TheFolderIsTheOwnersAlone) {
  Files(folder_).store("key", "program");
  struct stat found {};
  ASSERT_EQ(stat(folder_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
}

TEST_F(JitFiles, DamagedFilesAreNone) {
  Files files(folder_);
  files.store("key", "program");
  std::string path = files.path("key");
  std::string whole;
  {
    std::ifstream in(path, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  auto write = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    write(changed);
    EXPECT_EQ(files.load("key"), "") << "byte " << i;
    write(whole.substr(0, i));
    EXPECT_EQ(files.load("key"), "") << "cut at " << i;
  }
  write(whole + "x");
  EXPECT_EQ(files.load("key"), "");
  files.store("key", "program");
  EXPECT_EQ(files.load("key"), "program");
}

TEST_F(JitFiles, WhoseNameIsAnotherKeysIsNotReturned) {
  Files files(folder_);
  files.store("key", "program");
  fs::rename(files.path("key"), files.path("yek"));
  EXPECT_EQ(files.load("yek"), "");
}

TEST_F(JitFiles, TheOldestGoWhenThereAreTooMany) {
  std::string program(1000, 'p');
  {
    Files files(folder_);
    for (int i = 0; i < 20; ++i) {
      std::string key = "key" + std::to_string(i);
      files.store(key, program);
      fs::last_write_time(
          files.path(key),
          fs::file_time_type::clock::now() - std::chrono::hours(100 - i));
    }
  }
  Files files(folder_, 10000);
  EXPECT_EQ(files.load("key3"), program);  // used now
  files.store("new", program);
  EXPECT_LE(count(), 8u);
  EXPECT_EQ(files.load("key3"), program);
  EXPECT_EQ(files.load("key19"), program);
  EXPECT_EQ(files.load("key0"), "");
  EXPECT_EQ(files.load("new"), program);
}

TEST_F(JitFiles, UnfinishedFilesOfLongAgoGo) {
  fs::create_directories(folder_);
  std::string left = folder_ + "/0.kernel.1.2.tmp";
  std::string under_way = folder_ + "/0.kernel.1.3.tmp";
  std::ofstream(left) << "half a";
  std::ofstream(under_way) << "half a";
  fs::last_write_time(
      left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  Files(folder_).store("key", "program");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(under_way));
}

TEST_F(JitFiles, NoFolderKeepsNothingAndRaisesNothing) {
  Files none("");
  none.store("key", "program");
  EXPECT_EQ(none.load("key"), "");
  std::ofstream(root_ + "/file") << "x";
  Files not_a_folder(root_ + "/file");
  not_a_folder.store("key", "program");
  EXPECT_EQ(not_a_folder.load("key"), "");
}

TEST_F(JitFiles, ManyThreadsWriteAndReadOneKey) {
  std::string program(100000, 'q');
  Files files(folder_);
  files.store("key", program);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        files.store("key", program);
        wrong += files.load("key") != program;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(count(), 1u);
}

TEST(JitFilesFolder, ComesFromTheEnvironment) {
  auto with = [](const char* chosen, const char* cache, const char* home) {
    auto set = [](const char* name, const char* value) {
      value ? setenv(name, value, 1) : unsetenv(name);
    };
    set("MLX_PTX_CACHE_DIR", chosen);
    set("XDG_CACHE_HOME", cache);
    set("HOME", home);
    return Files::default_folder();
  };
  const char* home = std::getenv("HOME");
  std::string home_before = home ? home : "";
  EXPECT_EQ(with("/chosen", "/cache", "/home/me"), "/chosen");
  EXPECT_EQ(with("", "/cache", "/home/me"), "");
  EXPECT_EQ(with(nullptr, "/cache", "/home/me"), "/cache/mlx-lynx/cuda");
  EXPECT_EQ(with(nullptr, "not/whole", "/me"), "/me/.cache/mlx-lynx/cuda");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
  with(nullptr, nullptr, home ? home_before.c_str() : nullptr);
}

}  // namespace
}  // namespace mlx::core::cuda::jit
