// Readers and writers that call a Python file object. They take the GIL for
// each call, because arrays are evaluated without it.
#include "file_objects.h"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace mlx::python {

namespace {

/// Calls f with the GIL; a Python exception leaves as std::runtime_error.
template <typename F>
auto with_python(const std::string& label, F f) {
  nb::gil_scoped_acquire gil;
  try {
    return f();
  } catch (nb::python_error& error) {
    throw std::runtime_error("[io] " + label + " failed: " + error.what());
  } catch (const nb::cast_error&) {
    throw std::runtime_error("[io] " + label + " returned no number.");
  }
}

/// A memoryview that ends with the scope: the memory is ours, and the file
/// object must not keep it.
class View {
 public:
  View(char* data, size_t n, int flags)
      : view_(nb::steal(
            PyMemoryView_FromMemory(data, static_cast<Py_ssize_t>(n), flags))) {
    if (!view_.is_valid()) {
      nb::raise_python_error();
    }
  }
  ~View() {
    nb::object result =
        nb::steal(PyObject_CallMethod(view_.ptr(), "release", nullptr));
    if (!result.is_valid()) {
      PyErr_Clear();  // exported further: nothing that can be done here
    }
  }
  const nb::object& object() const { return view_; }

 private:
  nb::object view_;
};

/// A reference that is given up with the GIL, whichever thread does it.
class Held {
 public:
  explicit Held(nb::object obj) : obj_(std::move(obj)) {}
  Held(const Held&) = delete;
  ~Held() {
    nb::gil_scoped_acquire gil;
    obj_.reset();
  }
  const nb::object& get() const { return obj_; }

 private:
  nb::object obj_;
};

bool is_closed(const nb::object& file) {
  return nb::cast<bool>(nb::bool_(file.attr("closed")));
}

int whence(std::ios_base::seekdir way) {
  if (way == std::ios_base::beg) {
    return 0;
  }
  return way == std::ios_base::end ? 2 : 1;
}

size_t tell_in(const nb::object& file) {
  auto at = nb::cast<int64_t>(file.attr("tell")());
  if (at < 0) {
    throw std::runtime_error("[io] a file object is at a negative position.");
  }
  return static_cast<size_t>(at);
}

class FileObjectReader : public mx::io::Reader {
 public:
  explicit FileObjectReader(nb::object file) : file_(std::move(file)) {}

  bool is_open() const override {
    return with_python(label(), [&] { return !is_closed(file_.get()); });
  }
  bool good() const override { return is_open(); }
  size_t tell() override {
    return with_python(label(), [&] { return tell_in(file_.get()); });
  }
  void seek(int64_t off, std::ios_base::seekdir way) override {
    with_python(label(), [&] { file_.get().attr("seek")(off, whence(way)); });
  }
  void read(char* data, size_t n) override {
    with_python(label(), [&] { read_all(data, n); });
  }
  void read(char* data, size_t n, size_t offset) override {
    with_python(label(), [&] {
      file_.get().attr("seek")(offset, 0);
      read_all(data, n);
    });
  }
  std::string label() const override { return "file object"; }

 private:
  // Unbuffered files read less than they are asked for.
  void read_all(char* data, size_t n) {
    while (n > 0) {
      View view(data, n, PyBUF_WRITE);
      nb::object result = file_.get().attr("readinto")(view.object());
      auto got = result.is_none() ? 0 : nb::cast<int64_t>(result);
      if (got <= 0 || static_cast<size_t>(got) > n) {
        throw std::runtime_error(
            "[io] a file object ended early: " + std::to_string(n) +
            " bytes are missing.");
      }
      data += got;
      n -= static_cast<size_t>(got);
    }
  }

  Held file_;
};

class FileObjectWriter : public mx::io::Writer {
 public:
  explicit FileObjectWriter(nb::object file) : file_(std::move(file)) {}

  bool is_open() const override {
    return with_python(label(), [&] { return !is_closed(file_.get()); });
  }
  bool good() const override { return is_open(); }
  size_t tell() override {
    return with_python(label(), [&] { return tell_in(file_.get()); });
  }
  void seek(int64_t off, std::ios_base::seekdir way) override {
    with_python(label(), [&] { file_.get().attr("seek")(off, whence(way)); });
  }
  void write(const char* data, size_t n) override {
    with_python(label(), [&] { write_all(data, n); });
  }
  std::string label() const override { return "file object"; }

 private:
  void write_all(const char* data, size_t n) {
    while (n > 0) {
      View view(const_cast<char*>(data), n, PyBUF_READ);
      nb::object result = file_.get().attr("write")(view.object());
      // Some objects return nothing, having written everything.
      size_t done = result.is_none() ? n : nb::cast<size_t>(result);
      if (done == 0 || done > n) {
        throw std::runtime_error("[io] a file object wrote nothing.");
      }
      data += done;
      n -= done;
    }
  }

  Held file_;
};

class BytesReader : public mx::io::Reader {
 public:
  BytesReader(nb::bytes bytes, std::string label)
      : data_(bytes.c_str()),
        size_(bytes.size()),
        label_(std::move(label)),
        bytes_(std::move(bytes)) {}

  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return at_; }
  void seek(int64_t off, std::ios_base::seekdir way) override {
    int64_t base = 0;
    if (way != std::ios_base::beg) {
      base = static_cast<int64_t>(way == std::ios_base::end ? size_ : at_);
    }
    if (off + base < 0) {
      throw std::runtime_error("[io] a position before the start.");
    }
    at_ = static_cast<size_t>(off + base);
  }
  void read(char* data, size_t n) override {
    read(data, n, at_);
    at_ += n;
  }
  void read(char* data, size_t n, size_t offset) override {
    if (offset > size_ || n > size_ - offset) {
      throw std::runtime_error("[io] " + label_ + " ended early.");
    }
    std::memcpy(data, data_ + offset, n);
  }
  std::string label() const override { return label_; }

 private:
  const char* data_;
  size_t size_;
  size_t at_ = 0;
  std::string label_;
  Held bytes_;
};

bool has_all(nb::handle obj, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (!nb::hasattr(obj, name)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::string> as_path(nb::handle obj) {
  if (!PyUnicode_Check(obj.ptr()) && !nb::hasattr(obj, "__fspath__")) {
    return std::nullopt;
  }
  PyObject* encoded = nullptr;
  if (!PyUnicode_FSConverter(obj.ptr(), &encoded)) {
    nb::raise_python_error();
  }
  nb::bytes path = nb::steal<nb::bytes>(encoded);
  return std::string(path.c_str(), path.size());
}

bool is_input_file(nb::handle obj) {
  return has_all(obj, {"read", "seek", "tell", "readinto", "closed"});
}

bool is_output_file(nb::handle obj) {
  return has_all(obj, {"write", "closed"});
}

std::shared_ptr<mx::io::Reader> make_reader(nb::object file) {
  return std::make_shared<FileObjectReader>(std::move(file));
}

std::shared_ptr<mx::io::Writer> make_writer(nb::object file) {
  return std::make_shared<FileObjectWriter>(std::move(file));
}

std::shared_ptr<mx::io::Reader> make_bytes_reader(
    nb::bytes bytes, std::string label) {
  return std::make_shared<BytesReader>(std::move(bytes), std::move(label));
}

}  // namespace mlx::python
