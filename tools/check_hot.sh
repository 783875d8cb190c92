#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What runs inside every MPI call does not allocate, lock, enter the kernel or communicate.  A function that does shows
# as an undefined symbol of the object file, however deep in a template it was called; those we may ask for are here.
#   tools/check_hot.sh [OBJECT...]   default: the wrappers of every MPI and core/hot, as built in build/release
# What tools ask MPI_T is another matter: generated/wrap_tool.cpp is left out.
# A wrapper hands a call on to another by a jump, never by a call, which would be taken for the application's.
# And every thread of the program has a copy of the variables of a thread, out of the little room that glibc keeps for
# libraries loaded later: 1,664 bytes for all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

allowed=(
  # The compiler's and libc's: data of a shared object, a few words copied, the clock (no system call on Linux).
  _GLOBAL_OFFSET_TABLE_ memcpy memmove memset clock_gettime
  # Exceptions of a user's callback pass through.
  commlens_personality
  # Variables of ours.
  api layouts calls_are_plain clock_is_tsc comms current_thread files fortran_bindings next_definitions registry requests site_mask
  is_first_thread_alone CallCache::none windows commlens_fortran_call
  # core/hot calls itself; core/mpi/fortran.cpp compares the caller with where the Fortran binding lies.
  record RequestTable::find_further RequestTable::put_further from_fortran
  pcontrol
  # Peers.
  matrix_choice count_peer started_now
  # Calls like one before.
  count_arrival count_received_anew count_late slot_to_fill grow_call_cache
  # Regions: how they count, the first one of a thread and of a name, and what is odd about them.
  pauses region_limits regions_are_closed loop_scale enter_regions meet_region too_deep end_of_another loop_of_iteration
  # The first call of an entry, of a thread, with a key, with a longer array, with more requests than ever before.
  commlens_bind commlens_bind_fortran enter_thread add_cell grow_scratch RequestTable::open_level
  # The first completion of requests of these communicators together.
  Registry::set_of
  # Persistent requests are made and freed.
  remember_persistent free_persistent
  # A datatype is met or freed. Communicators, windows and files are made, named and freed; one we did not see being made is met.
  # A slice of time is over.
  slice_ended slice_over
  late_layout Thread::is_mapped datatype_made before_type_free late_comm created made_in_callback creating creation_completed before_comm_free after_comm_free undo_comm_free name_comm identity::group
  identity::processes made_window before_win_free made_file before_file_close
  # The measurement begins and ends.
  hand::initialised hand::finalising hand::aborting hand::session_began hand::session_ending
)

most_tls=1024

objects=("$@")
libraries=()
if ((${#objects[@]} == 0)); then
  mapfile -t libraries < <(find build/release/lib -name libcommlens.so | sort)
  mapfile -t objects < <(find build/release/CMakeFiles/wrappers_* build/release/CMakeFiles/core_hot.dir -name '*.o' | sort)
fi
if ((${#objects[@]} == 0)); then
  echo "check_hot: no object files: build first (make build)" >&2
  exit 1
fi

bad=0
for object in "${objects[@]}"; do
  [[ $object == */wrap_tool.* ]] && continue
  asked=$(nm --undefined-only --demangle "$object")
  while read -r symbol; do
    name=${symbol%%(*}
    name=${name#commlens::}
    [[ -z $name || " ${allowed[*]} " == *" $name "* ]] && continue
    echo "check_hot: $object asks for $symbol, which is not on the list of tools/check_hot.sh" >&2
    bad=$((bad + 1))
  done < <(sed -n 's/^ *[UwWvV] //p' <<<"$asked")
  while read -r wrapper; do
    echo "check_hot: $object calls $wrapper, where it should jump: is it compiled without -foptimize-sibling-calls?" >&2
    bad=$((bad + 1))
  done < <(objdump --disassemble --no-show-raw-insn "$object" |
    sed -nE 's/.*\bcallq? .*<_ZN8commlens12_GLOBAL__N_1[0-9]+(wrap_MPI_\w+)ILNS_5Entry[^+]*>$/\1/p' | sort -u)
done
for library in "${libraries[@]}"; do
  read -r _ _ _ _ _ bytes _ < <(readelf --program-headers --wide "$library" | grep '^ *TLS ')
  ((bytes <= most_tls)) && continue
  echo "check_hot: $library has $((bytes)) bytes of variables of a thread, more than $most_tls" >&2
  bad=$((bad + 1))
done
((bad == 0)) || exit 1
echo "check_hot: ${#objects[@]} object files ask for nothing but ${#allowed[@]} allowed symbols"
