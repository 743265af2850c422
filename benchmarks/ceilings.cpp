// What this machine can do at most, for the benchmarks to compare with.
// Reads lines "NAME SECONDS" and answers each with one number: "read" and
// "copy" in bytes per second (read and written bytes both count), "fma" in
// float32 operations per second (a multiply-add counts two).
// Build: g++ -O3 -march=native -std=c++20 -pthread ceilings.cpp
// Usage: ceilings THREADS

#include <immintrin.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kFloats = size_t{1} << 25;  // as the largest cases have

#if defined(__AVX512F__)
constexpr size_t kLanes = 16;
using Vec = __m512;
Vec load(const float* p) {
  return _mm512_load_ps(p);
}
void stream(float* p, Vec v) {
  _mm512_stream_ps(p, v);
}
Vec add(Vec a, Vec b) {
  return _mm512_add_ps(a, b);
}
Vec fma(Vec a, Vec b, Vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
Vec fill(float x) {
  return _mm512_set1_ps(x);
}
#elif defined(__AVX2__) && defined(__FMA__)
constexpr size_t kLanes = 8;
using Vec = __m256;
Vec load(const float* p) {
  return _mm256_load_ps(p);
}
void stream(float* p, Vec v) {
  _mm256_stream_ps(p, v);
}
Vec add(Vec a, Vec b) {
  return _mm256_add_ps(a, b);
}
Vec fma(Vec a, Vec b, Vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
Vec fill(float x) {
  return _mm256_set1_ps(x);
}
#else
constexpr size_t kLanes = 4;
using Vec = __m128;
Vec load(const float* p) {
  return _mm_load_ps(p);
}
void stream(float* p, Vec v) {
  _mm_stream_ps(p, v);
}
Vec add(Vec a, Vec b) {
  return _mm_add_ps(a, b);
}
Vec fma(Vec a, Vec b, Vec c) {
  return _mm_add_ps(_mm_mul_ps(a, b), c);
}
Vec fill(float x) {
  return _mm_set1_ps(x);
}
#endif

// Results go here, so that the compiler keeps the work.
volatile float sink;

float lane0(Vec v) {
  return reinterpret_cast<const float*>(&v)[0];
}

void read_range(const float* p, size_t n) {
  Vec sums[4] = {fill(0), fill(0), fill(0), fill(0)};
  for (size_t i = 0; i < n; i += 4 * kLanes) {
    for (size_t k = 0; k < 4; ++k) {
      sums[k] = add(sums[k], load(p + i + k * kLanes));
    }
  }
  sink = lane0(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

void copy_range(const float* from, float* to, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) {
    stream(to + i, load(from + i));
  }
  _mm_sfence();
}

constexpr size_t kSteps = 4'000'000;
constexpr size_t kChains = 10;  // latency 4, two units: 8 in flight, and spare

void multiply_add() {
  Vec sums[kChains];
  for (auto& s : sums) {
    s = fill(1.0f);
  }
  Vec scale = fill(0.999f), shift = fill(0.001f);
  for (size_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
    for (size_t k = 0; k < kChains; ++k) {
      sums[k] = fma(sums[k], scale, shift);
    }
    // Unchanged in fact, unknown to the compiler: no step may be folded away.
    asm volatile("" : "+x"(scale));
  }
  for (auto& s : sums) {
    sink = lane0(s);
  }
}

// Runs `work(thread)` on all threads, over and over for `seconds`; the best
// rate, where one round is `amount`.
double best_rate(
    size_t threads,
    double seconds,
    double amount,
    const std::function<void(size_t)>& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0, total = 0;
  bool more = true;
  Clock::time_point start;
  std::barrier meet(static_cast<std::ptrdiff_t>(threads));
  auto member = [&](size_t id) {
    while (true) {
      meet.arrive_and_wait();
      if (!more) {
        return;
      }
      if (id == 0) {
        start = Clock::now();
      }
      work(id);
      meet.arrive_and_wait();
      if (id == 0) {
        std::chrono::duration<double> taken = Clock::now() - start;
        best = std::max(best, amount / taken.count());
        total += taken.count();
        more = total < seconds;
      }
    }
  };
  std::vector<std::thread> others;
  for (size_t id = 1; id < threads; ++id) {
    others.emplace_back(member, id);
  }
  member(0);
  for (auto& thread : others) {
    thread.join();
  }
  return best;
}

float* allocate() {
  auto* p = static_cast<float*>(
      std::aligned_alloc(size_t{2} << 20, kFloats * sizeof(float)));
  std::fill(p, p + kFloats, 1.0f);
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  size_t threads = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  float *from = allocate(), *to = allocate();
  size_t share = kFloats / threads / (4 * kLanes) * (4 * kLanes);
  double bytes = static_cast<double>(share * threads) * sizeof(float);
  std::string name;
  double seconds = 0;
  while (std::cin >> name >> seconds) {
    double rate = 0;
    if (name == "read") {
      rate = best_rate(threads, seconds, bytes, [&](size_t id) {
        read_range(from + id * share, share);
      });
    } else if (name == "copy") {
      rate = best_rate(threads, seconds, 2 * bytes, [&](size_t id) {
        copy_range(from + id * share, to + id * share, share);
      });
    } else if (name == "fma") {
      double flops = 2.0 * kLanes * kChains * kSteps * double(threads);
      rate = best_rate(threads, seconds, flops, [](size_t) { multiply_add(); });
    }
    std::cout << rate << std::endl;
  }
}
