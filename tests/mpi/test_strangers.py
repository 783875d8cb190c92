# SPDX-License-Identifier: Apache-2.0
"""What other users leave in /dev/shm and in shared folders is input from strangers, also for root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import forge
import pytest
from build_once import PATIENCE
from harness import BUILD, Mpi
from processes import wait_until
from strangers import USERS, Strangers, strangers

# What is written, where and by whom does not depend on the MPI library.
pytestmark = pytest.mark.dealt

CALLS = 50
GIGABYTE = 1 << 30
AT_ONCE = 120
"""Seconds: what waits for a stranger waits for ever."""
TIME = b"2026-01-01T00:00:00Z"
VICTIMS = pytest.mark.parametrize("victim", ["root", "alice"])
FOLDERS = pytest.mark.parametrize("folder", ["shared", "project"])
MODES = {"shared": "777", "project": "700"}
"""Of what mallory makes there: one that others may write to, and one that they may not even read."""


@pytest.fixture
def place() -> Iterator[Strangers]:
    """Two users and root."""
    with strangers() as made:
        yield made


@pytest.fixture(scope="session")
def one_mpi(tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    """One MPI library: arenas of all are read in the same way."""
    return Mpi(
        os.environ.get("COMMLENS_TEST_MPI", "openmpi").split(",")[0], tmp_path_factory.mktemp("strangers")
    )


def allreduces(place: Strangers, profile: Path) -> dict[int, int]:
    """Return by rank how often a profile counts MPI_Allreduce, of MPI_COMM_WORLD only."""
    return dict(place.profile(profile).calls("MPI_Allreduce")["W0.0"])


def said_nothing_bad(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode in (0, 2, 3) and "Traceback" not in done.stderr


def test_the_users_are_real(place: Strangers) -> None:
    """Else nothing below says anything."""
    place.write("mallory", place.shared / "hers", "1")
    place.write("mallory", place.homes["mallory"] / "private", "1", 0o600)
    assert place.owner(place.shared / "hers") == "mallory"
    for line in ("rm -f $1/hers", "echo >>$1/hers", "ls $2"):
        done = place.run("alice", ["sh", "-c", line, "sh", place.shared, place.homes["mallory"]])
        assert done.returncode != 0, line
    assert place.run("root", ["cat", place.homes["mallory"] / "private"]).stdout == "1"
    assert place.do("alice", "id -un; id -Gn").split() == ["alice", "alice", "project"]


def test_users_run_jobs(place: Strangers, mpi: Mpi) -> None:
    profile = place.homes["alice"] / "profile.db"
    done = place.launch("alice", mpi, 2, [mpi.compile("storage.c"), "work", "5"], profile)
    assert (done.returncode, done.stdout) == (0, "done 10\n"), done
    assert place.owner(profile) == "alice"
    left = place.killed_job("mallory", mpi, place.shared / "x.db")
    assert [place.owner(file) for file in left] == ["mallory", "mallory"]
    assert "2 of 2 ranks" in place.commlens("mallory", "recover", "-o", "x.db").stdout


def test_a_job_that_open_mpi_crashed_is_run_again(place: Strangers, one_mpi: Mpi) -> None:
    """The second run finds the files from before the first run, and none that the first run left."""
    place.write("alice", place.shared / "before", "1")
    crash = 'echo "Failing at address: 0x7f01e0c856f0" >&2; exit 139'
    line = f'ls "$1"; [ -e ~/ran ] && exit; touch ~/ran "$1/left"; {crash}'
    profile = place.shared / "profile.db"
    done = place.launch("alice", one_mpi, 1, ["sh", "-c", line, "sh", place.shared], profile, mode="off")
    assert (done.returncode, done.stdout) == (0, "before\n"), done
    assert place.outside(place.homes["alice"] / "ran").exists()


# -- files of others are not removed ----------------------------------------------------------------------------------


def forged_rows(victim: Path) -> list[bytes]:
    """Return times of start that add a line about `victim` to a table whose fields are not escaped."""
    left = [str(victim), "1", "0", "1", "", "", "ended", "0", "2", "1f", "n", "p", TIME.decode()]
    later = [
        str(victim),
        "1",
        "1",
        "1",
        "1",
        "gone",
        "1",
        "",
        "",
        "ended",
        "0",
        "2",
        "1f",
        "n",
        "p",
        TIME.decode(),
    ]
    return [TIME + b"\tx\t0\n" + "\t".join(row).encode() for row in (left, later)]


@VICTIMS
def test_clean_removes_the_arena_and_not_what_it_names(place: Strangers, one_mpi: Mpi, victim: str) -> None:
    """Somebody looks at a copy of a stranger's arena."""
    home = place.homes[victim]
    place.write(victim, home / "precious", "1")
    arena = place.read(place.killed_job("mallory", one_mpi, place.shared / "x.db")[0])
    for start in forged_rows(home / "precious"):
        place.write("mallory", place.shared / "look.arena", forge.with_job(arena, {b"start_time": start}))
        place.do(victim, 'mkdir -p look; cp "$1" look', place.shared / "look.arena")
        done = place.commlens(victim, "clean", "--yes", "look", env={"TERM": "dumb"})
        assert done.returncode == 0, done
        assert place.read(home / "precious") == b"1", start
        assert done.stdout.splitlines()[-1].startswith("1 files removed")
        assert not place.listing(home / "look")


@pytest.mark.parametrize("how", ["link", "file"])
def test_an_arena_that_is_swapped_while_root_cleans(place: Strangers, one_mpi: Mpi, how: str) -> None:
    """Between the look at its owner and the reading; a tool in place of commlens-arena swaps it and then calls that."""
    folder, home = place.shared / "scratch", place.homes["root"]
    place.do("mallory", 'mkdir -m 777 "$1"', folder)
    place.write("root", home / "precious", "1")
    own = place.killed_job("root", one_mpi, home / "x.db", env={"COMMLENS_ARENA_DIR": str(folder)})[0]
    if how == "link":
        place.do("root", 'mv "$1" kept.arena', own)
        place.do("mallory", 'ln -s "$1" "$2"', home / "kept.arena", own)
    arena = place.read(place.killed_job("mallory", one_mpi, place.shared / "x.db")[0])
    start = forged_rows(home / "precious")[0]
    place.write("mallory", folder / "forged", forge.with_job(arena, {b"start_time": start}))
    tool = BUILD.resolve() / "bin" / "commlens-arena"
    place.do("root", "mkdir tools")
    place.write("root", home / "tools" / "commlens-run", "#!/bin/sh\n", 0o755)
    swap = f'#!/bin/sh\ncp --preserve=all --remove-destination {folder}/forged {own}\nexec {tool} "$@"\n'
    place.write("root", home / "tools" / "commlens-arena", swap, 0o755)
    path = f"{home}/tools:{place.environment('root')['PATH']}"
    done = place.commlens("root", "clean", "--yes", folder, env={"PATH": path})
    assert said_nothing_bad(done), done
    assert place.read(home / "precious") == b"1"
    assert place.owner(own) == "mallory", "it was swapped, and it is there"


@VICTIMS
@pytest.mark.parametrize("folder", ["shm", "project"])
def test_a_planted_link_to_a_folder_is_not_followed(
    place: Strangers, one_mpi: Mpi, victim: str, folder: str
) -> None:
    home, planted = place.homes[victim], getattr(place, folder)
    files = place.killed_job(victim, one_mpi, home / "x.db")
    place.do(victim, 'mkdir kept; mv "$@" kept; cp "kept/$(basename "$1")" kept/rank0.1.arena.last', *files)
    place.do("mallory", 'ln -s "$1" "$2"', home / "kept", planted / "commlens-arenas-x")
    before = place.listing(home)
    for command in (("clean", "--yes"), ("clean", "--yes", planted), ("recover", "-o", "/nowhere/x.db")):
        done = place.commlens(victim, *command, env={"COMMLENS_ARENA_DIR": str(planted)})
        assert place.listing(home) == before, command
        assert said_nothing_bad(done), done
    assert place.outside(planted / "commlens-arenas-x").is_symlink()


# -- nothing is written where an arena says ---------------------------------------------------------------------------


def plant_output(place: Strangers, mpi: Mpi, output: Path) -> Path:
    """Leave an arena of mallory's whose profile would go to `output`; return it."""
    files = place.killed_job("mallory", mpi, place.shared / "x.db")
    for file in files:
        place.write("mallory", file, forge.with_job(place.read(file), output=str(output).encode()))
    return files[0]


@VICTIMS
def test_recover_leaves_arenas_of_strangers_alone(place: Strangers, one_mpi: Mpi, victim: str) -> None:
    place.do(victim, "mkdir target")
    arena = plant_output(place, one_mpi, place.homes[victim] / "target" / "made.db")
    before = place.listing(place.homes[victim])
    for where in ((), (place.shm,), (arena,)):
        for command in (("recover", *where), ("recover", "-o", "asked.db", *where)):
            done = place.commlens(victim, *command)
            assert done.returncode == 2, done
            assert "Traceback" not in done.stderr
            assert place.listing(place.homes[victim]) == before
    hint = place.commlens(victim, "recover").stderr
    assert ("mallory" in hint and "--user" in hint) == (victim == "root")


def test_recover_writes_to_the_present_folder(place: Strangers, one_mpi: Mpi) -> None:
    """Also from an arena that is the user's own by now, and whatever it says."""
    home = place.homes["alice"]
    place.do("alice", "mkdir look present target")
    for output in (home / "target" / "made.db", Path("../target/made.db"), home / "target"):
        place.do("root", "rm -f $1/*.arena", place.shm)
        plant_output(place, one_mpi, output)
        place.do("alice", 'rm -f look/* present/*; cp "$1"/*.arena look', place.shm)
        done = place.commlens("alice", "recover", "../look", cwd=home / "present")
        assert done.returncode == 0, done
        assert not place.listing(home / "target")
        assert len(place.listing(home / "present")) == 1


@pytest.mark.parametrize("by", ["name", "number"])
def test_root_recovers_for_a_user(place: Strangers, one_mpi: Mpi, by: str) -> None:
    """With the rights of that user, into the present folder or where root says."""
    place.killed_job("alice", one_mpi, place.shared / "job.db")
    place.killed_job("mallory", one_mpi, place.shared / "hers.db")
    place.write("root", place.homes["root"] / "precious", "1")
    place.do("alice", 'mkdir -m 755 present; ln -s "$1" present/job.db', place.homes["root"] / "precious")
    user = {"name": "alice", "number": place.do("alice", "id -u").strip()}[by]
    present = place.homes["alice"] / "present"
    done = place.commlens("root", "recover", "--user", user, cwd=present)
    assert done.returncode == 0, done
    (made,) = (name for name in place.listing(present) if name != "job.db")
    assert place.owner(present / made) == "alice"
    assert allreduces(place, present / made) == {0: CALLS, 1: CALLS}
    done = place.commlens("root", "recover", "--user", user, "-o", place.shared / "asked.db")
    assert done.returncode == 0, done
    assert "asked.db" in place.listing(place.shared), done
    assert place.owner(place.shared / "asked.db") == "alice"
    before = place.listing(place.homes["root"])
    assert place.commlens("root", "recover", "--user", user).returncode == 2
    assert place.listing(place.homes["root"]) == before
    assert place.commlens("alice", "recover", "--user", "mallory").returncode == 2
    assert place.commlens("root", "recover", "--user", "nobody-of-that-name").returncode == 2


def test_root_cleans_for_others_only_when_asked(place: Strangers, one_mpi: Mpi) -> None:
    hers = place.killed_job("mallory", one_mpi, place.shared / "x.db")
    place.killed_job("alice", one_mpi, place.shared / "y.db")
    assert place.commlens("root", "clean", "--yes").stdout.splitlines()[-1].startswith("0 files removed")
    assert len(place.listing(place.shm)) == 4
    done = place.commlens("root", "clean", "--yes", "--user", "alice")
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-1].startswith("2 files removed"), done
    assert sorted(place.listing(place.shm)) == sorted(file.name for file in hers)
    place.killed_job("alice", one_mpi, place.shared / "y.db")
    assert place.commlens("root", "clean", "--yes", "--all-users").returncode == 0
    assert not place.listing(place.shm)
    assert place.commlens("alice", "clean", "--yes", "--all-users").returncode == 2


def test_root_looks_at_jobs_of_others_only_when_asked(place: Strangers, one_mpi: Mpi) -> None:
    program: list[str | Path] = [one_mpi.compile("storage.c"), "work", "5", "await", str(place.shared / "go")]
    command, env = place.prepare(one_mpi, 2, program, place.homes["alice"] / "x.db")
    with place.started("alice", command, env=env) as job:
        wait_for_arenas(place, 2)
        for look in (("hang",), ("top", "-n", "1")):
            for user in ("root", "mallory"):
                done = place.commlens(user, *look)
                assert (done.returncode, done.stdout) == (2, ""), done
            done = place.commlens("root", *look, "--user", "alice")
            assert done.returncode == 0, done
            assert "2 of 2 ranks" in done.stdout or "2 ranks" in done.stdout
        place.killed_job("mallory", one_mpi, place.shared / "x.db")
        done = place.commlens("root", "hang", "--all-users")
        assert done.returncode == 0, "one of them has a job that runs"
        assert "2 of 2 ranks" in done.stdout
        assert "no process of this user runs" in done.stderr
        place.write("alice", place.shared / "go", "")
        assert job.wait(60 * PATIENCE) == 0
    done = place.commlens("root", "hang", "--all-users")
    assert (done.returncode, done.stderr.count("no process of this user runs")) == (2, 1), "none of them"


@pytest.mark.parametrize("kind", ["--pid", "--time"])
def test_jobs_in_a_container_are_not_cleaned_away(place: Strangers, one_mpi: Mpi, kind: str) -> None:
    """Nobody here sees their processes by the ids they have there, or by when they began."""
    more = ["--mount-proc"] if kind == "--pid" else ["--boottime=100000", "--monotonic=100000"]
    become = ["setpriv", f"--reuid={USERS['alice']}", f"--regid={USERS['alice']}", "--init-groups"]
    go = place.shared / "go"
    program: list[str | Path] = [one_mpi.compile("storage.c"), "work", str(CALLS), "await", str(go)]
    profile = place.homes["alice"] / "profile.db"
    command, env = place.prepare(one_mpi, 2, program, profile)
    command = ["unshare", kind, *more, "--fork", "--kill-child", *become, *command]
    env["HOME"] = str(place.homes["alice"])
    with place.started("root", command, env=env, cwd=place.homes["alice"]) as job:
        wait_for_arenas(place, 2)
        before = sorted(place.listing(place.shm))
        done = place.commlens("alice", "clean", "--yes")
        assert done.returncode == 0, done
        assert sorted(place.listing(place.shm)) == before, done.stdout
        place.write("alice", go, "")
        assert job.wait(60 * PATIENCE) == 0
    assert allreduces(place, profile) == {0: CALLS, 1: CALLS}
    assert 0 < place.profile(profile).column("SELECT MAX(app_ns) FROM rank")[0] < 100 * 10**9


def wait_for_arenas(place: Strangers, ranks: int) -> list[forge.Job]:
    """Wait until so many processes have come out of MPI_Init; return what their arenas say."""

    def found() -> list[forge.Job]:
        files = [file.read_bytes() for file in place.outside(place.shm).glob("*.arena")]
        if len(files) < ranks or not all(
            any(kind == forge.JOB for kind, _ in forge.entries(content)) for content in files
        ):
            return []
        return [forge.job_of(content) for content in files]

    return wait_until(found, "not all ranks came out of MPI_Init")


# -- folders with names that can be guessed ---------------------------------------------------------------------------


@FOLDERS
def test_parts_do_not_go_through_a_folder_of_a_stranger(place: Strangers, mpi: Mpi, folder: str) -> None:
    """Ranks that meet through files; the folder for these is there before, with links to files of the job's owner."""
    output, go = getattr(place, folder), place.homes["alice"] / "go"
    steps = ["work", str(CALLS), "await", str(go), "alone"]
    command, env = place.prepare(mpi, 2, [mpi.compile("storage.c"), *steps], output / "profile.db")
    names = [f"rank{rank}.part{ending}" for rank in (0, 1) for ending in ("", ".new")] + [
        "orders",
        "orders.new",
    ]
    for name in names:
        place.write("alice", place.homes["alice"] / f"precious-{name}", name)
    with place.started("alice", command, env=env) as job:
        launch = wait_for_arenas(place, 2)[0].launch
        parts = output / f".commlens-{launch:016x}"
        place.do("mallory", 'mkdir -m "$2" "$1"', parts, MODES[folder])
        for name in names:
            place.do("mallory", 'ln -s "$1" "$2"', place.homes["alice"] / f"precious-{name}", parts / name)
        place.write("alice", go, "")
        assert job.wait(60 * PATIENCE) == 0
    for name in names:
        assert place.read(place.homes["alice"] / f"precious-{name}") == name.encode()
    place.do("mallory", 'rm -rf "$1"', parts)
    assert counted_by(place, "alice", output) == {0: CALLS, 1: CALLS}


@FOLDERS
def test_copies_do_not_go_into_a_folder_of_a_stranger(place: Strangers, mpi: Mpi, folder: str) -> None:
    """Who owns the folder can take the copies away, and with them all that the job has counted."""
    output, go = getattr(place, folder), place.homes["alice"] / "go"
    steps = ["work", str(CALLS), "await", str(go), "term"]
    command, env = place.prepare(mpi, 2, [mpi.compile("storage.c"), *steps], output / "profile.db")
    with place.started("alice", command, env=env) as job:
        launch = wait_for_arenas(place, 2)[0].launch
        copies = output / f"commlens-arenas-{launch:016x}"
        place.do("mallory", 'mkdir -m "$2" "$1"', copies, MODES[folder])
        place.write("alice", go, "")
        assert job.wait(60 * PATIENCE) != 0
    place.do("mallory", 'rm -rf "$1"', copies)
    assert counted_by(place, "alice", output) == {0: CALLS, 1: CALLS}


def counted_by(place: Strangers, user: str, output: Path) -> dict[int, int]:
    """Return how often each rank called MPI_Allreduce, from what a job has stored and left."""
    files = [output / path.name for path in place.outside(output).glob("*.db")]
    done = place.commlens(user, "recover", "-o", "recovered.db", output, place.shm)
    assert said_nothing_bad(done), done
    if "recovered.db" in place.listing(place.homes[user]):
        files.append(place.homes[user] / "recovered.db")
    counted: dict[int, int] = {}
    for file in files:
        counted.update(allreduces(place, file))
    return counted


# -- what waits, and what is large ------------------------------------------------------------------------------------


@VICTIMS
@pytest.mark.parametrize("owner", ["mallory", "victim"])
def test_a_pipe_that_is_named_like_an_arena(place: Strangers, victim: str, owner: str) -> None:
    user = victim if owner == "victim" else owner
    place.do(user, 'mkfifo -m 666 "$1"', place.shm / "commlens-1-1-1.arena")
    place.do(user, 'mkdir -m 755 "$1"; mkfifo -m 666 "$1/rank0.1.arena"', place.shm / "commlens-arenas-x")
    for command in ("hang", "top", "recover", "clean"):
        for where in ((), (place.shm / "commlens-1-1-1.arena",)):
            done = place.commlens(victim, command, *where, timeout=AT_ONCE)
            assert said_nothing_bad(done), done
    assert len(place.listing(place.shm)) == 3


def large(arena: bytes) -> dict[str, bytes]:
    """Return arenas that seem to be large, or claim what would take much memory."""
    return {
        "as it is": arena,
        "used": forge.with_used(arena, 2_500 << 20),
        "index": forge.with_last_comm(arena, 2**25 - 1),
        "size": forge.with_job(arena, size=2**31 - 1),
        "no arena": b"",
    }


MEASURE = """\
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(f"peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}", file=sys.stderr)
sys.exit(code)
"""


def peak_of(place: Strangers, user: str, *arguments: str | Path) -> int:
    """Run the command, which must not end badly; return the memory of its largest process, in bytes."""
    limited = ["prlimit", f"--as={4 * GIGABYTE}", "--core=0", "--"]
    argv = [*limited, place.python, "-c", MEASURE, place.python, "-m", "commlens", *arguments]
    done = place.run(user, argv, timeout=AT_ONCE)
    assert said_nothing_bad(done), done
    *_, last = done.stderr.splitlines()
    return int(last.removeprefix("peak ")) * 1024


@pytest.mark.parametrize("owner", ["mallory", "alice"])
def test_what_claims_to_be_large_takes_no_memory(place: Strangers, one_mpi: Mpi, owner: str) -> None:
    """Files of 2.5 GB that are holes, and small ones with large numbers: not more than 1 GB."""
    left = place.killed_job(owner, one_mpi, place.shared / "x.db", calls=CALLS)
    arena = place.read(left[0])
    place.do("root", 'rm "$1"', left[1])
    for title, content in large(arena).items():
        place.write(owner, left[0], content)
        if title not in ("index", "size"):
            place.do(owner, 'truncate -s 2500M "$1"', left[0])
        for command in (("hang",), ("top", "-n", "1"), ("recover", "-o", "x.db"), ("clean",)):
            place.do("alice", "rm -f x.db")
            assert peak_of(place, "alice", *command) < GIGABYTE, (title, command)
            if owner == "mallory":
                assert peak_of(place, "alice", *command, left[0]) < GIGABYTE, (title, command)
        if (title, owner) == ("as it is", "alice"):
            assert place.commlens("alice", "recover", "-o", "x.db").returncode in (0, 3)
            assert allreduces(place, place.homes["alice"] / "x.db") == {0: CALLS}


# -- programs with more rights than their user ------------------------------------------------------------------------


def test_a_privileged_program_reads_and_writes_nothing_of_its_user(place: Strangers, mpi: Mpi) -> None:
    """A setuid program of root that is linked with commlens: the environment says nothing, and nothing is measured."""
    program, home = mpi.compile("storage.c", link=True), place.homes["root"]
    (path,) = place.prepare(mpi, 1, [program], place.shared / "x.db", mode="link")[0][-1:]
    place.write("root", home / "secret", "TOKEN=1234\nof root\n", 0o600)
    place.do("root", 'mkdir arenas; chmod 4755 "$1"', path)
    options = {
        "COMMLENS_CONFIG": str(home / "secret"),
        "COMMLENS_OUTPUT": str(home / "made.db"),
        "COMMLENS_ARENA_DIR": str(home / "arenas"),
        "COMMLENS_FLUSH_EVERY": "1",
    }
    steps = ["work", "5"]
    before = place.listing(home)
    plain = place.run("alice", [path, *steps], env={**mpi.environment, "COMMLENS_ENABLE": "0"})
    done = place.run("alice", [path, *steps], env={**mpi.environment, **options})
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (0, "done 5\n"), done
    assert "TOKEN" not in done.stderr
    assert "of root" not in done.stderr
    assert place.listing(home) == before
    assert not [name for name in place.listing(place.shm) if "commlens" in name]
    assert not [name for name in place.listing(place.homes["alice"]) if name.endswith(".db")]


PLANTED = {
    "a link to a folder": 'ln -s "$2" "$1"',
    "a folder": 'mkdir -m 777 "$1"',
    "a link to the null device": 'ln -s /dev/null "$1"',
    "a link to nothing": 'ln -s "$2/new" "$1"',
    "a file": 'touch "$1"',
}


@VICTIMS
@FOLDERS
@pytest.mark.parametrize("what", PLANTED)
def test_who_takes_the_name_of_a_profile_decides_nothing(
    place: Strangers, one_mpi: Mpi, victim: str, folder: str, what: str
) -> None:
    """Where others may write, they can guess the name: the profile is beside it, and nowhere else."""
    shared: Path = getattr(place, folder)
    target = place.homes[victim] / "target"
    place.do(victim, 'mkdir -m 755 "$1"', target)
    place.do("mallory", PLANTED[what], shared / "out.db", target)
    before = place.listing(shared)
    done = place.launch(
        victim, one_mpi, 2, [one_mpi.compile("storage.c"), "work", str(CALLS)], shared / "out.db"
    )
    assert done.returncode == 0, done
    assert f"profile of 2 ranks in {shared}/out.1.db" in done.stderr
    assert not place.listing(target)
    assert place.owner(shared / "out.1.db") == victim
    assert allreduces(place, shared / "out.1.db") == {0: CALLS, 1: CALLS}
    after = place.listing(shared)
    assert {name: after[name] for name in before} == before, "what is planted stays as it was"


def test_a_folder_of_another_user_is_used_when_it_is_meant(place: Strangers, one_mpi: Mpi) -> None:
    """It is named with a slash at its end, or nobody else could have put it there."""
    program: list[str | Path] = [one_mpi.compile("storage.c"), "work", str(CALLS)]
    place.do("mallory", 'mkdir -m 777 "$1"; mkdir -m 755 own; mkdir -m 777 own/out', place.shared / "out")
    place.do("mallory", "chmod 755 .")
    for output in (f"{place.shared}/out/", str(place.homes["mallory"] / "own" / "out")):
        command, env = place.prepare(one_mpi, 2, program, Path("x.db"))
        env["COMMLENS_OUTPUT"] = output
        done = place.run("alice", command, env=env)
        assert done.returncode == 0, done
        assert f"profile of 2 ranks in {output.rstrip('/')}/commlens-" in done.stderr, done
