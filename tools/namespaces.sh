# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # some names are set by, and others for, the sourcing script
# Sourced.  Simulates hosts h1 to h4 on one machine while a script runs.
#
# A host is a network namespace with its own address on a bridge, name, /dev/shm and /etc/hosts.  The bridge is in a
# namespace, too, and therefore invisible from outside.  All processes are in a PID namespace.  It ends with the script,
# however the script ends, and the kernel then removes all processes and networks.
#
# A script that sources this sets `place`, its folder below build/, and `mpis`, its default MPI libraries.  It runs in
# three ways: as the user starts it; with --inside, in these namespaces; with --host, as a host.  `page_file` is the page for
# its output, docs/hosts.md if it is not set.

. tools/step.sh
. tools/page.sh
. tools/openmpi.sh

hosts=(h1 h2 h3 h4)
per_host=2
ranks=8

# outside [--page] [MPI]...: builds, runs the script with --inside, and with --page writes its output into the page.
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
  : >"$place/text" # tail does not wait for it
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
    page "${page_file:-docs/hosts.md}" "$script" "$place/page"
  fi
  return $code
}

# become_host NAME NUMBER SWITCH: the body of "$0 --host", in new namespaces.  Writes its process id and sleeps.
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

# on NAME COMMAND...: runs a command on a host, in this folder.
on() {
  nsenter --target "$(cat "$place/$1.pid")" --net --uts --mount --ipc --wd="$PWD" "${@:2}"
}

# verdict TEXT CONDITION...: prints one line.  If the condition fails, adds 1 to `failures` and prints $place/err.
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

# head_of PROFILE NAME...: prints these lines of the head of the report.
head_of() {
  local profile=$1
  shift
  commlens report "$profile" 2>&1 | grep -E "^($(tr ' ' '|' <<<"$*")) " |
    grep -v '^where  *communicator ' | sed 's/^/  /'
}

# asked PROFILE SQL: prints the rows without their heading, columns separated by a blank.
asked() { commlens sql --format csv "$@" | tail -n +2 | tr ',' ' '; }

# check_places PROFILE PRINTED: checks that the profile has the host of each rank that hosts.c printed.
check_places() {
  local printed
  printed=$(cut -d ' ' -f 1,2 "$2")
  verdict "the ranks ran on four hosts" is "$(cut -d ' ' -f 2 <<<"$printed" | uniq | paste -sd ' ')" "${hosts[*]}"
  verdict "the profile has the host of every rank" is "$(asked "$1" "SELECT rank, node FROM rank ORDER BY rank")" "$printed"
}

# recovered PROFILE FOLDER...: prints what commlens recover prints about ranks, and its exit code.
recovered() {
  local code=0 said
  said=$(commlens recover -o "$@" 2>/dev/null) || code=$?
  grep -oE '[0-9]+ of [0-9]+ ranks|missing: .*' <<<"$said" | paste -sd , | sed "s/,/, /g; s/\$/, exit code $code/"
}

# compile MPI PROGRAM: builds a program of tests/mpi/programs as $place/PROGRAM.MPI.
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
    compile "$mpi" hosts || return
    compile "$mpi" survive || return
    compile "$mpi" where || return
  done
}
