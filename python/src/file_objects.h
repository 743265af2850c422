// Python's paths and file objects as readers and writers.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "mlx/io/load.h"

namespace mlx::python {

namespace nb = nanobind;
namespace mx = mlx::core;

/// The path of a str or os.PathLike; nothing for other objects.
std::optional<std::string> as_path(nb::handle obj);

/// Whether the object reads (read, seek, tell, readinto, closed) or writes
/// (write, closed) bytes.
bool is_input_file(nb::handle obj);
bool is_output_file(nb::handle obj);

/// The object must be one as above. Its errors become std::runtime_error.
std::shared_ptr<mx::io::Reader> make_reader(nb::object file);
std::shared_ptr<mx::io::Writer> make_writer(nb::object file);
/// Reads the content of a bytes object.
std::shared_ptr<mx::io::Reader> make_bytes_reader(
    nb::bytes bytes, std::string label);

}  // namespace mlx::python
