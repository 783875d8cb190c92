# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # some names are given by, and others for, who sources it
# Sourced.  Hosts h1 to h4 on one machine, for as long as a script runs.
#
# A host is a network namespace with an address of its own on a bridge, a name, a /dev/shm and an /etc/hosts with all of
# them.  The bridge is in a namespace, too, so that nothing of it is seen outside; all processes are in a process
# namespace that ends with the script, however it ends, and takes everything along.
#
# A script that uses this sets `place`, a folder of its own below build/, and `mpis`, what it runs with by default.  It is run in three ways: as the user does it;
# with --inside, in those namespaces; with --host, as a host.

hosts=(h1 h2 h3 h4)
per_host=2
ranks=8

# outside [--page] [MPI]...: builds what is needed, runs the script inside, and puts what it says into the page.
outside() {
  local write=false code=0 script inside
  script=tools/$(basename "$0")
  if [ "${1:-}" = --page ]; then
    write=true
    shift
  fi
  [ "$(id -u)" = 0 ] || { say hosts "namespaces and mounts need root"; return 1; }
  (($#)) || set -- "${mpis[@]}"
  tools/build.sh release
  case " $* " in *5\ *) tools/mpis.sh ;; esac
  rm -rf "$place"
  mkdir -p "$place"
  step hosts "compile" compile_all "$@"
  unshare --net --mount --uts --ipc --pid --fork --kill-child --mount-proc "$script" --inside "$@" >"$place/text" &
  inside=$!
  trap 'kill -KILL '"$inside"' 2>/dev/null' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  tail --pid=$inside --lines=+1 --follow "$place/text" &
  wait $inside || code=$?
  trap - EXIT
  wait
  if ((code == 0)) && $write; then
    { machine; echo; cat "$place/text"; } >"$place/page"
    page docs/hosts.md "$script" "$place/page"
  fi
  return $code
}

# become_host NAME NUMBER SWITCH: what "$0 --host" does, in namespaces of its own; says so, and stays.
become_host() {
  local name=$1 number=$2 switch=$3
  hostname "$name"
  mount --bind "$place/shm/$name" /dev/shm
  mount --bind "$place/addresses" /etc/hosts
  ip link set lo up
  ip link add eth0 type veth peer name "to-$name" netns "$switch"
  ip address add "10.0.0.$number/24" dev eth0
  ip link set eth0 up
  nsenter --target "$switch" --net ip link set "to-$name" master bridge up
  echo $$ >"$place/$name.pid"
  exec sleep infinity
}

make_hosts() {
  local number name
  ip link set lo up
  ip link add bridge type bridge
  ip link set bridge up
  echo '127.0.0.1 localhost' >"$place/addresses"
  for number in "${!hosts[@]}"; do
    echo "10.0.0.$((number + 1)) ${hosts[number]}" >>"$place/addresses"
    mkdir -p "$place/shm/${hosts[number]}"
  done
  for number in "${!hosts[@]}"; do
    unshare --net --uts --mount --ipc "$0" --host "${hosts[number]}" $((number + 1)) $$ &
  done
  for name in "${hosts[@]}"; do
    timeout 20 sh -c "until [ -s '$place/$name.pid' ]; do sleep 0.1; done"
  done
}

# on NAME COMMAND...: on that host, in this folder.
on() {
  nsenter --target "$(cat "$place/$1.pid")" --net --uts --mount --ipc --wd="$PWD" "${@:2}"
}

# verdict TEXT CONDITION...: one line.  What is not as it should be counts in `failures`, and shows $place/err.
failures=0
verdict() {
  local text=$1
  shift
  if "$@"; then
    echo "  ok      $text"
  else
    echo "  FAILED  $text"
    failures=$((failures + 1))
    tail -n 20 "$place/err" | sed 's/^/    | /' >&2
  fi
}

is() { [ "$1" = "$2" ]; }
is_among() { [[ " ${*:2} " == *" $1 "* ]]; }

commlens() { PYTHONPATH=python .venv/bin/python -m commlens "$@"; }

# Some lines of the head of the report.
head_of() {
  local profile=$1
  shift
  commlens report "$profile" 2>&1 | grep -E "^($(tr ' ' '|' <<<"$*")) " | sed 's/^/  /'
}

# asked PROFILE SQL: the answer without its head, columns parted by a blank.
asked() { commlens sql --format csv "$@" | tail -n +2 | tr ',' ' '; }

# check_places PROFILE PRINTED: the profile says where each rank was, as hosts.c has printed it.
check_places() {
  local printed
  printed=$(cut -d ' ' -f 1,2 "$2")
  verdict "there are four hosts" is "$(cut -d ' ' -f 2 <<<"$printed" | uniq | paste -sd ' ')" "${hosts[*]}"
  verdict "every rank has the host it was on" is "$(asked "$1" "SELECT rank, node FROM rank ORDER BY rank")" "$printed"
}

# What commlens recover says of the ranks that left something, with its exit code: PROFILE FOLDER...
recovered() {
  local code=0 said
  said=$(commlens recover -o "$@" 2>/dev/null) || code=$?
  grep -oE '[0-9]+ of [0-9]+ ranks|missing: .*' <<<"$said" | paste -sd , | sed "s/,/, /g; s/\$/, exit code $code/"
}

# compile MPI PROGRAM: of tests/mpi/programs, to $place/PROGRAM.MPI
compile() {
  local mpi=$1 program=$2 source=tests/mpi/programs/$2.c wheel=build/mpis/$1
  case $mpi in
  openmpi | mpich) "mpicc.$mpi" -O1 -g "$source" -o "$place/$program.$mpi" -ldl ;;
  *)
    gcc -O1 -g "-I$wheel/include" "$source" -o "$place/$program.$mpi" "-L$wheel/lib" -lmpi "-Wl,-rpath,$ROOT/$wheel/lib" -ldl
    ;;
  esac
}

compile_all() {
  local mpi
  for mpi in "$@"; do
    compile "$mpi" hosts
    compile "$mpi" survive
  done
}
