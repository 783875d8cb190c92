# SPDX-License-Identifier: Apache-2.0
"""Submit the jobs of tools/site_wide.sh and print what became of them.

    python tools/site_wide.py PLACE

PLACE is the folder of the script: a Slurm runs, h1.pid is a process on the host h1, and opt/ an installation of commlens.
Ends with 1 if a job or a check went wrong.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

PLACE = Path(sys.argv[1])
ROOT = Path(__file__).resolve().parents[1]
SITE = PLACE / "opt/share/commlens/site"
PROFILES = PLACE / "scratch/profiles"
CONFIGURATION = Path("/etc/commlens.conf")
PLUGINS = PLACE / "etc/plugstack.conf"
USERS = {"alice": 54321, "bob": 54322}
RANKS = 2
FOLDER = "/"
"""Instead of the text of a configuration: a folder is in its place."""
LONGEST = 900
"""Seconds until all submitted jobs must have ended."""


def host(*command: object, user: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run a command on h1, perhaps as a user, and return what it printed."""
    target = (PLACE / "h1.pid").read_text().strip()
    inside = ["nsenter", "--target", target, "--net", "--uts", "--mount", "--ipc", f"--wd={PLACE}"]
    clean = {
        name: value for name, value in os.environ.items() if name.startswith(("OMPI_MCA_", "SLURM_CONF"))
    }
    given = {**clean, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(env or {})}
    if user:
        number = USERS[user]
        inside += ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
        given |= {"USER": user, "LOGNAME": user, "HOME": str(PLACE / "home" / user)}
    done = subprocess.run(
        [*inside, *map(str, command)],
        env=given,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout.strip()


def ranks_of(path: Path) -> int:
    """Return the number of ranks in a profile."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as profile:
        found: int = profile.execute("SELECT COUNT(*) FROM rank").fetchone()[0]
    return found


class Job(NamedTuple):
    """A job of Slurm; `output` and `errors` are the files of its batch script."""

    id: str
    user: str
    output: Path
    errors: Path

    def facts(self) -> dict[str, str]:
        """Return what Slurm knows of it."""
        return dict(re.findall(r"(\w+)=(\S*)", host("scontrol", "show", "--oneliner", "job", self.id)))

    def said(self) -> list[str]:
        """Return the lines of commlens in its output."""
        lines = (self.output.read_text() + self.errors.read_text()).splitlines()
        return [line for line in lines if "commlens: " in line]

    def profiles(self) -> list[int]:
        """Return the number of ranks in each of its profiles."""
        return [ranks_of(path) for path in sorted(PROFILES.glob(f"{self.user}/*/commlens-*-{self.id}.*"))]


def submit(script: str, user: str, env: Mapping[str, str] | None = None, *options: str) -> list[Job]:
    """Submit a batch script for two tasks on a node; return its job, or those of its array."""
    home = PLACE / "home" / user
    files = [f"--output={home}/%j.out", f"--error={home}/%j.err"]
    command = [
        "sbatch",
        "--parsable",
        "--nodes=1",
        f"--ntasks={RANKS}",
        "--time=10",
        f"--chdir={home}",
        *files,
        *options,
    ]
    number = host(*command, f"--wrap={script}", user=user, env=env)
    return [Job(number, user, home / f"{number}.out", home / f"{number}.err")]


def tasks_of(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs, with the tasks of an array in place of the array."""
    found = []
    for job in jobs:
        for number in re.findall(
            r"^JobId=(\d+)", host("scontrol", "show", "--oneliner", "job", job.id), re.MULTILINE
        ):
            found.append(
                Job(
                    number, job.user, job.output.parent / f"{number}.out", job.errors.parent / f"{number}.err"
                )
            )
    return found


def wait_for_all() -> None:
    """Wait until no job is left."""
    for _ in range(LONGEST):
        if not host("squeue", "--noheader"):
            return
        time.sleep(1)
    raise SystemExit(f"jobs are left after {LONGEST} s:\n{host('squeue')}")


class Kind(NamedTuple):
    """A kind of job, and what is expected of each."""

    name: str
    number: int
    script: str
    profiles: int = 1
    state: str = "COMPLETED 0:0"
    printed: str = "sum 1"
    options: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    array: bool = False
    killed: bool = False


OPENMPI, MPICH = f"srun --mpi=pmix {PLACE}/site_job.openmpi", f"srun --mpi=pmi2 {PLACE}/site_job.mpich5"
MPICH_ON = MPICH.replace("srun", "srun --commlens=on")
PYTHON = "from mpi4py import MPI; s = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank); MPI.COMM_WORLD.rank or print('sum', s)"
OFF = {"COMMLENS_ENABLE": "0"}
KINDS = (
    Kind("Open MPI, srun", 20, OPENMPI),
    Kind("MPICH, srun", 15, MPICH),
    Kind("Open MPI, mpirun in the script", 10, f"mpirun.openmpi -n {RANKS} {PLACE}/site_job.openmpi"),
    Kind("Python with mpi4py, srun", 10, f'srun --mpi=pmix /usr/bin/python3 -c "{PYTHON}"'),
    Kind("no MPI: shell, srun of a program", 10, "srun true; ls / | grep -c etc", profiles=0, printed="1"),
    Kind("tasks of an array", 10, OPENMPI, options=("--array=1-10",), array=True),
    Kind("program with exit code 3", 5, f"{OPENMPI} 3", state="FAILED 3:0"),
    Kind("job that is cancelled", 5, f"{OPENMPI} wait", profiles=0, state="CANCELLED", killed=True),
    Kind("opted out: COMMLENS_ENABLE=0", 5, OPENMPI, profiles=0, env=OFF),
    Kind("opted out: sbatch --commlens=off", 5, MPICH, profiles=0, options=("--commlens=off",)),
    Kind("the same, but srun --commlens=on", 5, MPICH_ON, options=("--commlens=off",)),
)

failures = 0


def verdict(text: str, *problems: str) -> None:
    """Print a line about a check, and its problems."""
    global failures
    problems = tuple(problem for problem in problems if problem)
    print(f"  {'FAILED' if problems else 'ok':<6}  {text}")
    for problem in problems[:3]:
        print(f"          {problem}")
    failures += bool(problems)
    sys.stdout.flush()


def problem_of(job: Job, kind: Kind) -> str:
    """Return what is wrong with a job that has ended; empty: nothing."""
    facts = job.facts()
    state = facts["JobState"] if kind.killed else f"{facts['JobState']} {facts['ExitCode']}"
    found = {
        "state": (state, kind.state),
        "printed": (job.output.read_text().strip(), kind.printed),
        "said": (job.said(), []),
        "profiles": (job.profiles(), [RANKS] * kind.profiles),
    }
    wrong = [f"{what} {is_}, not {wanted}" for what, (is_, wanted) in found.items() if is_ != wanted]
    return f"job {job.id}: {'; '.join(wrong)}" if wrong else ""


def configure(text: str | None = None, plugins: str | None = None) -> None:
    """Write the configuration of commlens and the list of plug-ins; None: as installed."""
    installed = (SITE / "commlens.conf").read_text().replace("/scratch/", f"{PLACE}/scratch/")
    if CONFIGURATION.is_dir():
        CONFIGURATION.rmdir()
    CONFIGURATION.unlink(missing_ok=True)
    if text == FOLDER:
        CONFIGURATION.mkdir()
    else:
        CONFIGURATION.write_text(installed if text is None else text)
    PLUGINS.write_text((SITE / "plugstack.conf").read_text() if plugins is None else plugins)


def cancel_when_running(jobs: Sequence[Job]) -> None:
    """Cancel each job after its ranks have counted."""
    left = list(jobs)
    for _ in range(LONGEST):
        for job in [job for job in left if job.output.exists() and "sum" in job.output.read_text()]:
            host("scancel", job.id, user=job.user)
            left.remove(job)
        if not left:
            return
        time.sleep(1)
    raise SystemExit(f"{len(left)} jobs that are to be cancelled did not start")


def hundred() -> None:
    """Run the hundred jobs of two users, all submitted at once, and print a table."""
    submitted: list[tuple[Kind, list[Job]]] = []
    for kind in KINDS:
        jobs: list[Job] = []
        for n in range(1 if kind.array else kind.number):
            jobs += submit(kind.script, ("alice", "bob")[n % 2], kind.env, *kind.options)
        submitted.append((kind, jobs))
    for kind, jobs in submitted:
        if kind.killed:
            cancel_when_running(jobs)
    wait_for_all()
    submitted = [(kind, tasks_of(jobs)) for kind, jobs in submitted]
    print(f"\n  {'jobs':<34}{'number':>7}{'ended as without':>18}{'profiles':>10}{'ranks':>7}{'lines':>7}")
    for kind, jobs in submitted:
        problems = [problem_of(job, kind) for job in jobs]
        profiles = [ranks for job in jobs for ranks in job.profiles()]
        good = len(jobs) - len([problem for problem in problems if problem])
        lines = sum(len(job.said()) for job in jobs)
        print(f"  {kind.name:<34}{len(jobs):>7}{good:>18}{len(profiles):>10}{sum(profiles):>7}{lines:>7}")
        wrong = [problem for problem in problems if problem]
        if wrong or len(jobs) != kind.number:
            verdict(
                f"{kind.name}: {len(jobs)} of {kind.number} jobs", *wrong, "" if wrong else "jobs are missing"
            )
    print()
    wrong = [problem for kind, jobs in submitted for job in jobs if (problem := problem_of(job, kind))]
    total = sum(len(jobs) for _, jobs in submitted)
    verdict(f"{total} jobs; each has ended, and printed, as it does without commlens", *wrong)
    check_permissions()
    check_cancelled([job for kind, jobs in submitted if kind.killed for job in jobs])


def check_permissions() -> None:
    """Check that users cannot read the profiles of others."""
    wrong = [
        f"{path}: {path.stat().st_mode:o} {path.owner()}"
        for path in PROFILES.rglob("*")
        if path.stat().st_mode & 0o077 or path.owner() != path.relative_to(PROFILES).parts[0]
    ]
    verdict(
        f"all {len(list(PROFILES.rglob('*.db')))} profiles, and their folders, belong to their users, who alone may read them",
        *wrong,
    )
    theirs = next(PROFILES.glob("alice/*/*.db"))
    answer = host(
        "sh",
        "-c",
        f"cat {theirs} >/dev/null 2>&1; echo $?; ls {theirs.parent} >/dev/null 2>&1; echo $?",
        user="bob",
    )
    verdict(
        "bob can neither read a profile of alice nor see its name",
        "" if answer.split() == ["1", "2"] else answer,
    )


def check_cancelled(jobs: Sequence[Job]) -> None:
    """Check that the users of the cancelled jobs can make profiles of the counters that these left."""
    folders = list(PROFILES.glob("*/*/commlens-arenas-*"))
    found = []
    for folder in folders:
        user, profile = folder.owner(), PLACE / "home" / folder.owner() / f"{folder.name}.db"
        command = [
            ROOT / ".venv/bin/python",
            "-m",
            "commlens",
            "recover",
            "--job",
            folder.name.rpartition("-")[2],
        ]
        host(*command, "-o", profile, folder.parent, user=user, env={"PYTHONPATH": str(ROOT / "python")})
        found.append(ranks_of(profile))
    verdict(
        f"each of the {len(jobs)} cancelled jobs left its counters: commlens recover makes {len(found)} profiles of {RANKS} ranks",
        "" if found == [RANKS] * len(jobs) else f"ranks: {found}",
    )


def broken(
    name: str, wanted: Sequence[str], stored: int, text: str | None = None, plugins: str | None = None
) -> None:
    """Run four jobs with a broken configuration; check that they end well, and what is said, once per job."""
    configure(text, plugins)
    jobs = [job for script in (OPENMPI, MPICH) for user in USERS for job in submit(script, user)]
    wait_for_all()
    problems = []
    for job in jobs:
        facts, said = job.facts(), job.said()
        if (
            f"{facts['JobState']} {facts['ExitCode']}" != "COMPLETED 0:0"
            or job.output.read_text().count("sum 1") != 1
        ):
            problems.append(f"job {job.id}: {facts['JobState']} {facts['ExitCode']}")
        elif len(said) != len(wanted) or not all(re.search(w, s) for w, s in zip(wanted, said, strict=True)):
            problems.append(f"job {job.id} said {said}")
        elif len(job.profiles()) != stored:
            problems.append(f"job {job.id}: {job.profiles()} ranks in profiles")
    where = f"{stored * len(jobs)} profiles in the folder of the site"
    verdict(f"{name}: {len(jobs)} jobs end well, {where}", *problems)
    for line in jobs[0].said():
        print(f"          {line.replace(str(PLACE), '')}")


def broken_configurations() -> None:
    """Break the configuration in every way that is likely."""
    print("\nbroken configurations")
    plugin = (SITE / "plugstack.conf").read_text()
    usual = (SITE / "commlens.conf").read_text().replace("/scratch/", f"{PLACE}/scratch/")
    broken("an unknown option", ["'samples = 0.1' is not an option"], 1, usual + "samples = 0.1\n")
    broken("an invalid value", ["'10%' is invalid"], 1, usual + "sample = 10%\n")
    broken(
        "a folder that does not exist",
        ["cannot create folder .*No such file"],
        0,
        usual.replace("/profiles/", "/none/"),
    )
    broken(
        "a folder in which nobody may write",
        ["cannot create folder .*Permission denied"],
        0,
        usual.replace("/profiles/", "/closed/"),
    )
    broken(
        "a full disk",
        ["cannot (write|create|create folder) .*No space left"],
        0,
        usual.replace("/profiles/", "/full/"),
    )
    three = ["is not used: it is a directory", "profile of 2 ranks in", "of the time in MPI"]
    broken("a configuration that is a folder: the defaults hold", three, 0, FOLDER)
    broken(
        "a library that is missing",
        ["there is no .*; the job runs unprofiled"],
        0,
        None,
        plugin.replace("-any.so", "-gone.so"),
    )
    broken("a plug-in that is missing", [], 0, None, plugin.replace("/spank_commlens.so", "/gone.so"))
    broken("a line without library=", ["names no library="], 0, None, re.sub(r"library=\S+", "", plugin))


def task_prolog() -> None:
    """Measure jobs by the task prolog instead of the plug-in."""
    print("\nTaskProlog instead of the plug-in")
    configure(None, "")
    configuration = PLACE / "etc/slurm.conf"
    usual = configuration.read_text()
    prolog = PLACE / "opt/share/commlens/site/task_prolog.sh"
    configuration.write_text(f"{usual}TaskProlog={prolog}\n")
    host("scontrol", "reconfigure")
    time.sleep(3)
    broken("commlens.conf as installed", [], 1, None, "")
    text = prolog.read_text()
    prolog.write_text(text.replace("-any.so", "-gone.so"))
    broken("a library that is missing", ["there is no .*; the job runs unprofiled"], 0, None, "")
    prolog.unlink()
    (job,) = submit(OPENMPI, "alice")
    wait_for_all()
    facts = job.facts()
    # What Slurm does itself, without commlens.
    print(f"  Slurm   a TaskProlog that is missing: the job ends as {facts['JobState']} {facts['ExitCode']}")
    prolog.write_text(text)
    configuration.write_text(usual)
    host("scontrol", "reconfigure")
    time.sleep(3)


def preloaded_everywhere() -> None:
    """Measure jobs by /etc/ld.so.preload: then each process of the machine loads the library."""
    print("\n/etc/ld.so.preload instead of the plug-in")
    configure(None, "")
    preload = Path("/etc/ld.so.preload")
    preload.write_text(f"{PLACE}/opt/lib/commlens/libcommlens-any.so\n")
    broken("commlens.conf as installed", [], 1, None, "")
    answer = host("sh", "-c", "grep -c libcommlens-any.so /proc/self/maps >/dev/null && id -un", user="bob")
    verdict("programs of the system run on", "" if answer == "bob" else answer)
    preload.unlink()


def sampled() -> None:
    """Measure half of the jobs."""
    print("\nsample = 0.5")
    usual = (SITE / "commlens.conf").read_text().replace("/scratch/", f"{PLACE}/scratch/")
    configure(f"{usual}sample = 0.5\n")
    jobs = [job for n in range(16) for job in submit(f"{OPENMPI}; {MPICH}", ("alice", "bob")[n % 2])]
    wait_for_all()
    found = [job.profiles() for job in jobs]
    problems = [f"{ranks} ranks in profiles" for ranks in found if ranks not in ([], [RANKS, RANKS])]
    measured = [job.id for job, ranks in zip(jobs, found, strict=True) if ranks]
    verdict(
        f"of {len(jobs)} jobs with two steps, {len(measured)} have profiles of both steps with all ranks, the others none",
        *problems,
        "" if 0 < len(measured) < len(jobs) else f"measured {measured}",
    )


def cost() -> None:
    """Print what a process without MPI costs, in instructions and in time, without and with the library."""
    print("\ncost for /bin/true, a program without MPI")
    print(f"  {'preloaded':<34}{'instructions':>14}{'shortest of 300 starts':>25}")
    libraries = {
        "nothing": "",
        "libcommlens-any.so": "libcommlens-any.so",
        "libcommlens.so": "openmpi/libcommlens.so",
    }
    for name, file in libraries.items():
        path = f"{PLACE}/opt/lib/commlens/{file}" if file else ""
        env = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": path}
        count = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "/bin/true"]
        counted = subprocess.run(count, env=env, capture_output=True, text=True, check=True).stderr
        instructions = int(re.findall(r"Collected : (\d+)", counted)[-1])
        times = []
        for _ in range(300):
            begin = time.perf_counter_ns()
            os.waitpid(os.posix_spawn("/bin/true", ["true"], env), 0)
            times.append(time.perf_counter_ns() - begin)
        print(f"  {name:<34}{instructions:>14,}{min(times) / 1000:>22.0f} us")


def prepare() -> None:
    """Make the folders for profiles: as the guide has it, and closed."""
    PROFILES.mkdir(parents=True)
    PROFILES.chmod(0o1777)
    (PROFILES.parent / "closed").mkdir(mode=0o755)


def main() -> int:
    """Run all parts."""
    prepare()
    configure()
    print(host("srun", "--version"))
    print("plug-in, commlens.conf as installed; 100 jobs of two users")
    hundred()
    broken_configurations()
    task_prolog()
    preloaded_everywhere()
    sampled()
    cost()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
