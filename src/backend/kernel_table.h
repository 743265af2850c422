// A backend's contents page: which function computes which operation.
#pragma once

#include <cstddef>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mlx/array.h"
#include "mlx/primitives.h"

namespace mlx::core {

/// Maps operation classes to kernels. Kernels are written with the arrays
/// they take, as `void f(const Op&, const array& x, array& out, Extra...)`,
/// or with vectors where the number of inputs or outputs varies; `Extra` is
/// what a backend hands to every kernel (an encoder, say).
template <typename... Extra>
class KernelTable {
 public:
  using Kernel = void (*)(
      Primitive&, const std::vector<array>&, std::vector<array>&, Extra...);

  template <typename Op, auto function>
  void add() {
    put(typeid(Op), &call<Op, function>);
  }
  /// The same for a function without `Extra`: it computes nothing.
  template <typename Op, auto function>
  void add_view() {
    put(typeid(Op),
        [](Primitive& op,
           const std::vector<array>& inputs,
           std::vector<array>& outputs,
           Extra...) {
          KernelTable<>::call<Op, function>(op, inputs, outputs);
        });
  }

  /// By address first: the other way hashes the name of the class, letter by
  /// letter, for every node that runs.
  Kernel find(const std::type_info& op) const {
    auto it = by_address_.find(&op);
    return it != by_address_.end() ? it->second : find(std::type_index(op));
  }
  Kernel find(std::type_index op) const {
    auto it = kernels_.find(op);
    return it == kernels_.end() ? nullptr : it->second;
  }

 private:
  template <typename...>
  friend class KernelTable;

  template <typename Op, auto function>
  static void call(
      Primitive& op,
      const std::vector<array>& inputs,
      std::vector<array>& outputs,
      Extra... extra) {
    Caller<Op, decltype(function)>::call(
        function, static_cast<const Op&>(op), inputs, outputs, extra...);
  }

  template <typename Op, typename F>
  struct Caller;

  template <typename Op, typename O>
  struct Caller<
      Op,
      void (*)(
          const O&, const std::vector<array>&, std::vector<array>&, Extra...)> {
    static void call(
        auto f,
        const Op& op,
        const std::vector<array>& inputs,
        std::vector<array>& outputs,
        Extra... extra) {
      f(op, inputs, outputs, extra...);
    }
  };

  template <typename Op, typename O>
  struct Caller<
      Op,
      void (*)(const O&, const std::vector<array>&, array&, Extra...)> {
    static void call(
        auto f,
        const Op& op,
        const std::vector<array>& inputs,
        std::vector<array>& outputs,
        Extra... extra) {
      f(op, inputs, outputs[0], extra...);
    }
  };

  template <typename Op, typename O>
  struct Caller<Op, void (*)(const O&, const array&, array&, Extra...)> {
    static void call(
        auto f,
        const Op& op,
        const std::vector<array>& inputs,
        std::vector<array>& outputs,
        Extra... extra) {
      f(op, inputs[0], outputs[0], extra...);
    }
  };

  template <typename Op, typename O>
  struct Caller<
      Op,
      void (*)(const O&, const array&, const array&, array&, Extra...)> {
    static void call(
        auto f,
        const Op& op,
        const std::vector<array>& inputs,
        std::vector<array>& outputs,
        Extra... extra) {
      f(op, inputs[0], inputs[1], outputs[0], extra...);
    }
  };

  template <typename Op, typename O>
  struct Caller<
      Op,
      void (*)(
          const O&,
          const array&,
          const array&,
          const array&,
          array&,
          Extra...)> {
    static void call(
        auto f,
        const Op& op,
        const std::vector<array>& inputs,
        std::vector<array>& outputs,
        Extra... extra) {
      f(op, inputs[0], inputs[1], inputs[2], outputs[0], extra...);
    }
  };

  void put(const std::type_info& op, Kernel kernel) {
    by_address_[&op] = kernel;
    kernels_[op] = kernel;
  }

  // A class has one address, but for one whose description was compiled into
  // two libraries: that of the other library is found by name.
  std::unordered_map<const std::type_info*, Kernel> by_address_;
  std::unordered_map<std::type_index, Kernel> kernels_;
};

}  // namespace mlx::core
