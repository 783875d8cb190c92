#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Run one command as the first process of a virtual machine, then switch the machine off.

tools/machine.sh puts this program on the disk and starts the kernel with it. The kernel's command line has the folder
that the machine shares with its host, `commlens.shared=FOLDER`, and where to begin, `commlens.at=FOLDER`. The shared
folder has the file `command`, for bash; `output` and `status` are written there.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import traceback
from pathlib import Path

POWER_OFF = 0x4321FEDC
"""LINUX_REBOOT_CMD_POWER_OFF of <linux/reboot.h>."""
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def mount(kind: str, folder: str, source: str = "none", options: str = "") -> None:
    """Mount a file system; raise OSError where the kernel does not."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    arguments = [text.encode() for text in (source, folder, kind)]
    if LIBC.mount(*arguments, 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {kind} {folder}")


def set_up() -> None:
    """Do what an init system does: file systems, links in /dev, the loopback interface, and a name."""
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    for folder in ("/tmp", "/run", "/dev/shm"):
        mount("tmpfs", folder)
    mount("devpts", "/dev/pts")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        Path("/dev", name).symlink_to(f"/proc/self/fd/{number}")
    Path("/dev/fd").symlink_to("/proc/self/fd")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))
    socket.sethostname("machine")


def run(shared: Path, folder: str) -> int:
    """Run the command and return its exit code; meanwhile reap the processes whose parents have ended."""
    env = {"HOME": "/root", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    with (shared / "output").open("wb") as output:
        started = subprocess.Popen(
            ["bash", shared / "command"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=env,
            start_new_session=True,
        )
    while True:
        ended, status = os.wait()
        if ended == started.pid:
            return os.waitstatus_to_exitcode(status)


def main() -> None:
    """Set the machine up, run the command, and leave its exit code."""
    set_up()
    given = dict(word.split("=", 1) for word in Path("/proc/cmdline").read_text().split() if "=" in word)
    shared = given["commlens.shared"]
    mount("9p", shared, "shared", "trans=virtio,version=9p2000.L")
    code = run(Path(shared), given["commlens.at"])
    (Path(shared) / "status").write_text(f"{code}\n")


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # the first process must not end
        traceback.print_exc()
    os.sync()
    LIBC.reboot(POWER_OFF)
