"""Build hook: wheels contain the library of kernels if it was built; editable installations need Numba."""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "kic/kernels"


class LibraryHook(BuildHookInterface):
    """Hook that adds the library to wheels, with the tag of the platform; see `build.py`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Choose the files, the tag and the dependencies of a wheel."""
        spec = importlib.util.spec_from_file_location("library", Path(self.root, KERNELS, "library.py"))
        library = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(library)
        description, problem = library.described()
        if version == "editable":
            build_data["dependencies"] += self.metadata.core.optional_dependencies["jit"]
        if version == "editable" or not (description or problem):
            return
        if problem:
            raise RuntimeError(
                f"The library in {KERNELS} {problem}. Build it again, or delete {library.DESCRIPTION}."
            )
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"], build_data["pure_python"] = f"cp311-abi3-{platform}", False
        for name in (library.DESCRIPTION, description["file"]):
            build_data["force_include"][f"{KERNELS}/{name}"] = f"{KERNELS}/{name}"
