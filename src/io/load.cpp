// The primitive that reads elements when they are needed, and what all
// formats do around it.
#include "io/arrays.h"
#include "io/bytes.h"
#include "mlx/allocator.h"
#include "mlx/ops/shape.h"
#include "mlx/transforms.h"

namespace mlx::core {

namespace {

template <size_t width>
void swap_bytes(char* data, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::reverse(data + i * width, data + (i + 1) * width);
  }
}

/// Reverses the bytes of each number; a complex number is two.
void swap_elements(char* data, size_t bytes, Dtype dtype) {
  size_t width = dtype == complex64 ? sizeof(float) : dtype.size();
  switch (width) {
    case 2:
      return swap_bytes<2>(data, bytes / 2);
    case 4:
      return swap_bytes<4>(data, bytes / 4);
    case 8:
      return swap_bytes<8>(data, bytes / 8);
  }
}

class LostData final : public UnaryPrimitive {
 public:
  LostData(Stream stream, std::string error)
      : UnaryPrimitive(stream), error_(std::move(error)) {}

  void eval_cpu(const std::vector<array>&, array&) override {
    throw std::runtime_error(error_);
  }
  void eval_gpu(const std::vector<array>& inputs, array& out) override {
    eval_cpu(inputs, out);
  }
  const char* name() const override { return "Load"; }

 private:
  std::string error_;
};

}  // namespace

void Load::eval_cpu(const std::vector<array>&, array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  char* data = out.data<char>();
  reader_->read(data, out.nbytes(), offset_);
  if (swap_endianness_) {
    swap_elements(data, out.nbytes(), out.dtype());
  }
  if (out.dtype() == bool_) {
    // A C++ bool other than 0 and 1 is undefined behaviour later on.
    for (size_t i = 0; i < out.nbytes(); ++i) {
      data[i] = data[i] != 0;
    }
  }
}

void Load::eval_gpu(const std::vector<array>& inputs, array& out) {
  eval_cpu(inputs, out);
}

namespace io {

Stream load_stream(StreamOrDevice s) {
  Stream stream = to_stream(s, Device::cpu);
  return stream.device == Device::cpu ? stream : default_stream(Device::cpu);
}

array lazy_array(
    Shape shape,
    Dtype dtype,
    Stream stream,
    std::shared_ptr<Reader> reader,
    size_t offset,
    bool swapped) {
  return array(
      std::move(shape),
      dtype,
      std::make_shared<Load>(stream, std::move(reader), offset, swapped),
      {});
}

array lost_array(Shape shape, Dtype dtype, Stream stream, std::string error) {
  return array(
      std::move(shape),
      dtype,
      std::make_shared<LostData>(stream, std::move(error)),
      {});
}

void check_reader(std::string_view op, const std::shared_ptr<Reader>& reader) {
  if (!reader || !reader->is_open() || !reader->good()) {
    fail(op, "Failed to open ", reader ? reader->label() : "file", ".");
  }
}
void check_writer(std::string_view op, const std::shared_ptr<Writer>& writer) {
  if (!writer || !writer->is_open() || !writer->good()) {
    fail(op, "Failed to open ", writer ? writer->label() : "file", ".");
  }
}

std::shared_ptr<Reader> open_reader(
    std::string_view op, const std::string& path) {
  auto reader = std::make_shared<ParallelFileReader>(path);
  check_reader(op, reader);
  return reader;
}
std::shared_ptr<Writer> open_writer(
    std::string_view op, const std::string& path) {
  auto writer = std::make_shared<FileWriter>(path);
  check_writer(op, writer);
  return writer;
}

std::string with_suffix(std::string path, std::string_view suffix) {
  return path.ends_with(suffix) ? path : path + std::string(suffix);
}

array row_major(const array& a) {
  array result = a;
  result.eval();
  if (!result.flags().row_contiguous) {
    result = contiguous(a, false, load_stream({}));
    result.eval();
  }
  return result;
}

void write_elements(Writer& writer, const array& a) {
  if (a.nbytes() > 0) {
    writer.write(a.data<char>(), a.nbytes());
  }
}

}  // namespace io

}  // namespace mlx::core
