// The only file that knows which backends there are. The CPU is part of this
// library; CUDA is a library of its own beside it, loaded when there is a
// driver, so that nothing here depends on one.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/backend.h"
#include "mlx/backend/common/utils.h"
#include "mlx/version.h"

namespace mlx::core {

namespace {

struct Loaded {
  Backend* backend = nullptr;
  std::string why;  // there is none
};

Loaded load_cuda() {
  if (std::getenv("MLX_DISABLE_CUDA")) {
    return {nullptr, "MLX_DISABLE_CUDA is set"};
  }
  if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    return {nullptr, "this machine has no NVIDIA driver"};
  }
  std::string path = current_binary_dir() / "libmlx_cuda.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return {
        nullptr, std::string("the CUDA library does not load: ") + dlerror()};
  }
  using Open = Backend* (*)(int version, const char** why);
  auto open = reinterpret_cast<Open>(dlsym(library, "mlx_cuda_backend"));
  const char* why = "its CUDA library is broken";
  Backend* backend = open ? open(MLX_VERSION_NUMERIC, &why) : nullptr;
  return {backend, backend ? "" : why};
}

const Loaded& cuda() {
  static const auto* loaded = new Loaded(load_cuda());
  return *loaded;
}

}  // namespace

std::filesystem::path current_binary_dir() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&get_backend), &info);
  return std::filesystem::path(info.dli_fname ? info.dli_fname : "")
      .parent_path();
}

Backend* find_backend(Device::DeviceType type) {
  return type == Device::cpu ? &cpu::backend() : cuda().backend;
}

Backend& get_backend(Device::DeviceType type) {
  if (Backend* found = find_backend(type)) {
    return *found;
  }
  throw std::runtime_error(
      "[gpu] no usable backend: " + cuda().why + ". Use mx.cpu.");
}

}  // namespace mlx::core
