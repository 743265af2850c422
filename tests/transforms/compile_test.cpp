// compile from C++: when it traces, modes, identities, the bounded cache,
// threads, shapes that differ from those of the trace.
#include "mlx/compile.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <sstream>
#include <thread>

#include "mlx/graph_utils.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "transforms/compile/cache.h"

namespace mlx::core {
namespace {

using Arrays = std::vector<array>;

// Leaves the mode of the process as it was.
class Compile : public testing::Test {
 protected:
  void TearDown() override {
    enable_compile();
    detail::compile_clear_cache();
  }
};

std::atomic<int> traces{0};

// Equal parts and a copy to take out, four operations to fuse.
Arrays wave(const Arrays& in) {
  ++traces;
  array x = stop_gradient(in[0]);
  array a = exp(negative(x));
  return {add(multiply(a, x), exp(negative(x)))};
}

Arrays evaluated(Arrays arrays) {
  eval(arrays);
  return arrays;
}

size_t count_nodes(const Arrays& outputs) {
  std::ostringstream text;
  export_to_dot(text, outputs);
  size_t count = 0;
  std::string dot = text.str();
  for (size_t at = dot.find("label"); at != std::string::npos;
       at = dot.find("label", at + 1)) {
    ++count;
  }
  return count;
}

bool same(const array& a, const array& b) {
  return array_equal(a, b).item<bool>();
}

TEST_F(Compile, TracesOnceForEachShapeAndType) {
  traces = 0;
  auto compiled = compile(wave);
  for (int i = 0; i < 3; ++i) {
    array x = full({4}, static_cast<float>(i));
    EXPECT_TRUE(same(compiled({x})[0], wave({x})[0]));
  }
  EXPECT_EQ(traces, 1 + 3);
  compiled({ones({5})});
  compiled({ones({4}, float16)});
  compiled({ones({4, 1})});
  EXPECT_EQ(traces, 1 + 3 + 3);
}

TEST_F(Compile, FunctionsShareTracesAndLambdasDoNot) {
  traces = 0;
  compile(wave)({ones({3})});
  compile(wave)({ones({3})});
  EXPECT_EQ(traces, 1);
  float factor = 2;
  auto times = [&](const Arrays& in) {
    ++traces;
    return Arrays{multiply(in[0], array(factor))};
  };
  EXPECT_EQ(compile(ArrayFn(times))({array(3.0f)})[0].item<float>(), 6);
  factor = 5;
  EXPECT_EQ(compile(ArrayFn(times))({array(3.0f)})[0].item<float>(), 15);
  EXPECT_EQ(traces, 3);
  auto free = compile([](const Arrays& in) { return Arrays{abs(in[0])}; });
  EXPECT_EQ(free({array(-2.0f)})[0].item<float>(), 2);
}

TEST_F(Compile, IdentitiesShareTracesUntilErased) {
  traces = 0;
  auto call = [](std::vector<uint64_t> constants, int power) {
    ArrayFn fun = [power](const Arrays& in) {
      ++traces;
      return Arrays{power == 2 ? square(in[0]) : exp(in[0])};
    };
    return detail::compile(
               fun, 77, false, std::move(constants))({array(3.0f)})[0]
        .item<float>();
  };
  EXPECT_EQ(call({}, 2), 9);
  EXPECT_EQ(call({}, 1), 9);  // the trace of the identity
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(call({4}, 1), std::exp(3.0f));
  EXPECT_EQ(call({4}, 2), std::exp(3.0f));
  EXPECT_EQ(traces, 2);
  detail::compile_erase(77);
  detail::compile_erase(78);
  EXPECT_NEAR(call({}, 1), std::exp(3.0f), 1e-5);
  EXPECT_EQ(traces, 3);
}

TEST_F(Compile, ErasedFunctionsStayCallable) {
  auto compiled = detail::compile(ArrayFn(wave), 5);
  array x = ones({3});
  array want = evaluated(compiled({x}))[0];
  detail::compile_erase(5);
  EXPECT_TRUE(same(compiled({x})[0], want));
}

TEST_F(Compile, ModesGiveTheSameValuesFromOtherGraphs) {
  array x = evaluated({linspace(-2, 2, 50)})[0];
  array want = evaluated(wave({x}))[0];
  auto nodes = [&](CompileMode mode) {
    set_compile_mode(mode);
    Arrays out = compile(wave)({x});
    size_t count = count_nodes(out);
    EXPECT_TRUE(same(out[0], want));
    return count;
  };
  size_t all = nodes(CompileMode::disabled);
  size_t fused = nodes(CompileMode::no_simplify);
  size_t simple = nodes(CompileMode::no_fuse);
  size_t enabled = nodes(CompileMode::enabled);
  EXPECT_EQ(enabled, 1u);
  EXPECT_GT(simple, enabled);
  EXPECT_GT(all, simple);
  EXPECT_GT(fused, enabled);
  EXPECT_GT(all, fused);
  EXPECT_EQ(nodes(CompileMode::disabled), all);
  EXPECT_EQ(nodes(CompileMode::enabled), enabled);
}

TEST_F(Compile, DisabledItRunsEachTime) {
  auto compiled = compile(wave);
  traces = 0;
  disable_compile();
  compiled({ones({2})});
  compiled({ones({2})});
  EXPECT_EQ(traces, 2);
  enable_compile();
  compiled({ones({2})});
  compiled({ones({2})});
  EXPECT_EQ(traces, 3);
}

TEST_F(Compile, ExceptionsPassAndTheNextCallWorks) {
  bool broken = true;
  auto compiled = compile(ArrayFn([&](const Arrays& in) {
    if (broken) {
      throw std::out_of_range("mine");
    }
    return Arrays{exp(in[0])};
  }));
  EXPECT_THROW(compiled({array(0.0f)}), std::out_of_range);
  broken = false;
  EXPECT_EQ(compiled({array(0.0f)})[0].item<float>(), 1);
}

TEST_F(Compile, TransformsOfCompiledAndCompiledTransforms) {
  using Fn = std::function<array(const array&)>;
  Fn plain = [](const array& x) { return sum(square(sin(x))); };
  Fn fast = [&](const array& x) {
    return compile(ArrayFn(
        [&](const Arrays& in) { return Arrays{plain(in[0])}; }))({x})[0];
  };
  array x = linspace(-1, 1, 7);
  array want = evaluated({sin(multiply(x, array(2.0f)))})[0];
  EXPECT_TRUE(allclose(grad(fast)(x), want).item<bool>());
  auto whole = compile(
      ArrayFn([&](const Arrays& in) { return Arrays{grad(fast)(in[0])}; }));
  EXPECT_TRUE(allclose(whole({x})[0], want).item<bool>());
}

TEST_F(Compile, ValuesOfTheTransformAroundAreNoConstants) {
  using Fn = std::function<array(const array&)>;
  array y(2.0f);
  Fn f = [&](const array& x) {
    ArrayFn product = [&](const Arrays& in) {
      return Arrays{multiply(exp(x), in[0])};
    };
    return compile(product)({y})[0];
  };
  EXPECT_NEAR(grad(f)(array(1.0f)).item<float>(), 2 * std::exp(1.0f), 1e-5);
}

// ---- the cache --------------------------------------------------------------

TEST_F(Compile, ManyShapesKeepTheLastTraces) {
  detail::TraceCache cache;
  auto trace = std::make_shared<const detail::CompiledTrace>();
  for (int i = 0; i < 100000; ++i) {
    std::string key = std::to_string(i);
    ASSERT_EQ(cache.find(key), nullptr);
    cache.insert(key, trace);
  }
  auto info = cache.info();
  EXPECT_EQ(info.size, detail::TraceCache::kMostTraces);
  EXPECT_EQ(info.evictions, 100000 - info.size);
  // One handle each and ours: nothing else keeps a trace.
  EXPECT_EQ(trace.use_count(), static_cast<long>(info.size) + 1);
  EXPECT_NE(cache.find("99999"), nullptr);
  EXPECT_EQ(cache.find("0"), nullptr);
  cache.clear();
  EXPECT_EQ(trace.use_count(), 1);
}

TEST_F(Compile, TheTraceUsedLastStays) {
  detail::TraceCache cache;
  auto trace = std::make_shared<const detail::CompiledTrace>();
  size_t most = detail::TraceCache::kMostTraces;
  for (size_t i = 0; i <= most; ++i) {
    cache.insert(std::to_string(i), trace);
    EXPECT_NE(cache.find("0"), nullptr);
  }
  EXPECT_EQ(cache.find("1"), nullptr);
}

// ---- without shapes ---------------------------------------------------------

TEST_F(Compile, OneTraceServesAllLengths) {
  traces = 0;
  auto compiled = compile(wave, true);
  for (int n : {1, 2, 7, 300}) {
    array x = linspace(-1, 1, n);
    EXPECT_TRUE(same(compiled({x})[0], wave({x})[0]));
  }
  EXPECT_EQ(traces, 1 + 4);
}

// ---- threads ----------------------------------------------------------------

TEST_F(Compile, TenThreadsCompileAndCallOneFunction) {
  auto shared = compile(wave);
  auto without_shapes = compile(wave, true);
  array x = evaluated({linspace(-2, 2, 3000)})[0];
  array want = evaluated(wave({x}))[0];
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 10; ++t) {
    threads.emplace_back([&, t] {
      auto own = compile(wave);
      for (int i = 0; i < 20; ++i) {
        for (const auto& f : {shared, own, without_shapes}) {
          wrong += !same(f({x})[0], want);
        }
        // Shapes that all threads trace at the same time.
        shared({ones({i + 1})})[0].eval();
      }
      if (t % 5 == 0) {
        detail::compile_erase(static_cast<std::uintptr_t>(t));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace mlx::core
