#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs jobs on four hosts with two ranks each over TCP, without and with commlens.  One job ends normally; the ranks of
# another are killed.
#     tools/hosts.sh [--page] [MPI]...     --page: writes the output into docs/hosts.md
# MPI: openmpi, openmpi5, mpich5 by default.  mpich only if named: MPICH 4.0.2 mostly hangs in its own MPI_Finalize here.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/namespaces.sh

place=$ROOT/build/hosts
limit=40 # seconds a job may take
mpis=(openmpi openmpi5 mpich5)

# Creates the command that launchers use as ssh: runs a command line on a host, without the caller's environment.
make_remote_shell() {
  cat >"$place/remote-shell" <<SHELL
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec env -i PATH="\$PATH" HOME="\$HOME" nsenter --target "\$(cat "$place/\$host.pid")" --net --uts --mount --ipc \\
  --wd="\$PWD" sh -c "\$*"
SHELL
  chmod +x "$place/remote-shell"
}

# launch MPI COMMAND...: launches a command from the first host.  Its output goes to $place/out and $place/err, its exit
# status to `code`.
launch() {
  local mpi=$1 where wheel=build/mpis/$1/bin/mpirun shell=$place/remote-shell launcher
  where=$(printf ",%s:$per_host" "${hosts[@]}")
  where=${where#,}
  case $mpi in
  openmpi) launcher=(mpirun.openmpi --mca plm_rsh_agent "$shell" --mca btl "self,vader,tcp" --host "$where") ;;
  openmpi5) launcher=("$wheel" --prtemca plm_ssh_agent "$shell" --mca btl "self,sm,tcp" --map-by "ppr:$per_host:node"
    --host "$where") ;;
  mpich) launcher=(mpirun.mpich -launcher ssh -launcher-exec "$shell" -hosts "$where") ;;
  mpich5) launcher=("$wheel" -launcher ssh -launcher-exec "$shell" -hosts "$where") ;;
  esac
  code=0
  on h1 timeout --kill-after=5 $limit "${launcher[@]}" -n "$ranks" "${@:2}" >"$place/out" 2>"$place/err" </dev/null || code=$?
  sort -n "$place/out" -o "$place/out"
}

ends_well() {
  local mpi=$1 profile=$place/$1.db
  launch "$mpi" "$place/hosts.$mpi"
  if ((code == 124)); then
    echo "  skipped: without commlens it does not end in $limit s"
    return 1
  fi
  verdict "without commlens the job ends normally" is $code 0
  mv "$place/out" "$place/plain"
  COMMLENS_OUTPUT=$profile launch "$mpi" build/release/bin/commlens-run "$place/hosts.$mpi"
  verdict "with commlens it ends normally and prints the same" is "$code $(cat "$place/out")" "0 $(cat "$place/plain")"
  head_of "$profile" where MPI time
  check_places "$profile" "$place/plain"
}

# Kills all ranks of the job that counts in folder $1, as soon as all of them count.  survive.c writes the process id and
# the state of each rank there.
kill_ranks() {
  local rank pid ready pids=()
  for ((rank = 0; rank < ranks; ++rank)); do
    ready=0
    until ((ready)); do
      sleep 0.1
      read -r pid ready < <(od -An -t d8 -N 16 "$1/$rank" 2>/dev/null) || ready=0
    done
    pids+=("$pid")
  done
  kill -KILL "${pids[@]}"
}

# kill_job FOLDER MPI COMMAND...
kill_job() {
  local counts=$1 killer
  mkdir -p "$counts"
  kill_ranks "$counts" &
  killer=$!
  launch "${@:2}" "$counts" run
  kill $killer 2>/dev/null || true
  wait $killer 2>/dev/null || true
}

is_killed() {
  local mpi=$1 try name said left=() codes=() counts=$place/$1
  # Hydra's exit status depends on which of its proxies reports first, which is random.
  for try in 1 2 3; do
    kill_job "$counts/plain$try" "$mpi" "$place/survive.$mpi"
    codes+=("$code")
  done
  rm -rf "$place"/shm/h?/*
  COMMLENS_OUTPUT=$counts/profile.db kill_job "$counts/under" "$mpi" build/release/bin/commlens-run "$place/survive.$mpi"
  verdict "SIGKILL to all ranks: exit status $code; without commlens, three times: ${codes[*]}" is_among "$code" "${codes[@]}"
  for name in "${hosts[@]}"; do
    left+=("$(find "$place/shm/$name" -name 'commlens-*.arena' | wc -l) on $name")
  done
  verdict "counters of ${left[*]}" is "${left[*]}" "$(printf " $per_host on %s" "${hosts[@]}" | cut -c 2-)"
  said=$(recovered "$counts/all.db" "$place"/shm/h?)
  verdict "commlens recover, all hosts: $said" is "$said" "$ranks of $ranks ranks, exit code 0"
  check_places "$counts/all.db" "$place/plain"
  said=$(recovered "$counts/three.db" "$place"/shm/h[124])
  verdict "commlens recover, without h3: $said" is "$said" "6 of 8 ranks, missing: 4-5, exit code 3"
}

inside() {
  local mpi code=0
  make_remote_shell
  make_hosts
  for mpi in "$@"; do
    echo "$mpi"
    if ends_well "$mpi"; then is_killed "$mpi"; fi
  done
  ((failures == 0))
}

# The first argument selects a part of this script; see tools/namespaces.sh.
case ${1:-} in
--host)
  become_host "${@:2}"
  ;;
--inside)
  inside "${@:2}"
  ;;
*)
  tools/setup.sh build dev mpi hosts
  outside "$@"
  ;;
esac
