// A vector with inline room for a few elements: shapes and strides seldom
// have more than ten, so most arrays need no heap for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace mlx::core {

template <typename T, typename = void>
struct is_iterator : std::false_type {};

template <typename T>
struct is_iterator<
    T,
    std::void_t<
        typename std::iterator_traits<T>::difference_type,
        typename std::iterator_traits<T>::iterator_category,
        typename std::iterator_traits<T>::pointer,
        typename std::iterator_traits<T>::reference,
        typename std::iterator_traits<T>::value_type>> : std::true_type {};

template <typename T>
constexpr bool is_iterator_v = is_iterator<T>::value;

/// Elements must be trivially copyable; otherwise as std::vector.
template <typename T, size_t kSize = 10, typename Allocator = std::allocator<T>>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;
  using difference_type = std::ptrdiff_t;
  using size_type = std::size_t;

  SmallVector() = default;
  explicit SmallVector(const Allocator& allocator) : allocator_(allocator) {}
  explicit SmallVector(size_t size, const Allocator& allocator = Allocator())
      : SmallVector(size, T{}, allocator) {}
  SmallVector(
      size_t size,
      const T& initial_value,
      const Allocator& allocator = Allocator())
      : allocator_(allocator) {
    resize(size, initial_value);
  }
  SmallVector(
      std::initializer_list<T> init, const Allocator& allocator = Allocator())
      : SmallVector(init.begin(), init.end(), allocator) {}
  template <typename Iter, typename = std::enable_if_t<is_iterator_v<Iter>>>
  SmallVector(Iter begin, Iter end, const Allocator& allocator = Allocator())
      : allocator_(allocator) {
    append(begin, end);
  }
  SmallVector(const SmallVector& other)
      : SmallVector(other, other.allocator_) {}
  SmallVector(const SmallVector& other, const Allocator& allocator)
      : SmallVector(other.begin(), other.end(), allocator) {}
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector(SmallVector&& other, const Allocator& allocator)
      : allocator_(allocator) {
    take(other);
  }
  ~SmallVector() { free_heap(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      size_ = 0;
      append(other.begin(), other.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      free_heap();
      take(other);
    }
    return *this;
  }

  bool operator==(const SmallVector& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }
  bool operator!=(const SmallVector& other) const { return !(*this == other); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  iterator begin() { return data_; }
  const_iterator begin() const { return data_; }
  iterator end() { return data_ + size_; }
  const_iterator end() const { return data_ + size_; }
  const_iterator cbegin() const { return data_; }
  const_iterator cend() const { return data_ + size_; }
  auto rbegin() { return std::make_reverse_iterator(end()); }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() { return std::make_reverse_iterator(begin()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }

  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T& at(size_t index) { return data_[checked(index)]; }
  const T& at(size_t index) const { return data_[checked(index)]; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }

  template <typename... Args>
  void emplace_back(Args&&... args) {
    push_back(T(std::forward<Args>(args)...));
  }
  void push_back(T x) {
    grow(size_ + 1);
    data_[size_++] = x;
  }
  void pop_back(size_t count = 1) { size_ -= count; }

  iterator insert(iterator pos, T value) { return insert(pos, 1, value); }
  iterator insert(iterator pos, size_t count, T value) {
    T* hole = open(pos, count);
    std::fill_n(hole, count, value);
    return hole;
  }
  template <typename Iter, typename = std::enable_if_t<is_iterator_v<Iter>>>
  iterator insert(iterator pos, Iter begin, Iter end) {
    // By a copy: the range may lie inside this vector.
    std::vector<T> values(begin, end);
    T* hole = open(pos, values.size());
    std::copy(values.begin(), values.end(), hole);
    return hole;
  }
  iterator insert(iterator pos, std::initializer_list<const T> values) {
    return insert(pos, values.begin(), values.end());
  }
  iterator erase(iterator erase_start, iterator erase_end) {
    std::copy(erase_end, end(), erase_start);
    size_ -= static_cast<size_t>(erase_end - erase_start);
    return erase_start;
  }
  iterator erase(iterator pos) { return erase(pos, pos + 1); }

  void resize(size_t new_size) { resize(new_size, T{}); }
  void resize(size_t new_size, const T& initial_value) {
    T value = initial_value;
    grow(new_size);
    if (new_size > size_) {
      std::fill(data_ + size_, data_ + new_size, value);
    }
    size_ = new_size;
  }
  void reserve(size_t new_capacity) { grow(new_capacity); }
  void clear() { size_ = 0; }

 private:
  using Traits = std::allocator_traits<Allocator>;

  size_t checked(size_t index) const {
    if (index >= size_) {
      throw std::out_of_range("[SmallVector] index out of range.");
    }
    return index;
  }

  template <typename Iter>
  void append(Iter begin, Iter end) {
    if constexpr (std::is_base_of_v<
                      std::random_access_iterator_tag,
                      typename std::iterator_traits<Iter>::iterator_category>) {
      grow(size_ + static_cast<size_t>(end - begin));
    }
    for (; begin != end; ++begin) {
      push_back(static_cast<T>(*begin));
    }
  }

  void grow(size_t needed) {
    if (needed <= capacity_) {
      return;
    }
    size_t capacity = std::max(needed, capacity_ * 2);
    T* heap = Traits::allocate(allocator_, capacity);
    std::copy(begin(), end(), heap);
    free_heap();
    data_ = heap;
    capacity_ = capacity;
  }

  T* open(iterator pos, size_t count) {
    size_t index = static_cast<size_t>(pos - data_);
    grow(size_ + count);
    std::copy_backward(data_ + index, data_ + size_, data_ + size_ + count);
    size_ += count;
    return data_ + index;
  }

  void take(SmallVector& other) {
    if (other.data_ != other.inline_) {
      data_ = other.data_;
      capacity_ = other.capacity_;
    } else {
      data_ = inline_;
      capacity_ = kSize;
      std::copy(other.begin(), other.end(), data_);
    }
    size_ = other.size_;
    other.data_ = other.inline_;
    other.capacity_ = kSize;
    other.size_ = 0;
  }

  void free_heap() {
    if (data_ != inline_) {
      Traits::deallocate(allocator_, data_, capacity_);
    }
  }

  T* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = kSize;
  T inline_[kSize];
  [[no_unique_address]] Allocator allocator_;
};

template <typename>
struct is_vector : std::false_type {};
template <typename T, size_t Size, typename Allocator>
struct is_vector<SmallVector<T, Size, Allocator>> : std::true_type {};
template <typename T, typename Allocator>
struct is_vector<std::vector<T, Allocator>> : std::true_type {};
template <typename Vec>
inline constexpr bool is_vector_v = is_vector<Vec>::value;

}  // namespace mlx::core
