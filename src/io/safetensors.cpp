// Named arrays as .safetensors.
#include <algorithm>

#include "io/arrays.h"
#include "io/safetensors_format.h"
#include "mlx/transforms.h"

namespace mlx::core {

namespace {

using Named = std::pair<std::string, array>;

/// Wide elements first, so that all are aligned; then by name, so that equal
/// contents give equal files.
std::vector<Named> in_file_order(std::unordered_map<std::string, array> map) {
  std::vector<Named> arrays(map.begin(), map.end());
  std::sort(arrays.begin(), arrays.end(), [](const Named& a, const Named& b) {
    if (a.second.itemsize() != b.second.itemsize()) {
      return a.second.itemsize() > b.second.itemsize();
    }
    return a.first < b.first;
  });
  return arrays;
}

void eval_all(const std::unordered_map<std::string, array>& map) {
  std::vector<array> arrays;
  for (const auto& [name, a] : map) {
    arrays.push_back(a);
  }
  eval(std::move(arrays));
}

io::SafetensorsFile directory(
    const std::vector<Named>& arrays,
    const std::unordered_map<std::string, std::string>& metadata) {
  io::SafetensorsFile file;
  file.metadata.insert(metadata.begin(), metadata.end());
  for (const auto& [name, a] : arrays) {
    file.tensors.push_back(
        {name, a.dtype(), {a.shape().begin(), a.shape().end()}});
  }
  return file;
}

}  // namespace

SafetensorsLoad load_safetensors(
    std::shared_ptr<io::Reader> in_stream, StreamOrDevice s) {
  io::check_reader("load_safetensors", in_stream);
  io::SafetensorsFile file = io::read_safetensors(*in_stream);
  Stream stream = io::load_stream(s);
  SafetensorsLoad result;
  for (const auto& tensor : file.tensors) {
    result.first.emplace(
        tensor.name,
        io::lazy_array(
            Shape(tensor.shape.begin(), tensor.shape.end()),
            tensor.dtype,
            stream,
            in_stream,
            file.data_offset + tensor.begin));
  }
  result.second.insert(file.metadata.begin(), file.metadata.end());
  return result;
}

SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice s) {
  return load_safetensors(io::open_reader("load_safetensors", file), s);
}

void save_safetensors(
    std::shared_ptr<io::Writer> in_stream,
    std::unordered_map<std::string, array> map,
    std::unordered_map<std::string, std::string> metadata) {
  io::check_writer("save_safetensors", in_stream);
  eval_all(map);
  std::vector<Named> arrays = in_file_order(std::move(map));
  io::SafetensorsFile file = directory(arrays, metadata);
  std::string header = io::safetensors_header(file);
  in_stream->write(header.data(), header.size());
  for (const auto& [name, a] : arrays) {
    io::write_elements(*in_stream, io::row_major(a));
  }
}

void save_safetensors(
    std::string file,
    std::unordered_map<std::string, array> map,
    std::unordered_map<std::string, std::string> metadata) {
  // All that can fail comes before the file is opened and an old one lost:
  // the arrays may even come from that file.
  eval_all(map);
  io::SafetensorsFile trial =
      directory(std::vector<Named>(map.begin(), map.end()), metadata);
  io::safetensors_header(trial);
  save_safetensors(
      io::open_writer(
          "save_safetensors", io::with_suffix(std::move(file), ".safetensors")),
      std::move(map),
      std::move(metadata));
}

}  // namespace mlx::core
