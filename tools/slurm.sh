#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs under a Slurm of our own with four nodes and two ranks on each, without and with commlens: one that ends well, one
# that is measured, and one that Slurm ends at its time limit, a minute.  With --page the answer goes into docs/hosts.md.
#     tools/slurm.sh [--page] [MPI]...     openmpi, mpich5; mpich by name only, see tools/hosts.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/page.sh
. tools/openmpi.sh
. tools/namespaces.sh

place=$ROOT/build/slurm
limit=40 # seconds a job may take that ends well
mpis=(openmpi mpich5)
export SLURM_CONF=$place/etc/slurm.conf
# Between nodes there is more than shared memory.
export OMPI_MCA_btl=self,vader,tcp

configure() {
  mkdir -p "$place"/{etc,state,run,log}
  chmod 755 "$place" "$place/run"
  (umask 077 && head -c 1024 /dev/urandom >"$place/etc/munge.key")
  cat >"$SLURM_CONF" <<CONF
ClusterName=commlens
SlurmctldHost=h1
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$place/run/munge.socket
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/run/%n
SlurmdPidFile=$place/run/%n.pid
SlurmctldPidFile=$place/run/slurmctld.pid
SlurmctldLogFile=$place/log/slurmctld
SlurmdLogFile=$place/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# Nodes have the processors this file says.
SlurmdParameters=config_overrides
ReturnToService=2
# Seconds between SIGTERM and SIGKILL.
KillWait=5
NodeName=h[1-4] CPUs=16 RealMemory=1000
PartitionName=all Nodes=ALL Default=YES
CONF
  # What takes no rights and no systemd; nothing uses it.
  echo "CgroupPlugin=cgroup/v1" >"$place/etc/cgroup.conf"
  # Where PMIx puts its sockets: by default where all nodes of one machine would meet.
  echo "PMIxCliTmpDirBase=/dev/shm" >"$place/etc/mpi.conf"
}

start() {
  local name tries
  munged --force --key-file="$place/etc/munge.key" --socket="$place/run/munge.socket" --pid-file="$place/run/munged.pid" \
    --log-file="$place/log/munged" --seed-file="$place/run/munged.seed"
  on h1 slurmctld
  for name in "${hosts[@]}"; do
    mkdir -p "$place/run/$name"
    on "$name" slurmd -N "$name"
  done
  for ((tries = 0; tries < 60; ++tries)); do
    [ "$(on h1 sinfo --noheader --Node --states=idle | wc -l)" = 4 ] && return
    sleep 1
  done
  echo "  FAILED  the nodes do not come up; see ${place#"$ROOT"/}/log"
  return 1
}

interface() {
  case $1 in openmpi) echo pmix ;; *) echo pmi2 ;; esac
}

# submit LINE: a batch job; its id goes to `job`, its exit status to `code`, what it prints as in launch.
submit() {
  code=0
  job=$(on h1 sbatch --parsable --wait --nodes=4 --ntasks-per-node=$per_host --output="$place/out" --error="$place/err" \
    --wrap="$1" 2>>"$place/log/sbatch") || code=$?
}

# batch MPI COMMAND...: one that runs this.
batch() {
  submit "timeout $limit srun --mpi=$(interface "$1") ${*:2}"
  sort -n "$place/out" -o "$place/out"
}

ends_well() {
  local mpi=$1 profile=$place/$1.db
  batch "$mpi" "$place/hosts.$mpi"
  if ((code == 124)); then
    echo "  skipped: without commlens it does not end in $limit s"
    return 1
  fi
  verdict "without commlens it ends well" is $code 0
  mv "$place/out" "$place/plain"
  COMMLENS_OUTPUT=$profile batch "$mpi" build/release/bin/commlens-run "$place/hosts.$mpi"
  verdict "with commlens it does so, too, and prints the same" is "$code $(cat "$place/out")" "0 $(cat "$place/plain")"
  head_of "$profile" started where MPI time
  verdict "the profile knows its job, $job" is "$(asked "$profile" "SELECT value FROM meta WHERE key = 'job_id'")" "$job"
  check_places "$profile" "$place/plain"
}

# As the guide says: in a batch script where it has its srun.
is_measured() {
  local mpi=$1 table=$place/$1.csv
  PYTHONPATH=python submit "timeout 120 .venv/bin/python -m commlens overhead --runs 2 --to $table -- \
    srun --mpi=$(interface "$mpi") $place/hosts.$mpi"
  verdict "commlens overhead -- srun ends well" is $code 0
  verdict "each of its runs had $ranks processes" is "$(tail -n +2 "$table" | cut -d , -f 3,4 | sort -u | paste -sd ' ')" \
    "baseline,$ranks commlens,$ranks"
}

# limited FOLDER MPI COMMAND...: a job that would go on for ever.
limited() {
  local folder=$1 code=0
  mkdir -p "$folder/counts"
  on h1 timeout 300 srun --mpi="$(interface "$2")" --nodes=4 --ntasks-per-node=$per_host --time=1 \
    "${@:3}" "$folder/counts" wait >"$folder/out" 2>&1 </dev/null || code=$?
  echo $code >"$folder/code"
}

start_limited() {
  local mpi=$1
  limited "$place/$mpi-plain" "$mpi" "$place/survive.$mpi" &
  COMMLENS_OUTPUT=$place/$mpi/profile.db limited "$place/$mpi" "$mpi" build/release/bin/commlens-run "$place/survive.$mpi" &
}

# All jobs at once, from the copies beside their profiles and what is still on the nodes.
recover_all() {
  commlens recover "$@" "$place"/shm/h? >"$place/recovered" 2>&1 || true
}

was_limited() {
  local mpi=$1 said profile=$place/$1/profile.db
  cp "$place/$mpi/out" "$place/err"
  said=$(grep -o 'DUE TO TIME LIMIT' "$place/err" | head -n 1)
  verdict "Slurm has ended it at its time limit" is "$said" "DUE TO TIME LIMIT"
  verdict "its exit status is $(cat "$place/$mpi/code"), as without commlens" is "$(cat "$place/$mpi/code")" \
    "$(cat "$place/$mpi-plain/code")"
  said=$(grep -F "$profile: " "$place/recovered" | grep -oE '[0-9]+ of [0-9]+ ranks|missing: .*' | paste -sd ' ')
  verdict "commlens recover: $said" is "$said" "$ranks of $ranks ranks"
  head_of "$profile" started where
  # The first to be ended makes srun kill the others: who has no time for a copy leaves its counters on the node.
  echo "  ends      $(asked "$profile" "SELECT COUNT(*), state FROM rank GROUP BY state ORDER BY 1 DESC" | paste -sd , |
    sed 's/,/, /g')"
  verdict "nobody says anything but SIGTERM" is \
    "$(asked "$profile" "SELECT DISTINCT state FROM rank WHERE state <> 'ended'")" SIGTERM
  verdict "every rank's 20 calls of MPI_Allreduce are there" is "$(asked "$profile" \
    "SELECT DISTINCT calls FROM (SELECT SUM(calls) AS calls FROM counter WHERE operation = 'MPI_Allreduce' GROUP BY rank)")" 20
}

inside() {
  local mpi code=0 job='' working=()
  make_hosts
  configure
  start
  on h1 srun --version
  for mpi in "$@"; do
    echo "$mpi, srun --mpi=$(interface "$mpi")"
    if ends_well "$mpi"; then
      is_measured "$mpi"
      working+=("$mpi")
    fi
  done
  for mpi in "${working[@]}"; do start_limited "$mpi"; done
  for mpi in "${working[@]}"; do
    timeout 300 sh -c "until [ -s '$place/$mpi/code' ] && [ -s '$place/$mpi-plain/code' ]; do sleep 1; done"
  done
  recover_all "${working[@]/#/$place/}"
  for mpi in "${working[@]}"; do
    echo "$mpi, a job without end, --time=1"
    was_limited "$mpi"
  done
  ((failures == 0))
}

# The first argument says which of its parts this is; see tools/namespaces.sh.
case ${1:-} in
--host)
  become_host "${@:2}"
  ;;
--inside)
  inside "${@:2}"
  ;;
*)
  tools/setup.sh build dev mpi hosts slurm
  outside "$@"
  ;;
esac
