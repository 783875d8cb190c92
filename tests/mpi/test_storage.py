# SPDX-License-Identifier: Apache-2.0
"""Disks that are full, over quota or gone, at every stage: the job is as it is without us, and nothing is lost unsaid.

What a job counted is in its profile or in the arenas of its ranks, and one line says where and why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import Mpi, commlens, small_file_system
from launches import Result
from profile_rows import Profile
from recorders import wait_for_recorder
from test_survive import job

# What is written, where and by whom does not depend on the MPI library.
pytestmark = pytest.mark.dealt

RANKS = 4
CALLS = 50
DONE = f"done {CALLS * RANKS}\n"
NO_SPACE = "No space left on device"
KEPT = "The counters are kept on the nodes; run 'commlens recover' there"


def own(result: Result) -> str:
    """Return what the program itself printed; launchers report deaths, and MPICH what was left over."""
    return "".join(f"{line}\n" for line in result.lines if line.startswith("done "))


class Place:
    """Folders of a job: `out` for the profile, `second` for a profile that finds no room there, `arenas`."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.out, self.second, self.arenas = (where / name for name in ("out", "second", "arenas"))
        for path in (self.out, self.second, self.arenas):
            path.mkdir(exist_ok=True)

    def run(
        self, mpi: Mpi, steps: Sequence[object], *, ranks: int = RANKS, env: dict[str, str] | None = None
    ) -> Result:
        """Run programs/storage.c; TMPDIR is that of the ranks, not of the launcher, which needs room of its own."""
        command: list[str | Path] = [
            "env",
            f"TMPDIR={self.second}",
            mpi.runner,
            mpi.compile("storage.c"),
            *map(str, steps),
        ]
        return mpi.run(
            ranks, command, {"COMMLENS_ARENA_DIR": str(self.arenas), **(env or {})},
            profile=self.out / "x.db", mode="link", cwd=self.where,
        )  # fmt: skip

    def recovered(self, expected: int = 0) -> Profile:
        """Return the profile of what the ranks have left."""
        path = self.where / "recovered.db"
        done = commlens("recover", "-o", path, self.arenas, self.out)
        assert done.returncode == expected, done
        return Profile(path)

    def left(self) -> dict[str, list[str]]:
        """Return what is in each folder."""
        found = {}
        for path in (self.out, self.second, self.arenas):
            names = [entry.name for entry in path.iterdir()] if path.is_dir() else []
            found[path.name] = sorted(name for name in names if name != "filler")
        return found


@pytest.fixture
def place(mpi: Mpi) -> Place:
    return Place(mpi.fresh("storage"))


@contextmanager
def small(place: Place, size: str, *names: str) -> Iterator[None]:
    """Put some folders of a job onto a small file system."""
    with small_file_system(place.where, size) as root:
        for name in names:
            (root / name).mkdir()
            setattr(place, name, root / name)
        yield


def check_job(result: Result, *, lines: int = 1, rc: int = 0, stdout: str = DONE) -> list[str]:
    """Assert that the job is as without us, and said no more than that; return what it said."""
    assert (result.rc, own(result)) == (rc, stdout), result
    assert len(result.said) == lines, result.said
    return result.said


def check_complete(profile: Profile, ranks: int = RANKS) -> None:
    assert profile.column("SELECT rank FROM rank ORDER BY rank") == list(range(ranks))
    assert profile.calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(range(ranks), CALLS)}


def test_no_room_for_arenas_at_the_start(mpi: Mpi, place: Place) -> None:
    with small(place, "64k", "arenas"):
        result = place.run(mpi, ["work", CALLS])
        said = check_job(result, lines=2)
        assert f"{place.arenas}: {NO_SPACE}; counters are in /dev/shm/commlens-" in said[0]
        assert place.left() == {"out": ["x.db"], "second": [], "arenas": []}
        check_complete(result.open())


def test_no_room_for_arenas_anywhere(mpi: Mpi, place: Place) -> None:
    """Counters are in private memory, and one line says what that means."""
    preload = mpi.compile("no_arenas.c", shared=True)
    command: list[str | Path] = [mpi.runner, mpi.compile("storage.c"), "work", str(CALLS), "grow", "500"]
    env = {"COMMLENS_ARENA_DIR": str(place.arenas), "COMMLENS_FLUSH_EVERY": "1"}
    result = mpi.run(
        RANKS, command, env, profile=place.out / "x.db", mode="link", preload=[preload], cwd=place.where
    )
    said = check_job(result, lines=2)
    assert said[0].startswith(
        f"commlens: no file for the counters, which are lost if the process dies: {place.arenas}: {NO_SPACE}; "
        f"/dev/shm: {NO_SPACE}"
    )
    assert place.left() == {"out": ["x.db"], "second": [], "arenas": []}
    profile = result.open()
    profile.check()
    check_complete(profile)
    assert profile.total("MPI_Comm_dup")[0] == 500 * RANKS


@pytest.mark.parametrize("end", ["finalize", "kill"])
def test_no_more_room_while_arenas_grow(mpi: Mpi, place: Place, end: str) -> None:
    """A mapped page without room behind it would be a SIGBUS."""
    with small(place, "3m", "arenas"):
        steps: list[object] = ["fill", place.arenas, "work", CALLS, "grow", 3000]
        result = place.run(mpi, steps if end == "finalize" else [*steps, "kill"], ranks=2)
        full = [line for line in result.said if "no more room for counters" in line]
        assert len(full) == 1, result.said
        assert f"no more room for counters in {place.arenas}/commlens-" in full[0]
        assert f".arena: {NO_SPACE}; " in full[0]
        assert own(result) == f"done {CALLS * 2}\n"
        if end == "finalize":
            assert (result.rc, len(result.said)) == (0, 2), result
            profile = result.open()
            profile.check()
            check_complete(profile, 2)
            assert profile.total("MPI_Comm_dup")[0] == 6000
            assert place.left()["arenas"] == []
            return
        done = commlens("recover", "-o", place.where / "recovered.db", place.arenas)
        assert done.returncode == 3, done
        lines = done.stderr.splitlines()
        assert len(lines) == 2
        for rank, line in enumerate(lines):
            assert line.startswith(f"commlens: rank {rank}: {place.arenas}/commlens-")
            assert line.endswith("its folder was full: some counts of its process are missing")
        profile = Profile(place.where / "recovered.db")
        check_complete(profile, 2)
        assert 0 < profile.total("MPI_Comm_dup")[0] <= 6000


def test_no_room_for_a_profile_anywhere(mpi: Mpi, place: Place) -> None:
    """The arenas stay, and are all there is to know."""
    with small(place, "32k", "out", "second"):
        said = check_job(place.run(mpi, ["work", CALLS]))
        assert re.fullmatch(
            rf"commlens: no profile: cannot (create|write) {place.out}/x.db.tmp.\S+: {NO_SPACE}; "
            rf"cannot (create|write) {place.second}/x.db.tmp.\S+: {NO_SPACE}. {KEPT}", said[0],
        )  # fmt: skip
        left = place.left()
        assert (left["out"], left["second"], len(left["arenas"])) == ([], [], RANKS)
        check_complete(place.recovered())


@pytest.mark.parametrize("size", ["4k", "8k", "60k", "100k", "132k", "164k"])
def test_a_profile_is_whole_or_elsewhere(mpi: Mpi, place: Place, size: str) -> None:
    with small(place, size, "out"):
        result = place.run(mpi, ["work", CALLS], ranks=2)
        said = check_job(result, stdout=f"done {CALLS * 2}\n")
        found = [path for path in (place.out / "x.db", place.second / "x.db") if path.exists()]
        assert len(found) == 1
        assert (f"{NO_SPACE}; the profile is in {found[0]}" in said[0]) == (found[0].parent == place.second)
        assert place.left()["arenas"] == []
        check_complete(Profile(found[0]), 2)


@pytest.mark.parametrize("size", ["4k", "24k", "40k", "64k", "100k", "140k", "180k", "220k"])
def test_what_of_several_files_finds_no_room_is_kept(mpi: Mpi, place: Place, size: str) -> None:
    """Each rank is in a file of the profile, or has its arena still; without the index all ranks have."""
    with small(place, size, "out"):
        result = place.run(mpi, ["work", CALLS], env={"COMMLENS_AGGREGATORS": "2"})
        assert (result.rc, own(result)) == (0, DONE), result
        directory = place.out / "x.commlens"
        left = place.left()
        in_arenas = len(left["arenas"])
        if not directory.exists():
            assert len(result.said) == 1, result.said
            assert result.said[0].startswith("commlens: no profile: cannot ")
            assert result.said[0].endswith(f"{NO_SPACE}. {KEPT}")
            assert (left["out"], in_arenas) == ([], RANKS)
            check_complete(place.recovered())
            return
        assert not list(directory.glob("*.tmp"))
        shards = len(list(directory.glob("shard.*.db")))
        has_index = (directory / "index.db").exists()
        is_whole = shards == 2 and has_index
        assert in_arenas == (RANKS - 2 * shards if has_index else RANKS)
        assert shards > 0
        done = commlens("report", directory)
        assert done.returncode == (0 if is_whole else 3), done
        # without the index nothing tells that there should be another one
        assert done.stderr.count("\n") == (2 - shards if has_index else 1)
        assert ("ranks are in this profile" in done.stdout) == (shards < 2)
        if is_whole:
            assert result.said == [f"commlens: profile of {RANKS} ranks in {directory}"]
        if shards < 2:
            assert re.search(
                rf"1 of 2 files of the profile are missing, those of ranks (0-1|2-3): .*{NO_SPACE}. {KEPT}",
                result.said[0],
            )
        if in_arenas:
            recovered = place.recovered(3 if has_index else 0)
            assert recovered.rows("SELECT COUNT(*) AS n FROM rank") == [{"n": in_arenas}]
        if not has_index:
            assert result.said[-1].endswith(
                f"{NO_SPACE}; commlens can read the files in {directory} without it"
            )
        else:
            assert result.said[-1] == f"commlens: profile of {2 * shards} ranks in {directory}"


@pytest.mark.parametrize("writers", [1, 2])
def test_the_directory_of_the_output_vanishes(mpi: Mpi, place: Place, writers: int) -> None:
    result = place.run(mpi, ["vanish", place.out, "work", CALLS], env={"COMMLENS_AGGREGATORS": str(writers)})
    said = check_job(result)
    name = "x.db" if writers == 1 else "x.commlens"
    assert re.fullmatch(
        rf"commlens: cannot create {place.out}/{name}\S*: No such file or directory; the profile is in "
        rf"{place.second}/{name}", said[0],
    )  # fmt: skip
    assert place.left() == {"out": [], "second": [name], "arenas": []}
    if writers == 2:
        assert commlens("merge", place.second / name).returncode == 0
    check_complete(Profile(place.second / "x.db"))


def test_where_the_profile_went_is_said_also_when_all_else_is_not(mpi: Mpi, place: Place) -> None:
    quiet = {"COMMLENS_AGGREGATORS": "2", "COMMLENS_QUIET": "1"}
    result = place.run(mpi, ["vanish", place.out, "work", CALLS], env=quiet)
    assert check_job(result)[0].endswith(f"; the profile is in {place.second}/x.commlens")


@pytest.mark.parametrize("writers", [1, 2])
def test_over_quota(mpi: Mpi, place: Place, writers: int) -> None:
    result = place.run(mpi, ["work", CALLS, "quota"], env={"COMMLENS_AGGREGATORS": str(writers)})
    said = check_job(result)
    assert said[0].startswith(f"commlens: no profile: cannot write {place.out}/x.")
    assert said[0].endswith(f"Disk quota exceeded. {KEPT}")
    left = place.left()
    assert (left["out"], left["second"], len(left["arenas"])) == ([], [], RANKS)
    check_complete(place.recovered())


def test_over_quota_while_arenas_grow(mpi: Mpi, place: Place) -> None:
    result = place.run(mpi, ["work", CALLS, "quota", "grow", 3000, "kill"], ranks=2)
    assert own(result) == f"done {CALLS * 2}\n"
    full = [line for line in result.said if "no more room for counters" in line]
    assert len(full) == 1
    assert ".arena: Disk quota exceeded; " in full[0]
    check_complete(place.recovered(3), 2)


def test_copies_find_no_room(mpi: Mpi, place: Place) -> None:
    """COMMLENS_FLUSH_EVERY: one line, nothing half-written, and the job goes on."""
    with small(place, "8k", "out"):
        (place.out / "filler").write_bytes(bytes(8192))
        steps: list[object] = ["work", CALLS, "until", 2.5]
        result = place.run(mpi, steps, env={"COMMLENS_FLUSH_EVERY": "1"})
        said = check_job(result, lines=2)
        assert re.fullmatch(
            rf"commlens: cannot store snapshots of the counters in {place.out}/commlens-arenas-\w+: {NO_SPACE}; "
            r"COMMLENS_FLUSH_EVERY tries again", said[0],
        )  # fmt: skip
        wait_for_recorder(place.out)
        assert place.left() == {"out": [], "second": ["x.db"], "arenas": []}
        check_complete(Profile(place.second / "x.db"))


def test_copies_meet_the_limit_of_file_sizes(mpi: Mpi, place: Place) -> None:
    """The signal of that limit would end the job."""
    steps: list[object] = ["limit", 16384, "work", CALLS, "until", 2.5, "limit", 1 << 40]
    result = place.run(mpi, steps, env={"COMMLENS_FLUSH_EVERY": "1"})
    check_job(result, lines=1)
    left = place.left()
    assert (left["second"], left["arenas"]) == ([], [])
    assert "x.db" in left["out"]
    assert len(left["out"]) == 2, "the snapshots, which that limit does not concern"
    check_complete(result.open())


@pytest.mark.parametrize("end", ["abort", "term"])
@pytest.mark.parametrize("why", ["full", "limit", "vanished"])
def test_the_copy_of_a_dying_process_finds_no_room(mpi: Mpi, place: Place, why: str, end: str) -> None:
    """Then its arena stays where it is, and the exit code is its own."""
    steps: dict[str, list[object]] = {"full": [], "limit": ["limit", 8192], "vanished": ["vanish", place.out]}
    program: list[str | Path] = [mpi.compile("storage.c"), "work", str(CALLS), end]
    plain = mpi.run(RANKS, program, mode="off")
    with small(place, "8k", *(["out"] if why == "full" else [])):
        result = place.run(mpi, [*steps[why], "work", CALLS, end])
        assert result.rc in mpi.codes(plain.rc)
        assert own(result) == own(plain) == DONE
        # A launcher may kill while a copy is made: then its directory is there, but nothing that passes for one.
        assert not list(place.out.rglob("*.arena"))
        assert len(place.left()["arenas"]) == RANKS
        for line in result.said:
            assert re.search(
                rf"its counters are in {place.arenas}/commlens-\S+\.arena: run 'commlens recover'$", line
            )
        place.out.mkdir(exist_ok=True)
        check_complete(place.recovered())


@pytest.mark.parametrize("limit", [0, 4096, 8192, 1 << 40])
def test_the_directory_of_a_copy_is_there_only_with_the_copy(mpi: Mpi, place: Place, limit: int) -> None:
    result = place.run(mpi, ["work", CALLS, "limit", limit, "exit"], ranks=1)
    assert own(result) == f"done {CALLS}\n"
    assert len(result.said) == 1, result.said
    kept = r"out/commlens-arenas-\w+/rank0\.\d+" if limit == 1 << 40 else r"arenas/commlens-\S+"
    assert re.search(rf" ended without MPI_Finalize; its counters are in \S*/{kept}\.arena: ", result.said[0])
    left = place.left()
    assert (len(left["out"]), len(left["arenas"])) == ((1, 0) if limit == 1 << 40 else (0, 1))
    check_complete(place.recovered(), 1)


@pytest.mark.parametrize("size", ["0", "4k", "12k", "16k", "64k"])
def test_ranks_that_meet_through_files_find_no_room(mpi: Mpi, place: Place, size: str) -> None:
    """Who finds none keeps its arena; the last one makes the profile of all others."""
    with small(place, "64k", "out"):
        steps: list[object] = ["work", CALLS, "alone"]
        if size == "0":
            steps = ["fill", place.out, *steps]
        elif size != "64k":
            (place.out / "filler").write_bytes(bytes(65536 - 1024 * int(size[:-1])))
        result = place.run(mpi, steps)
        assert (result.rc, own(result)) == (0, DONE), result
        assert place.left()["out"] == []
        profile = Profile(place.second / "x.db")
        there = profile.column("SELECT rank FROM rank ORDER BY rank")
        missing = set(range(RANKS)) - set(there)
        assert len(place.left()["arenas"]) == len(missing)
        for rank in missing:
            assert any(
                re.search(
                    rf"rank {rank}: its calls are not in the profile: .*{NO_SPACE}\. Its counters are kept",
                    line,
                )
                for line in result.said
            ), result.said
        if size == "64k":
            assert not missing
        if missing:
            assert place.recovered(3).column("SELECT rank FROM rank ORDER BY rank") == sorted(missing)


def test_recover_and_merge_without_room(mpi: Mpi, place: Place) -> None:
    place.run(mpi, ["work", CALLS, "kill"])
    whole = Place(mpi.fresh("whole"))
    whole.run(mpi, ["work", CALLS], env={"COMMLENS_AGGREGATORS": "2"})
    directory = whole.out / "x.commlens"
    with small(place, "32k", "out", "second"):
        full, also_full = place.out / "y.db", place.second
        done = commlens("recover", "-o", full, place.arenas, env={"TMPDIR": str(also_full)})
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(
            rf"commlens: cannot write {full}\S*: {NO_SPACE}; cannot write {also_full}\S*: {NO_SPACE}\n",
            done.stderr,
        )
        done = commlens("recover", "-o", full, place.arenas, env={"TMPDIR": str(place.where)})
        assert done.returncode == 0, "all of it is read, and elsewhere"
        assert done.stdout.startswith(f"{place.where}/y.db: storage")
        assert re.fullmatch(rf"commlens: cannot write {full}\S*: {NO_SPACE}\n", done.stderr)
        check_complete(Profile(place.where / "y.db"))
        done = commlens("merge", directory, "-o", full)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"commlens: {full}: cannot be written: {NO_SPACE}\n"
        assert place.left()["out"] == place.left()["second"] == []
    done = commlens("merge", directory, "-o", place.where / "gone" / "y.db")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(("ranks", "writers"), [(1, 1), (1, 4), (3, 1), (4, 2)])
def test_ranks_that_call_nothing_after_init(mpi: Mpi, place: Place, ranks: int, writers: int) -> None:
    result = place.run(mpi, [], ranks=ranks, env={"COMMLENS_AGGREGATORS": str(writers)})
    assert (result.rc, own(result)) == (0, "")
    is_directory = ranks > 1 and writers > 1
    profile = place.out / ("x.commlens" if is_directory else "x.db")
    assert result.said == [f"commlens: profile of {ranks} rank{'s' if ranks > 1 else ''} in {profile}"]
    for command in (
        ["report"],
        ["report", "--all-ranks", "--callsites"],
        ["comms"],
        ["coverage"],
        ["sql", "SELECT * FROM counter"],
    ):
        done = commlens(command[0], profile, *command[1:])
        assert (done.returncode, done.stderr) == (0, "")
        if command[0] == "report":
            assert done.stdout.splitlines()[-1] == "no calls match"
            assert (
                "commlens saw no MPI call between MPI_Init and MPI_Finalize: the application can call MPI_"
                in done.stdout
            )
            assert f"{ranks} rank{'s' if ranks > 1 else ''} on 1 node" in done.stdout
        if command[0] == "comms":
            assert "W0.0" in done.stdout
    if is_directory:
        assert commlens("merge", profile).returncode == 0
        profile = place.out / "x.db"
    assert Profile(profile).column("SELECT rank FROM rank ORDER BY rank") == list(range(ranks))
    assert Profile(profile).rows("SELECT COUNT(*) AS n FROM cell") == [{"n": 0}]


def test_a_job_killed_before_it_called_anything_is_recovered(mpi: Mpi, place: Place) -> None:
    place.run(mpi, ["kill"], ranks=2)
    assert place.recovered().column("SELECT rank FROM rank ORDER BY rank") == [0, 1]
    done = commlens("report", place.where / "recovered.db")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["hang", "top"])
def test_looking_at_a_job_without_room_for_temporary_files(mpi: Mpi, command: str) -> None:
    with job(mpi, "run") as running:
        running.wait_until_ready()
        options = ["-n", "1"] if command == "top" else []
        with small_file_system(running.where, "32k") as full:
            done = commlens(command, *options, running.arenas, env={"TMPDIR": str(full)})
            assert (done.returncode, done.stdout) == (2, "")
            assert re.fullmatch(
                rf"commlens: cannot write {full}/\S+: {NO_SPACE}; cannot write {full}/now.db\S+: {NO_SPACE}\n",
                done.stderr,
            )
            assert list(full.iterdir()) == []
        done = commlens(command, *options, running.arenas)
        assert (done.returncode, done.stderr) == (0, "")
        assert ", 4 of 4 ranks, began " in done.stdout
        assert running.process.poll() is None
