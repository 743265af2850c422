// Categories and promotion of element types.
#include "mlx/dtype.h"

#include <algorithm>

namespace mlx::core {

namespace {

using Category = Dtype::Category;

Category category_of(Dtype t) {
  switch (kindof(t)) {
    case Dtype::Kind::b:
      return generic;
    case Dtype::Kind::u:
      return unsignedinteger;
    case Dtype::Kind::i:
      return signedinteger;
    case Dtype::Kind::c:
      return complexfloating;
    default:
      return floating;
  }
}

Category parent_of(Category c) {
  switch (c) {
    case Category::complexfloating:
    case Category::floating:
      return inexact;
    case Category::signedinteger:
    case Category::unsignedinteger:
      return integer;
    case Category::inexact:
    case Category::integer:
      return number;
    default:
      return generic;
  }
}

Dtype signed_of_size(int bytes) {
  switch (bytes) {
    case 1:
      return int8;
    case 2:
      return int16;
    case 4:
      return int32;
    default:
      return int64;
  }
}

Dtype promote_integers(Dtype a, Dtype b) {
  if (kindof(a) == kindof(b)) {
    return a.size() >= b.size() ? a : b;
  }
  if (kindof(a) == Dtype::Kind::i) {
    std::swap(a, b);
  }
  // a is unsigned, b signed: the signed type that holds both, or float32.
  if (a.size() == 8) {
    return float32;
  }
  return b.size() > a.size() ? b : signed_of_size(a.size() * 2);
}

Dtype promote_floats(Dtype a, Dtype b) {
  if (a.size() != b.size()) {
    return a.size() > b.size() ? a : b;
  }
  return float32;  // float16 beside bfloat16
}

bool is_float(Dtype t) {
  return issubdtype(t, floating);
}

}  // namespace

Dtype::Kind kindof(const Dtype& t) {
  switch (t.val()) {
    case Dtype::Val::bool_:
      return Dtype::Kind::b;
    case Dtype::Val::uint8:
    case Dtype::Val::uint16:
    case Dtype::Val::uint32:
    case Dtype::Val::uint64:
      return Dtype::Kind::u;
    case Dtype::Val::int8:
    case Dtype::Val::int16:
    case Dtype::Val::int32:
    case Dtype::Val::int64:
      return Dtype::Kind::i;
    case Dtype::Val::bfloat16:
      return Dtype::Kind::V;
    case Dtype::Val::complex64:
      return Dtype::Kind::c;
    default:
      return Dtype::Kind::f;
  }
}

bool issubdtype(const Dtype& a, const Dtype& b) {
  return a.val() == b.val();
}

bool issubdtype(const Dtype::Category&, const Dtype&) {
  return false;
}

bool issubdtype(const Dtype& a, const Dtype::Category& b) {
  return issubdtype(category_of(a), b);
}

bool issubdtype(const Dtype::Category& a, const Dtype::Category& b) {
  Category c = a;
  while (c != b && c != generic) {
    c = parent_of(c);
  }
  return c == b;
}

Dtype promote_types(const Dtype& t1, const Dtype& t2) {
  if (t1 == t2 || t2 == bool_) {
    return t1;
  }
  if (t1 == bool_) {
    return t2;
  }
  if (t1 == complex64 || t2 == complex64) {
    return complex64;
  }
  if (is_float(t1) && is_float(t2)) {
    return promote_floats(t1, t2);
  }
  if (is_float(t1)) {
    return t1;
  }
  return is_float(t2) ? t2 : promote_integers(t1, t2);
}

}  // namespace mlx::core
