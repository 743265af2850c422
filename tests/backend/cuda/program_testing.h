// Compiling programs for the device in tests; needs no gpu.
#pragma once

#ifdef MLX_HAVE_NVRTC

#include <nvrtc.h>

#include <string>
#include <vector>

namespace mlx::core::cuda {

/// Empty, or what the compiler has against a program and the program.
/// Warnings are mended in our own text.
inline std::string complaint_with(
    const std::string& text,
    const std::vector<std::string>& options,
    bool with_warnings) {
  nvrtcProgram program = nullptr;
  nvrtcCreateProgram(&program, text.c_str(), "test.cu", 0, nullptr, nullptr);
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
  log.resize(log.find('\0'));
  bool is_fine = result == NVRTC_SUCCESS && (log.empty() || !with_warnings);
  return is_fine ? "" : log + "\n" + text;
}

/// What needs no headers is compiled as our own text is.
inline std::string complaint(
    const std::string& text, const std::vector<std::string>& headers = {}) {
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
  return complaint_with(text, options, false);
}

/// The same of our own text, but hardly optimized and no further than to PTX.
inline std::string quick_complaint(const std::string& text) {
  return complaint_with(
      text,
      {"--gpu-architecture=compute_90a",
       "--std=c++20",
       "--device-as-default-execution-space",
       "--minimal",
       "--Ofast-compile=max"},
      true);
}

}  // namespace mlx::core::cuda

#endif
