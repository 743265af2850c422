# For the CMake files of extensions, included with the package MLX.

# There is no Metal here. Projects ask MLX_BUILD_METAL before they call this; for
# those that do not, the target is there and builds nothing.
macro(mlx_build_metallib)
  cmake_parse_arguments(MTLLIB "" "TARGET;TITLE;OUTPUT_DIRECTORY;DEBUG"
                        "SOURCES;INCLUDE_DIRS;DEPS" ${ARGN})
  message(
    WARNING
      "mlx_build_metallib: no Metal library ${MTLLIB_TITLE} is built, this MLX has "
      "no Metal. Ask for MLX_BUILD_METAL first; kernels for NVIDIA GPUs are "
      "launched by <mlx/backend/cuda/encoder.h>.")
  if(MTLLIB_TARGET AND NOT TARGET ${MTLLIB_TARGET})
    add_custom_target(${MTLLIB_TARGET})
  endif()
endmacro()
