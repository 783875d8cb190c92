# SPDX-License-Identifier: Apache-2.0
# Follows the rules of Spack's own packages (`spack style`).  make dist gives it the address and
# the checksum of the release.
from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.python import PythonExtension

from spack.package import *


class Commlens(CMakePackage, PythonExtension):
    """An MPI profiler that sees communicators. It records the calls of unmodified programs by
    communicator, procedure, message size, code region, call site and peer. One installation
    serves every MPI library: it is compiled without any, and takes the one of the program."""

    homepage = "@ADDRESS@"
    url = "@ADDRESS@/commlens-0.1.0.tar.xz"

    # MIT and blessing: sql.js and SQLite, with which the page reads a profile.
    license("Apache-2.0 AND MIT AND blessing")

    version("0.1.0", sha256="@SHA256@")

    import_modules = ["commlens"]

    variant("reader", default=True, description="Install the command commlens, in Python")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.18:", type="build")

    with when("+reader"):
        extends("python@3.9:")
        depends_on("py-click@8:", type="run")
        depends_on("py-numpy@1.21:", type="run")
        depends_on("py-rich@12:", type="run")

    # No depends_on("mpi"): the interfaces of all MPI libraries are part of the sources.

    def cmake_args(self):
        args = [self.define("COMMLENS_TESTS", False)]
        if self.spec.satisfies("+reader"):
            args.append(self.define("COMMLENS_READER", python_purelib))
            args.append(self.define("COMMLENS_PYTHON", self.spec["python"].command.path))
        return args

    def test_imports(self):
        """the modules of the reader can be imported"""
        if not self.spec.satisfies("+reader"):
            raise SkipTest("needs +reader")
        super().test_imports()

    def test_libraries(self):
        """commlens-run finds the library of each interface"""
        run = which("commlens-run", path=self.prefix.bin, required=True)
        for interface in ("openmpi", "mpich", "abi"):
            with test_part(self, f"test_libraries_{interface}", purpose=f"preload {interface}"):
                found = run("env", output=str, extra_env={"COMMLENS_MPI": interface})
                assert f"commlens/{interface}/libcommlens.so" in found

    def test_job(self):
        """commlens counts a job as it should"""
        if not self.spec.satisfies("+reader"):
            raise SkipTest("needs +reader")
        if not (which("mpicc") and which("mpirun")):
            raise SkipTest("needs mpicc and mpirun in PATH: load an MPI package first")
        commlens = which("commlens", path=self.prefix.bin, required=True)
        assert "all checks passed" in commlens("self-test", "--", "mpirun", "-n", "2", output=str)
