# Install rules: library, headers and the CMake package MLX.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(
  TARGETS mlx
  EXPORT MLXTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET mlx_cuda)
  install(TARGETS mlx_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
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
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/MLXConfig.cmake.in
  ${PROJECT_BINARY_DIR}/MLXConfig.cmake
  INSTALL_DESTINATION ${MLX_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/MLXConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/MLXConfig.cmake
              ${PROJECT_BINARY_DIR}/MLXConfigVersion.cmake
        DESTINATION ${MLX_CMAKE_DIR})
