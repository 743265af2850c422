# Headers of device code as text, for kernels that are made at run time: without
# includes and comments, which the run-time compiler would only have to skip.
set(MLX_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
set(MLX_DEVICE_TEXT "")
foreach(
  name IN
  ITEMS bare
        types
        held
        fast_divisor
        math_core
        math_exp
        math
        math_rare
        complex
        math_complex
        shuffle
        row_combine
        combine)
  set(header ${PROJECT_SOURCE_DIR}/src/backend/cuda/device/${name}.cuh)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(READ ${header} text)
  string(REGEX REPLACE "#(include|pragma once)[^\n]*\n" "" text "${text}")
  string(REGEX REPLACE "\n *//[^\n]*" "" text "\n${text}")
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(APPEND MLX_DEVICE_TEXT
         "constexpr const char* k_${name} = R\"device(${text})device\";\n")
endforeach()
file(CONFIGURE OUTPUT ${MLX_GENERATED_DIR}/backend/cuda/device_text.inc CONTENT
     "${MLX_DEVICE_TEXT}" @ONLY)

# What makes the rest of the text has no CUDA in it, so that tests can look at
# it.
file(GLOB MLX_FUSED_TEXT_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/backend/cuda/fused_*.cpp)
