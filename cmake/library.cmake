# The library target. Files are collected per room, so a new file needs no list.
# Sources in src/backend/cpu/kernels are compiled once per instruction set.

file(GLOB_RECURSE MLX_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
file(GLOB MLX_KERNEL_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/backend/cpu/kernels/*.cpp)
file(GLOB MLX_KERNEL_BF16_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/backend/cpu/kernels/*_bf16.cpp)
list(FILTER MLX_SOURCES EXCLUDE REGEX "src/backend/cpu/kernels/.*")
list(FILTER MLX_SOURCES EXCLUDE REGEX "src/backend/cuda/.*")
if(MLX_KERNEL_BF16_SOURCES)
  list(REMOVE_ITEM MLX_KERNEL_SOURCES ${MLX_KERNEL_BF16_SOURCES})
endif()

add_library(mlx SHARED ${MLX_SOURCES})
target_include_directories(
  mlx
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
         $<INSTALL_INTERFACE:include>
  PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_features(mlx PUBLIC cxx_std_20)
target_link_libraries(mlx PRIVATE Threads::Threads ${CMAKE_DL_LIBS}
                                  nlohmann_json::nlohmann_json)

if(MLX_GUARD_PAGES)
  set_property(
    SOURCE ${PROJECT_SOURCE_DIR}/src/backend/cpu/allocator.cpp APPEND
    PROPERTY COMPILE_DEFINITIONS MLX_GUARD_PAGES)
endif()

add_library(mlx_options INTERFACE)
target_compile_options(mlx_options INTERFACE -Wall -Wextra)
if(MLX_SANITIZE)
  target_compile_options(
    mlx_options INTERFACE -fsanitize=${MLX_SANITIZE} -fno-omit-frame-pointer
                          -fno-sanitize-recover=all)
  target_link_options(mlx_options INTERFACE -fsanitize=${MLX_SANITIZE})
endif()
target_link_libraries(mlx PRIVATE $<BUILD_INTERFACE:mlx_options>)

set(MLX_ISA_FLAGS_v2 -march=x86-64-v2)
set(MLX_ISA_FLAGS_v3 -march=x86-64-v3 -mtune=znver3)
# g++ 12 warns about its own AVX-512 headers, hence the two -Wno.
set(MLX_ISA_FLAGS_v4 -march=x86-64-v4 -mtune=icelake-server -Wno-uninitialized
                     -Wno-maybe-uninitialized
                     -mprefer-vector-width=512)
set(MLX_ISA_FLAGS_v4x ${MLX_ISA_FLAGS_v4} -mavx512bf16 -mavx512vnni)

# Adds `sources`, compiled for one instruction set, to the library.
function(mlx_add_isa isa level sources)
  if(NOT sources)
    return()
  endif()
  add_library(mlx_kernels_${isa} OBJECT ${sources})
  target_include_directories(mlx_kernels_${isa}
                             PRIVATE ${PROJECT_SOURCE_DIR}/include
                                     ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(
    mlx_kernels_${isa} PRIVATE ${MLX_ISA_FLAGS_${isa}} -ffp-contract=fast
                               -fno-math-errno -fno-trapping-math)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_BUILD_TYPE STREQUAL
                                            "RelWithDebInfo")
    target_compile_options(mlx_kernels_${isa} PRIVATE -O3)
  else()
    target_compile_options(mlx_kernels_${isa} PRIVATE -O1)
  endif()
  target_compile_definitions(mlx_kernels_${isa} PRIVATE MLX_ISA=${isa}
                                                        MLX_ISA_LEVEL=${level})
  target_link_libraries(mlx_kernels_${isa} PRIVATE mlx_options)
  target_sources(mlx PRIVATE $<TARGET_OBJECTS:mlx_kernels_${isa}>)
endfunction()

foreach(isa IN LISTS MLX_CPU_ISA_LEVELS)
  string(SUBSTRING ${isa} 1 1 level)
  string(TOUPPER ${isa} upper)
  list(APPEND MLX_HAVE_ISA MLX_HAVE_ISA_${upper})
  mlx_add_isa(${isa} ${level} "${MLX_KERNEL_SOURCES}")
  if(isa STREQUAL "v4" AND MLX_KERNEL_BF16_SOURCES)
    list(APPEND MLX_HAVE_ISA MLX_HAVE_ISA_V4X)
    mlx_add_isa(v4x ${level} "${MLX_KERNEL_BF16_SOURCES}")
  endif()
endforeach()
foreach(isa IN ITEMS v2 v3 v4 v4x)
  if(TARGET mlx_kernels_${isa})
    target_compile_definitions(mlx_kernels_${isa} PRIVATE ${MLX_HAVE_ISA})
  endif()
endforeach()
target_compile_definitions(mlx PRIVATE ${MLX_HAVE_ISA})
