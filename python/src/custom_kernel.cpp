// mx.fast.cuda_kernel and its relatives: operations whose kernel the user has
// written.
#include "custom_kernel.h"

#include <nanobind/stl/tuple.h>

#include "casters.h"
#include "convert.h"
#include "mlx/fast.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Dims = std::tuple<int, int, int>;
using TemplateArgs = std::vector<std::pair<std::string, mx::fast::TemplateArg>>;

std::vector<mx::array> read_inputs(nb::sequence given) {
  std::vector<mx::array> inputs;
  for (nb::handle one : given) {
    inputs.push_back(to_array(one));
  }
  return inputs;
}

std::vector<mx::Shape> read_shapes(
    const char* op, const std::vector<Lengths>& given) {
  std::vector<mx::Shape> shapes;
  for (const Lengths& one : given) {
    shapes.push_back(one.shape(op));
  }
  return shapes;
}

// An int that fits 32 bits, else raises.
int read_int(const char* op, nb::handle given) {
  int value = 0;
  if (!nb::try_cast<int>(given, value)) {
    mx::invalid(op, "a number does not fit 32 bits: ", nb::repr(given).c_str());
  }
  return value;
}

// bool is an int for Python, so it is asked for first.
TemplateArgs read_template(const char* op, nb::object given) {
  TemplateArgs args;
  if (given.is_none()) {
    return args;
  }
  for (nb::handle one : nb::cast<nb::sequence>(given)) {
    auto [name, value] = nb::cast<std::pair<std::string, nb::object>>(one);
    if (PyBool_Check(value.ptr())) {
      args.emplace_back(name, value.is(nb::bool_(true)));
    } else if (PyLong_Check(value.ptr())) {
      args.emplace_back(name, read_int(op, value));
    } else if (nb::isinstance<mx::Dtype>(value)) {
      args.emplace_back(name, nb::cast<mx::Dtype>(value));
    } else {
      mx::invalid(
          op,
          "the template argument ",
          name,
          " is ",
          nb::repr(value).c_str(),
          ". Expected a Dtype, an int or a bool.");
    }
  }
  return args;
}

std::vector<mx::fast::ScalarArg> read_scalars(
    const char* op, nb::sequence given) {
  std::vector<mx::fast::ScalarArg> scalars;
  for (nb::handle one : given) {
    if (PyBool_Check(one.ptr())) {
      scalars.emplace_back(one.is(nb::bool_(true)));
    } else if (PyLong_Check(one.ptr())) {
      scalars.emplace_back(read_int(op, one));
    } else if (PyFloat_Check(one.ptr())) {
      scalars.emplace_back(nb::cast<float>(one));
    } else {
      mx::invalid(
          op,
          "a scalar is ",
          nb::repr(one).c_str(),
          ". Expected a bool, an int or a float.");
    }
  }
  return scalars;
}

// The function that cuda_kernel returns.
nb::object callable(const char* op, mx::fast::CustomKernelFunction kernel) {
  return nb::cpp_function(
      [op, kernel = std::move(kernel)](
          nb::sequence inputs,
          const std::vector<Lengths>& output_shapes,
          const std::vector<mx::Dtype>& output_dtypes,
          Dims grid,
          Dims threadgroup,
          nb::object template_args,
          std::optional<float> init_value,
          bool verbose,
          const mx::StreamOrDevice& s) {
        return kernel(
            read_inputs(inputs),
            read_shapes(op, output_shapes),
            output_dtypes,
            grid,
            threadgroup,
            read_template(op, template_args),
            init_value,
            verbose,
            s);
      },
      nb::kw_only(),
      "inputs"_a,
      "output_shapes"_a,
      "output_dtypes"_a,
      "grid"_a,
      "threadgroup"_a,
      "template"_a = nb::none(),
      "init_value"_a = nb::none(),
      "verbose"_a = false,
      "stream"_a = nb::none(),
      nb::sig("def kernel(*, inputs: list[scalar | array], output_shapes: "
              "list[Sequence[int]], output_dtypes: list[Dtype], grid: "
              "tuple[int, int, int], threadgroup: tuple[int, int, int], "
              "template: list[tuple[str, bool | int | Dtype]] | None = None, "
              "init_value: float | None = None, verbose: bool = False, stream: "
              "StreamOrDevice = None) -> list[array]"),
      "Launches the kernel.\n\n"
      "Args:\n"
      "    inputs (list of array or scalar): In the order of their names.\n"
      "    output_shapes (list of sequences of int): Of each output.\n"
      "    output_dtypes (list of Dtype): Of each output.\n"
      "    grid (tuple of int): How many threads, along three axes.\n"
      "    threadgroup (tuple of int): How many of them form a block. Blocks\n"
      "        are all alike: where they do not divide the grid, some threads\n"
      "        lie beyond it and the kernel has to look.\n"
      "    template (list of pairs, optional): Names that the kernel uses for\n"
      "        a type, an int or a bool; it is compiled for each.\n"
      "    init_value (float, optional): What outputs hold before.\n"
      "    verbose (bool): Print the program when it is computed.\n"
      "    stream (Stream or Device, optional): Of the gpu.\n\n"
      "Returns:\n"
      "    list of array: The outputs.");
}

constexpr char kCudaKernelDoc[] =
    "An operation from the body of a kernel in CUDA C++.\n\n"
    "The kernel's arguments are written before the body: for an input ``a``\n"
    "its address as ``const T* a`` and, where the body names them,\n"
    "``a_shape``, ``a_strides`` and ``a_ndim``; for an output its address.\n"
    "Element types are called ``float``, ``float16_t``, ``bfloat16_t``,\n"
    "``complex64_t``, ``int32_t`` and so on. The program is compiled when\n"
    "it is first computed, in some 30 ms where it includes no headers, and\n"
    "kept for later processes in the folder MLX_PTX_CACHE_DIR (default:\n"
    "mlx-lynx/cuda in the user's cache folder; empty: nowhere).\n\n"
    "Args:\n"
    "    name (str): Of the kernel, for messages and profilers.\n"
    "    input_names (sequence of str): What the body calls the inputs.\n"
    "    output_names (sequence of str): What it calls the outputs, which\n"
    "        are row-major.\n"
    "    source (str): The body of the kernel.\n"
    "    header (str): What stands before the kernel: functions, includes.\n"
    "    ensure_row_contiguous (bool): Copy inputs that are not row-major.\n"
    "        Default: True.\n"
    "    shared_memory (int): Bytes of dynamic shared memory. Default: 0.\n\n"
    "Returns:\n"
    "    Callable: ``kernel(*, inputs, output_shapes, output_dtypes, grid,\n"
    "    threadgroup, template=None, init_value=None, verbose=False,\n"
    "    stream=None)`` returns the list of outputs. ``grid`` counts\n"
    "    threads; blocks that do not divide it have some beyond it. Raises\n"
    "    RuntimeError where there is no gpu.\n\n"
    "Example:\n"
    "    >>> kernel = mx.fast.cuda_kernel(\n"
    "    ...     name=\"squares\",\n"
    "    ...     input_names=[\"x\"],\n"
    "    ...     output_names=[\"y\"],\n"
    "    ...     source='''\n"
    "    ...         auto i = "
    "cooperative_groups::this_grid().thread_rank();\n"
    "    ...         if (i < N) { y[i] = x[i] * x[i]; }\n"
    "    ...     ''',\n"
    "    ... )\n"
    "    >>> def squares(x):\n"
    "    ...     return kernel(\n"
    "    ...         inputs=[x],\n"
    "    ...         template=[(\"N\", x.size)],\n"
    "    ...         grid=(x.size, 1, 1),\n"
    "    ...         threadgroup=(256, 1, 1),\n"
    "    ...         output_shapes=[x.shape],\n"
    "    ...         output_dtypes=[x.dtype],\n"
    "    ...         stream=mx.gpu,\n"
    "    ...     )[0]\n"
    "    >>> x = mx.array([1.0, 2.0, 3.0])\n"
    "    >>> squares(x) if mx.cuda.is_available() else mx.square(x)\n"
    "    array([1, 4, 9], dtype=float32)";

void bind_cuda_kernel(nb::module_& m) {
  m.def(
      "cuda_kernel",
      [](const std::string& name,
         const std::vector<std::string>& input_names,
         const std::vector<std::string>& output_names,
         const std::string& source,
         const std::string& header,
         bool ensure_row_contiguous,
         int shared_memory) {
        return callable(
            "cuda_kernel",
            mx::fast::cuda_kernel(
                name,
                input_names,
                output_names,
                source,
                header,
                ensure_row_contiguous,
                shared_memory));
      },
      "name"_a,
      "input_names"_a,
      "output_names"_a,
      "source"_a,
      "header"_a = "",
      "ensure_row_contiguous"_a = true,
      "shared_memory"_a = 0,
      nb::sig("def cuda_kernel(name: str, input_names: Sequence[str], "
              "output_names: Sequence[str], source: str, header: str = '', "
              "ensure_row_contiguous: bool = True, shared_memory: int = 0) -> "
              "Callable"),
      kCudaKernelDoc);
}

constexpr char kPrecompiledDoc[] =
    "Runs a kernel that has been compiled already.\n\n"
    "It takes the addresses of the inputs, those of the outputs, then the\n"
    "scalars as bool, int and float.\n\n"
    "Args:\n"
    "    name (str): Of the kernel, as the program exports it.\n"
    "    compiled_source (bytes): A cubin, or PTX.\n"
    "    inputs (list of array or scalar): Its inputs.\n"
    "    output_shapes (list of sequences of int): Of each output.\n"
    "    output_dtypes (list of Dtype): Of each output.\n"
    "    scalars (list of bool, int or float): What it takes by value.\n"
    "    grid (tuple of int): How many threads, along three axes.\n"
    "    threadgroup (tuple of int): How many of them form a block.\n"
    "    shared_memory (int): Bytes of dynamic shared memory. Default: 0.\n"
    "    init_value (float, optional): What outputs hold before.\n"
    "    ensure_row_contiguous (bool): Copy inputs that are not row-major.\n"
    "        Default: False.\n"
    "    stream (Stream or Device, optional): Of the gpu.\n\n"
    "Returns:\n"
    "    list of array: The outputs.\n\n"
    "Example:\n"
    "    >>> def run(program, x):  # program: what nvcc --cubin wrote\n"
    "    ...     return mx.fast.precompiled_cuda_kernel(\n"
    "    ...         name=\"scale\",\n"
    "    ...         compiled_source=program,\n"
    "    ...         inputs=[x],\n"
    "    ...         output_shapes=[x.shape],\n"
    "    ...         output_dtypes=[x.dtype],\n"
    "    ...         scalars=[2.0],\n"
    "    ...         grid=(x.size, 1, 1),\n"
    "    ...         threadgroup=(256, 1, 1),\n"
    "    ...     )[0]";

void bind_precompiled(nb::module_& m) {
  m.def(
      "precompiled_cuda_kernel",
      [](const std::string& name,
         const nb::bytes& compiled_source,
         nb::sequence inputs,
         const std::vector<Lengths>& output_shapes,
         const std::vector<mx::Dtype>& output_dtypes,
         nb::sequence scalars,
         Dims grid,
         Dims threadgroup,
         int shared_memory,
         std::optional<float> init_value,
         bool ensure_row_contiguous,
         const mx::StreamOrDevice& s) {
        constexpr const char* op = "precompiled_cuda_kernel";
        return mx::fast::precompiled_cuda_kernel(
            name,
            std::string(compiled_source.c_str(), compiled_source.size()),
            read_inputs(inputs),
            read_shapes(op, output_shapes),
            output_dtypes,
            read_scalars(op, scalars),
            grid,
            threadgroup,
            shared_memory,
            init_value,
            ensure_row_contiguous,
            s);
      },
      nb::kw_only(),
      "name"_a,
      "compiled_source"_a,
      "inputs"_a,
      "output_shapes"_a,
      "output_dtypes"_a,
      "scalars"_a,
      "grid"_a,
      "threadgroup"_a,
      "shared_memory"_a = 0,
      "init_value"_a = nb::none(),
      "ensure_row_contiguous"_a = false,
      "stream"_a = nb::none(),
      nb::sig("def precompiled_cuda_kernel(*, name: str, compiled_source: "
              "bytes, inputs: list[scalar | array], output_shapes: "
              "list[Sequence[int]], output_dtypes: list[Dtype], scalars: "
              "list[bool | int | float], grid: tuple[int, int, int], "
              "threadgroup: tuple[int, int, int], shared_memory: int = 0, "
              "init_value: float | None = None, ensure_row_contiguous: bool = "
              "False, stream: StreamOrDevice = None) -> list[array]"),
      kPrecompiledDoc);
}

void bind_metal_kernel(nb::module_& m) {
  m.def(
      "metal_kernel",
      [](const std::string& name,
         const std::vector<std::string>& input_names,
         const std::vector<std::string>& output_names,
         const std::string& source,
         const std::string& header,
         bool ensure_row_contiguous,
         bool atomic_outputs,
         const nb::object&) {
        return callable(
            "metal_kernel",
            mx::fast::metal_kernel(
                name,
                input_names,
                output_names,
                source,
                header,
                ensure_row_contiguous,
                atomic_outputs));
      },
      "name"_a,
      "input_names"_a,
      "output_names"_a,
      "source"_a,
      "header"_a = "",
      "ensure_row_contiguous"_a = true,
      "atomic_outputs"_a = false,
      "compile_options"_a = nb::none(),
      nb::sig("def metal_kernel(name: str, input_names: Sequence[str], "
              "output_names: Sequence[str], source: str, header: str = '', "
              "ensure_row_contiguous: bool = True, atomic_outputs: bool = "
              "False, compile_options: object = None) -> Callable"),
      "Raises RuntimeError: only Apple's systems have Metal.\n\n"
      "`cuda_kernel` takes the same arguments with the body in CUDA C++:\n"
      "``thread_position_in_grid.x`` is\n"
      "``blockIdx.x * blockDim.x + threadIdx.x`` there, and threads beyond\n"
      "the grid have to be left out by the kernel.\n\n"
      "Example:\n"
      "    >>> try:\n"
      "    ...     mx.fast.metal_kernel(\"k\", [\"x\"], [\"y\"], \"y[0] = "
      "x[0];\")\n"
      "    ... except RuntimeError as error:\n"
      "    ...     print(str(error)[:16])\n"
      "    [metal_kernel] k");
}

}  // namespace

void init_custom_kernels(nb::module_& fast) {
  bind_cuda_kernel(fast);
  bind_precompiled(fast);
  bind_metal_kernel(fast);
}

}  // namespace mlx::python
