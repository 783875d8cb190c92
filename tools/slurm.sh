#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts a Slurm with four nodes, and runs jobs of two ranks per node, without and with commlens.  One job ends normally,
# one is placed by a file of `commlens place`, one is measured by `commlens overhead`, and Slurm ends one at its time
# limit of a minute.
#     tools/slurm.sh [--page] [MPI]...     --page: writes the output into docs/hosts.md
# MPI: openmpi, mpich5 by default; mpich only if named, see tools/hosts.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/namespaces.sh

place=$ROOT/build/slurm
. tools/slurm_daemons.sh
limit=40 # time limit in seconds of a job that ends normally
mpis=(openmpi mpich5)
# Ranks on different nodes need TCP besides shared memory.
export OMPI_MCA_btl=self,vader,tcp

# submit LINE: runs a batch job.  Its id goes to `job`, its exit status to `code`, its output to $place/out and
# $place/err.
submit() {
  code=0
  job=$(on h1 sbatch --parsable --wait --nodes=4 --ntasks-per-node=$per_host --output="$place/out" --error="$place/err" \
    --wrap="$1" 2>>"$place/log/sbatch") || code=$?
}

# batch MPI COMMAND...: runs a batch job with this command.
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
  verdict "without commlens the job ends normally" is $code 0
  mv "$place/out" "$place/plain"
  COMMLENS_OUTPUT=$profile batch "$mpi" build/release/bin/commlens-run "$place/hosts.$mpi"
  verdict "with commlens it ends normally and prints the same" is "$code $(cat "$place/out")" "0 $(cat "$place/plain")"
  head_of "$profile" started where MPI time
  verdict "the profile has the job id, $job" is "$(asked "$profile" "SELECT value FROM meta WHERE key = 'job_id'")" "$job"
  check_places "$profile" "$place/plain"
}

# Runs the line that `commlens place --launcher slurm` prints, with a file that puts the ranks on the nodes in another
# order, with gaps between the ranks of a node.
are_placed() {
  local mpi=$1 line order=(h3 h1 h4 h1 h2 h4 h2 h3)
  line=$(PYTHONPATH=python .venv/bin/python - "$place/order" "${order[@]}" <<'PYTHON'
import sys
from pathlib import Path

from commlens.place import formats
from commlens.place.machine import Slot

file, *hosts = sys.argv[1:]
slots = [Slot(host) for host in hosts]
Path(file).write_text(formats.FORMATS["slurm"].write(slots))
print(formats.command("slurm", file, slots))
PYTHON
  )
  line=${line/ .\/app/ $place\/where.$mpi}
  SLURM_MPI_TYPE=$(interface "$mpi") submit "timeout $limit env $line"
  sort -n "$place/out" -o "$place/out"
  verdict "commlens place: ${line//$place\//} ends normally" is $code 0
  verdict "the ranks are where they were meant to be, ${order[*]}" is \
    "$(cut -d ' ' -f 2 "$place/out" | paste -sd ' ')" "${order[*]}"
}

# Measures in a batch script, with srun after `--`, as docs/guide/overhead.md describes.
is_measured() {
  local mpi=$1 table=$place/$1.csv
  PYTHONPATH=python submit "timeout 300 .venv/bin/python -m commlens overhead --runs 6 --to $table -- \
    srun --mpi=$(interface "$mpi") $place/hosts.$mpi"
  verdict "commlens overhead -- srun ends normally" is $code 0
  verdict "each of its runs had $ranks processes" is "$(tail -n +2 "$table" | cut -d , -f 3,4 | sort -u | paste -sd ' ')" \
    "baseline,$ranks commlens,$ranks"
}

# limited FOLDER MPI COMMAND...: runs a job without end, with a time limit.
limited() {
  local folder=$1 code=0
  mkdir -p "$folder/counts"
  on h1 timeout 300 srun --mpi="$(interface "$2")" --nodes=4 --ntasks-per-node=$per_host --time=1 \
    "${@:3}" "$folder/counts" pause >"$folder/out" 2>&1 </dev/null || code=$?
  echo $code >"$folder/code"
}

start_limited() {
  local mpi=$1
  limited "$place/$mpi-plain" "$mpi" "$place/survive.$mpi" &
  COMMLENS_OUTPUT=$place/$mpi/profile.db limited "$place/$mpi" "$mpi" build/release/bin/commlens-run "$place/survive.$mpi" &
}

# Recovers the job of each folder, from the copies beside its profile and the arenas on the nodes.
recover_all() {
  local folder copies
  for folder in "$@"; do
    # The name of the folder of crash copies ends in the id of the job.
    copies=("$folder"/commlens-arenas-*)
    commlens recover --job "${copies[0]##*-}" -o "$folder/profile.db" "$folder" "$place"/shm/h? \
      >>"$place/recovered" 2>&1 || true
  done
}

was_limited() {
  local mpi=$1 said profile=$place/$1/profile.db
  cp "$place/$mpi/out" "$place/err"
  said=$(grep -o 'DUE TO TIME LIMIT' "$place/err" | head -n 1)
  verdict "Slurm ended the job at its time limit" is "$said" "DUE TO TIME LIMIT"
  verdict "its exit status is $(cat "$place/$mpi/code"), as without commlens" is "$(cat "$place/$mpi/code")" \
    "$(cat "$place/$mpi-plain/code")"
  said=$(grep -F "$profile: " "$place/recovered" | grep -oE '[0-9]+ of [0-9]+ ranks|missing: .*' | paste -sd ' ')
  verdict "commlens recover: $said" is "$said" "$ranks of $ranks ranks"
  head_of "$profile" started where
  # When the first rank ends, srun kills the others.  A rank without time for a copy leaves its counters on the node.
  echo "  ends      $(asked "$profile" "SELECT COUNT(*), state FROM rank GROUP BY state ORDER BY 1 DESC" | paste -sd , |
    sed 's/,/, /g')"
  verdict "all recorded signals are SIGTERM" is \
    "$(asked "$profile" "SELECT DISTINCT state FROM rank WHERE state <> 'ended'")" SIGTERM
  verdict "every rank has its 20 calls of MPI_Allreduce" is "$(asked "$profile" \
    "SELECT DISTINCT calls FROM (SELECT SUM(calls) AS calls FROM counter WHERE operation = 'MPI_Allreduce' GROUP BY rank)")" 20
}

inside() {
  local mpi code=0 job='' working=()
  make_hosts
  configure_slurm
  start_slurm
  on h1 srun --version
  for mpi in "$@"; do
    echo "$mpi, srun --mpi=$(interface "$mpi")"
    if ends_well "$mpi"; then
      are_placed "$mpi"
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

# The first argument selects a part of this script; see tools/namespaces.sh.
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
