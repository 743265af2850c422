# Names that signatures of mlx.core use and only type checkers see.
mlx.core.__prefix__:
    \from collections.abc import Callable, Sequence
    \from typing import Any, ParamSpec, Protocol, TypeVar, Union
    P = ParamSpec("P")
    R = TypeVar("R")
    scalar = Union[int, float, bool, complex]
    list_or_scalar = Union[scalar, list[Any]]
    StreamOrDevice = Union[Stream, ThreadLocalStream, Device, DeviceType, None]

    class DLPackCompatible(Protocol):
        def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
        def __dlpack_device__(self) -> tuple[int, int]: ...


# What Python 3.12 and newer show of a type with a buffer; the stub is one for
# all versions.
mlx\.core\.array\.__(buffer|release_buffer)__:

