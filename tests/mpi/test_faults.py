# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong: the application's output and exit code are those of a run without us, and nothing hangs.

A launch that does not end within its timeout fails in harness.launch().
"""

from __future__ import annotations

import re
import signal
import stat
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import SANITIZER, Mpi, small_file_system
from launches import Result
from profile_rows import Profile

# Launchers report a death with process ids in it; these lines are the programs' own.
_OWN = re.compile(r"^(sum|child|before|after|handlers|caught|no such|done|tool|\d+$|many)")


def own(result: Result) -> list[str]:
    """Return the program's own output."""
    return [line for line in result.lines if _OWN.match(line)]


def test_it_measures_at_all(mpi: Mpi) -> None:
    """The tests below would pass with no library at all; this one would not."""
    result = mpi.run(2, [mpi.compile("faults.c"), "nothing"])
    assert (result.rc, own(result), len(result.said)) == (0, ["sum 2"], 1)
    assert result.open().total("MPI_Allreduce")[0] == 20


def _outputs_that_cannot_be(where: Path) -> dict[str, Path]:
    (where / "file").write_text("not a directory\n")
    return {
        "no such directory": where / "absent" / "deeper" / "x.db",
        "below a file": where / "file" / "x.db",
        "read-only file system": Path("/proc/x.db"),
        "name too long": where / ("x" * 300 + ".db"),
    }


def _run_with_second(mpi: Mpi, ranks: int, where: Path, profile: Path, *argv: str | Path) -> Result:
    """Run a program whose ranks write their profile to where/second if its own place has no room.

    Their launcher has another TMPDIR, because it needs room of its own.
    """
    (where / "second").mkdir()
    command = ["env", f"TMPDIR={where / 'second'}", mpi.runner, *argv]
    return mpi.run(ranks, command, profile=profile, mode="link", cwd=where)


def _left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.mark.dealt
@pytest.mark.parametrize(
    "why", ["no such directory", "below a file", "read-only file system", "name too long"]
)
def test_unwritable_output(mpi: Mpi, why: str) -> None:
    where = mpi.fresh("unwritable")
    output = _outputs_that_cannot_be(where)[why]
    result = _run_with_second(mpi, 2, where, output, mpi.compile("listing1.c"))
    assert (result.rc, result.stdout) == (0, "160\n"), result
    assert len(result.said) == 1, result.said
    assert _left(where) == {"file", "second"}
    if why == "name too long":
        begin = f"commlens: no profile: cannot create {output}.tmp."
        end = ": File name too long. The counters are kept on the nodes; run 'commlens recover' there"
        assert _left(where / "second") == set()
    else:
        begin = f"commlens: cannot create {output}.tmp."
        end = f"; the profile is in {where / 'second' / 'x.db'}"
        assert _left(where / "second") == {"x.db"}
        Profile(where / "second" / "x.db").check()
    assert result.said[0].startswith(begin)
    assert result.said[0].endswith(end)


def test_full_file_system(mpi: Mpi) -> None:
    where = mpi.fresh("full")
    with small_file_system(where) as full:
        result = _run_with_second(mpi, 4, where, full / "x.db", mpi.compile("comms.c"), "many", "1000")
        assert (result.rc, result.stdout) == (0, "many done\n"), result
        assert len(result.said) == 1, result.said
        assert result.said[0].startswith(f"commlens: cannot write {full / 'x.db'}.tmp.")
        second = where / "second" / "x.db"
        assert result.said[0].endswith(f": No space left on device; the profile is in {second}")
        assert list(full.iterdir()) == [], "what was begun is removed"
    assert _left(where / "second") == {"x.db"}
    Profile(second).check()


def test_file_size_limit(mpi: Mpi) -> None:
    """Past RLIMIT_FSIZE the kernel sends SIGXFSZ, which ends a program that does not expect it."""
    where = mpi.fresh("limit")
    result = _run_with_second(mpi, 2, where, where / "x.db", mpi.compile("faults.c"), "limit")
    assert (result.rc, own(result)) == (0, ["after 0", "after 0", "sum 2"]), result
    assert len(result.said) == 1, result.said
    assert re.fullmatch(
        rf"commlens: no profile: cannot write {where}/x.db.tmp.\S+: File too large; "
        rf"cannot write {where}/second/x.db.tmp.\S+: File too large. "
        "The counters are kept on the nodes; run 'commlens recover' there", result.said[0],
    )  # fmt: skip
    assert _left(where) == {"second"}, "what was begun is removed"
    assert _left(where / "second") == set(), "what was begun is removed"


@pytest.mark.skipif(
    SANITIZER is not None, reason="the sanitizer looks at memory by means of a file descriptor"
)
def test_no_file_descriptor_is_left(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("faults.c"), "no_files"])
    assert (under.rc, own(under)) == (plain.rc, own(plain))
    assert len(under.said) == 1, under.said


def test_a_file_that_took_the_place_of_stderr(mpi: Mpi) -> None:
    where = [mpi.fresh("stderr") for _ in range(2)]
    program = mpi.compile("faults.c")
    plain = mpi.run(2, [program, "no_stderr"], mode="off", cwd=where[0])
    under = mpi.run(2, [program, "no_stderr"], cwd=where[1])
    assert (under.rc, own(under)) == (plain.rc, own(plain))
    for name in ("data.0", "data.1"):
        assert (where[1] / name).read_text() == (where[0] / name).read_text() == "data\n"
    under.open().check()


def test_existing_files_are_not_overwritten(mpi: Mpi) -> None:
    where = mpi.fresh("existing")
    (where / "x.db").write_text("mine\n")
    program = mpi.compile("listing1.c")
    for name in ("x.1.db", "x.2.db"):
        result = mpi.run(2, [program], profile=where / "x.db", cwd=where)
        assert (result.rc, result.stdout) == (0, "160\n")
        assert name in result.said[0]
        assert Profile(where / name).rows("SELECT COUNT(*) AS n FROM rank") == [{"n": 2}]
    assert (where / "x.db").read_text() == "mine\n"
    assert sorted(path.name for path in where.iterdir() if path.name[0] != ".") == [
        "x.1.db",
        "x.2.db",
        "x.db",
    ]


def test_jobs_that_end_at_once_take_different_names(mpi: Mpi) -> None:
    where = mpi.fresh("jobs")
    program = mpi.compile("listing1.c")
    n_jobs = 6

    def job(_: int) -> Result:
        # Without `profile=`, as the harness removes that file before it repeats a launch; another job may have written it.
        return mpi.run(1, [program], {"COMMLENS_OUTPUT": str(where / "x.db")}, cwd=mpi.fresh("job"))

    with ThreadPoolExecutor(n_jobs) as pool:
        results = list(pool.map(job, range(n_jobs)))
    assert [result.rc for result in results] == [0] * n_jobs, results
    names = sorted(path.name for path in where.iterdir())
    # a repeated launch leaves one profile more
    assert names == sorted(["x.db", *(f"x.{i}.db" for i in range(1, max(n_jobs, len(names))))])
    for name in names:
        Profile(where / name).check()
    # each line names the file that this job wrote
    written = {re.search(r"x[.\d]*\.db", result.said[0])[0] for result in results}  # type: ignore[index]
    assert len(written) == n_jobs
    assert written <= set(names)


def test_the_profile_is_as_readable_as_any_new_file(mpi: Mpi) -> None:
    where = mpi.fresh("mode")
    result = mpi.run(
        2,
        ["sh", "-c", 'umask 027; exec "$0" "$1"', mpi.runner, mpi.compile("listing1.c")],
        mode="link",
        cwd=where,
    )
    assert result.rc == 0
    assert stat.S_IMODE(result.profile.stat().st_mode) == 0o640


def test_a_relative_name_starts_where_the_program_started(mpi: Mpi) -> None:
    where = mpi.fresh("chdir")
    result = mpi.run(2, [mpi.compile("faults.c"), "chdir"], profile=Path("relative.db"), cwd=where)
    assert (result.rc, own(result)) == (0, ["sum 2"])
    assert (where / "relative.db").is_file(), result
    assert Profile(where / "relative.db").meta()["working_directory"] == str(where)


@pytest.mark.parametrize(
    "case",
    ["exit0", "exit3", "_exit0", "return", "one_exits", "abort", "late_abort", "segv", "late_segv", "kill"],
)
def test_ends_without_finalize(mpi: Mpi, case: str) -> None:
    program = mpi.compile("faults.c")
    plain, under = mpi.pair(2, [program, case], timeout=40)
    assert own(under) == own(plain) == ["sum 2"]
    # How MPICH ends a rank that just leaves depends on which of the two is first: then any of its codes will do.
    assert under.rc == plain.rc or (mpi.hydra and under.rc in _codes(mpi, case)), under
    # at most one line from each rank that is concerned
    assert len(under.said) == len(set(under.said)) <= 2, under.said
    assert not under.profile.exists(), "half a profile"


def _codes(mpi: Mpi, case: str) -> set[int]:
    return mpi.codes() | {mpi.run(2, [mpi.compile("faults.c"), case], mode="off").rc for _ in range(8)}


def test_calls_before_init_and_after_finalize(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("faults.c"), "outside"])
    assert (under.rc, own(under)) == (plain.rc, own(plain))
    assert len(own(under)) == 5
    under.open().check()


@pytest.mark.parametrize("case", ["init_twice", "finalize_twice"])
def test_init_or_finalize_twice(mpi: Mpi, case: str) -> None:
    plain, under = mpi.pair(2, [mpi.compile("faults.c"), case])
    assert own(under) == own(plain)
    assert "sum 2" in own(plain)
    assert under.rc in mpi.codes(plain.rc)
    # what was finalised before the second time was measured
    assert under.profile.exists() == (case == "finalize_twice")


def test_exit_code_after_finalize(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("faults.c"), "return5"])
    assert (under.rc, own(under)) == (plain.rc, own(plain)) == (5, ["sum 2"])
    under.open().check()


# Calls of programs/errors.c that end a program on this MPI whoever watches.
_DEADLY = {"openmpi": "3 5 10 26 30 46 47 57", "mpich": "27 55 56 57 58 59 71"}


def test_errors_stay_what_they_are(mpi: Mpi) -> None:
    program = mpi.compile("errors.c", flags=("-w",))
    plain, under = mpi.pair(1, [program, *_DEADLY[mpi.name].split()])
    assert (plain.rc, plain.stdout.splitlines()[-1]) == (0, "78 calls"), plain
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout)
    assert len(under.said) == 1, under.said
    profile = under.open()
    profile.check()
    assert profile.calls("MPI_Barrier") == {"d0.1": {0: 1}}
    # Each is counted, as often as it was called, and those that failed moved no bytes.
    called = Counter(re.findall(r"^\d+ (MPI_\w+)\(.*\): -?\d+$", plain.stdout, re.MULTILINE))
    called += Counter({"MPI_Comm_set_errhandler": 2, "MPI_Error_class": called.total()})
    assert Counter({op: profile.total(op)[0] for op in called}) == called
    assert sum(count.calls for count in profile.counts()) == called.total()
    assert {count.op for count in profile.counts() if count.sent or count.received} == set()


def test_forked_children_write_nothing(mpi: Mpi) -> None:
    where = mpi.fresh("fork")
    result = mpi.run(2, [mpi.compile("faults.c"), "fork"], cwd=where)
    assert (result.rc, own(result)) == (0, ["child 11", "child 12", "child 13", "sum 2", "sum 2"]), result
    assert len(result.said) == 1, result.said
    assert [path.name for path in where.iterdir() if path.name[0] != "."] == ["profile.db"]
    assert result.open().total("MPI_Allreduce")[0] == 30


def test_only_signals_that_end_a_process_have_our_handlers_and_the_umask_stays(mpi: Mpi) -> None:
    """What handles a signal is still there; ours are where it would end the process."""
    plain, under = (own(result) for result in mpi.pair(2, [mpi.compile("faults.c"), "handlers"]))
    ours = {"HUP", "INT", "QUIT", "TERM", "XCPU", "ABRT", "SEGV", "BUS", "FPE", "ILL", "SYS"}
    taken = sum(1 << signal.Signals[f"SIG{name}"] for name in ours)
    for without, with_us in zip(plain, under, strict=True):
        if not without.startswith("handlers "):
            assert with_us == without
            continue
        _, before, *umask = without.split()
        _, after, *umask_after = with_us.split()
        assert int(after, 16) & ~taken == int(before, 16) & ~taken
        assert int(after, 16) & int(before, 16) == int(before, 16)
        assert umask_after == umask


def test_a_communicator_that_cannot_be_made_is_not_asked_for_anything(mpi: Mpi) -> None:
    """What MPI_Comm_idup leaves behind when its request fails may be no communicator."""
    if SANITIZER is not None and mpi.name == "openmpi":
        pytest.skip(
            "Open MPI 4.1 receives into what it has freed when the request failed, without commlens, too"
        )
    plain, under = mpi.pair(2, [mpi.compile("faults.c"), "idup_to_the_end"], timeout=600)
    assert (under.rc, own(under)) == (plain.rc, own(plain))
    assert "failed 1" in plain.stdout
    under.open().check()


def test_a_collective_that_only_one_rank_has_begun_does_not_keep_us_waiting(mpi: Mpi) -> None:
    """Messages of commlens on MPI_COMM_WORLD would wait forever: the ranks collect through files."""
    plain, under = mpi.pair(3, [mpi.compile("faults.c"), "one_sided_barrier"])
    assert (under.rc, own(under)) == (plain.rc, own(plain))
    profile = under.open()
    profile.check()
    assert profile.meta()["ranks_collected"] == "3"
    assert profile.calls("MPI_Ibarrier") == {"W0.0": {0: 1}}


@pytest.mark.parametrize("mode", ["run", "preload", "link"])
def test_an_exception_flies_through_us(mpi: Mpi, mode: str) -> None:
    plain = mpi.run(2, [mpi.compile("throws.cpp")], mode="off")
    result = mpi.run(2, [mpi.compile("throws.cpp", link=mode == "link")], mode=mode)
    assert (result.rc, result.stdout) == (plain.rc, plain.stdout) == (0, "no such rank\ncaught 5, sum 2\n"), (
        result
    )
    profile = result.open()
    profile.check()
    # what comes after the exception is an outermost call again
    assert profile.calls("MPI_Allreduce") == {"d0.1": {0: 5, 1: 5}}
    assert profile.calls("MPI_Barrier") == {"d0.1": {0: 5, 1: 5}}
    assert profile.total("MPI_Comm_free")[0] == 2


@pytest.mark.parametrize("order", ["in front", "behind", "inside"])
def test_another_tool_sees_every_call_once_and_so_do_we(mpi: Mpi, order: str) -> None:
    """Preloaded before or after us, or linked into the program."""
    if order == "inside":
        source = Path(__file__).parent / "programs" / "count_sends.c"
        result = mpi.run(2, [mpi.compile("tool_target.c", None, source)])
    else:
        tool = mpi.compile("count_sends.c", "c", shared=True)
        libraries = [tool, mpi.library] if order == "in front" else [mpi.library, tool]
        result = mpi.run(2, [mpi.compile("tool_target.c")], mode="preload", preload=libraries)
    # Counted, not compared line by line: a launcher may put the output of two ranks on one line.
    said = (
        result.stdout.count("tool saw 3 sends"),
        result.stdout.count("tool saw"),
        result.stdout.count("done"),
    )
    assert (result.rc, *said) == (0, 2, 2, 1), result
    assert len(result.said) == 1
    profile = result.open()
    profile.check()
    assert profile.calls("MPI_Send") == {"W0.0": {0: 3, 1: 3}}
    assert profile.calls("MPI_Recv") == {"W0.0": {0: 3, 1: 3}}


@pytest.mark.parametrize("how", ["LD_PRELOAD", "commlens-run"])
@pytest.mark.parametrize("other", ["openmpi", "mpich", "abi"])
def test_the_library_for_another_mpi(mpi: Mpi, how: str, other: str) -> None:
    """One clear line in the job or on each rank; the program runs unprofiled and right."""
    library = mpi.library.parent.parent / other / mpi.library.name
    if other == mpi.family:
        pytest.skip("the right library")
    program = mpi.compile("listing1.c")
    if how == "LD_PRELOAD":
        result = mpi.run(2, [program], mode="link", preload=[library])
    else:
        result = mpi.run(2, [program], env={"COMMLENS_MPI": other})
    assert (result.rc, result.stdout) == (0, "160\n"), result
    assert len(result.said) in (1, 2), result.said
    assert len(set(result.said)) == 1
    assert re.match(
        r"commlens: the application uses \S.*, but this libcommlens\.so is built for \S.*: running unprofiled\. "
        f"Set COMMLENS_MPI={mpi.family}$", result.said[0],
    )  # fmt: skip
    assert not result.profile.exists()


def test_two_copies_of_the_library(mpi: Mpi, tmp_path: Path) -> None:
    """The same library under two names: calls are counted, and no call runs in circles."""
    copy = tmp_path / "libother.so"
    copy.write_bytes(mpi.library.read_bytes())
    result = mpi.run(2, [mpi.compile("listing1.c")], mode="preload", preload=[mpi.library, copy])
    assert (result.rc, result.stdout) == (0, "160\n"), result
    assert result.open().calls("MPI_Allreduce")["W0.0"] == {0: 30, 1: 30}


def test_a_very_long_name_of_the_program(mpi: Mpi, tmp_path: Path) -> None:
    program = tmp_path / ("n" * 250)
    program.symlink_to(mpi.compile("listing1.c"))
    result = mpi.run(2, [program], env={"COMMLENS_OUTPUT": ""}, cwd=tmp_path)
    assert (result.rc, result.stdout) == (0, "160\n"), result
    (profile,) = tmp_path.glob("*.db")
    assert profile.name.startswith(f"commlens-{'n' * 100}-")
    assert Profile(profile).meta()["program"] == "n" * 250
