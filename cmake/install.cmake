# Install rules: library, headers and the CMake package MLX. The same package
# for the build folder lies beside the Python package there, so that extensions
# are built against either in one way.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(
  TARGETS mlx
  EXPORT MLXTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(MLX_CONFIG_CUDA OFF)
if(TARGET mlx_cuda)
  install(TARGETS mlx_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set(MLX_CONFIG_CUDA ON)
endif()
install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/include/mlx
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING
  PATTERN "*.h"
  PATTERN "*.def")
set(MLX_CMAKE_DIR share/cmake/MLX)
install(
  EXPORT MLXTargets
  FILE MLXTargets.cmake
  DESTINATION ${MLX_CMAKE_DIR})

# The installed package finds its files from its own place.
set(MLX_CONFIG_INCLUDE_DIRS "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_INCLUDEDIR}")
set(MLX_CONFIG_LIBRARY_DIRS "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_LIBDIR}")
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/MLXConfig.cmake.in
  ${PROJECT_BINARY_DIR}/MLXConfig.cmake
  INSTALL_DESTINATION ${MLX_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/MLXConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/MLXConfig.cmake
        ${PROJECT_BINARY_DIR}/MLXConfigVersion.cmake
        ${PROJECT_SOURCE_DIR}/cmake/extension.cmake
  DESTINATION ${MLX_CMAKE_DIR})

# That of the build folder: python/mlx/share/cmake/MLX.
set(MLX_BUILT_PACKAGE ${PROJECT_BINARY_DIR}/python/mlx/share/cmake/MLX)
set(MLX_CONFIG_INCLUDE_DIRS ${PROJECT_SOURCE_DIR}/include)
set(MLX_CONFIG_LIBRARY_DIRS ${PROJECT_BINARY_DIR})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/MLXConfig.cmake.in
  ${MLX_BUILT_PACKAGE}/MLXConfig.cmake
  INSTALL_DESTINATION ${MLX_BUILT_PACKAGE})
file(COPY ${PROJECT_BINARY_DIR}/MLXConfigVersion.cmake
          ${PROJECT_SOURCE_DIR}/cmake/extension.cmake
     DESTINATION ${MLX_BUILT_PACKAGE})
export(EXPORT MLXTargets FILE ${MLX_BUILT_PACKAGE}/MLXTargets.cmake)
