// Runs a fuzz entry on corrupted copies of the given files, without libFuzzer:
// driver ROUNDS FILE... The same arguments always try the same bytes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(
      reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s ROUNDS FILE...\n", argv[0]);
    return 2;
  }
  long rounds = std::strtol(argv[1], nullptr, 10);
  for (int i = 2; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    std::string seed{std::istreambuf_iterator<char>(in), {}};
    if (seed.empty()) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 2;
    }
    run(seed);
    std::mt19937_64 rng(20240229);
    for (long round = 0; round < rounds; ++round) {
      run(mlx::core::io::mutate(seed, rng));
    }
  }
  return 0;
}
