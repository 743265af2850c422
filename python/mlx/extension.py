"""Builds extensions in C++ with CMake, from a `setup.py`.

>>> from mlx import extension
>>> from setuptools import setup  # doctest: +SKIP
>>> setup(  # doctest: +SKIP
...     name="my_package",
...     ext_modules=[extension.CMakeExtension("my_package._ext")],
...     cmdclass={"build_ext": extension.CMakeBuild},
... )
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext

__all__ = ["CMakeBuild", "CMakeExtension"]

# Where CMake finds the package MLX. As the interpreter found it: in a build
# folder these files are links into the source.
_PACKAGE = Path(__file__).absolute().parent


class CMakeExtension(Extension):
    """An extension module that a `CMakeLists.txt` describes.

    Args:
        name: The module's full name, ``"package._ext"``. CMake's target has the
            last part of it.
        sourcedir: Where `CMakeLists.txt` is. Default: the current folder.
    """

    def __init__(self, name: str, sourcedir: str = "") -> None:
        super().__init__(name, sources=[])
        self.sourcedir = str(Path(sourcedir).absolute())


class CMakeBuild(build_ext):
    """The command `build_ext` for modules of type `CMakeExtension`.

    The environment is asked for ``CMAKE_ARGS`` (options for CMake, separated by
    spaces), ``DEBUG`` (1 for a debug build), ``CMAKE_GENERATOR`` and
    ``CMAKE_BUILD_PARALLEL_LEVEL``.
    """

    def build_extension(self, ext: CMakeExtension) -> None:  # pyright: ignore
        """Configures and builds one extension; its libraries come to lie where
        setuptools looks for the module."""
        target = Path(self.get_ext_fullpath(ext.name)).absolute().parent
        debug = bool(int(os.environ.get("DEBUG", "0"))) or bool(self.debug)
        options = [
            f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={target}",
            f"-DCMAKE_BUILD_TYPE={'Debug' if debug else 'Release'}",
            "-DBUILD_SHARED_LIBS=ON",
            # Libraries of one package find each other wherever it is moved to.
            "-DCMAKE_BUILD_RPATH=$ORIGIN",
            f"-DPython_EXECUTABLE={sys.executable}",
            *os.environ.get("CMAKE_ARGS", "").split(),
        ]
        jobs: list[str] = []
        if "CMAKE_BUILD_PARALLEL_LEVEL" not in os.environ:
            jobs = [f"-j{self.parallel or os.cpu_count() or 1}"]

        folder = (Path(self.build_temp) / ext.name).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"MLX_DIR": str(_PACKAGE)}
        for command in (
            ["cmake", ext.sourcedir, *options],
            ["cmake", "--build", ".", *jobs],
        ):
            subprocess.run(command, cwd=folder, env=environment, check=True)

    def run(self) -> None:
        """Builds all extensions. With ``--inplace`` all that was built beside a
        module is copied beside its sources, not the module alone."""
        super().run()
        if not self.inplace:
            return
        package_finder = self.get_finalized_command("build_py")
        for ext in self.extensions:
            package, _, _ = self.get_ext_fullname(ext.name).rpartition(".")
            source = Path(self.build_lib, *package.split("."))
            target = Path(package_finder.get_package_dir(package))
            for library in source.glob("*.so"):
                shutil.copy2(library, target / library.name)
