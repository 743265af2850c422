// Single arrays as .npy.
#include <algorithm>

#include "io/arrays.h"
#include "io/npy_format.h"
#include "mlx/ops/shape.h"

namespace mlx::core {

void save(std::shared_ptr<io::Writer> out_stream, array a) {
  io::check_writer("save", out_stream);
  a.eval();
  // Column-major data goes out as it lies; it need not be copied.
  bool fortran = a.flags().col_contiguous && !a.flags().row_contiguous;
  if (!fortran) {
    a = io::row_major(a);
  }
  io::NpyHeader header;
  header.dtype = a.dtype();
  header.fortran_order = fortran;
  header.shape.assign(a.shape().begin(), a.shape().end());
  std::string text = io::npy_header(header);
  out_stream->write(text.data(), text.size());
  io::write_elements(*out_stream, a);
}

void save(std::string file, array a) {
  a.eval();  // first: the array may come from the file that it replaces
  save(
      io::open_writer("save", io::with_suffix(std::move(file), ".npy")),
      std::move(a));
}

array load(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s) {
  io::check_reader("load", in_stream);
  std::string missing;
  io::NpyHeader header = io::read_npy(*in_stream, &missing);
  Stream stream = io::load_stream(s);
  if (!missing.empty()) {
    return io::lost_array(
        Shape(header.shape.begin(), header.shape.end()),
        header.dtype,
        stream,
        std::move(missing));
  }
  // The next array of the same reader starts after this one.
  in_stream->seek(static_cast<int64_t>(header.data_offset + header.byte_size));
  if (header.fortran_order) {
    std::reverse(header.shape.begin(), header.shape.end());
  }
  array result = io::lazy_array(
      Shape(header.shape.begin(), header.shape.end()),
      header.dtype,
      stream,
      std::move(in_stream),
      header.data_offset,
      header.swapped);
  return header.fortran_order ? transpose(result, stream) : result;
}

array load(std::string file, StreamOrDevice s) {
  return load(io::open_reader("load", file), s);
}

}  // namespace mlx::core
