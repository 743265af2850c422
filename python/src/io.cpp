// mx.load, save, savez, savez_compressed, save_safetensors, save_gguf. The
// zip archives of .npz are Python's; all else is in src/io.
#include "mlx/io.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "casters.h"
#include "convert.h"
#include "file_objects.h"
#include "gil.h"
#include "mlx/transforms.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Arrays = std::unordered_map<std::string, mx::array>;
using Texts = std::unordered_map<std::string, std::string>;
using Metadata = std::unordered_map<std::string, mx::GGUFMetaData>;

[[noreturn]] void bad_source() {
  mx::invalid(
      "load",
      "Input must be a file-like object opened in binary mode, or string.");
}

[[noreturn]] void bad_target(const char* op) {
  mx::invalid(op, "Input must be a file-like object, or string.");
}

/// npy, npz, ...: what was asked for, or the suffix of the file's name.
std::string format_of(
    const std::optional<std::string>& format,
    const std::optional<std::string>& path,
    nb::handle file) {
  std::string name;
  if (format) {
    name = *format;
  } else {
    std::string whole;
    if (path) {
      whole = *path;
    } else if (nb::hasattr(file, "name")) {
      whole = nb::cast<std::string>(nb::str(file.attr("name")));
    }
    name = std::filesystem::path(whole).extension().string();
    if (name.empty()) {
      mx::invalid(
          "load",
          "Could not infer file format from extension. Expected .npy, .npz, "
          ".safetensors or .gguf, or `format`.");
    }
    name.erase(0, 1);
  }
  for (const char* known : {"npy", "npz", "safetensors", "gguf"}) {
    if (name == known) {
      return name;
    }
  }
  mx::invalid(
      "load",
      "Unknown file format ",
      name,
      ". Expected npy, npz, safetensors or gguf.");
}

/// Reads now: a file object may be closed or moved once load() has returned.
void read_now(std::vector<mx::array> arrays) {
  WithoutGil release;
  mx::eval(std::move(arrays));
}

nb::object load_npy(
    const std::optional<std::string>& path,
    nb::object file,
    mx::StreamOrDevice s) {
  if (path) {
    return nb::cast(mx::load(*path, s));
  }
  auto reader = make_reader(file);
  mx::array a = mx::load(reader, s);
  auto end = reader->tell();
  read_now({a});
  reader->seek(static_cast<int64_t>(end));
  return nb::cast(a);
}

nb::dict load_npz(
    const std::optional<std::string>& path,
    nb::object file,
    mx::StreamOrDevice s) {
  nb::module_ zipfile = nb::module_::import_("zipfile");
  nb::dict result;
  try {
    nb::object archive = zipfile.attr("ZipFile")(file);
    for (nb::handle entry : archive.attr("namelist")()) {
      auto name = nb::cast<std::string>(entry);
      auto bytes = nb::cast<nb::bytes>(archive.attr("read")(entry));
      mx::array a = mx::load(make_bytes_reader(bytes, "member " + name), s);
      read_now({a});
      if (name.ends_with(".npy")) {
        name.resize(name.size() - 4);
      }
      result[name.c_str()] = nb::cast(a);
    }
    archive.attr("close")();
  } catch (nb::python_error& error) {
    // Whatever zipfile and zlib raise about damage is one kind of error here.
    throw std::runtime_error(
        "[load_npz] cannot read " + path.value_or("file object") +
        " as a zip archive: " + error.what());
  }
  return result;
}

template <typename Map>
nb::dict to_dict(const Map& map) {
  nb::dict result;
  for (const auto& [name, value] : map) {
    result[name.c_str()] = nb::cast(value);
  }
  return result;
}

template <typename Loaded>
nb::object with_metadata(const Loaded& loaded, bool return_metadata) {
  nb::dict arrays = to_dict(loaded.first);
  if (!return_metadata) {
    return arrays;
  }
  return nb::make_tuple(arrays, to_dict(loaded.second));
}

nb::object load_safetensors(
    const std::optional<std::string>& path,
    nb::object file,
    bool return_metadata,
    mx::StreamOrDevice s) {
  if (path) {
    return with_metadata(mx::load_safetensors(*path, s), return_metadata);
  }
  auto loaded = mx::load_safetensors(make_reader(file), s);
  std::vector<mx::array> arrays;
  for (const auto& [name, a] : loaded.first) {
    arrays.push_back(a);
  }
  read_now(std::move(arrays));
  return with_metadata(loaded, return_metadata);
}

nb::object load(
    nb::object file,
    const std::optional<std::string>& format,
    bool return_metadata,
    mx::StreamOrDevice s) {
  std::optional<std::string> path = as_path(file);
  if (!path && !is_input_file(file)) {
    bad_source();
  }
  std::string kind = format_of(format, path, file);
  if (return_metadata && (kind == "npy" || kind == "npz")) {
    mx::invalid("load", "metadata not supported for format ", kind, ".");
  }
  if (path && !std::filesystem::exists(*path)) {
    throw std::runtime_error(mx::message(
        kind == "npy" ? "load" : "load_" + kind,
        "Failed to open file ",
        *path,
        "."));
  }
  if (kind == "npy") {
    return load_npy(path, file, s);
  }
  if (kind == "npz") {
    return load_npz(path, file, s);
  }
  if (kind == "safetensors") {
    return load_safetensors(path, file, return_metadata, s);
  }
  if (!path) {
    mx::invalid("load_gguf", "Input must be a string: gguf needs a path.");
  }
  return with_metadata(mx::load_gguf(*path, s), return_metadata);
}

/// Calls `f` with the path or a writer, without the GIL.
template <typename F>
void save_to(const char* op, nb::object file, F f) {
  if (auto path = as_path(file)) {
    WithoutGil release;
    f(*path);
    return;
  }
  if (!is_output_file(file)) {
    bad_target(op);
  }
  auto writer = make_writer(file);
  WithoutGil release;
  f(writer);
}

void save(nb::object file, const mx::array& arr) {
  save_to("save", file, [&](auto&& target) { mx::save(target, arr); });
}

/// The arrays by name: positional ones are arr_0, arr_1, ...
std::vector<std::pair<std::string, mx::array>> named(
    const char* op, nb::args args, nb::kwargs kwargs) {
  std::vector<std::pair<std::string, mx::array>> result;
  for (auto [name, value] : kwargs) {
    result.emplace_back(nb::cast<std::string>(name), to_array(value));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    std::string name = "arr_" + std::to_string(i);
    if (kwargs.contains(name.c_str())) {
      mx::invalid(op, "Cannot use un-named variables and keyword ", name, ".");
    }
    result.emplace_back(name, to_array(args[i]));
  }
  return result;
}

void save_zip(
    const char* op,
    nb::object file,
    nb::args args,
    nb::kwargs kwargs,
    const char* compression) {
  auto arrays = named(op, args, kwargs);
  std::vector<mx::array> values;
  for (const auto& [name, a] : arrays) {
    values.push_back(a);
  }
  read_now(std::move(values));  // before an old file is overwritten
  if (auto path = as_path(file)) {
    std::string name = path->ends_with(".npz") ? *path : *path + ".npz";
    file = nb::steal(PyUnicode_DecodeFSDefaultAndSize(
        name.data(), static_cast<Py_ssize_t>(name.size())));
  } else if (!is_output_file(file)) {
    bad_target(op);
  }
  nb::module_ zipfile = nb::module_::import_("zipfile");
  nb::object archive;
  try {
    archive = zipfile.attr("ZipFile")(
        file, "mode"_a = "w", "compression"_a = zipfile.attr(compression));
  } catch (nb::python_error& error) {
    throw std::runtime_error(
        mx::message(op, "Failed to open the archive: ", error.what()));
  }
  for (const auto& [name, a] : arrays) {
    nb::object member = archive.attr("open")(
        name + ".npy", "w", "force_zip64"_a = a.nbytes() > (size_t{1} << 30));
    save(member, a);
    member.attr("close")();
  }
  archive.attr("close")();
}

void save_safetensors(
    nb::object file, const Arrays& arrays, nb::object metadata) {
  Texts texts;
  if (!metadata.is_none() && !nb::try_cast(metadata, texts)) {
    mx::invalid(
        "save_safetensors",
        "Metadata must be a dictionary with string keys and values.");
  }
  save_to("save_safetensors", file, [&](auto&& target) {
    mx::save_safetensors(target, arrays, texts);
  });
}

void save_gguf(
    nb::object file,
    const Arrays& arrays,
    const std::optional<Metadata>& metadata) {
  auto path = as_path(file);
  if (!path) {
    mx::invalid("save_gguf", "Input must be a string: gguf needs a path.");
  }
  WithoutGil release;
  mx::save_gguf(*path, arrays, metadata.value_or(Metadata()));
}

constexpr const char* kLoadDoc = R"(Load an array or arrays from a file.

Args:
    file (str, pathlib.Path or file): A path, or an object opened in binary
      mode that reads and seeks. From a path the elements are read when the
      arrays are evaluated; from an object at once.
    format (str, optional): ``npy``, ``npz``, ``safetensors`` or ``gguf``.
      Default: the suffix of the name.
    return_metadata (bool): Whether to return the metadata too, for
      ``safetensors`` and ``gguf``. Default: ``False``.

Returns:
    An array for ``npy``, else a dict of arrays by name; with
    ``return_metadata`` the tuple ``(arrays, metadata)``.

Quantized ``gguf`` tensors of the types Q4_0, Q4_1 and Q8_0 stay quantized:
``x.weight``, ``x.scales`` and ``x.biases`` suit :func:`quantized_matmul` with
``group_size=32`` and 4 or 8 bits. Files that are missing or damaged, or hold
types that arrays do not have, raise ``RuntimeError``.

Example:
    >>> import io
    >>> file = io.BytesIO()
    >>> mx.save(file, mx.array([1, 2, 3]))
    >>> _ = file.seek(0)
    >>> mx.load(file, format="npy")
    array([1, 2, 3], dtype=int32)
)";

constexpr const char* kSaveDoc = R"(Write an array in ``.npy`` format.

Args:
    file (str, pathlib.Path or file): A path, which gets the suffix ``.npy``
      when it lacks it, or an object opened for binary writing.
    arr (array): The array; bfloat16 is written as NumPy's ``V2``.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mx.save(folder + "/a.npy", mx.array([1, 2]))
    ...     print(mx.load(folder + "/a.npy").tolist())
    [1, 2]
)";

constexpr const char* kSavezDoc =
    R"(Write several arrays as an uncompressed ``.npz`` archive.

Args:
    file (str, pathlib.Path or file): A path, which gets the suffix ``.npz``
      when it lacks it, or an object opened for binary writing.
    *args (array): Arrays that are named ``arr_0``, ``arr_1``, ...
    **kwargs (array): Arrays by name.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mx.savez(folder + "/a.npz", mx.array(1), b=mx.array(2))
    ...     print(sorted(mx.load(folder + "/a.npz")))
    ['arr_0', 'b']
)";

constexpr const char* kSavezCompressedDoc =
    R"(Write several arrays as a compressed ``.npz`` archive; see :func:`savez`.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mx.savez_compressed(folder + "/a.npz", a=mx.array([1, 2]))
    ...     print(mx.load(folder + "/a.npz")["a"].tolist())
    [1, 2]
)";

constexpr const char* kSaveSafetensorsDoc =
    R"(Write arrays in ``.safetensors`` format.

Args:
    file (str, pathlib.Path or file): A path, which gets the suffix
      ``.safetensors`` when it lacks it, or an object opened for binary
      writing.
    arrays (dict[str, array]): Arrays by name, of any type but float64.
    metadata (dict[str, str], optional): Texts to store beside them.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mx.save_safetensors(folder + "/a", {"w": mx.array([1, 2])})
    ...     print(mx.load(folder + "/a.safetensors")["w"].tolist())
    [1, 2]
)";

constexpr const char* kSaveGgufDoc = R"(Write arrays in ``.gguf`` format.

Args:
    file (str or pathlib.Path): A path, which gets the suffix ``.gguf`` when it
      lacks it.
    arrays (dict[str, array]): Arrays by name, of the types float32, float16,
      int8, int16 and int32.
    metadata (dict[str, array | str | list[str]], optional): Values to store
      beside them; arrays have at most one dimension and are not empty.

Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mx.save_gguf(folder + "/a", {"w": mx.array([1, 2])}, {"k": "v"})
    ...     print(mx.load(folder + "/a.gguf", return_metadata=True)[1])
    {'k': 'v'}
)";

void bind_arrays(nb::module_& m) {
  m.def(
      "load",
      &load,
      "file"_a,
      nb::arg("format") = nb::none(),
      "return_metadata"_a = false,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(
          "def load(file: str | os.PathLike[str] | typing.BinaryIO, /, format: "
          "str | None = None, return_metadata: bool = False, *, stream: Stream "
          "| ThreadLocalStream | Device | DeviceType | None = None) -> array | "
          "dict[str, array] | tuple[dict[str, array], dict[str, typing.Any]]"),
      kLoadDoc);
  m.def(
      "save",
      &save,
      "file"_a,
      "arr"_a,
      nb::sig("def save(file: str | os.PathLike[str] | typing.BinaryIO, arr: "
              "array) -> None"),
      kSaveDoc);
  m.def(
      "save_safetensors",
      &save_safetensors,
      "file"_a,
      "arrays"_a,
      "metadata"_a = nb::none(),
      nb::sig("def save_safetensors(file: str | os.PathLike[str] | "
              "typing.BinaryIO, arrays: dict[str, array], metadata: dict[str, "
              "str] | None = None) -> None"),
      kSaveSafetensorsDoc);
  m.def(
      "save_gguf",
      &save_gguf,
      "file"_a,
      "arrays"_a,
      "metadata"_a = nb::none(),
      nb::sig("def save_gguf(file: str | os.PathLike[str], arrays: dict[str, "
              "array], metadata: dict[str, array | str | list[str]] | None = "
              "None) -> None"),
      kSaveGgufDoc);
}

void bind_archives(nb::module_& m) {
  m.def(
      "savez",
      [](nb::object file, nb::args args, nb::kwargs kwargs) {
        save_zip("savez", file, args, kwargs, "ZIP_STORED");
      },
      "file"_a,
      "args"_a,
      "kwargs"_a,
      nb::sig("def savez(file: str | os.PathLike[str] | typing.BinaryIO, "
              "*args: array, **kwargs: array) -> None"),
      kSavezDoc);
  m.def(
      "savez_compressed",
      [](nb::object file, nb::args args, nb::kwargs kwargs) {
        save_zip("savez_compressed", file, args, kwargs, "ZIP_DEFLATED");
      },
      "file"_a,
      "args"_a,
      "kwargs"_a,
      nb::sig("def savez_compressed(file: str | os.PathLike[str] | "
              "typing.BinaryIO, *args: array, **kwargs: array) -> None"),
      kSavezCompressedDoc);
}

}  // namespace

void init_io(nb::module_& m) {
  bind_arrays(m);
  bind_archives(m);
}

}  // namespace mlx::python
