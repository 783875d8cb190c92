#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts a Slurm with four nodes on which commlens measures every job, as docs/guide/site-wide.md describes, and runs a
# hundred jobs of two users: do they leave their profiles, does opting out work, and does a broken configuration stop none?
#     tools/site_wide.sh [--page]     --page: writes the output into docs/evidence/site-wide.md
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/namespaces.sh

place=$ROOT/build/site-wide
page_file=docs/evidence/site-wide.md
mpis=(openmpi mpich5)
cpus_of_host=2
# Jobs are still known when all have ended.
more_of_slurm_conf='MinJobAge=3600
SchedulerParameters=sched_interval=5,batch_sched_delay=1'
. tools/slurm_daemons.sh

compile_all() {
  local mpi
  for mpi in "$@"; do compile "$mpi" site_job || return; done
}

# An /etc of these namespaces only, with two users and without a configuration of commlens.
own_etc() {
  cp -a /etc "$place/etc-of-hosts"
  rm -f "$place/etc-of-hosts/commlens.conf" "$place/etc-of-hosts/ld.so.preload"
  printf '%s:x:%d:%d::%s:/bin/sh\n' alice 54321 54321 "$place/home/alice" bob 54322 54322 "$place/home/bob" \
    >>"$place/etc-of-hosts/passwd"
  printf '%s:x:%d:\n' alice 54321 bob 54322 >>"$place/etc-of-hosts/group"
  mount --bind "$place/etc-of-hosts" /etc
  mkdir -p "$place/home"
  install -d -o 54321 -g 54321 -m 700 "$place/home/alice"
  install -d -o 54322 -g 54322 -m 700 "$place/home/bob"
}

# Folders of these namespaces only: /tmp, and one on a disk that is full.
own_disks() {
  mount -t tmpfs -o mode=1777 tmp /tmp
  mkdir -p "$place/scratch/full"
  mount -t tmpfs -o mode=1777,size=4k full "$place/scratch/full"
  dd if=/dev/zero of="$place/scratch/full/file" bs=4k count=1 status=none
}

inside() {
  step site "install below ${place#"$ROOT"/}/opt" cmake --install build/release --prefix "$place/opt" >/dev/null
  own_etc
  own_disks
  make_hosts
  chmod 1777 "$place"/shm/h?
  configure_slurm
  start_slurm
  .venv/bin/python tools/site_wide.py "$place"
}

# The first argument selects a part of this script; see tools/namespaces.sh.
case ${1:-} in
--host)
  become_host "${@:2}"
  ;;
--inside)
  inside
  ;;
*)
  tools/setup.sh build dev mpi hosts slurm site
  outside "$@"
  ;;
esac
