// Pieces of huge pages: they lie apart, are usable to their ends, by many
// threads at once, and their memory goes back to the system.
#include "backend/cpu/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace mlx::core::cpu {
namespace {

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;

constexpr size_t kPage = 4096;

// Bytes of whole pages of the piece that are in memory.
size_t resident(void* piece, size_t bytes) {
  auto first = (reinterpret_cast<uintptr_t>(piece) + kPage - 1) / kPage;
  auto last = (reinterpret_cast<uintptr_t>(piece) + bytes) / kPage;
  std::vector<unsigned char> pages(last - first);
  void* from = reinterpret_cast<void*>(first * kPage);
  if (mincore(from, pages.size() * kPage, pages.data()) != 0) {
    return 0;  // not mapped any more
  }
  auto is_there = [](unsigned char page) { return (page & 1) != 0; };
  return kPage * static_cast<size_t>(
                     std::count_if(pages.begin(), pages.end(), is_there));
}

TEST(ArenaTest, PiecesLieApart) {
  Arena arena;
  std::vector<std::pair<char*, size_t>> pieces;
  for (int i = 0; i < 200; ++i) {
    size_t bytes =
        Arena::least + size_t(i) * 4111 % (Arena::most - Arena::least);
    auto* piece = static_cast<char*>(arena.take(bytes));
    ASSERT_NE(piece, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0u);
    std::memset(piece, i, bytes);
    pieces.emplace_back(piece, bytes);
  }
  for (int i = 0; i < 200; ++i) {
    auto [piece, bytes] = pieces[i];
    ASSERT_EQ(piece[0], static_cast<char>(i));
    ASSERT_EQ(piece[bytes - 1], static_cast<char>(i));
    arena.give_back(piece, bytes);
  }
}

TEST(ArenaTest, GivenBackMemoryLeavesTheProcess) {
  constexpr size_t kBytes = 512 * KiB;
  Arena arena;
  std::vector<void*> pieces;
  for (int i = 0; i < 128; ++i) {
    pieces.push_back(arena.take(kBytes));
    std::memset(pieces.back(), 1, kBytes);
    EXPECT_GT(resident(pieces.back(), kBytes), kBytes - 2 * kPage);
  }
  // One of each region stays: the rest of its memory goes all the same.
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i % 15 != 0) {
      arena.give_back(pieces[i], kBytes);
      EXPECT_EQ(resident(pieces[i], kBytes), 0u);
    }
  }
  for (size_t i = 0; i < pieces.size(); i += 15) {
    EXPECT_GT(resident(pieces[i], kBytes), kBytes - 2 * kPage);
    arena.give_back(pieces[i], kBytes);
  }
}

TEST(ArenaTest, AnEmptyRegionIsUsedAgain) {
  Arena arena;
  void* first = arena.take(MiB);
  arena.give_back(first, MiB);
  void* second = arena.take(MiB);
  EXPECT_EQ(first, second);
  arena.give_back(second, MiB);
}

TEST(ArenaTest, ManyThreads) {
  Arena arena;
  auto work = [&](int number) {
    for (int round = 0; round < 50; ++round) {
      std::vector<char*> pieces;
      for (int i = 0; i < 20; ++i) {
        pieces.push_back(static_cast<char*>(arena.take(100 * KiB)));
        std::memset(pieces.back(), number, 100 * KiB);
      }
      for (char* piece : pieces) {
        ASSERT_EQ(piece[0], number);
        ASSERT_EQ(piece[100 * KiB - 1], number);
        arena.give_back(piece, 100 * KiB);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) {
    threads.emplace_back(work, i);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace mlx::core::cpu
