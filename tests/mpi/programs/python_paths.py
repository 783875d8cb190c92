# SPDX-License-Identifier: Apache-2.0
"""Calls MPI from all kinds of Python code, and counts the calls of each path itself.

    python python_paths.py FOLDER ROUNDS

Rank 0 writes the calls to FOLDER/expected.json: a list of paths, each a list of file, function and line from the inside
out, and the number of calls.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import sys
import threading
from collections import Counter
from pathlib import Path

import mpi4py

mpi4py.rc.thread_level = "multiple"
from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
expected: Counter[tuple] = Counter()
lock = threading.Lock()
barrier = comm.Barrier


def here(depth=1):
    """Return the frames from the caller of the caller outwards."""
    frame = sys._getframe(depth)
    path = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith("<frozen importlib"):
            path.append((code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    return tuple(path)


def note():
    """Count a call in the line that calls this function."""
    with lock:
        expected[here(2)] += 1


def loop():
    for _ in range(3):
        note(), barrier()
        note(), barrier()
    i = 0
    while i < 2:
        i += 1
        note(), comm.Barrier()


def over_many_lines():
    return [
        1,
        (note(), barrier()),
        max(
            2,
            len((note(), barrier())),
        ),
    ]  # fmt: skip


def comprehensions():
    [(note(), barrier()) for _ in range(3)]
    {i: (note(), barrier()) for i in range(2)}
    {(note(), barrier()) for _ in range(2)}
    list((note(), barrier()) for _ in range(2))  # noqa: C400 - a generator
    [[(note(), barrier()) for _ in range(2)] for _ in range(2)]


def numbers():
    for i in range(3):
        note(), barrier()
        yield i
        note(), barrier()


def generators():
    for _ in numbers():
        note(), barrier()
    sum(numbers())
    yield_from = (lambda: (yield from numbers()))()
    list(yield_from)


def traced(function):
    @functools.wraps(function)
    def wrapper(*args):
        note(), barrier()
        return function(*args)

    return wrapper


@traced
@traced
def decorated(n):
    note(), barrier()
    return decorated(n - 1) if n else 0


def recursive(n):
    if n:
        recursive(n - 1)
        note(), barrier()
    else:
        note(), barrier()


def exceptions():
    for _ in range(2):
        try:
            note(), barrier()
            raise ValueError
        except ValueError:
            note(), barrier()
        finally:
            note(), barrier()


class Context:
    """A class with everything that is called implicitly."""

    def __enter__(self):
        note(), barrier()
        return self

    def __exit__(self, *_):
        note(), barrier()

    def __lt__(self, other):
        note(), barrier()
        return id(self) < id(other)

    def __del__(self):
        note(), barrier()

    @property
    def value(self):
        return note(), barrier()

    @staticmethod
    def static():
        note(), barrier()

    @classmethod
    def of_class(cls):
        cls.static()
        note(), barrier()


def implicit():
    with Context() as context:
        note(), barrier()
        _ = context.value
    sorted([context, context])
    Context.of_class()
    functools.reduce(lambda *_: (note(), barrier()), range(3), None)
    del context


def lambdas():
    for call in (lambda: (note(), barrier()), lambda: (note(), barrier())):
        call()
        call()


def executed(round_number):
    # New code objects, some of which lie where others of other files and lines have been.
    for i in range(4):
        lines = "\n" * (i + 10 * (round_number % 50))
        exec(compile(f"{lines}note(), barrier()", "<text>", "exec"), globals())
        exec(compile("note(), barrier()", f"<text {i}>", "exec"), globals())
    name = f"f{round_number % 7}"
    source = f"def {name}():\n  note(), barrier()\n{name}()"
    exec(compile(source, "é–𝄞.py", "exec"), dict(globals()))


def späße():
    note(), barrier()


async def coroutine(n):
    note(), barrier()
    await asyncio.sleep(0)
    note(), barrier()
    async for _ in ticks(n):
        note(), barrier()
    return [(note(), barrier()) async for _ in ticks(1)]


async def ticks(n):
    for i in range(n):
        await asyncio.sleep(0)
        note(), barrier()
        yield i


async def tasks():
    await asyncio.gather(coroutine(1), coroutine(2))


def make_long():
    """Return a function with a long line, and with more lines and instructions than a byte counts."""
    lines = [
        "def long(value):",
        "    for _ in range(2):",
        f"        value = (value + {' + '.join(['value'] * 60)}) * (note(), barrier(), 1)[2]",
        *["    # nothing"] * 300,
        "    note(), barrier()",
        *["    value += sum([value, value, value])"] * 200,
        "    note(), barrier()",
    ]
    scope = dict(globals())
    exec(compile("\n".join(lines), "/somewhere/long.py", "exec"), scope)
    return scope["long"]


def threads():
    own = MPI.COMM_SELF

    def in_thread():
        for _ in range(5):
            note(), own.Barrier()
            note(), own.Barrier()
        recursive_in(own, 3)

    def recursive_in(own, n):
        note(), own.Barrier()
        if n:
            recursive_in(own, n - 1)

    running = [threading.Thread(target=in_thread, daemon=i == 0) for i in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


everything = [
    loop, over_many_lines, comprehensions, generators, lambda: decorated(2), lambda: recursive(5), exceptions, implicit,
    lambdas, späße, lambda: make_long()(0),
]  # fmt: skip


def write():
    """Write the calls at the end, in a function that calls MPI itself, and at exit."""
    note(), barrier()
    if comm.rank == 0:
        paths = [[path, count] for path, count in expected.items() if count]
        (folder / "expected.json").write_text(json.dumps(paths))


atexit.register(write)
for round_number in range(rounds):
    for function in everything:
        function()
    executed(round_number)
asyncio.run(tasks())
threads()
note(), barrier()
