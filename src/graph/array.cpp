// Array handles and graph nodes: making them, giving them data, freeing them.
#include "mlx/array.h"

#include <pthread.h>

#include <limits>
#include <mutex>

#include "backend/buffer.h"
#include "graph/claims.h"
#include "graph/node_memory.h"
#include "graph/tracing.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "types/error.h"

namespace mlx::core {

namespace {

size_t count_elements(const Shape& shape) {
  size_t size = 1;
  for (ShapeElem n : shape) {
    if (n < 0) {
      invalid(
          "array",
          "negative dimension: ",
          shape,
          ". Dimensions are at least 0.");
    }
    if (__builtin_mul_overflow(size, static_cast<size_t>(n), &size)) {
      throw std::overflow_error(
          message("array", "too many elements: ", shape, "."));
    }
  }
  return size;
}

Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * shape[i + 1];
  }
  return strides;
}

array::Flags row_major_flags(const Shape& shape) {
  // Also column-major when at most one axis is longer than 1.
  int long_axes = 0;
  for (ShapeElem n : shape) {
    long_axes += n > 1;
  }
  return {true, true, long_axes <= 1};
}

}  // namespace

array::Desc::Desc(Shape shape_, Dtype dtype)
    : shape(std::move(shape_)),
      strides(row_major_strides(shape)),
      size(count_elements(shape)),
      dtype(dtype),
      flags(row_major_flags(shape)) {}

array::Desc::Desc(
    Shape shape_,
    Dtype dtype,
    std::shared_ptr<Primitive> primitive,
    std::vector<array> inputs_)
    : shape(std::move(shape_)),
      strides(row_major_strides(shape)),
      size(count_elements(shape)),
      dtype(dtype),
      flags(row_major_flags(shape)),
      made_in(detail::current_trace()),
      primitive(std::move(primitive)),
      inputs(std::move(inputs_)) {
  for (const array& in : inputs) {
    if (in.is_tracer()) {
      trace = in.desc_->trace;
      break;
    }
  }
}

// A long chain of nodes would recurse once a node; nodes freed while another
// is being freed queue up on the thread instead.
array::Desc::~Desc() {
  thread_local std::vector<array>* pending = nullptr;
  if (inputs.empty()) {
    return;
  }
  if (pending) {
    for (array& in : inputs) {
      pending->push_back(std::move(in));
    }
    return;
  }
  std::vector<array> queue = std::move(inputs);
  pending = &queue;
  while (!queue.empty()) {
    array last = std::move(queue.back());
    queue.pop_back();
  }
  pending = nullptr;
}

array::array(const std::complex<float>& val, Dtype dtype)
    : desc_(std::make_shared<Desc>(Shape{}, dtype)) {
  complex64_t value(val);
  fill(&value);
}

array::array(std::initializer_list<float> data)
    : array(data.begin(), Shape{static_cast<ShapeElem>(data.size())}, float32) {
}

array::array(std::initializer_list<int> data, Dtype dtype)
    : array(data.begin(), Shape{static_cast<ShapeElem>(data.size())}, dtype) {}

array::array(
    void* data,
    Shape shape,
    Dtype dtype,
    const std::function<void(void*)>& deleter)
    : desc_(std::make_shared<Desc>(std::move(shape), dtype)) {
  allocator::Buffer buffer = allocator::make_buffer(data, nbytes());
  set_data(buffer, [data, deleter](allocator::Buffer b) {
    allocator::release(b);
    deleter(data);
  });
  set_status(available);
}

array::array(allocator::Buffer data, Shape shape, Dtype dtype, Deleter deleter)
    : desc_(std::make_shared<Desc>(std::move(shape), dtype)) {
  set_data(data, std::move(deleter));
  set_status(available);
}

array::array(
    Shape shape,
    Dtype dtype,
    std::shared_ptr<Primitive> primitive,
    std::vector<array> inputs)
    : desc_(std::allocate_shared<Desc>(
          detail::NodeAllocator<Desc>(),
          std::move(shape),
          dtype,
          std::move(primitive),
          std::move(inputs))) {}

std::vector<array> array::make_arrays(
    std::vector<Shape> shapes,
    const std::vector<Dtype>& dtypes,
    const std::shared_ptr<Primitive>& primitive,
    const std::vector<array>& inputs) {
  std::vector<array> outputs;
  outputs.reserve(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    outputs.push_back(
        array(std::move(shapes[i]), dtypes[i], primitive, inputs));
  }
  for (size_t i = 0; outputs.size() > 1 && i < outputs.size(); ++i) {
    std::vector<array> others;
    others.reserve(outputs.size() - 1);
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (k != i) {
        others.push_back(outputs[k]);
      }
    }
    outputs[i].set_siblings(std::move(others), static_cast<uint16_t>(i));
  }
  return outputs;
}

array array::unsafe_weak_copy(const array& other) {
  array copy(std::make_shared<Desc>(other.shape(), other.dtype()));
  copy.set_data(
      other.buffer(),
      other.data_size(),
      other.strides(),
      other.flags(),
      other.offset(),
      [](allocator::Buffer) {});
  copy.set_status(available);
  return copy;
}

std::vector<array> array::outputs() const {
  size_t position = desc_->position;
  std::vector<array> all;
  all.reserve(siblings().size() + 1);
  for (size_t i = 0; i <= siblings().size(); ++i) {
    all.push_back(i == position ? *this : siblings()[i - (i > position)]);
  }
  return all;
}

// Other threads may be letting go of handles on the outputs meanwhile; nobody
// else looks at the rest of a node that is being computed.
void array::detach() {
  std::vector<std::vector<array>> circle = take_siblings();
  auto forget = [](Desc& node) {
    node.position = 0;
    node.primitive = nullptr;
    std::vector<array> inputs = std::move(node.inputs);
    node.inputs.clear();
  };
  if (!circle.empty()) {
    for (array& other : circle.front()) {
      forget(*other.desc_);
    }
  }
  forget(*desc_);
}

void array::eval() {
  if (status() == evaluated) {
    wait();
  } else if (status() != available) {
    mlx::core::eval({*this});
  }
}

bool array::is_available() const {
  if (status() == available) {
    return true;
  }
  return status() == evaluated && (!event().valid() || event().is_signaled());
}

void array::wait() {
  while (status() == running) {
    detail::wait_until_settled(*this);
  }
  if (status() == evaluated) {
    if (event().valid()) {
      event().wait();
    }
    set_status(available);
  }
}

void array::set_tracer(bool is_tracer) {
  desc_->trace = is_tracer ? detail::current_trace() : 0;
}

bool array::is_tracer() const {
  return desc_->trace != 0 && desc_->trace == detail::current_trace();
}

void array::set_data(allocator::Buffer buffer, Deleter d) {
  if (desc_->data != nullptr) {  // a new node has them already
    desc_->strides = row_major_strides(shape());
    desc_->flags = row_major_flags(shape());
  }
  desc_->data_size = size();
  desc_->offset = 0;
  desc_->data = std::make_shared<Data>(buffer, std::move(d));
}

void array::set_data(
    allocator::Buffer buffer,
    size_t data_size,
    Strides strides,
    Flags flags,
    Deleter d) {
  set_data(buffer, data_size, std::move(strides), flags, 0, std::move(d));
}

void array::set_data(
    allocator::Buffer buffer,
    size_t data_size,
    Strides strides,
    Flags flags,
    int64_t offset,
    Deleter d) {
  desc_->strides = std::move(strides);
  desc_->flags = flags;
  desc_->data_size = data_size;
  desc_->offset = offset;
  desc_->data = std::make_shared<Data>(buffer, std::move(d));
}

void array::copy_shared_buffer(
    const array& other,
    const Strides& strides,
    Flags flags,
    size_t data_size,
    int64_t offset) {
  desc_->data = other.desc_->data;
  desc_->strides = strides;
  desc_->flags = flags;
  desc_->data_size = data_size;
  desc_->offset =
      other.offset() + offset * static_cast<int64_t>(other.itemsize());
}

void array::copy_shared_buffer(const array& other) {
  copy_shared_buffer(other, other.strides(), other.flags(), other.data_size());
}

namespace {

// A forked child starts with a new one: the old one may be taken by a thread
// that is not here.
std::mutex*& sibling_mutex() {
  static std::mutex* mutex = new std::mutex;
  return mutex;
}

[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { sibling_mutex() = new std::mutex; });

}  // namespace

bool array::is_let_go() const {
#ifdef __SANITIZE_THREAD__  // it knows no fences
  std::shared_ptr<void> counts[] = {desc_, desc_->data};
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
  // A copy of the bytes elsewhere would not see what is written.
  BufferRecord* record = record_of(desc_->data->buffer);
  return record != nullptr && record->is_in_one_place();
}

array::~array() {
  if (desc_ && desc_->has_siblings.load(std::memory_order_relaxed)) {
    release_siblings();
  }
}

// Undoes what set_siblings did to all outputs. The first list is this node's;
// the lists are to be freed without the lock.
std::vector<std::vector<array>> array::take_siblings() {
  std::vector<std::vector<array>> circle;
  if (desc_->has_siblings.load(std::memory_order_relaxed)) {
    std::lock_guard lock(*sibling_mutex());
    circle = unlink_siblings();
  }
  return circle;
}

std::vector<std::vector<array>> array::unlink_siblings() {
  std::vector<std::vector<array>> circle;
  circle.push_back(std::move(desc_->siblings));
  desc_->siblings.clear();
  desc_->has_siblings.store(false, std::memory_order_relaxed);
  for (size_t i = 0; i < circle[0].size(); ++i) {
    Desc& other = *circle[0][i].desc_;
    circle.push_back(std::move(other.siblings));
    other.siblings.clear();
    other.has_siblings.store(false, std::memory_order_relaxed);
  }
  return circle;
}

// Siblings hold each other. The last handle from outside breaks the circle:
// then every sibling is held only by the others, and this one by them and by
// this handle. The lock keeps two last handles from missing each other.
void array::release_siblings() {
  std::vector<std::vector<array>> circle;
  std::shared_ptr<Desc> last;
  std::lock_guard lock(*sibling_mutex());
  if (desc_->siblings.empty()) {
    return;  // another thread has computed them meanwhile
  }
  auto group = static_cast<long>(desc_->siblings.size());
  bool garbage = desc_.use_count() <= group + 1;
  for (const array& other : desc_->siblings) {
    garbage = garbage && other.desc_.use_count() <= group;
  }
  if (!garbage) {
    desc_.reset();
    return;
  }
  circle = unlink_siblings();
  last = std::move(desc_);
}

char* array::host_data() const {
  auto* base = static_cast<char*>(desc_->data->buffer.raw_ptr());
  return base + desc_->offset;
}

const void* array::read_item(void* to) const {
  BufferRecord* record = record_of(desc_->data->buffer);
  if (record->host.load(std::memory_order_acquire) != nullptr) {
    return host_data();
  }
  auto offset = static_cast<size_t>(desc_->offset);
  device_memory()->read(record, offset, itemsize(), to);
  return to;
}

void array::check_item() const {
  if (size() != 1) {
    invalid(
        "item",
        "not a single value: ",
        shape(),
        ". Only arrays of size 1 have one.");
  }
}

void array::check_count(size_t count, const Shape& shape) {
  if (count != count_elements(shape)) {
    invalid(
        "array",
        "wrong number of values: ",
        count,
        " for shape ",
        shape,
        ". Expected one a element.");
  }
}

void* array::allocate() {
  set_data(allocator::malloc(nbytes()));
  set_status(available);
  return host_data();
}

array::ArrayIterator array::begin() const {
  return ArrayIterator(*this);
}

array::ArrayIterator array::end() const {
  return ArrayIterator(*this, ndim() ? shape(0) : 0);
}

}  // namespace mlx::core
