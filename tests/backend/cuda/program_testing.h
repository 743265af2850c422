// Compiling programs for the device in tests; needs no gpu.
#pragma once

#ifdef MLX_HAVE_NVRTC

#include <nvrtc.h>

#include <string>
#include <vector>

namespace mlx::core::cuda {

/// Empty, or what the compiler has against a program and the program. What
/// needs no headers is compiled as our own text is.
inline std::string complaint(
    const std::string& text, const std::vector<std::string>& headers = {}) {
  nvrtcProgram program = nullptr;
  nvrtcCreateProgram(&program, text.c_str(), "test.cu", 0, nullptr, nullptr);
  std::vector<std::string> options = {
      "--gpu-architecture=sm_90a",
      "--std=c++20",
      "--device-as-default-execution-space"};
  if (headers.empty()) {
    options.push_back("--minimal");
  }
  for (const std::string& folder : headers) {
    options.push_back("--include-path=" + folder);
  }
  std::vector<const char*> given;
  for (const std::string& option : options) {
    given.push_back(option.c_str());
  }
  nvrtcResult result = nvrtcCompileProgram(
      program, static_cast<int>(given.size()), given.data());
  size_t bytes = 0;
  nvrtcGetProgramLogSize(program, &bytes);
  std::string log(bytes, '\0');
  nvrtcGetProgramLog(program, log.data());
  nvrtcDestroyProgram(&program);
  return result == NVRTC_SUCCESS ? "" : log.c_str() + text;
}

}  // namespace mlx::core::cuda

#endif
