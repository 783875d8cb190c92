# SPDX-License-Identifier: Apache-2.0
"""tools/setup.sh on machines that have, lack, or may not install what a build needs."""

from __future__ import annotations

from machine import Machine

BUILD = "cmake g++"
# Installing makes the commands appear, as a package would.
APT_GET = """
[[ " $* " == *" install "* ]] || exit 0
cd "${0%/*}"
for tool in g++ cmake mpicc.openmpi; do
  echo '#!/bin/bash' >$tool
  chmod +x $tool
done
"""


def debian(machine: Machine, user: int) -> None:
    """Make it a Debian machine without a compiler."""
    machine.shim("id", f"echo {user}")
    machine.shim("apt-get", APT_GET)
    machine.shim("apt-cache")
    (machine.bin / "chmod").symlink_to("/bin/chmod")


def test_a_machine_that_has_everything_is_left_alone(machine: Machine) -> None:
    debian(machine, user=0)
    for tool in ("g++", "cmake"):
        machine.shim(tool)
    result = machine.setup("build")
    assert (result.returncode, result.stdout) == (0, "")
    assert machine.calls("apt-get") == []


def test_an_mpicc_that_cannot_compile_counts_as_missing(machine: Machine) -> None:
    debian(machine, user=0)
    for tool in ("mpirun.openmpi", "mpirun.mpich", "mpicc.mpich"):
        machine.shim(tool)
    machine.shim("mpicc.openmpi", "exit 1")
    assert machine.setup("mpi").returncode == 0
    assert machine.calls("apt-get")[0].endswith("--no-install-recommends libopenmpi-dev")


def test_root_installs_what_is_missing(machine: Machine) -> None:
    debian(machine, user=0)
    result = machine.setup("build")
    assert result.returncode == 0, result.stdout
    assert machine.calls("apt-get")[0].endswith(f"install --no-install-recommends {BUILD}")
    assert result.stdout.startswith("setup   2 packages with apt-get")


def test_a_user_with_sudo_installs_through_it(machine: Machine) -> None:
    debian(machine, user=1000)
    machine.shim("sudo", 'while [[ $1 == -* ]]; do shift; done; "$@"')
    result = machine.setup("build")
    assert result.returncode == 0, result.stdout
    assert machine.calls("sudo")[-1].endswith(BUILD)
    assert len(machine.calls("apt-get")) == 1


def test_without_root_and_sudo_it_says_what_to_ask_for(machine: Machine) -> None:
    debian(machine, user=1000)
    result = machine.setup("build")
    assert result.returncode == 1
    assert f"setup   Install them, or ask for:  apt-get install {BUILD}\n" in result.stdout
    assert result.stdout.endswith(f"setup   cannot continue without {BUILD}\n")
    assert machine.calls("apt-get") == []


def test_a_sudo_that_wants_a_password_nobody_can_type_is_no_sudo(machine: Machine) -> None:
    debian(machine, user=1000)
    machine.shim("sudo", "exit 1")
    result = machine.setup("build")
    assert result.returncode == 1
    assert "Install them, or ask for:" in result.stdout


def test_a_system_without_apt_gets_the_same_words(machine: Machine) -> None:
    machine.shim("id", "echo 0")
    result = machine.setup("build")
    assert result.returncode == 1
    assert "module load" in result.stdout


def test_a_missing_application_does_not_stop_the_build(machine: Machine) -> None:
    machine.shim("id", "echo 1000")
    for tool in ("g++", "cmake"):
        machine.shim(tool)
    result = machine.setup("build", "demo")
    assert result.returncode == 0
    assert "missing: lammps openmpi-bin" in result.stdout


def test_old_package_lists_are_fetched_again_once(machine: Machine) -> None:
    debian(machine, user=0)
    machine.shim(
        "apt-get",
        'if [[ ! -e "$0.updated" ]]; then [[ "$*" == *update* ]] && : >"$0.updated" || exit 100; fi'
        + APT_GET,
    )
    result = machine.setup("build")
    assert result.returncode == 0, result.stdout
    assert [call.split()[-1] for call in machine.calls("apt-get")] == ["g++", "update", "g++"]


def test_a_package_this_distribution_lacks_is_named_and_left_out(machine: Machine) -> None:
    debian(machine, user=0)
    for tool in ("g++", "cmake", "mpirun.openmpi"):
        machine.shim(tool)
    machine.shim("apt-cache", '[[ "$2" != lammps ]]')
    result = machine.setup("build", "demo")
    assert result.returncode == 0
    assert "setup   this distribution has no lammps\n" in result.stdout
    assert [call.split()[-1] for call in machine.calls("apt-get")] == ["update"]


def test_an_installation_that_fails_shows_why_and_stops(machine: Machine) -> None:
    debian(machine, user=0)
    machine.shim("apt-get", "echo E: no space left; exit 100")
    result = machine.setup("build")
    assert result.returncode == 100
    assert "| E: no space left" in result.stdout
    assert "build/log/" in result.stdout
