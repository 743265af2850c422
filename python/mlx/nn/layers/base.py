"""Module, the base class of all layers and models.

A module is a dictionary: arrays, dictionaries, lists and tuples assigned to its
attributes become items, everything else stays an ordinary attribute. Walking
the items gives parameters and sub-modules; updates go the same way back.
"""

from __future__ import annotations

from typing import Any, Callable, Union, cast

import mlx.core as mx
from mlx.nn.layers._replace import Replace, check_weights
from mlx.utils import tree_flatten, tree_unflatten

Filter = Callable[["Module", str, Any], bool]
Weights = Union[str, list[tuple[str, mx.array]]]


class Module(dict[str, Any]):
    """Base class of layers and models.

    Call ``super().__init__()`` first in the constructor of a subclass and
    assign arrays and other modules to attributes. Arrays whose name does not
    begin with an underscore are parameters. Lists and dictionaries may hold
    arrays and modules, nested as deep as wanted; tuples are not looked into.

    Attributes:
        training: Whether the module is in training mode.
        state: The module itself, as a tree that `mx.eval` accepts.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> class Scale(nn.Module):
        ...     def __init__(self, dims):
        ...         super().__init__()
        ...         self.weight = mx.ones((dims,))
        ...
        ...     def __call__(self, x):
        ...         return x * self.weight
        >>> Scale(2)(mx.array([1.0, 2.0])).tolist()
        [1.0, 2.0]
        >>> list(Scale(2).parameters())
        ['weight']
    """

    # Subclasses say what calling means.
    __call__: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__()
        self._no_grad: set[str] = set()
        self._training = True

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._training

    @property
    def state(self) -> Module:
        """The module itself: its items change when the module changes."""
        return self

    def _extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return ""

    def __repr__(self) -> str:
        children = tree_flatten(self.children(), is_leaf=self.is_module)
        text = f"{type(self).__name__}({self._extra_repr()}"
        for name, child in children:
            shown = repr(child).replace("\n", "\n  ")
            text += f"\n  ({name}): {shown}"
        return text + ("\n)" if children else ")")

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            # Says which attribute is missing, also inside a property.
            return super().__getattribute__(key)

    def __setattr__(self, key: str, val: Any) -> None:
        if not isinstance(val, (mx.array, dict, list, tuple)):
            super().__setattr__(key, val)
            self.pop(key, None)
        elif hasattr(getattr(type(self), key, None), "__set__"):
            super().__setattr__(key, val)  # a property of the subclass
        else:
            self.__dict__.pop(key, None)
            self[key] = val

    def __delattr__(self, name: str) -> None:
        if name in self:
            del self[name]
        else:
            super().__delattr__(name)

    @staticmethod
    def is_module(value: Any) -> bool:
        """Whether a value is a module."""
        return isinstance(value, Module)

    @staticmethod
    def valid_child_filter(module: Module, key: str, value: Any) -> bool:
        """Whether a value may be, or hold, a sub-module."""
        return isinstance(value, (dict, list))

    @staticmethod
    def valid_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """Whether a value may be, or hold, a parameter."""
        return isinstance(value, (dict, list, mx.array)) and not key.startswith("_")

    @staticmethod
    def trainable_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """Whether a value may be, or hold, a parameter that is not frozen."""
        return (
            Module.valid_parameter_filter(module, key, value)
            and key not in module._no_grad
        )

    def filter_and_map(
        self,
        filter_fn: Filter,
        map_fn: Callable[[Any], Any] | None = None,
        is_leaf_fn: Filter | None = None,
    ) -> dict[str, Any]:
        """Select items and map them.

        Args:
            filter_fn: Called with module, key and value; whether to keep the
                item. Keys inside lists and dictionaries are dotted paths from
                the module that owns the container.
            map_fn: Applied to each leaf that is kept.
            is_leaf_fn: Called like `filter_fn`; whether to go no deeper. By
                default all but modules, dictionaries and lists are leaves.

        Returns:
            Nested dictionaries and lists of the mapped leaves. An item of a
            list or dictionary that is not kept leaves an empty dictionary.

        Raises:
            RuntimeError: If `is_leaf_fn` refuses something that has no items.

        Example:
            >>> import mlx.nn as nn
            >>> layer = nn.Linear(2, 3)
            >>> layer.filter_and_map(nn.Module.valid_parameter_filter, lambda a: a.ndim)
            {'weight': 2, 'bias': 1}
        """
        walk = _Walk(filter_fn, map_fn or _same, is_leaf_fn or _holds_nothing)
        return walk.module(self)

    def parameters(self) -> dict[str, Any]:
        """The tree of all parameters, sub-modules included.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Linear(2, 3).parameters()["weight"].shape
            (3, 2)
        """
        return self.filter_and_map(self.valid_parameter_filter)

    def trainable_parameters(self) -> dict[str, Any]:
        """The tree of all parameters that are not frozen.

        Example:
            >>> import mlx.nn as nn
            >>> list(nn.Linear(2, 3).freeze(keys="bias").trainable_parameters())
            ['weight']
        """
        return self.filter_and_map(self.trainable_parameter_filter)

    def children(self) -> dict[str, Any]:
        """The tree of direct sub-modules.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Sequential(nn.ReLU(), nn.Tanh()).children()
            {'layers': [ReLU(), Tanh()]}
        """
        return self.filter_and_map(
            self.valid_child_filter, is_leaf_fn=lambda m, k, v: isinstance(v, Module)
        )

    def leaf_modules(self) -> dict[str, Any]:
        """The tree of sub-modules that have no sub-modules themselves.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Sequential(nn.Sequential(nn.ReLU())).leaf_modules()
            {'layers': [{'layers': [ReLU()]}]}
        """

        def is_leaf(module: Module, key: str, value: Any) -> bool:
            return isinstance(value, Module) and not _child_list(value)

        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=is_leaf)

    def named_modules(self) -> list[tuple[str, Module]]:
        """The module and all below it with their dotted paths.

        A parent comes before its children, the last child first. A module that
        is used in several places is listed once for each.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Sequential(nn.ReLU(), nn.Tanh()).named_modules()[1:]
            [('layers.1', Tanh()), ('layers.0', ReLU())]
        """
        found: list[tuple[str, Module]] = []
        waiting: list[tuple[str, Module]] = [("", self)]
        while waiting:
            path, module = waiting.pop()
            found.append((path, module))
            prefix = f"{path}." if path else ""
            waiting.extend((prefix + name, m) for name, m in _child_list(module))
        return found

    def modules(self) -> list[Module]:
        """The module and all below it, in the order of `named_modules`.

        Example:
            >>> import mlx.nn as nn
            >>> len(nn.Sequential(nn.ReLU(), nn.Tanh()).modules())
            3
        """
        return [module for _, module in self.named_modules()]

    def update(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, parameters: dict[str, Any], strict: bool = True
    ) -> Module:
        """Replace parameters.

        Args:
            parameters: A tree like that of `parameters`, of all or some of
                them. Empty dictionaries and lists change nothing.
            strict: Whether what does not fit is an error or passed over.

        Returns:
            The module.

        Raises:
            ValueError: If `strict` and a name, position or type does not fit.

        Example:
            >>> import mlx.core as mx
            >>> import mlx.nn as nn
            >>> layer = nn.Linear(2, 2).update({"bias": mx.zeros((2,))})
            >>> layer.bias.tolist()
            [0.0, 0.0]
        """
        Replace("update", "parameter", "an array", strict, _fits_array).into(
            self, parameters
        )
        return self

    def update_modules(self, modules: dict[str, Any], strict: bool = True) -> Module:
        """Replace sub-modules.

        Args:
            modules: A tree like that of `children`, of all or some of them.
                Empty dictionaries and lists change nothing.
            strict: Whether what does not fit is an error or passed over.

        Returns:
            The module.

        Raises:
            ValueError: If `strict` and a name, position or type does not fit.

        Example:
            >>> import mlx.nn as nn
            >>> net = nn.Sequential(nn.ReLU(), nn.Tanh())
            >>> net.update_modules({"layers": [{}, nn.Sigmoid()]}).layers
            [ReLU(), Sigmoid()]
        """
        Replace("update_modules", "sub-module", "a module", strict, _fits_module).into(
            self, modules
        )
        return self

    def apply(
        self,
        map_fn: Callable[[mx.array], mx.array],
        filter_fn: Filter | None = None,
    ) -> Module:
        """Replace every parameter by a function of it.

        Args:
            map_fn: Gives the new array.
            filter_fn: Which items to take; by default all parameters.

        Returns:
            The module.

        Raises:
            ValueError: If `map_fn` does not return an array.

        Example:
            >>> import mlx.core as mx
            >>> import mlx.nn as nn
            >>> nn.Linear(2, 2).apply(lambda p: p.astype(mx.float16)).bias.dtype
            mlx.core.float16
        """
        filter_fn = filter_fn or self.valid_parameter_filter
        return self.update(self.filter_and_map(filter_fn, map_fn))

    def apply_to_modules(self, apply_fn: Callable[[str, Module], Any]) -> Module:
        """Call a function with the path of each module and the module.

        Args:
            apply_fn: Called for the module itself, whose path is empty, and for
                all below it, in the order of `named_modules`.

        Returns:
            The module.

        Example:
            >>> import mlx.nn as nn
            >>> net = nn.Sequential(nn.ReLU())
            >>> _ = net.apply_to_modules(lambda path, m: print(path, type(m).__name__))
             Sequential
            layers.0 ReLU
        """
        for path, module in self.named_modules():
            apply_fn(path, module)
        return self

    def freeze(
        self,
        *,
        recurse: bool = True,
        keys: str | list[str] | None = None,
        strict: bool = False,
    ) -> Module:
        """Take parameters out of training.

        Args:
            recurse: Whether to freeze in sub-modules too.
            keys: Names to freeze in each module; all by default. A name inside
                a list or dictionary is its dotted path.
            strict: Whether each of `keys` must be there, in any of the modules
                when `recurse` is true.

        Returns:
            The module.

        Raises:
            KeyError: If `strict` and one of `keys` is nowhere.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Linear(2, 2).freeze().trainable_parameters()
            {}
        """
        for module, names in self._named_for_freezing(recurse, keys, strict):
            module._no_grad.update(
                _own_parameter_names(module) if names is None else names
            )
        return self

    def unfreeze(
        self,
        *,
        recurse: bool = True,
        keys: str | list[str] | None = None,
        strict: bool = False,
    ) -> Module:
        """Put frozen parameters back into training.

        Args:
            recurse: Whether to do so in sub-modules too.
            keys: Names to unfreeze in each module; all by default.
            strict: Whether each of `keys` must be there, in any of the modules
                when `recurse` is true.

        Returns:
            The module.

        Raises:
            KeyError: If `strict` and one of `keys` is nowhere.

        Example:
            >>> import mlx.nn as nn
            >>> layer = nn.Linear(2, 2).freeze().unfreeze(keys="weight")
            >>> list(layer.trainable_parameters())
            ['weight']
        """
        for module, names in self._named_for_freezing(recurse, keys, strict):
            if names is None:
                module._no_grad.clear()
            else:
                module._no_grad.difference_update(names)
        return self

    def _named_for_freezing(
        self, recurse: bool, keys: str | list[str] | None, strict: bool
    ) -> list[tuple[Module, list[str] | None]]:
        """Each module with the names meant in it; None stands for all."""
        modules = self.modules() if recurse else [self]
        if keys is None:
            return [(module, None) for module in modules]
        names = [keys] if isinstance(keys, str) else list(keys)
        if not strict:
            return [(module, names) for module in modules]
        for name in names:
            if not any(_has(module, name) for module in modules):
                raise KeyError(
                    f"[Module.freeze] no such parameter: {name!r}. "
                    f"{type(self).__name__} has none of that name."
                )
        return [(m, [name for name in names if _has(m, name)]) for m in modules]

    def train(self, mode: bool = True) -> Module:
        """Switch the module and all below it to training mode.

        Args:
            mode: Training mode if true, evaluation mode if false.

        Returns:
            The module.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Dropout().train(False).training
            False
        """
        for module in self.modules():
            module._training = mode
        return self

    def eval(self) -> Module:
        """Switch the module and all below it to evaluation mode.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Dropout().eval().training
            False
        """
        return self.train(False)

    def set_dtype(
        self,
        dtype: mx.Dtype,
        predicate: Callable[[mx.Dtype], bool] | None = lambda d: mx.issubdtype(
            d, mx.floating
        ),
    ) -> None:
        """Cast parameters.

        Args:
            dtype: The new element type.
            predicate: Which element types to cast, by default all floating
                ones; None casts everything.

        Example:
            >>> import mlx.core as mx
            >>> import mlx.nn as nn
            >>> layer = nn.Linear(2, 2)
            >>> layer.set_dtype(mx.bfloat16)
            >>> layer.weight.dtype
            mlx.core.bfloat16
        """

        def cast_one(parameter: mx.array) -> mx.array:
            if predicate is None or predicate(parameter.dtype):
                return parameter.astype(dtype)
            return parameter

        self.apply(cast_one)

    def save_weights(self, file: str) -> None:
        """Save all parameters under their dotted paths.

        Args:
            file: A path that ends in .npz or .safetensors.

        Raises:
            ValueError: If the path ends in anything else.

        Example:
            >>> import mlx.nn as nn, os, tempfile
            >>> layer = nn.Linear(2, 2)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = os.path.join(folder, "layer.safetensors")
            ...     layer.save_weights(file)
            ...     layer.load_weights(file)
            Linear(input_dims=2, output_dims=2, bias=True)
        """
        path = str(file)
        weights = cast(
            "dict[str, mx.array]", tree_flatten(self.parameters(), destination={})
        )
        if path.endswith(".npz"):
            mx.savez(path, **weights)
        elif path.endswith(".safetensors"):
            mx.save_safetensors(path, weights)
        else:
            raise ValueError(
                f"[Module.save_weights] unknown kind of file: {path!r}. "
                "The name must end in .npz or .safetensors."
            )

    def load_weights(self, file_or_weights: Weights, strict: bool = True) -> Module:
        """Load parameters.

        Args:
            file_or_weights: A path that ends in .npz or .safetensors, or a list
                of pairs of dotted path and array.
            strict: Whether names and shapes must be exactly those of the
                module. If not, what has no place is passed over.

        Returns:
            The module.

        Raises:
            ValueError: If `strict` and a parameter is missing, unknown, of
                another shape or not an array; or the kind of file is unknown.
            RuntimeError: If the file cannot be read.

        Example:
            >>> import mlx.core as mx
            >>> import mlx.nn as nn
            >>> weights = [("weight", mx.ones((1, 2))), ("bias", mx.zeros((1,)))]
            >>> nn.Linear(2, 1).load_weights(weights)(mx.array([1.0, 2.0])).tolist()
            [3.0]
        """
        if isinstance(file_or_weights, list):
            weights = file_or_weights
        else:
            loaded = cast("dict[str, mx.array]", mx.load(str(file_or_weights)))
            weights = list(loaded.items())
        if strict:
            check_weights(self.parameters(), dict(weights))
        if weights:
            self.update(tree_unflatten(weights), strict=False)
        return self


def _same(value: Any) -> Any:
    return value


def _holds_nothing(module: Module, key: str, value: Any) -> bool:
    return not isinstance(value, (dict, list))


def _child_list(module: Module) -> list[tuple[str, Module]]:
    """Direct sub-modules with their paths from the module."""
    found = tree_flatten(module.children(), is_leaf=Module.is_module)
    return cast("list[tuple[str, Module]]", found)


def _own_parameter_names(module: Module) -> list[str]:
    """Paths of the parameters that belong to no sub-module."""

    def is_own(owner: Module, key: str, value: Any) -> bool:
        return not isinstance(value, Module) and owner.valid_parameter_filter(
            owner, key, value
        )

    return [name for name, _ in tree_flatten(module.filter_and_map(is_own))]


def _has(module: Module, name: str) -> bool:
    return name in module or name in _own_parameter_names(module)


class _Walk:
    """One traversal of a module by `Module.filter_and_map`."""

    def __init__(
        self, keep: Filter, map_fn: Callable[[Any], Any], is_leaf: Filter
    ) -> None:
        self._keep = keep
        self._map = map_fn
        self._is_leaf = is_leaf

    def module(self, module: Module) -> dict[str, Any]:
        return {
            key: self._value(module, key, value)
            for key, value in module.items()
            if self._keep(module, key, value)
        }

    def _value(self, owner: Module, key: str, value: Any) -> Any:
        if self._is_leaf(owner, key, value):
            return self._map(value)
        if isinstance(value, Module):
            return self.module(value)
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value)
            return {k: self._item(owner, f"{key}.{k}", v) for k, v in items.items()}
        if isinstance(value, list):
            entries = enumerate(cast("list[Any]", value))
            return [self._item(owner, f"{key}.{i}", v) for i, v in entries]
        raise RuntimeError(
            f"[Module.filter_and_map] not a leaf, but without items: {key!r}, "
            f"a {type(value).__name__}. is_leaf_fn must be true for it."
        )

    def _item(self, owner: Module, path: str, value: Any) -> Any:
        """An item of a list or dictionary; what is left out keeps its place."""
        return self._value(owner, path, value) if self._keep(owner, path, value) else {}


def _fits_array(old: Any, new: Any) -> bool | None:
    """For `Replace`: arrays may take the place of arrays."""
    if isinstance(old, mx.array):
        return isinstance(new, mx.array)
    return None if isinstance(new, (dict, list)) else False


def _fits_module(old: Any, new: Any) -> bool | None:
    """For `Replace`: modules may take the place of modules."""
    if isinstance(old, Module) and isinstance(new, Module):
        return True
    inside = isinstance(old, (dict, list)) and not isinstance(new, Module)
    return None if inside and isinstance(new, (dict, list)) else False
