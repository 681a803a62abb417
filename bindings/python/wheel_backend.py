"""Builds the wheel for ``pip install .`` (PEP 517), with CMake and nothing but the standard library: Debian 12 has no scikit-build-core.

    pip install .                                             builds in build/wheel
    pip install . --config-settings build-dir=build/release   takes what was built there

The wheel holds what ``cmake --install`` puts under a prefix: the module, and below the prefix of the environment the program, the library
that drives SimGrid, and the data. The libraries that it is linked with are the system's.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path("lib/python3/dist-packages")  # WINDTUNNEL_PYTHON_DESTINATION of bindings/python/CMakeLists.txt
NAME = "windtunnel"


def _version():
    return re.search(r"project\(windtunnel VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def _tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{re.sub('[-.]', '_', sysconfig.get_platform())}"


def _metadata():
    return (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {_version()}\n"
        "Summary: Predicts how long LLM training takes on a GPU cluster, and says why\n"
        "Requires-Python: >=3.9\nRequires-Dist: numpy\n"
    )


def _cmake(*arguments):
    subprocess.run(["cmake", *map(str, arguments)], check=True, cwd=ROOT)


def _build(folder):
    """Configures a folder of our own; one that the caller names is as it was configured."""
    if folder is None:
        folder = ROOT / "build/wheel"
        _cmake("-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DWINDTUNNEL_BENCHMARKS=OFF",
               f"-DPython_EXECUTABLE={sys.executable}", f"-DWINDTUNNEL_PYTHON_DESTINATION={PACKAGES}")
        _cmake("--build", folder, "--target", "windtunnel_installed", "--parallel", os.cpu_count() or 1)
    return folder


def _check_module(package):
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    if not (package / f"_windtunnel{suffix}").exists():
        raise SystemExit(f"the build has no module for this Python, _windtunnel{suffix}: are its headers and pybind11 installed?")


class _Wheel:
    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name)  # of 1980: the same files make the same wheel
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}\n")

    def close(self, info):
        self.archive.writestr(f"{info}/RECORD", "".join(self.record) + f"{info}/RECORD,,\n")
        self.archive.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = _build((config_settings or {}).get("build-dir"))
    release = f"{NAME}-{_version()}"
    file_name = f"{release}-{_tag()}.whl"
    with tempfile.TemporaryDirectory() as scratch:
        prefix = Path(scratch)
        _cmake("--install", build, "--prefix", prefix, "--component", "program")
        _check_module(prefix / PACKAGES / NAME)
        wheel = _Wheel(Path(wheel_directory) / file_name)
        for file in sorted(path for path in prefix.rglob("*") if path.is_file()):
            place = file.relative_to(prefix)
            in_packages = PACKAGES in place.parents
            name = place.relative_to(PACKAGES) if in_packages else Path(f"{release}.data/data") / place
            wheel.add(name.as_posix(), file.read_bytes(), file.stat().st_mode & 0o777)
    info = f"{release}.dist-info"
    wheel.add(f"{info}/METADATA", _metadata().encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: windtunnel\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode())
    wheel.close(info)
    return file_name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = Path(metadata_directory) / f"{NAME}-{_version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(_metadata())
    return info.name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("there is no source distribution: build from a checkout")
