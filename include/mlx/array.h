// The array: a handle on a node of the graph. A node has a shape, an element
// type and either data or the primitive and inputs that will give it data.
#pragma once

#include <atomic>
#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <vector>

#include "mlx/allocator.h"
#include "mlx/api.h"
#include "mlx/dtype.h"
#include "mlx/event.h"
#include "mlx/small_vector.h"

namespace mlx::core {

class Primitive;
class array;

using Deleter = std::function<void(allocator::Buffer)>;
using ShapeElem = int32_t;
using Shape = SmallVector<ShapeElem>;
using Strides = SmallVector<int64_t>;

/// A handle; copies share the node. Building arrays computes nothing: see
/// eval(). Several threads may build on, evaluate and let go of one node, each
/// through handles of its own; one handle must not be assigned in one thread
/// while another reads it.
class MLX_API array {
 public:
  /// A 0-d array of one value.
  template <typename T>
  explicit array(T val, Dtype dtype = TypeToDtype<T>());
  explicit array(const std::complex<float>& val, Dtype dtype = complex64);

  /// Reads prod(shape) values from `data`, converted to `dtype`.
  template <typename It>
  explicit array(
      It data,
      Shape shape,
      Dtype dtype =
          TypeToDtype<typename std::iterator_traits<It>::value_type>());

  /// A 1-d array of the listed values.
  template <typename T>
  explicit array(std::initializer_list<T> data, Dtype dtype = TypeToDtype<T>());
  explicit array(std::initializer_list<float> data);
  explicit array(std::initializer_list<int> data, Dtype dtype);
  /// Raises std::invalid_argument unless there are prod(shape) values.
  template <typename T>
  explicit array(
      std::initializer_list<T> data,
      Shape shape,
      Dtype dtype = TypeToDtype<T>());

  /// Takes over memory that holds row-major elements; `deleter` frees it.
  explicit array(
      void* data,
      Shape shape,
      Dtype dtype,
      const std::function<void(void*)>& deleter);
  explicit array(
      allocator::Buffer data,
      Shape shape,
      Dtype dtype,
      Deleter deleter = allocator::free);

  array& operator=(const array& other) && = delete;
  array& operator=(array&& other) && = delete;
  array& operator=(array&& other) & {
    array taken(std::move(other));
    std::swap(desc_, taken.desc_);
    return *this;
  }
  array(const array& other) = default;
  array(array&& other) = default;
  array& operator=(const array& other) & {
    array copy(other);
    std::swap(desc_, copy.desc_);
    return *this;
  }

  size_t itemsize() const { return desc_->dtype.size(); }
  size_t size() const { return desc_->size; }
  size_t nbytes() const { return size() * itemsize(); }
  size_t ndim() const { return desc_->shape.size(); }
  const Shape& shape() const { return desc_->shape; }
  /// The size of axis `dim`, counted from the end when negative.
  auto shape(int dim) const { return shape().at(dim < 0 ? dim + ndim() : dim); }
  const Strides& strides() const { return desc_->strides; }
  auto strides(int dim) const {
    return strides().at(dim < 0 ? dim + ndim() : dim);
  }
  Dtype dtype() const { return desc_->dtype; }

  /// Computes the array's data; returns when it can be read.
  void eval();

  /// The single element. Raises std::invalid_argument unless size() is 1.
  template <typename T>
  T item();
  template <typename T>
  T item() const;

  struct MLX_API ArrayIterator;
  /// Iterates over axis 0; raises std::invalid_argument for a 0-d array.
  ArrayIterator begin() const;
  ArrayIterator end() const;

  // ---- for primitives, transforms and backends -------------------------

  /// A node to be computed by `primitive` from `inputs`.
  array(
      Shape shape,
      Dtype dtype,
      std::shared_ptr<Primitive> primitive,
      std::vector<array> inputs);

  /// The outputs of one primitive, as siblings of each other.
  static std::vector<array> make_arrays(
      std::vector<Shape> shapes,
      const std::vector<Dtype>& dtypes,
      const std::shared_ptr<Primitive>& primitive,
      const std::vector<array>& inputs);

  /// The same shape, type and data under a new node without primitive.
  static array unsafe_weak_copy(const array& other);

  std::uintptr_t id() const {
    return reinterpret_cast<std::uintptr_t>(desc_.get());
  }
  std::uintptr_t primitive_id() const {
    return reinterpret_cast<std::uintptr_t>(desc_->primitive.get());
  }

  struct Data {
    allocator::Buffer buffer;
    Deleter d;
    Data(allocator::Buffer buffer, Deleter d = allocator::free)
        : buffer(buffer), d(std::move(d)) {}
    Data(const Data& d) = delete;
    Data& operator=(const Data& d) = delete;
    Data(Data&& o) : buffer(o.buffer), d(std::move(o.d)) {
      o.buffer = allocator::Buffer(nullptr);
      o.d = [](allocator::Buffer) {};
    }
    ~Data() { d(buffer); }
  };

  struct Flags {
    /// The elements fill one piece of memory without gaps, in some order
    /// (broadcast axes aside: then data_size() < size()).
    bool contiguous : 1;
    bool row_contiguous : 1;
    bool col_contiguous : 1;
  };

  Primitive& primitive() const { return *desc_->primitive; }
  std::shared_ptr<Primitive>& primitive_ptr() const { return desc_->primitive; }
  bool has_primitive() const { return desc_->primitive != nullptr; }
  const std::vector<array>& inputs() const { return desc_->inputs; }
  std::vector<array>& inputs() { return desc_->inputs; }

  /// Whether nobody else can see this array's buffer, nor has a copy of it.
  bool is_donatable() const {
    return desc_.use_count() == 1 && desc_->data.use_count() == 1 &&
           is_let_go();
  }

  const std::vector<array>& siblings() const { return desc_->siblings; }
  std::vector<array>& siblings() { return desc_->siblings; }
  int sibling_position() const { return desc_->position; }
  void set_siblings(std::vector<array> siblings, uint16_t position) {
    desc_->siblings = std::move(siblings);
    desc_->has_siblings = !desc_->siblings.empty();
    desc_->position = position;
  }
  /// All outputs of the primitive, this one included, in order.
  std::vector<array> outputs() const;

  /// Forgets the primitive and inputs, of the siblings too.
  void detach();

  const Flags& flags() const { return desc_->flags; }
  /// The number of elements in the buffer that the array reaches.
  size_t data_size() const { return desc_->data_size; }
  allocator::Buffer& buffer() { return desc_->data->buffer; }
  const allocator::Buffer& buffer() const { return desc_->data->buffer; }
  size_t buffer_size() const { return allocator::allocator().size(buffer()); }
  const std::shared_ptr<Data>& data_shared_ptr() const { return desc_->data; }

  /// Host address of the first element; the array must be evaluated.
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(host_data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(host_data());
  }
  /// Bytes from the start of the buffer to the first element.
  int64_t offset() const { return desc_->offset; }

  enum Status {
    /// Not computed and not scheduled.
    unscheduled,
    /// Scheduled: event() says when it is done.
    evaluated,
    /// The data can be read.
    available,
    /// Claimed by an eval that runs now; only that eval may touch the node.
    running
  };

  bool is_available() const;
  /// Blocks until scheduled work is done; raises its error.
  void wait();
  Status status() const {
    return desc_->status.load(std::memory_order_acquire);
  }
  void set_status(Status s) const {
    desc_->status.store(s, std::memory_order_release);
  }
  Event& event() const { return desc_->event; }
  void attach_event(Event e) const { desc_->event = std::move(e); }
  void detach_event() const { desc_->event = Event{}; }

  /// Which eval claimed the node; for the graph's own use.
  struct Claim {
    uint32_t number = 0;
    uint32_t forks = 0;
  };
  Claim& claim() const { return desc_->claim; }

  /// A tracer depends on the arguments of a function that the calling thread
  /// is transforming; marks are void when that is over.
  void set_tracer(bool is_tracer);
  bool is_tracer() const;
  uint32_t trace() const { return desc_->trace; }
  /// The number of the trace in which the node was made, tracer or not; 0
  /// outside of transforms.
  uint32_t made_in() const { return desc_->made_in; }

  /// Row-major data.
  void set_data(allocator::Buffer buffer, Deleter d = allocator::free);
  void set_data(
      allocator::Buffer buffer,
      size_t data_size,
      Strides strides,
      Flags flags,
      Deleter d);
  void set_data(
      allocator::Buffer buffer,
      size_t data_size,
      Strides strides,
      Flags flags,
      int64_t offset = 0,
      Deleter d = allocator::free);
  /// A view of `other`'s buffer; `offset` in elements from other's first.
  void copy_shared_buffer(
      const array& other,
      const Strides& strides,
      Flags flags,
      size_t data_size,
      int64_t offset = 0);
  void copy_shared_buffer(const array& other);
  /// Makes this handle mean `other`'s node.
  void overwrite_descriptor(const array& other) { *this = other; }

  ~array();

 private:
  struct Desc {
    explicit Desc(Shape shape, Dtype dtype);
    Desc(
        Shape shape,
        Dtype dtype,
        std::shared_ptr<Primitive> primitive,
        std::vector<array> inputs);
    ~Desc();

    Shape shape;
    Strides strides;
    size_t size;
    Dtype dtype;
    Flags flags{true, true, true};
    std::atomic<Status> status = unscheduled;
    uint32_t trace = 0;
    uint32_t made_in = 0;
    Claim claim;
    uint16_t position = 0;
    std::atomic<bool> has_siblings = false;
    std::shared_ptr<Primitive> primitive;
    std::shared_ptr<Data> data;
    int64_t offset = 0;
    size_t data_size = 0;
    Event event;
    std::vector<array> inputs;
    std::vector<array> siblings;
  };

  explicit array(std::shared_ptr<Desc> desc) : desc_(std::move(desc)) {}
  char* host_data() const;
  void check_item() const;
  /// The address of the only element; read into `to` from a device, so that
  /// the rest of its block stays there.
  const void* read_item(void* to) const;
  /// Has what other threads read before they let go come before our writes.
  bool is_let_go() const;
  void release_siblings();
  std::vector<std::vector<array>> take_siblings();
  std::vector<std::vector<array>> unlink_siblings();
  static void check_count(size_t count, const Shape& shape);
  /// A new row-major buffer; its address.
  void* allocate();
  template <typename It>
  void fill(It values);

  std::shared_ptr<Desc> desc_;
};

template <typename T>
inline constexpr bool is_array_v =
    std::is_same_v<std::remove_cv_t<std::remove_reference_t<T>>, array>;
template <typename... T>
inline constexpr bool is_arrays_v = (is_array_v<T> && ...);
template <typename... T>
using enable_for_arrays_t = typename std::enable_if_t<is_arrays_v<T...>>;

struct MLX_API array::ArrayIterator {
  using iterator_category = std::random_access_iterator_tag;
  using difference_type = size_t;
  using value_type = const array;
  using reference = value_type;

  explicit ArrayIterator(const array& arr, int idx = 0);
  reference operator*() const;
  ArrayIterator& operator+(difference_type diff) {
    idx_ += static_cast<int>(diff);
    return *this;
  }
  ArrayIterator& operator++() {
    ++idx_;
    return *this;
  }
  friend bool operator==(const ArrayIterator& a, const ArrayIterator& b) {
    return a.arr_.id() == b.arr_.id() && a.idx_ == b.idx_;
  }

 private:
  array arr_;
  int idx_;
};

namespace detail {

/// Calls f with a value of the C++ type of `dtype`.
template <typename F>
decltype(auto) visit_dtype(Dtype dtype, F&& f) {
  switch (dtype.val()) {
    case Dtype::Val::bool_:
      return f(bool{});
    case Dtype::Val::uint8:
      return f(uint8_t{});
    case Dtype::Val::uint16:
      return f(uint16_t{});
    case Dtype::Val::uint32:
      return f(uint32_t{});
    case Dtype::Val::uint64:
      return f(uint64_t{});
    case Dtype::Val::int8:
      return f(int8_t{});
    case Dtype::Val::int16:
      return f(int16_t{});
    case Dtype::Val::int32:
      return f(int32_t{});
    case Dtype::Val::int64:
      return f(int64_t{});
    case Dtype::Val::float16:
      return f(float16_t{0.0f});
    case Dtype::Val::float32:
      return f(float{});
    case Dtype::Val::float64:
      return f(double{});
    case Dtype::Val::bfloat16:
      return f(bfloat16_t{0.0f});
    default:
      return f(complex64_t{0.0f, 0.0f});
  }
}

/// As static_cast, also from complex (its real part) and to bool (!= 0).
template <typename To, typename From>
To convert(const From& x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (
      std::is_base_of_v<std::complex<float>, From> ||
      std::is_same_v<std::complex<float>, From>) {
    if constexpr (std::is_same_v<To, complex64_t>) {
      return complex64_t(x.real(), x.imag());
    } else {
      return static_cast<To>(x.real());
    }
  } else if constexpr (std::is_same_v<To, complex64_t>) {
    return complex64_t(static_cast<float>(x), 0.0f);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace detail

template <typename It>
void array::fill(It values) {
  using From = typename std::iterator_traits<It>::value_type;
  void* out = allocate();
  detail::visit_dtype(dtype(), [&](auto tag) {
    using To = decltype(tag);
    To* to = static_cast<To*>(out);
    for (size_t i = 0; i < size(); ++i, ++values) {
      to[i] = detail::convert<To, From>(*values);
    }
  });
}

template <typename T>
array::array(T val, Dtype dtype)
    : desc_(std::make_shared<Desc>(Shape{}, dtype)) {
  fill(&val);
}

template <typename It>
array::array(It data, Shape shape, Dtype dtype)
    : desc_(std::make_shared<Desc>(std::move(shape), dtype)) {
  fill(data);
}

template <typename T>
array::array(std::initializer_list<T> data, Dtype dtype)
    : array(data.begin(), Shape{static_cast<ShapeElem>(data.size())}, dtype) {}

template <typename T>
array::array(std::initializer_list<T> data, Shape shape, Dtype dtype)
    : desc_(std::make_shared<Desc>(std::move(shape), dtype)) {
  check_count(data.size(), this->shape());
  fill(data.begin());
}

template <typename T>
T array::item() {
  check_item();
  eval();
  return static_cast<const array*>(this)->item<T>();
}

template <typename T>
T array::item() const {
  check_item();
  return detail::visit_dtype(dtype(), [&](auto tag) {
    using Element = decltype(tag);
    alignas(16) char bytes[sizeof(Element)];
    return detail::convert<T>(*static_cast<const Element*>(read_item(bytes)));
  });
}

}  // namespace mlx::core
