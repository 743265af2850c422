// Two caches in front of the compiler: loaded kernels by their text, and files.
#include "backend/cuda/jit.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "backend/cuda/check.h"
#include "backend/cuda/jit_files.h"

namespace mlx::core::cuda::jit {

namespace {

// What the compiler is asked to make.
struct Target {
  std::string option;
  // Machine code, else text that the driver compiles: for devices that are
  // newer than this compiler.
  bool is_machine_code = true;
};

void check_compiler(nvrtcResult result, const char* what) {
  if (result != NVRTC_SUCCESS) {
    throw std::runtime_error(
        std::string("[cuda_kernel] ") + what +
        " failed: " + nvrtcGetErrorString(result) + ".");
  }
}

Target find_target() {
  int major = 0;
  int minor = 0;
  check(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0),
      "asking for the device");
  check(
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0),
      "asking for the device");
  int count = 0;
  check_compiler(nvrtcGetNumSupportedArchs(&count), "asking for devices");
  std::vector<int> known(static_cast<size_t>(count));
  check_compiler(nvrtcGetSupportedArchs(known.data()), "asking for devices");
  int device = 10 * major + minor;
  if (std::find(known.begin(), known.end(), device) != known.end()) {
    // With what this generation alone can do, from Hopper on.
    const char* suffix = major >= 9 ? "a" : "";
    return {"sm_" + std::to_string(device) + suffix, true};
  }
  int nearest = 0;
  for (int one : known) {
    nearest = one < device ? std::max(nearest, one) : nearest;
  }
  return {"compute_" + std::to_string(nearest), false};
}

const Target& target() {
  static const Target found = find_target();
  return found;
}

const std::string& compiler_version() {
  static const std::string version = [] {
    int major = 0;
    int minor = 0;
    check_compiler(nvrtcVersion(&major, &minor), "asking for the version");
    return std::to_string(major) + "." + std::to_string(minor);
  }();
  return version;
}

class Program {
 public:
  Program(const std::string& source, const std::string& name) {
    check_compiler(
        nvrtcCreateProgram(
            &program_,
            source.c_str(),
            (name + ".cu").c_str(),
            0,
            nullptr,
            nullptr),
        "making a program");
  }
  ~Program() { nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcProgram get() const { return program_; }

  std::string log() const {
    size_t bytes = 0;
    if (nvrtcGetProgramLogSize(program_, &bytes) != NVRTC_SUCCESS) {
      return {};
    }
    std::string text(bytes, '\0');
    nvrtcGetProgramLog(program_, text.data());
    return text.substr(0, text.find('\0'));
  }

 private:
  nvrtcProgram program_ = nullptr;
};

// Our own text needs neither the declarations of the runtime nor line numbers,
// which cost a fifth of a small program's time.
std::vector<std::string> options_for(const std::string& source, Origin origin) {
  std::vector<std::string> options = {
      "--gpu-architecture=" + target().option,
      "--std=c++20",
      "--device-as-default-execution-space",
      origin == Origin::ours ? "--minimal" : "-lineinfo"};
  if (source.find("#include") != std::string::npos) {
    for (const std::string& folder : header_folders()) {
      options.push_back("--include-path=" + folder);
    }
  }
  return options;
}

std::string compile(
    const std::string& source,
    const std::string& name,
    const std::vector<std::string>& options) {
  Program program(source, name);
  std::vector<const char*> given;
  for (const std::string& option : options) {
    given.push_back(option.c_str());
  }
  nvrtcResult result = nvrtcCompileProgram(
      program.get(), static_cast<int>(given.size()), given.data());
  if (result == NVRTC_ERROR_COMPILATION) {
    throw std::runtime_error(
        "[cuda_kernel] " + name + " does not compile:\n" + program.log());
  }
  check_compiler(result, "compiling");
  size_t bytes = 0;
  std::string made;
  if (target().is_machine_code) {
    check_compiler(nvrtcGetCUBINSize(program.get(), &bytes), "compiling");
    made.resize(bytes);
    check_compiler(nvrtcGetCUBIN(program.get(), made.data()), "compiling");
  } else {
    check_compiler(nvrtcGetPTXSize(program.get(), &bytes), "compiling");
    made.resize(bytes);
    check_compiler(nvrtcGetPTX(program.get(), made.data()), "compiling");
  }
  return made;
}

// The driver copies what it needs of the program.
cudaError_t load(
    const std::string& program, const char* name, cudaKernel_t* kernel) {
  cudaLibrary_t library = nullptr;
  cudaError_t status = cudaLibraryLoadData(
      &library, program.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (status != cudaSuccess) {
    cudaGetLastError();
    return status;
  }
  status = cudaLibraryGetKernel(kernel, library, name);
  if (status != cudaSuccess) {
    cudaGetLastError();
    cudaLibraryUnload(library);
  }
  return status;
}

[[noreturn]] void fail_to_load(const std::string& name, cudaError_t status) {
  throw std::runtime_error(
      "[cuda_kernel] the program has no kernel " + name +
      " for this device: " + cudaGetErrorString(status) +
      ". Expected extern \"C\" __global__ void " + name + "(...).");
}

Files& files() {
  static auto* one = new Files(Files::default_folder());
  return *one;
}

cudaKernel_t make(
    const std::string& source, const std::string& name, Origin origin) {
  std::vector<std::string> options = options_for(source, origin);
  std::string key = "nvrtc " + compiler_version() + "\n";
  for (const std::string& option : options) {
    key += option + "\n";
  }
  key += name + "\n" + source;
  cudaKernel_t kernel = nullptr;
  std::string program = files().load(key);
  if (!program.empty() && load(program, name.c_str(), &kernel) == cudaSuccess) {
    return kernel;
  }
  program = compile(source, name, options);
  cudaError_t status = load(program, name.c_str(), &kernel);
  if (status != cudaSuccess) {
    fail_to_load(name, status);
  }
  files().store(key, program);
  return kernel;
}

// Kernels by a text that says all about them. Those who ask for one that is
// being made wait for it; others do not.
class Loaded {
 public:
  template <typename Make>
  cudaKernel_t find(const std::string& key, Make&& make) {
    std::shared_ptr<Entry> entry;
    {
      std::lock_guard lock(mutex_);
      std::shared_ptr<Entry>& slot = entries_[key];
      if (!slot) {
        slot = std::make_shared<Entry>();
      }
      entry = slot;
    }
    std::lock_guard lock(entry->mutex);
    if (entry->kernel == nullptr) {
      entry->kernel = make();
    }
    return entry->kernel;
  }

 private:
  struct Entry {
    std::mutex mutex;
    cudaKernel_t kernel = nullptr;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace

cudaKernel_t function(
    const std::string& source, const std::string& kernel_name, Origin origin) {
  static auto* loaded = new Loaded;
  return loaded->find(kernel_name + "\n" + source, [&] {
    return make(source, kernel_name, origin);
  });
}

cudaKernel_t precompiled_function(
    const std::string& program, const std::string& kernel_name) {
  static auto* loaded = new Loaded;
  return loaded->find(kernel_name + "\n" + program, [&] {
    cudaKernel_t kernel = nullptr;
    cudaError_t status = load(program, kernel_name.c_str(), &kernel);
    if (status != cudaSuccess) {
      fail_to_load(kernel_name, status);
    }
    return kernel;
  });
}

void launch(
    cudaKernel_t kernel,
    dim3 grid,
    dim3 block,
    size_t shared,
    void** arguments,
    Encoder& e) {
  if (grid.x > 0 && grid.y > 0 && grid.z > 0) {
    check(
        cudaLaunchKernel(
            reinterpret_cast<const void*>(kernel),
            grid,
            block,
            arguments,
            shared,
            e.stream()),
        "a launch");
  }
}

void launch_overlapped(
    cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, Encoder& e) {
  e.launch_overlapped(
      reinterpret_cast<const void*>(kernel), grid, block, 0, arguments);
}

const std::vector<std::string>& header_folders() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> toolkits;
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      if (const char* folder = std::getenv(variable)) {
        toolkits.push_back(folder);
      }
    }
    // Of the nvidia-* wheels beside the package, which is where this library
    // is: mlx/lib.
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&header_folders), &info) != 0) {
      std::filesystem::path lib =
          std::filesystem::path(info.dli_fname).parent_path();
      toolkits.push_back(lib / "../../nvidia/cu13");
    }
    toolkits.push_back("/usr/local/cuda");
    std::vector<std::string> folders;
    for (const std::string& toolkit : toolkits) {
      std::error_code failed;
      std::string folder = toolkit + "/include";
      if (std::filesystem::exists(folder + "/cuda_fp16.h", failed)) {
        folders = {folder, folder + "/cccl"};
        break;
      }
    }
    return folders;
  }();
  return found;
}

}  // namespace mlx::core::cuda::jit
