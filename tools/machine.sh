#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command as root on Linux for aarch64, in a virtual machine: as root, on Debian with Linux 6.7
# or later.
#   tools/machine.sh PAGE FOLDER COMMAND
#
# COMMAND is for bash.  Its output follows the lines about the steps before it, and its exit code is that of this script; 1
# also says that the machine ended before it.
#
# PAGE is the size of the machine's pages in KiB, 4 or 64: most systems for aarch64 have pages of 4 KiB, some have 64.
# QEMU translates each instruction, so that no machine with this processor is needed; the kernel is a real one, built
# with the options of tools/machine/kernel.config.  The system is Debian's, with Open MPI and MPICH, and has a copy of
# this checkout at its place, with build/aarch64.  COMMAND begins there.  FOLDER is shared with this machine, at the same
# path; whatever else COMMAND writes is gone afterwards.  EMULATED_FOLDER is where kernels and disks are kept: by default
# build/emulated.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/tools/step.sh"
usage "$@"
page=$1 shared=$(realpath "$2") command=$3
folder=$(realpath -m "${EMULATED_FOLDER:-$here/build/emulated}")
cd "$here"
# QEMU ends a path at a comma, the kernel's command line at a blank.
case $here$folder$shared in *[[:space:],]*)
  say machine "a path with a blank or comma: $here, $folder or $shared"
  exit 1
  ;;
esac
mkdir -p "$folder"
exec {lock}>"$folder/lock"
flock --nonblock "$lock" || { say machine "another machine of $folder is running" && exit 1; }
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

packages=libopenmpi-dev,openmpi-bin,libmpich-dev,mpich,gcc,g++,gfortran,cmake,python3-pytest,python3-click,python3-rich
packages+=,python3-numpy,python3-mpi4py,python3-venv,procps,mount,lammps

# Fails if an option is missing in the end, because one that it depends on is.
kernel() {
  local source=$folder/linux config=$PWD/tools/machine/kernel.config
  local make=(make -C "$source" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- --jobs "$(nproc)")
  rm -rf "$source" && mkdir "$source" &&
    tar --extract --file /usr/src/linux-source-6.12.tar.xz --directory "$source" --strip-components 1 &&
    { cat "$config" && echo "CONFIG_ARM64_${page}K_PAGES=y"; } >"$source/wanted" &&
    "${make[@]}" KCONFIG_ALLCONFIG="$source/wanted" allnoconfig &&
    if grep --invert-match --line-regexp --fixed-strings --file "$source/.config" "$source/wanted" | grep ^CONFIG; then
      return 1
    fi && "${make[@]}" Image && mv "$source/arch/arm64/boot/Image" "$folder/kernel-$page" && rm -rf "$source" &&
    kernel_of >"$folder/kernel-$page.of"
}

# What the kernel is made of.
kernel_of() {
  dpkg-query -W -f '${source:Upstream-Version}\n' linux-source-6.12 && cat tools/machine/kernel.config
}

root_folder() {
  rm -rf "$folder/aarch64"
  # The release of this machine, whose cross compilers compile for the same C and C++ libraries.
  tools/emulated.sh mmdebstrap --mode=root --arch=arm64 --variant=apt "--include=$packages" \
    "$release" "$folder/aarch64" &&
    echo "$release $packages" >"$folder/aarch64/commlens-has"
}

# With the checkout as it is now.
disk() {
  local copy=$folder/aarch64$PWD
  rm -rf "$copy" && mkdir -p "$copy" build/aarch64 &&
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory "$copy" &&
    cp --archive --parents build/aarch64 "$copy" && cp tools/machine/init.py "$folder/aarch64/commlens-init" &&
    truncate --size 4G "$folder/disk.new" && mke2fs -q -F -t ext4 -d "$folder/aarch64" "$folder/disk.new" &&
    mv "$folder/disk.new" "$folder/disk"
}

boot() {
  exec qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -accel tcg,thread=multi -smp 2 -m 4G -nographic -nic none \
    -no-reboot -kernel "$folder/kernel-$page" \
    -append "root=/dev/vda rw init=/commlens-init quiet panic=-1 commlens.shared=$shared commlens.at=$PWD" \
    -drive "file=$folder/disk,if=none,format=raw,id=disk,snapshot=on" -device virtio-blk-device,drive=disk \
    -fsdev "local,id=shared,path=$shared,security_model=none" -device virtio-9p-device,fsdev=shared,mount_tag=shared
}

tools/setup.sh processors
cmp --silent "$folder/kernel-$page.of" <(kernel_of) || step machine "Linux for aarch64, pages of $page KiB" kernel
[ "$(cat "$folder/aarch64/commlens-has" 2>/dev/null)" = "$release $packages" ] ||
  step machine "Debian's packages for aarch64" root_folder
step machine "disk" disk
echo "$command" >"$shared/command"
rm -f "$shared/status"
: >"$shared/output"
boot </dev/null >"$LOGS/machine-console.log" 2>&1 {lock}>&- &
machine=$!
trap 'kill "$machine" 2>/dev/null || true' EXIT
tail --lines +1 --follow "--pid=$machine" "$shared/output" &
wait "$!"
if [ ! -s "$shared/status" ]; then
  tail -n 20 "$LOGS/machine-console.log"
  say machine "the machine ended before its command: the end of its console is above"
  exit 1
fi
exit "$(cat "$shared/status")"
