# libmlx_cuda: the CUDA backend, a library of its own beside libmlx, which loads
# it when the machine has a driver. Needs a CUDA 13 toolkit, no GPU.
# Code for Hopper, and portable code that the driver compiles for later chips.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90a-real 90-virtual)
endif()
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
enable_language(CUDA)
# CMake 3.25 does not know how nvcc is asked for C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
find_package(CUDAToolkit 13 REQUIRED)

file(GLOB_RECURSE MLX_CUDA_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.cpp
     ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.cu)
# cuDNN's flash attention is described to it with the headers of the package
# nvidia-cudnn-frontend; without them our own kernels take its place.
find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_package(Python 3.9 COMPONENTS Interpreter)
if(Python_FOUND)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import sysconfig; print(sysconfig.get_path('purelib'))"
    OUTPUT_STRIP_TRAILING_WHITESPACE
    OUTPUT_VARIABLE MLX_PYTHON_PACKAGES)
endif()
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
          HINTS ${MLX_PYTHON_PACKAGES}/include)
if(CUDNN_LIBRARY AND CUDNN_INCLUDE_DIR AND CUDNN_FRONTEND_INCLUDE_DIR)
  set(MLX_HAVE_CUDNN ON)
else()
  message(STATUS "No cuDNN or no nvidia-cudnn-frontend: attention without it")
  list(FILTER MLX_CUDA_SOURCES EXCLUDE REGEX "attention_cudnn")
endif()

add_library(mlx_cuda MODULE ${MLX_CUDA_SOURCES})
target_include_directories(
  mlx_cuda PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                   ${MLX_GENERATED_DIR})
# Static: whoever loads it needs the driver, cuBLASLt, the run-time compiler
# and, where it was built with it, cuDNN.
set_target_properties(mlx_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static)
target_link_libraries(mlx_cuda PRIVATE mlx CUDA::cudart_static CUDA::cublasLt
                                       CUDA::nvrtc ${CMAKE_DL_LIBS})
# What is missing is found when it is linked, not when it is loaded.
target_link_options(mlx_cuda PRIVATE -Wl,--no-undefined)
if(MLX_HAVE_CUDNN)
  target_link_libraries(mlx_cuda PRIVATE ${CUDNN_LIBRARY})
  target_include_directories(mlx_cuda SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR}
                                             ${CUDNN_FRONTEND_INCLUDE_DIR})
  target_compile_definitions(mlx_cuda PRIVATE MLX_HAVE_CUDNN)
  # The headers are large; nothing here is worth optimizing.
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/src/backend/cuda/attention_cudnn.cpp
    PROPERTIES COMPILE_DEFINITIONS CUDNN_FRONTEND_SKIP_JSON_LIB COMPILE_OPTIONS
                                                                -O0)
endif()
target_compile_options(
  mlx_cuda
  PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra>
          $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall --expt-relaxed-constexpr
          --extended-lambda -lineinfo -diag-suppress=20012>)
# Beside libmlx in a build folder and in the installed package. The libraries
# of CUDA come from the toolkit or from the nvidia-* wheels beside the package.
set_target_properties(
  mlx_cuda
  PROPERTIES LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:mlx>
             INSTALL_RPATH
             "$ORIGIN;$ORIGIN/../../nvidia/cu13/lib;$ORIGIN/../../nvidia/cudnn/lib")
