// The step from a format's directory to arrays and back, shared by formats.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mlx/array.h"
#include "mlx/io.h"

namespace mlx::core::io {

/// Files are read on the host whatever the device.
Stream load_stream(StreamOrDevice s);

/// An array that `reader` fills with the elements at `offset` when evaluated.
array lazy_array(
    Shape shape,
    Dtype dtype,
    Stream stream,
    std::shared_ptr<Reader> reader,
    size_t offset,
    bool swapped = false);

/// An array whose elements the file does not have: evaluating it raises
/// std::runtime_error with this text, before memory is taken.
array lost_array(Shape shape, Dtype dtype, Stream stream, std::string error);

/// Raises std::runtime_error unless the file could be opened.
std::shared_ptr<Reader> open_reader(
    std::string_view op, const std::string& path);
std::shared_ptr<Writer> open_writer(
    std::string_view op, const std::string& path);
void check_reader(std::string_view op, const std::shared_ptr<Reader>& reader);
void check_writer(std::string_view op, const std::shared_ptr<Writer>& writer);

std::string with_suffix(std::string path, std::string_view suffix);

/// The evaluated array with its elements in row-major order.
array row_major(const array& a);

/// Writes the elements of a row-major or column-major array.
void write_elements(Writer& writer, const array& a);

}  // namespace mlx::core::io
