// src/io/file.cpp: readers and writers on disk, and the pool behind them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "io/bytes.h"
#include "io/format_testing.h"

namespace mlx::core::io {
namespace {

TEST(File, WritesAndReads) {
  TemporaryFile file("file_test");
  {
    FileWriter out(file.path());
    ASSERT_TRUE(out.is_open() && out.good());
    out.write("hello world", 11);
    EXPECT_EQ(out.tell(), 11u);
    out.seek(6);
    out.write("WORLD", 5);
    FileWriter moved(std::move(out));
    EXPECT_FALSE(out.is_open());
    EXPECT_TRUE(moved.is_open());
    EXPECT_EQ(moved.label(), "file " + file.path());
  }
  ParallelFileReader in(file.path());
  ASSERT_TRUE(in.is_open() && in.good());
  char text[12] = {};
  in.read(text, 5);
  EXPECT_EQ(std::string(text), "hello");
  EXPECT_EQ(in.tell(), 5u);
  in.read(text, 5, 6);
  EXPECT_EQ(std::string(text), "WORLD");
  EXPECT_EQ(in.tell(), 5u);
  in.seek(-5, std::ios_base::end);
  EXPECT_EQ(in.tell(), 6u);
  in.seek(-1, std::ios_base::cur);
  EXPECT_EQ(remaining_bytes(in), 6u);
}

TEST(File, ReportsWhatFails) {
  EXPECT_FALSE(FileWriter().is_open());
  EXPECT_FALSE(FileWriter("/no such folder/x").is_open());
  ParallelFileReader missing("/no such folder/x");
  EXPECT_FALSE(missing.is_open());
  char byte;
  expect_error(error_of([&] { missing.read(&byte, 1, 0); }), "no such folder");

  TemporaryFile file("short", "abc");
  ParallelFileReader in(file.path());
  char text[8];
  expect_error(error_of([&] { in.read(text, 4); }), "ends 1 bytes too early");
  expect_error(error_of([&] { in.read(text, 1, 3); }), "too early, at 3");
  expect_error(error_of([&] { in.read(text, 1, ~size_t{0}); }), "has no");
  expect_error(error_of([&] { in.seek(-1); }), "seek");
  FileWriter full("/dev/full");
  expect_error(error_of([&] { full.write("abc", 3); }), "No space left");
}

TEST(File, SplitsLargeReads) {
  std::string bytes(size_t{40} << 20, '\0');
  std::mt19937 rng(4);
  for (size_t i = 0; i < bytes.size(); i += 997) {
    bytes[i] = static_cast<char>(rng());
  }
  TemporaryFile file("large", bytes);
  ParallelFileReader in(file.path());
  std::string back(bytes.size() - 3, '\1');
  in.read(back.data(), back.size(), 3);
  EXPECT_TRUE(back == bytes.substr(3));
  expect_error(
      error_of([&] { in.read(back.data(), back.size(), 4); }), "too early");
}

TEST(File, LargeReadsWorkAfterFork) {
  std::string bytes(size_t{20} << 20, 'q');
  TemporaryFile file("fork", bytes);
  ParallelFileReader in(file.path());
  std::string back(bytes.size(), '\0');
  in.read(back.data(), back.size(), 0);
  // AddressSanitizer holds a lock while a thread starts, which the child would
  // find taken: let all io threads be up.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  pid_t child = fork();
  if (child == 0) {
    std::string again(bytes.size(), '\0');
    in.read(again.data(), again.size(), 0);
    _exit(again == bytes ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(ThreadPool, GivesResultsAndErrors) {
  ThreadPool pool(3);
  EXPECT_EQ(pool.size(), 3u);
  std::vector<std::future<int>> results;
  for (int i = 0; i < 100; ++i) {
    results.push_back(pool.enqueue([i] { return i * i; }));
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(results[i].get(), i * i);
  }
  auto failing = pool.enqueue([]() -> int { throw std::runtime_error("no"); });
  EXPECT_THROW(failing.get(), std::runtime_error);
}

TEST(ByteReader, CrossesItsBufferAndStopsAtTheEnd) {
  std::string bytes;
  for (uint32_t i = 0; i < 50000; ++i) {
    bytes += as_bytes(i);
  }
  MemoryReader source(bytes);
  source.seek(2, std::ios_base::beg);
  ByteReader in("test", source, bytes.size() - 2);
  std::string back = in.text(3, "text");
  back += in.text(100000, "text");
  while (in.left() >= 8) {
    back += as_bytes(in.number<uint64_t>("numbers"));
  }
  back += in.text(in.left(), "rest");
  EXPECT_TRUE(back == bytes.substr(2));
  EXPECT_EQ(in.position(), bytes.size() - 2);
  expect_error(
      error_of([&] { in.number<uint8_t>("numbers"); }),
      "[test] numbers need 1 times 1 bytes");
}

TEST(Bytes, TextInMessagesIsPrintableAndShort) {
  EXPECT_EQ(in_quotes("a\nb"), "'a?b'");
  EXPECT_EQ(in_quotes(std::string(100, 'x')).size(), 85u);
}

}  // namespace
}  // namespace mlx::core::io
