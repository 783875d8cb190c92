#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the code that runs inside every MPI call: it must not allocate, lock, enter the kernel or communicate.
#   tools/check_hot.sh [OBJECT...]   default: core/hot and the wrappers of every MPI, in build/release
#
# A forbidden function is an undefined symbol of the object file, even if a template calls it; `allowed` lists the
# permitted symbols.  generated/wrap_tool.cpp is not checked, because tools call MPI_T rarely, nor is
# generated/barriers.cpp, which is for COMMLENS_WAITING=barrier only.
# A wrapper must pass a call to another wrapper by a jump: after a call instruction, the other wrapper would take the
# first one for the application.
# Thread-local variables must be small: glibc has 1,664 bytes of them for all libraries that are loaded later.
set -euo pipefail
cd "$(dirname "$0")/.."

allowed=(
  # From the compiler and libc: the global offset table, copies of a few words, the clock (no system call on Linux).
  _GLOBAL_OFFSET_TABLE_ memcpy memmove memset clock_gettime
  # Exceptions of the application's callbacks unwind through the wrappers.
  commlens_personality
  # Our variables.
  api layouts calls_are_plain must_locate_calls clock_is_tsc comms current_thread files fortran_bindings next_definitions registry requests site_mask
  is_first_thread_alone has_error_handlers CallCache::none windows commlens_fortran_call
  # Functions of core/hot; core/mpi/fortran.cpp compares the caller with the address range of the Fortran binding.
  record RequestTable::find_further RequestTable::put_beside RequestTable::put_further locate
  pcontrol
  # The communication matrix.
  matrix_choice count_peer started_now
  # Samples of collectives: the first call of a stratum, and the calls that are sampled.
  strata add_stratum take_sample sample_counted count_sampled_late has_empty_block stop_sampling stop_stratum
  # Samples of collectives that do not block: the first operation of a channel, and those that are sampled.
  operations_of remember_sampled begin_started awaited_completed drop_operation stop_operations
  # Samples of messages: the first message of a channel, those that are sampled, and what ends the numbering.
  count_sampled_message take_message take_sent take_received take_completed credit_departure pass_message pass_arrival
  stop_messages forget_request
  # The call cache.
  count_arrival count_received_anew count_late slot_to_fill grow_call_cache
  # Calls that may go untimed: those that are timed choose the next one; rare ends of the others.
  timed_first plan_untimed count_untimed_late record_untimed take_untimed
  # Regions: counting, the first region of a thread, the first use of a name, and notices.
  pauses region_limits regions_are_closed loop_scale enter_regions meet_region too_deep end_of_another loop_of_iteration
  # The first value of a metric, with COMMLENS_METRIC_SERIES.
  add_series
  # Calls inside others.
  Thread::encloses Thread::is_mapped
  # Rare: the first call of an entry, a thread or a key; a longer array or more requests than ever before.
  commlens_bind commlens_bind_fortran enter_thread add_cell grow_scratch RequestTable::open_level
  # Rare: another stack of the thread got scratch memory of its own while MPI waited.
  keep_one_scratch
  # Rare: the first completion call for this set of communicators.
  Registry::set_of
  # Creation and freeing of persistent requests.
  remember_persistent free_persistent
  # The end of a time slice.
  end_slice_after_call end_slice_at_region
  # A thread that only records values, after commlens_reset().
  forget_before_value clears
  # First use and freeing of datatypes; creation, naming and freeing of communicators, windows and files; the first use of
  # a communicator whose creation commlens did not see; the variables of COMMLENS_TUNE around a creation.
  tunes_families begin_creation begin_inside end_creation
  late_layout known_layout basic_kind datatype_made before_type_free late_comm created made_in_callback creating creation_completed before_comm_free after_comm_free undo_comm_free name_comm identity::group
  identity::processes made_window before_win_free made_file before_file_close
  # Begin and end of the measurement.
  has_paths
  # Rare: the events of MPI_Init, with COMMLENS_COUNTERS.
  events_are_counted note_events
  handwritten::initialised handwritten::finalising handwritten::aborting handwritten::session_began handwritten::session_ending
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
  [[ $object == */wrap_tool.* || $object == */barriers.* ]] && continue
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
