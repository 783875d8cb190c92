# SPDX-License-Identifier: Apache-2.0
"""`commlens overhead`: an application whose times are written down stands in for a real one."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import Run as Command
from tests.needs import need_modules

from commlens.base.errors import CommlensError
from commlens.compare.statistics import adjusted
from commlens.overhead import legs, measure, raw
from commlens.overhead.estimate import corrected, costs
from commlens.overhead.legs import BASELINE, HERE, Tool, parse_tool, parse_wrapper, split
from commlens.overhead.measure import Run, Times, summarize

ROOT = Path(__file__).resolve().parents[2]
MS = 10**6
ROUNDS = 8
COST = 1_200_000

# Two processes: MPI_Init, between, MPI_Finalize in ns, KiB.  A tool says by COST what it adds to each, and may write.
APPLICATION = f"""#!{sys.executable}
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["STOPWATCH_OF_COMMLENS"])
cost = int(os.environ.get("COST", 0))
first, loaded = os.environ.get("FIRST", "1"), os.environ.get("LOADED", "1")
for rank in range(int(os.environ.get("RANKS", 2))):
    net = 10_000_000 + rank * 2_000_000
    line = f"{{100_000 + cost}} {{net + cost}} {{200_000 + cost}} {{1024 * (rank + 1) + cost // 1000}} {{first}} {{loaded}}"
    (folder / f"node.{{rank}}").write_text(line)
if "WRITES" in os.environ:
    pathlib.Path(os.environ["WRITES"], "profile").write_bytes(b"x" * 5000)
if "FAILS" in os.environ and int(folder.name.split("-")[0]) >= int(os.environ["FAILS"]):
    print("no such input")
    sys.exit(3)
if folder.name.split("-")[0] in os.environ.get("CRASHES", "").split("+"):
    os.kill(os.getpid(), 11)
time.sleep(0.013)
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a folder with an application, a launcher and two libraries, none of which is loaded."""
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("app", APPLICATION),
        ("mpirun", '#!/bin/sh\nshift 2\nexec "$@"\n'),
        ("node", "#!/bin/sh\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    (tmp_path / "libtool.so").symlink_to("/dev/null")
    monkeypatch.setattr("commlens.overhead.legs.find_stopwatch", lambda: Path("/dev/null"))
    return tmp_path


LAUNCH = ("--", "mpirun", "-n", "2", "./app")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("./app input", "{} ./app input"),
        ("taskset -c 0,1 mpirun -n 2 ./app mpirun", "taskset -c 0,1 mpirun -n 2 {} ./app mpirun"),
        ("mpirun -n 2 ./app -x", "mpirun -n 2 {} ./app -x"),
        ("mpirun --oversubscribe -np 2 --map-by node ./app node", "mpirun --oversubscribe -np 2 --map-by node {} ./app node"),
        ("mpirun -n 1 ./app a : -n 2 ./app b", "mpirun -n 1 {} ./app a : -n 2 {} ./app b"),
        ("mpirun -n 2 --quiet ls", "mpirun -n 2 --quiet {} ls"),
        ("mpirun -n 2 env A=1 ./app", "mpirun -n 2 {} env A=1 ./app"),
        ("mpirun -genv X ./app --mca btl sm ./app", "mpirun -genv X ./app --mca btl sm {} ./app"),
        ("mpirun --odd node {} ./app", "mpirun --odd node {} ./app"),
    ],
)  # fmt: skip
def test_the_application_is_found_behind_the_launcher(command: str, expected: str) -> None:
    assert split(command.split()) == expected.split()


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("mpirun -n 2", "no application found in '-n 2'"),
        ("mpirun --odd node ./app", "cannot tell whether 'node' or './app' is the application"),
        ("mpirun -n 2 nothing-of-that-name", "no application found"),
        ("nothing-of-that-name x", "nothing-of-that-name: no such command"),
        ("mpirun -n 2 {} commlens-run ./app", "omit commlens-run"),
    ],
)
def test_what_is_not_clear_is_asked_for(command: str, complaint: str) -> None:
    with pytest.raises(CommlensError, match=complaint):
        split(command.split())


def test_a_tool_is_loaded_behind_the_stopwatch(workplace: Path) -> None:
    launch = ["mpirun", HERE, "./app"]
    begin = ["mpirun", "env", "STOPWATCH_OF_COMMLENS=/runs/1-1"]
    preload = ["sh", "-c", legs.PRELOAD, "sh"]
    off = "COMMLENS_ENABLE=0"  # on a machine that measures every job
    expected = [
        (Tool(BASELINE), ["TOOL_OF_COMMLENS=", off, *preload, "/sw.so"]),
        (
            parse_tool("t=libtool.so,A=x{out}y,B=1,2"),
            [
                "A=x/runs/1-1/outy",
                "B=1,2",
                f"TOOL_OF_COMMLENS={workplace}/libtool.so",
                off,
                *preload,
                f"/sw.so:{workplace}/libtool.so",
            ],
        ),
        (parse_wrapper("w=nice -n 1"), [off, "nice", "-n", "1", *preload, "/sw.so"]),
        (parse_wrapper("c=sh commlens-run"), [*preload, "/sw.so", "sh", "commlens-run"]),
    ]
    for tool, words in expected:
        assert tool.command(launch, Path("/sw.so"), Path("/runs/1-1")) == [*begin, *words, "./app"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x", "not NAME=LIBRARY"),
        ("x=", "not NAME=LIBRARY"),
        ("x=nothing.so", "nothing.so: no such library"),
        ("a b=libtool.so", "is not a valid tool name"),
        ("baseline=libtool.so", "is not a valid tool name"),
        ("x=a dir/lib.so", "space or a colon"),
    ],
)
def test_a_tool_that_cannot_be_loaded_is_refused(workplace: Path, text: str, complaint: str) -> None:
    (workplace / "a dir").mkdir()
    (workplace / "a dir" / "lib.so").touch()
    with pytest.raises(ValueError, match=complaint):
        parse_tool(text)


def test_the_parts_of_a_run_add_up_to_the_whole() -> None:
    """On paper: net is the longest (80), hook what the longest stay (10 + 60 + 25 = 95) is longer, wrap the rest."""
    times = [Times(5, 80, 5, 100, 1, 1), Times(10, 60, 25, 300, 1, 1)]
    run = summarize(times, 120, 7, 3, 1, "t")
    assert (run.net_ns, run.hook_ns, run.wrap_ns, run.wall_ns) == (80, 15, 25, 120)
    assert (run.processes, run.memory_bytes, run.output_bytes) == (2, 300 * 1024, 7)


@pytest.mark.long
def test_known_costs_are_found(run: Command) -> None:
    """12 ms net of the slower process; a tool that adds 1.2 ms everywhere: 10 % net, 2.4 ms of hook, 1,200 KiB."""
    done = run(
        "overhead", "--runs", ROUNDS, "--tool", f"slow=libtool.so,COST={COST},WRITES={{out}}",
        "--tool", "free=libtool.so", "--format", "json", "--to", "raw.csv", *LAUNCH,
    )  # fmt: skip
    assert done.exit_code == 0, done
    assert f"{3 * ROUNDS} runs of {3 * ROUNDS + 3} to go" in done.stderr
    said = json.loads(done.stdout)
    assert (said["processes"], said["rounds"]) == (2, ROUNDS)
    baseline, slow, free = sorted(
        said["tools"], key=lambda tool: ["baseline", "slow", "free"].index(tool["tool"])
    )
    assert (baseline["net_ns"], baseline["hook_ns"], baseline["ratio"]) == (12 * MS, 300_000, None)
    assert (slow["net_ns"], slow["hook_ns"], slow["output_bytes"]) == (
        12 * MS + COST,
        300_000 + 2 * COST,
        5000,
    )
    for number in ("value", "low", "high"):
        assert slow["ratio"][number] == pytest.approx(0.1)
        assert slow["net"][number] == COST and slow["hook"][number] == 2 * COST
        assert slow["memory"][number] == 1200 * 1024
    assert slow["ratio"]["is_resolved"] and slow["ratio"]["p"] < 0.02
    assert not free["ratio"]["is_resolved"] and free["ratio"]["p"] == 1 and free["ratio"]["needed"] is None
    kept = raw.read(Path("raw.csv"))
    assert len(kept) == 3 * (ROUNDS + 1)
    assert all(one.wall_ns >= 13 * MS for one in kept)
    orders = {tuple(one.tool for one in kept if one.round == number) for number in range(1, ROUNDS + 1)}
    assert len(orders) > 1
    assert not list(Path.cwd().glob(".commlens-overhead-*"))


@pytest.mark.long
def test_what_was_kept_says_the_same_again(run: Command) -> None:
    arguments = ("--format", "csv", "--to", "raw.csv", "--runs", 6, "--tool", "t=libtool.so,COST=100000")
    first = run("overhead", *arguments, *LAUNCH)
    assert first.exit_code == 0, first
    again = run("overhead", "--from", "raw.csv", "--format", "csv")
    assert again.stdout == first.stdout
    table = run("overhead", "--from", "raw.csv")
    assert "t costs 0.83 % net (+0.83 % to +0.83 %" in table.stdout
    assert "2 processes, 6 rounds" in table.stdout


@pytest.mark.long
def test_charts_hold_what_was_found(run: Command) -> None:
    need_modules("matplotlib")
    names = ("o.svg", "o.png", "o.html")
    outputs = [word for name in names for word in ("--to", name)]
    done = run("overhead", "--runs", 6, *outputs, "--tool", f"t=libtool.so,COST={COST}", *LAUNCH)
    assert done.exit_code == 0, done
    ElementTree.parse("o.svg")
    assert Path("o.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    page = Path("o.html").read_text()
    assert "t costs 10.0 % net" in page and "<svg" in page
    assert all(f"<td>{text}</td>" in page for text in ("baseline", "t", "12.0 ms", "13.2 ms", "+10.0 %"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--tool", "t=libtool.so,FAILS=0"), "t, round 0: 'mpirun"),
        (("--tool", "t=libtool.so,RANKS=0"), "no process reached MPI_Init"),
        (
            ("--tool", "t=libtool.so,RANKS=3"),
            "t, round 0: 3 processes reached MPI_Init and MPI_Finalize, but 2 in",
        ),
        (("--tool", "t=libtool.so,FIRST=0"), "the tool is loaded before the stopwatch"),
        (("--tool", "t=libtool.so,LOADED=0"), "libtool.so is not loaded"),
        (("--tool", "t=libtool.so", "--wrapper", "t=nice"), "two tools have the same name"),
        (("--tool", "t=libtool.so", "--to", "app"), "--to writes"),
        (("--tool", "t=libtool.so", "--to", "there.csv"), "there.csv: exists"),
        (("--tool", "t=libtool.so", "--to", "a.csv", "--to", "a.csv"), "a.csv: named twice by --to"),
        (("--wrapper", "t=nothing-of-that-name"), "no such command"),
        (("--from", "there.csv"), "--from runs nothing"),
    ],
)
def test_what_cannot_be_measured_is_said_in_a_line(
    run: Command, arguments: tuple[str, ...], complaint: str
) -> None:
    Path("there.csv").touch()
    done = run("overhead", *arguments, *LAUNCH)
    assert done.exit_code == 2 and complaint in done.stderr, done
    assert done.stdout == ""


@pytest.mark.long
def test_a_tool_that_crashes_gets_a_column_and_the_others_are_measured_on(run: Command) -> None:
    """Tool t dies in the warm-up and in 3 of 10 rounds, u always ends with an error, v costs 10 %."""
    done = run(
        "overhead", "--runs", 10, "--tool", "t=libtool.so,CRASHES=0+2+5+9", "--tool", "u=libtool.so,FAILS=0",
        "--tool", f"v=libtool.so,COST={COST}", "--to", "raw.csv", *LAUNCH,
    )  # fmt: skip
    assert done.exit_code == 0, done
    said = [line for line in done.stderr.splitlines() if " ended with " in line or line == "  no such input"]
    assert [line.split(":")[1] for line in said[:2]] == [" t, round 0", " u, round 0"]
    assert said[2:] == ["  no such input"]
    table = done.stdout.split("\n\n")[1].splitlines()
    assert table[0].endswith("crashed")
    assert [line.split("  ")[-1].strip() for line in table[2:4]] == [
        "signal 11 in 3 of 10 runs",
        "exit code 3 in 10 of 10 runs",
    ], table
    assert "; it crashed: signal 11 in 3 of 10 runs\n" in done.stdout
    assert "u crashed: exit code 3 in 10 of 10 runs\n" in done.stdout
    assert "v costs 10.0 % net (+10.0 % to +10.0 %" in done.stdout
    kept = raw.read(Path("raw.csv"))
    assert len(kept) == 4 * 11
    assert [one.round for one in kept if one.failure == "signal 11"] == [0, 2, 5, 9]
    again = json.loads(run("overhead", "--from", "raw.csv", "--format", "json").stdout)
    found = {tool["tool"]: tool for tool in again["tools"]}
    assert {name: (tool["runs"], tool["crashed"]) for name, tool in found.items()} == {
        "baseline": (10, ""),
        "t": (7, "signal 11 in 3 of 10 runs"),
        "u": (0, "exit code 3 in 10 of 10 runs"),
        "v": (10, ""),
    }
    assert found["t"]["net_ns"] == 12 * MS and found["t"]["net"]["value"] == 0
    assert found["u"]["net_ns"] is None and found["u"]["ratio"] is None
    assert found["v"]["net"]["value"] == COST


def test_results_from_before_there_was_a_column_for_crashes_are_read(run: Command) -> None:
    assert run("overhead", "--runs", 6, "--tool", "t=libtool.so", "--to", "raw.csv", *LAUNCH).exit_code == 0
    lines = Path("raw.csv").read_text().splitlines()
    assert lines[0].endswith(",output_bytes,failure")
    Path("old.csv").write_text("".join(f"{line.rpartition(',')[0]}\n" for line in lines))
    assert raw.read(Path("old.csv")) == raw.read(Path("raw.csv"))


def test_too_few_runs_are_refused_before_the_first(run: Command) -> None:
    Path("app").write_text("#!/bin/sh\ntouch ran\n")
    done = run("overhead", "--runs", 3, "--tool", "t=libtool.so", *LAUNCH)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "commlens: --runs 3 is too few: use at least 6. With 3, all differences have the same sign by chance in 25 % of "
        "the measurements, and a test with 95 % confidence allows 5 %\n"
    )
    assert not Path("ran").exists()


def test_a_full_disk_is_named(workplace: Path) -> None:
    """A file may have no byte, as on a full disk."""
    done = subprocess.run(
        [sys.executable, "-m", "commlens", "overhead", "--tool", "t=libtool.so", *LAUNCH],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.splitlines()[-1] == (
        f"commlens: {workplace}: disk full (File too large): the runs write their times below it, and tools their files. "
        "Start commlens overhead in a folder with more room"
    )


def baseline_fails(number: int) -> None:
    """Make the runs without a tool fail from this round on; a tool sets COST."""
    text = APPLICATION.replace('"FAILS" in os.environ', '"COST" not in os.environ')
    Path("app").write_text(text.replace('os.environ["FAILS"]', f'"{number}"'))


def test_a_run_without_a_tool_that_fails_ends_the_measurement(run: Command) -> None:
    """In round 1, after a run with a tool, which seed 6 makes so: there is no whole round then."""
    baseline_fails(1)
    done = run(
        "overhead", "--tool", "t=libtool.so,COST=0", "--tool", "u=libtool.so,COST=0", "--seed", 6, "--to", "raw.csv",
        *LAUNCH,
    )  # fmt: skip
    assert done.exit_code == 2 and done.stdout == "", done
    assert "baseline, round 1" in done.stderr and "no such input" in done.stderr
    assert [one.round for one in raw.read(Path("raw.csv"))][:4] == [0, 0, 0, 1]


def test_what_cannot_be_written_in_the_end_keeps_nothing_from_being_shown(run: Command) -> None:
    """The folder of one file goes while the application runs."""
    Path("gone").mkdir()
    Path("app").write_text(APPLICATION + "import shutil\nshutil.rmtree('gone', ignore_errors=True)\n")
    done = run(
        "overhead", "--runs", 6, "--tool", "t=libtool.so", "--to", "gone/raw.csv", "--to", "raw.csv", *LAUNCH
    )
    assert done.exit_code == 2 and "gone/raw.csv: cannot be written" in done.stderr
    assert "2 processes, 6 rounds" in done.stdout
    assert len(raw.read(Path("raw.csv"))) == 14


def test_nothing_is_run_for_charts_that_cannot_be_drawn(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    Path("app").write_text("#!/bin/sh\ntouch ran\n")
    done = run("overhead", "--tool", "t=libtool.so", "--to", "o.html", *LAUNCH)
    assert done.exit_code == 2 and "matplotlib, which is not installed" in done.stderr
    assert not Path("ran").exists()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_measured_before_a_signal_is_kept(workplace: Path, number: signal.Signals) -> None:
    """A batch system ends the job while the launcher of round 2 runs: it is told to end, too."""
    (workplace / "mpirun").write_text(
        "#!/bin/sh\nshift 2\ncase $2 in */2-*) sleep 60 & trap 'touch ended; kill $!; exit 1' TERM; touch runs; wait;; esac\n"
        'exec "$@"\n'
    )
    wrap = "import sys; from pathlib import Path; from commlens.overhead import legs\n"
    wrap += "legs.find_stopwatch = lambda: Path('/dev/null')\nfrom commlens.__main__ import main; main()"
    # A shell starts what runs in the background with SIGINT ignored, and so what that starts.
    python = ["env", "--default-signal=INT", sys.executable, "-c", wrap]
    command = [*python, "overhead", "--tool", "t=libtool.so", "--to", "raw.csv", *LAUNCH]
    environment = {**os.environ, "PYTHONPATH": str(Path(legs.__file__).parents[2])}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not Path("runs").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "stopped after 4 runs" in err, err
    assert "2 processes, 1 rounds" in out
    assert len(raw.read(Path("raw.csv"))) == 4
    assert Path("ended").exists()
    assert not list(workplace.glob(".commlens-overhead-*"))


def test_runs_before_a_failure_are_not_lost(run: Command) -> None:
    baseline_fails(3)
    done = run("overhead", "--tool", "t=libtool.so,COST=0", "--to", "raw.csv", *LAUNCH)
    assert done.exit_code == 2, done
    assert (
        "baseline, round 3" in done.stderr
        and "ended with 3" in done.stderr
        and "no such input" in done.stderr
    )
    assert "2 processes, 2 rounds" in done.stdout
    rounds = {one.round for one in raw.read(Path("raw.csv")) if one.tool == BASELINE}
    assert rounds == {0, 1, 2}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not written by"),
        ("a,b\n1,2\n", "not written by"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t,2,x,1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t,2,1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t,2,1,1,1,1,1\n", "no run without a tool"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t,2,1,1,1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t\x1b[31m,2,1,1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,,2,1,1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + f"\n1,1,t,2,{'9' * 19},1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + f"\n1,1,t,2,{'9' * 9999},1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t,2,-1,1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t,2,1_0,1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t,2,\u0663,1,1,1,1\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + f"\n1,1,{'t' * 200_000},2,1,1,1,1,1\n", "raw.csv"),
        (",".join(measure.COLUMNS) + "\n1,1,t,2,1,1,1,1,1\n", "line 2: not a run"),
        (",".join(measure.COLUMNS) + "\n1,1,t,0,0,0,0,0,0,signal \x1b\n", "line 2: not a run"),
        (",".join(raw.WITHOUT_FAILURE) + '\n1,1,"t', "unexpected end of data"),
        (",".join(raw.WITHOUT_FAILURE) + "\n1,1,t\0,2,1,1,1,1,1\n", "raw.csv"),
        (
            ",".join(raw.WITHOUT_FAILURE) + "".join(f"\n{i},1,baseline,2,1,1,1,1,1" for i in range(1, 1002)),
            "1,001 rounds; at most 1,000",
        ),
        (
            ",".join(raw.WITHOUT_FAILURE)
            + "\n1,1,baseline,2,1,1,1,1,1"
            + "".join(f"\n1,1,t{i},2,1,1,1,1,1" for i in range(64)),
            "65 tools; at most 64",
        ),
    ],
    ids=lambda text: text[-30:],
)
def test_a_file_that_holds_no_runs_is_refused(run: Command, text: str, complaint: str) -> None:
    Path("raw.csv").write_text(text)
    done = run("overhead", "--from", "raw.csv")
    assert done.exit_code == 2 and complaint in done.stderr


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "large", "missing", "bytes"])
def test_only_a_regular_file_of_bounded_size_is_read(run: Command, kind: str) -> None:
    """Each of them is answered at once: nothing waits for a writer, nor for the end of what has none."""
    source, complaint = Path("raw.csv"), "not a regular file"
    if kind == "fifo":
        os.mkfifo(source)
    elif kind == "device":
        source = Path("/dev/zero")
    elif kind == "folder":
        source.mkdir()
    elif kind == "large":
        with source.open("wb") as file:
            file.truncate(1 << 30)
        complaint = "larger than 16,777,216 bytes"
    elif kind == "missing":
        complaint = "No such file or directory"
    else:
        source.write_bytes(b"\xff\xfe\n")
        complaint = "invalid start byte"
    done = run("overhead", "--from", source)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"commlens: {source}: cannot be read: ") and complaint in done.stderr


def test_numbers_at_their_limits_are_shown(run: Command) -> None:
    line = ",".join(["9" * 18] * 2 + [f"-{'9' * 18}"] + ["9" * 18] * 2)
    lines = [f"{i},1,{tool},2,{line}" for i in range(1, 9) for tool in ("baseline", "t")]
    Path("raw.csv").write_text("\n".join([",".join(raw.WITHOUT_FAILURE), *lines]))
    for style in ("table", "csv", "json"):
        done = run("overhead", "--from", "raw.csv", "--format", style)
        assert (done.exit_code, done.stderr) == (0, "") and len(done.stdout) < 10_000


def test_only_whole_rounds_count() -> None:
    def one(number: int, tool: str, net: int) -> Run:
        return Run(number, 1, tool, 2, net, 0, 0, 0, 0)

    runs = [one(0, BASELINE, 9), one(0, "t", 9)]
    runs += [one(number, tool, net) for number in range(1, 6) for tool, net in ((BASELINE, 100), ("t", 102))]
    runs.append(one(6, BASELINE, 1000))
    baseline, tool = costs(runs)
    assert (baseline.net_ns, tool.net_ns) == (100, 102)
    assert tool.ratio is not None and tool.ratio.value == pytest.approx(0.02)


def test_the_command_that_failed_can_be_pasted(run: Command) -> None:
    done = run("overhead", "--tool", "t=libtool.so,FAILS=0,X=a b", *LAUNCH)
    quoted = done.stderr.split("'", 1)[1].split("' ended")[0]
    assert "X=a b" in shlex.split(quoted.replace("'\"'\"'", "'"))


def test_the_verdicts_on_several_tools_are_corrected_for_their_number(run: Command) -> None:
    """Six rounds in which one of three tools is slower each time: p is 2 / 2^6 for it alone."""

    def add(names: Sequence[str]) -> list[Run]:
        base = 10**9
        times = {"slow": [3, 4, 5, 6, 7, 8], "even": [5, -5, 6, -6, 7, -7], "odd": [-4, 4, -3, 3, -2, 2]}
        return [
            Run(number, 1, tool, 2, base + MS * (times[tool][number - 1] if tool in times else 0), 0, 0, 0, 0)
            for number in range(1, 7)
            for tool in (BASELINE, *names)
        ]

    slow, several = add(["slow"]), add(["slow", "even", "odd"])
    alone, first = costs(slow)[1], costs(several)[1]
    assert corrected(costs(slow), adjusted) == costs(slow)
    for before, after in zip(costs(several)[1:], corrected(costs(several), adjusted)[1:]):
        assert before.ratio is not None and after.ratio is not None
        assert (before.ratio.low, before.ratio.high) == (after.ratio.low, after.ratio.high)
    assert alone.ratio is not None and first.ratio is not None
    assert alone.ratio.is_resolved and first.ratio.is_resolved
    Path("one.csv").write_text(raw.text(slow))
    Path("three.csv").write_text(raw.text(several))
    text = " ".join(run("overhead", "--from", "one.csv").stdout.split())
    assert "slow costs 0.55 % net" in text
    text = " ".join(run("overhead", "--from", "three.csv").stdout.split())
    assert "slow: a net cost of +0.55 %" in text and "in 6 runs is not certain, p = 0.0" in text
    assert "costs" not in text
