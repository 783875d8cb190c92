# SPDX-License-Identifier: Apache-2.0
"""Programs in all languages tell the profiler the same, and run the same without it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from application import PROGRAMS, ROOT, Kit

STORY = f"""\
begin main
loop time steps 1
iteration
begin solve
record residual [1] 1
end solve
iteration
begin solve
record residual [1] 0.5
end solve
iteration
begin solve
record residual [1] 0.25
end solve
end time steps
loop sweeps 0
iteration
record cells [] 4096
end sweeps
begin padded
tag kind=IO
end padded
begin Größe µ/流
end Größe µ/流
begin \n\
end \n\
begin {"x" * 255}
end {"x" * 255}
begin early
end early
begin thrown
end thrown
pause
resume
reset
flush
end main
""".splitlines()

NAMES = ("", "-fno-underscoring", "-fsecond-underscore")
"""How a compiler can make a symbol of a name in Fortran."""

BUILDS = {
    "C": ("story.c",),
    "C++": ("story.cpp",),
    "C++ without exceptions": ("story.cpp", "-fno-exceptions", "-fno-rtti"),
    "C++17": ("story.cpp", "-std=c++17"),
    "Fortran": ("story.f90",),
    "Fortran, wide integers": ("story.f90", "-fdefault-integer-8"),
    "Fortran, not optimised": ("story.f90", "-O0", "-fcheck=all"),
    **{f"Fortran 77 {flag}".strip(): ("story77.f", *filter(None, [flag])) for flag in NAMES},
}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS.keys())
def test_a_compiled_language_makes_the_calls_of_the_story(kit: Kit, build: tuple[str, ...]) -> None:
    program = kit.build(PROGRAMS / build[0], "-O2", *build[1:])
    assert kit.run(program).errors == "version '' active 0 written 0\n"
    profiled = kit.both(program)
    assert profiled.calls == [f"0 {call}" for call in STORY]
    assert profiled.output == "answer 42\n"
    assert profiled.errors == "version '9.8.7' active 1 written 1\n"


def test_python_makes_the_calls_of_the_story(kit: Kit) -> None:
    command = (sys.executable, PROGRAMS / "story.py")
    assert kit.run(*command).errors == "version '' active 0 written 0\n"
    profiled = kit.both(*command)
    assert profiled.calls == [f"0 {call}" for call in STORY]
    assert profiled.output == "answer 42\n"
    assert profiled.errors == "version '9.8.7' active 1 written 1\n"


def test_the_module_for_fortran_is_of_2003(kit: Kit) -> None:
    kit.build(PROGRAMS / "story.f90", "-std=f2003", "-Wno-error", name="story")


def test_fortran_ends_the_innermost_region_when_no_name_is_given(kit: Kit) -> None:
    source = kit.write("end.f90", "use commlens\ncall commlens_begin('a')\ncall commlens_end()\nend\n")
    assert kit.both(kit.build(source)).calls == ["0 begin a", "0 end the innermost"]


def test_lengths_may_have_32_bits_and_names_be_upper_case(kit: Kit) -> None:
    source = kit.write(
        "old.c",
        """
        /* The upper half of the register is what an old compiler left there. */
        void COMMLENS_BEGIN_F(const char*, unsigned long), commlens_end_f_(const char*, unsigned long);
        int main(void) {
          COMMLENS_BEGIN_F("abc  def", 0xdeadbeef00000005);
          commlens_end_f_("abc", 0xffffffff00000000);
          return 0;
        }
        """,
    )
    assert kit.both(kit.build(source)).calls == ["0 begin abc", "0 end "]


def nested(calls: list[str], thread: int) -> list[str]:
    """Return the calls of one thread."""
    return [call.split(" ", 1)[1] for call in calls if call.startswith(f"{thread} ")]


def test_threads_have_regions_of_their_own_in_c_plus_plus(kit: Kit) -> None:
    source = kit.write(
        "threads.cpp",
        """
        #include <commlens/commlens.hpp>
        #include <thread>
        #include <vector>
        static void work() {
          for (int i = 0; i < 200; ++i) {
            COMMLENS_REGION("outer");
            commlens::region inner("inner");
          }
        }
        int main() {
          std::vector<std::thread> all;
          for (int i = 0; i < 4; ++i) all.emplace_back(work);
          for (std::thread& one : all) one.join();
        }
        """,
    )
    calls = kit.both(kit.build(source)).calls
    for thread in range(4):
        assert nested(calls, thread) == ["begin outer", "begin inner", "end inner", "end outer"] * 200


def test_threads_have_regions_of_their_own_in_python(kit: Kit) -> None:
    calls = kit.python(
        """
import threading
import commlens

@commlens.region("outer")
def work():
    together.wait()  # so that no thread is gone before the last begins
    for _ in range(100):
        with commlens.region("inner"):
            pass

together = threading.Barrier(4)
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
"""
    ).calls
    for thread in range(4):
        assert nested(calls, thread) == [
            "begin outer",
            *["begin inner", "end inner"] * 100,
            "end outer",
        ]


def test_an_exception_in_c_plus_plus_ends_what_it_leaves_from_the_inside(kit: Kit) -> None:
    source = kit.write(
        "exception.cpp",
        """
        #include <commlens/commlens.hpp>
        #include <stdexcept>
        int main() {
          try {
            commlens::region outer("outer");
            commlens::loop steps("steps");
            steps.iteration();
            COMMLENS_REGION("inner");
            throw std::runtime_error("no");
          } catch (const std::runtime_error&) {
            commlens::begin("after");
            commlens::end();
          }
        }
        """,
    )
    assert nested(kit.both(kit.build(source)).calls, 0) == [
        "begin outer",
        "loop steps 0",
        "iteration",
        "begin inner",
        "end inner",
        "end steps",
        "end outer",
        "begin after",
        "end the innermost",
    ]


@pytest.mark.parametrize("use", ["region b(a)", "region b = a", "loop b(l)", "loop b = l"])
def test_an_object_that_ends_something_cannot_be_copied(kit: Kit, use: str) -> None:
    source = kit.write(
        "copy.cpp",
        f"""
        #include <commlens/commlens.hpp>
        int main() {{ commlens::region a("a"); commlens::loop l("l"); commlens::{use}; }}
        """,
    )
    with pytest.raises(AssertionError, match="deleted"):
        kit.build(source)


@pytest.mark.parametrize("object_", ['region("a")', 'loop("a")'])
def test_an_object_that_ends_in_its_own_line_is_warned_of(kit: Kit, object_: str) -> None:
    source = kit.write(
        "forgotten.cpp", f"#include <commlens/commlens.hpp>\nint main() {{ commlens::{object_}; }}\n"
    )
    with pytest.raises(AssertionError, match="nodiscard"):
        kit.build(source, "-std=c++17")


def test_nothing_in_c_plus_plus_throws(kit: Kit) -> None:
    source = kit.write(
        "noexcept.cpp",
        """
        #include <commlens/commlens.hpp>
        #include <type_traits>
        using namespace commlens;
        static_assert(std::is_nothrow_constructible<region, const char*>::value, "");
        static_assert(std::is_nothrow_constructible<region, const std::string&>::value, "");
        static_assert(std::is_nothrow_constructible<region, const region_name&>::value, "");
        static_assert(std::is_nothrow_constructible<loop, const std::string&, loop_mode>::value, "");
        static_assert(std::is_nothrow_constructible<metric, const char*, const char*>::value, "");
        static_assert(std::is_trivially_copyable<metric>::value, "");
        static_assert(std::is_trivially_copyable<region_name>::value, "");
        static_assert(!std::is_convertible<const char*, region>::value, "");
        static_assert(sizeof(region) == sizeof(void*), "");
        int main() {}
        """,
    )
    kit.build(source)


def test_an_iteration_may_be_a_scope(kit: Kit) -> None:
    source = kit.write(
        "iterations.cpp",
        """
        #include <commlens/commlens.hpp>
        int main() {
          for (int i = 0; i < 2; ++i) {
            const commlens::iteration step("steps", i, commlens::each);
            const commlens::iteration sweep(std::string("sweeps"), 7);
          }
        }
        """,
    )
    fortran = kit.write(
        "iterations.f90",
        """
        use commlens
        integer :: i
        do i = 0, 1
          call commlens_iteration_begin('steps ', COMMLENS_LOOP_EACH, i)
          call commlens_iteration_begin('sweeps', COMMLENS_LOOP_SUM, 7)
          call commlens_end('sweeps')
          call commlens_end('steps')
        end do
        end
        """,
    )
    for program in (source, fortran):
        assert nested(kit.both(kit.build(program)).calls, 0) == [
            line
            for i in range(2)
            for line in (f"iteration {i} of steps 1", "iteration 7 of sweeps 0", "end sweeps", "end steps")
        ]


TINYPROF = """
        #include <{header}>
        {profiler}
        int main() {{
          {start}
          for (int run = 0; run < 2; ++run) {{
            {context};
            Events whole({first}"main"{common}, "COMP");
            for (int i = 0; i < 2; ++i) {{
              Events step({first}"steps"{common}, 1, i);
              Events sum({first}"sweeps"{common}, "COMM", 2, i);
            }}
            {{ Events part({first}"part"{common}); }}
          }}
          {end}
        }}
"""
TINYPROF_FORMS = {
    # One for the program, with the flag of a common event.
    "static": {
        "header": "events.hpp",
        "profiler": "",
        "start": 'std::string file = "out"; Profiler::start(file, 0, 0, 4, 2, 1, 4 / 16);',
        "context": 'Profiler::set_context("", run)',
        "first": "",
        "common": ", 1",
        "end": "Profiler::dump();",
    },
    # An object by address; the path of an enclosing region.
    "object": {
        "header": "profiler.hpp",
        "profiler": '#include "events.hpp"\nProfiler p("out", 2.5, 0, 4, 2);',
        "start": "",
        "context": 'p.set_context("app>phase", run, 1, 0)',
        "first": "&p, ",
        "common": ", 0",
        "end": 'p.set_context("", 0, 1); p.dump();',
    },
    # The first form: an object by value, and no flag.
    "value": {
        "header": "commlens/tinyprof.hpp",
        "profiler": "",
        "start": 'Profiler p("out", 0, 0, 4, 2);',
        "context": 'p.set_context("", run, 0)',
        "first": "p, ",
        "common": "",
        "end": "p.dump();",
    },
}


@pytest.mark.parametrize("form", TINYPROF_FORMS)
def test_a_program_with_the_annotations_of_tinyprof_compiles_unchanged(kit: Kit, form: str) -> None:
    source = kit.write("tinyprof.cpp", TINYPROF.format(**TINYPROF_FORMS[form]))
    program = kit.build(source, f"-I{kit.prefix}/include/commlens/tinyprof")
    around = ["app", "phase"] if form == "object" else []
    opened, closed = [f"begin {name}" for name in around], [f"end {name}" for name in reversed(around)]
    iterations = [
        line
        for i in range(2)
        for line in (
            f"iteration {i} of steps 1",
            f"iteration {i} of sweeps 0",
            "tag tag=COMM",
            "end sweeps",
            "end steps",
        )
    ]
    run = [*opened, "begin main", "tag tag=COMP", *iterations, "begin part", "end part", "end main", *closed]
    assert nested(kit.both(program).calls, 0) == [*run, *run, "flush"]


def test_the_example_of_the_guide_for_tinyprof_runs(kit: Kit) -> None:
    guide = (ROOT / "docs/guide/adopt.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"^```cpp\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    program = kit.build(kit.write("guide.cpp", snippet), f"-I{kit.prefix}/include/commlens/tinyprof")
    execution = [
        "begin solve",
        "tag tag=COMP",
        *[line for i in (0, 1) for line in (f"iteration {i} of time steps 1", "end time steps")],
        "end solve",
    ]
    assert nested(kit.both(program).calls, 0) == [*execution, *execution, "flush"]


def test_two_regions_of_a_scope_and_a_header_in_two_files_are_no_conflict(kit: Kit) -> None:
    other = kit.write(
        "other.cpp", '#include <commlens/commlens.hpp>\nvoid other() { COMMLENS_REGION("other"); }\n'
    )
    source = kit.write(
        "two.cpp",
        """
        #include <commlens/commlens.h>
        #include <commlens/commlens.hpp>
        void other();
        int main() {
          COMMLENS_REGION("one");
          COMMLENS_REGION("two");
          other();
        }
        """,
    )
    assert nested(kit.both(kit.build(source, other)).calls, 0) == [
        "begin one",
        "begin two",
        "begin other",
        "end other",
        "end two",
        "end one",
    ]


def test_the_profiler_is_called_before_main_and_after_it(kit: Kit) -> None:
    source = kit.write(
        "statics.cpp",
        """
        #include <commlens/commlens.hpp>
        static const commlens::region_name name("whole program");
        static const commlens::region whole(name);
        int main() {}
        """,
    )
    assert nested(kit.both(kit.build(source)).calls, 0) == ["begin whole program", "end whole program"]


def test_the_sources_bind_to_no_file_outside_the_installation(prefix: Path) -> None:
    for file in (
        "include/commlens/commlens.h",
        "include/commlens/commlens.hpp",
        "include/commlens/tinyprof.hpp",
        "share/commlens/commlens.f90",
    ):
        name = Path(file)
        ours = {"include": ROOT / "include/commlens", "share": ROOT / "fortran"}[name.parts[0]] / name.name
        assert (prefix / name).read_bytes() == ours.read_bytes()
