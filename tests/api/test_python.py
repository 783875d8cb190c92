# SPDX-License-Identifier: Apache-2.0
"""The interface for Python, where it is Python's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from application import ROOT, Kit


def calls(kit: Kit, text: str) -> list[str]:
    """Return what the profiler was told by lines of Python, which assert the rest themselves."""
    return [call.split(" ", 1)[1] for call in kit.python("import commlens\n" + text).calls]


def test_importing_it_loads_nothing_of_the_reader() -> None:
    script = "import sys; before = set(sys.modules); import commlens; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "commlens.annotate" in loaded
    assert {name for name in loaded if name.startswith("commlens")} == {"commlens", "commlens.annotate"}
    assert not {name.split(".")[0] for name in loaded} & {"click", "rich", "sqlite3", "inspect", "asyncio"}


def test_no_file_of_the_package_takes_the_name_of_a_function() -> None:
    import commlens

    files = {path.stem for path in (ROOT / "python/commlens").iterdir()}
    assert files.isdisjoint(commlens.__all__)


def test_every_folder_of_the_package_is_one_that_is_installed() -> None:
    # A folder without __init__.py is a namespace package, which other tools may leave out.
    folders = {path.parent for path in (ROOT / "python/commlens").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_decorated_functions_nest_and_recur(kit: Kit) -> None:
    assert (
        calls(
            kit,
            """
@commlens.region("outer")
@commlens.region
def down(n):
    return n and down(n - 1)

assert down(1) == 0
assert down.__name__ == "down"
""",
        )
        == ["begin outer", "begin down"] * 2 + ["end down", "end outer"] * 2
    )


def test_a_decorated_method_is_a_method(kit: Kit) -> None:
    assert calls(
        kit,
        """
class Solver:
    @commlens.region
    def solve(self, x, *, y):
        return self, x, y

    @staticmethod
    @commlens.region("static")
    def alone(x):
        return x

solver = Solver()
assert solver.solve(1, y=2) == (solver, 1, 2)
assert solver.alone(3) == 3
""",
    ) == ["begin solve", "end solve", "begin static", "end static"]


def test_what_cannot_be_a_region_is_refused_with_and_without_the_profiler(kit: Kit) -> None:
    assert (
        calls(
            kit,
            """
import functools
async def coroutine(): pass
def generator(): yield
async def both(): yield
class Class: pass
class Called:
    async def __call__(self): pass
partial = functools.partial(functools.partial(generator))
for wrong in (coroutine, generator, both, Class, staticmethod(len), classmethod(len), 3, None, partial, Called()):
    for decorate in (commlens.region, commlens.region("name")):
        try:
            decorate(wrong)
        except TypeError as error:
            print(str(error).split(" at 0x")[0])
        else:
            raise AssertionError(wrong)
""",
        )
        == []
    )


def test_an_exception_ends_the_region_and_goes_on(kit: Kit) -> None:
    assert calls(
        kit,
        """
try:
    with commlens.region("outer"), commlens.region("inner"):
        raise KeyError("mine")
except KeyError as error:
    assert error.args == ("mine",)
try:
    with commlens.region("left"):
        raise SystemExit
except SystemExit:
    pass
""",
    ) == ["begin outer", "begin inner", "end inner", "end outer", "begin left", "end left"]


def test_a_loop_that_is_left_ends(kit: Kit) -> None:
    assert calls(
        kit,
        """
def first():
    for i in commlens.loop("returned", "abc"):
        return i
assert first() == "a"
for i in commlens.loop("broken", range(9)):
    break
try:
    for i in commlens.loop("raised", range(9), each=True):
        raise KeyError
except KeyError:
    pass
for i in commlens.loop("empty", ()):
    pass
print("end")
commlens.tag("after", "all")
""",
    ) == [
        *["loop returned 0", "iteration", "end returned"],
        *["loop broken 0", "iteration", "end broken"],
        *["loop raised 1", "iteration", "end raised"],
        *["loop empty 0", "end empty"],
        "tag after=all",
    ]


def test_a_loop_begins_when_it_is_iterated(kit: Kit) -> None:
    assert (
        calls(
            kit,
            "steps = commlens.loop('steps', range(3))\nassert iter(steps) is steps\nassert steps.close() is None",
        )
        == []
    )


def test_regions_and_metrics_go_to_another_process_by_name(kit: Kit) -> None:
    assert calls(
        kit,
        """
import copy, pickle, sys
region, metric = pickle.loads(pickle.dumps((commlens.region("a"), commlens.metric("m", "s"))))
assert region is commlens.region("a")
assert metric is commlens.metric("m", "s")
assert b"handle" not in pickle.dumps(region)
with copy.deepcopy(region):
    metric.record(1)
""",
    ) == ["begin a", "record m [s] 1", "end a"]


def test_types_are_those_of_what_is_decorated_and_iterated_over(kit: Kit) -> None:
    source = kit.write(
        "typed.py",
        """
from collections.abc import Iterator
import commlens

@commlens.region
def bare(x: int) -> str: return str(x)
@commlens.region("named")
def named(x: int, *, y: float = 1.0) -> list[str]: return [bare(x)]

for step in commlens.loop("steps", range(3), each=True):
    reveal_type(step)
with commlens.region("r"), commlens.loop("l") as steps:
    steps.iteration()
reveal_type(bare)
reveal_type(named)
commlens.metric("m", unit="s").record(1)
named("wrong")
commlens.tag("a", 3)
""",
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", kit.work / "cache", source],
        cwd=kit.work,
        env={"MYPYPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line.split(":", 2)[2].strip() for line in done.stdout.splitlines()[:-1]]
    assert said == [
        'note: Revealed type is "builtins.int"',
        'note: Revealed type is "def (x: builtins.int) -> builtins.str"',
        'note: Revealed type is "def (x: builtins.int, *, y: builtins.float =) -> builtins.list[builtins.str]"',
        'error: Argument 1 to "named" has incompatible type "str"; expected "int"  [arg-type]',
        'error: Argument 2 to "tag" has incompatible type "int"; expected "str"  [arg-type]',
    ]


def test_no_text_is_refused(kit: Kit) -> None:
    assert calls(
        kit,
        r"""
with commlens.region("lone \ud800 surrogate"), commlens.region("cut\0here"):
    commlens.tag("n", 3)
""",
    ) == ["begin lone ? surrogate", "begin cut", "tag n=3", "end cut", "end lone ? surrogate"]


def test_a_value_that_is_no_number_is_nan(kit: Kit) -> None:
    assert calls(
        kit,
        """
import decimal, fractions
metric = commlens.metric("m")
class Odd:
    def __float__(self): raise RuntimeError
for value in (True, 2, fractions.Fraction(5, 2), decimal.Decimal("3.5"), 1e400, 10**400, "4.5", None, 1j, Odd()):
    metric.record(value)
""",
    ) == [
        f"record m [] {value}" for value in ("1", "2", "2.5", "3.5", "inf", "nan", "4.5", "nan", "nan", "nan")
    ]


def test_more_names_than_are_remembered_are_all_told(kit: Kit) -> None:
    told = calls(kit, "for i in range(5000):\n    with commlens.region(f'name {i % 4500}'): pass")
    assert told == [f"{what} name {i % 4500}" for i in range(5000) for what in ("begin", "end")]


def test_empty_functions_in_the_process_are_no_profiler(kit: Kit) -> None:
    done = kit.run(
        sys.executable,
        kit.write(
            "empty.py", "from commlens import annotate\nprint(annotate.version() == '', annotate._profiler)"
        ),
        preload=kit.prefix / "lib/libcommlens-api.so",
    )
    assert done.output == "True None\n"


def test_a_profiler_without_some_of_the_functions_is_no_reason_to_fail(kit: Kit) -> None:
    source = kit.write("older.c", 'const char* commlens_version(void) { return "0.0.9"; }\n')
    older = kit.work / "libolder.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", older], check=True)
    story = kit.run(sys.executable, Path(__file__).parent / "programs/story.py", preload=older)
    assert story.output == "answer 42\n"
    assert story.errors == "version '0.0.9' active 0 written 0\n"


def test_a_system_where_nothing_can_be_looked_up_runs_the_same(kit: Kit) -> None:
    text = """
import sys
sys.modules["ctypes"] = None  # as in a Python that was built without libffi
import commlens
with commlens.region("a"):
    for _ in commlens.loop("b", range(2)):
        commlens.metric("c").record(1)
print(commlens.active(), repr(commlens.version()), commlens.flush())
"""
    program = kit.write("bare.py", text)
    done = kit.run(sys.executable, program, preload=kit.profiler)
    assert (done.output, done.calls) == ("False '' False\n", [])
