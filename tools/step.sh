# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the other scripts here.  Prints one line per step:
#
#     build   release                                                  23 s
#
# The output of the step goes to a file in build/log/.  If the step fails, the end of this file and its path follow.
# With STEPS_BESIDE=1 other steps run meanwhile, so that the line is printed as a whole at the end.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOGS=$ROOT/build/log
mkdir -p "$LOGS"

# step AREA LABEL COMMAND...: runs COMMAND without standard input and returns its exit code.  Bash does not end a function
# that runs as COMMAND at the first command that fails: such a function says "|| return" itself.
step() {
  local area=$1 label=$2 code=0 begin=$SECONDS log result
  shift 2
  log=$LOGS/$area-$(tr -cs 'a-zA-Z0-9\n' '-' <<<"$label").log
  [ -n "${STEPS_BESIDE:-}" ] || printf '%-8s%-56s ' "$area" "$label"
  "$@" >"$log" 2>&1 </dev/null || code=$?
  if ((code == 0)); then
    result=$(printf '%5d s' $((SECONDS - begin)))
    # For tools/summary.py, while tools/test.sh runs.
    [ ! -d "$ROOT/build/results" ] || printf '%s\t%s\t%d\n' "$area" "$label" $((SECONDS - begin)) >>"$ROOT/build/results/steps.tsv"
  else
    result=$(printf ' failed\n' && tail -n 40 "$log" | sed 's/^/    | /' &&
      printf '%-8swhole output: %s' '' "${log#"$ROOT"/}")
  fi
  if [ -n "${STEPS_BESIDE:-}" ]; then result=$(printf '%-8s%-56s ' "$area" "$label")$result; fi
  printf '%s\n' "$result"
  return $code
}

# usage [--help ...]: prints the comment at the beginning of the script and ends it, if --help is its first argument.
usage() {
  case ${1:-} in --help | -h) ;; *) return 0 ;; esac
  sed -n '3,$ { /^#/!q; s/^# \{0,1\}//; p; }' "$ROOT/tools/${0##*/}"
  exit
}

# say AREA TEXT...: prints one line in the same columns.
say() {
  local area=$1
  shift
  printf '%-8s%s\n' "$area" "$*"
}
