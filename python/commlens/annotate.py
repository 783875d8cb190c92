# SPDX-License-Identifier: Apache-2.0
"""The C interface of the profiler (commlens.h) for Python programs: regions, loops, metrics, tags, watches and reorder.

The profiler is preloaded, so this module looks its functions up in the process itself.  Without a profiler it calls
functions without effect instead.  Return values and exceptions are the same with and without a profiler.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast, overload

if TYPE_CHECKING:
    import ctypes
    from types import TracebackType

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

# Bits of co_flags: generators, coroutines, asynchronous generators.  The module inspect has names for them, but takes
# longer to load than this module.
SUSPENDS = 0x20 | 0x80 | 0x200
KEPT = 4096
"""Number of names whose handles are cached; other names are looked up each time."""


def _find_profiler() -> ctypes.PyDLL | None:
    """Return this process as a library if a profiler is loaded in it, else None."""
    try:
        import ctypes

        process = ctypes.PyDLL(None)
        version = process.commlens_version
    except (ImportError, OSError, TypeError, AttributeError):
        return None  # a Python without libffi, a system without dlopen(NULL), or no profiler
    version.restype = ctypes.c_char_p
    return process if version() else None  # the empty functions of libcommlens-api need not be called


_profiler = _find_profiler()


def _nothing(*_: object) -> None:
    """Stand in for a function of the profiler."""


def _function(name: str, result: str | None, *arguments: str, waits: bool = False) -> Callable[..., Any]:
    """Return a function of the profiler, or a function without effect if there is no profiler.

    Types are names in ctypes.  A function that `waits` releases the interpreter lock while it runs.
    """
    if _profiler is None or not hasattr(_profiler, name):
        return _nothing
    import ctypes

    function = (ctypes.CDLL(None) if waits else _profiler)[name]
    function.restype = getattr(ctypes, result) if result else None
    function.argtypes = [getattr(ctypes, argument) for argument in arguments]
    return cast(Callable[..., Any], function)


_version = _function("commlens_version", "c_char_p")
_region = _function("commlens_region", "c_void_p", "c_char_p")
_begin_region = _function("commlens_begin_region", None, "c_void_p")
_end_region = _function("commlens_end_region", None, "c_void_p")
_loop_begin = _function("commlens_loop_begin", None, "c_char_p", "c_int")
_loop_iteration = _function("commlens_loop_iteration", None)
_loop_end = _function("commlens_loop_end", None, "c_char_p")
_metric = _function("commlens_metric", "c_void_p", "c_char_p", "c_char_p")
_record = _function("commlens_record", None, "c_void_p", "c_double")
_tag = _function("commlens_tag", None, "c_char_p", "c_char_p")
_active = _function("commlens_active", "c_int")
_pause = _function("commlens_pause", None)
_resume = _function("commlens_resume", None)
_reset = _function("commlens_reset", None)
_flush = _function("commlens_flush", "c_int", waits=True)
_flush_to = _function("commlens_flush_to", "c_int", "c_char_p", waits=True)
_watch = _function("commlens_watch", "c_void_p", "c_void_p", "c_int")
_watch_start = _function("commlens_watch_start", None, "c_void_p")
_watch_stop = _function("commlens_watch_stop", None, "c_void_p")
_watch_reset = _function("commlens_watch_reset", None, "c_void_p")
_watch_snapshot = _function("commlens_watch_snapshot", "c_void_p", "c_void_p")
_watch_size = _function("commlens_watch_size", "c_int", "c_void_p")
_watch_read = _function("commlens_watch_read", "c_int", "c_void_p", "c_void_p", "c_void_p")
_watch_free = _function("commlens_watch_free", None, "c_void_p")
_reorder = _function("commlens_reorder", "c_int", "c_void_p", "c_void_p", waits=True)


def _suspends(function: Any) -> bool:
    """Return whether calling `function` returns a generator or a coroutine, whose body runs later."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return bool(getattr(code, "co_flags", 0) & SUSPENDS)


def _text(text: str) -> bytes:
    """Return `text` as UTF-8; characters that UTF-8 cannot encode become question marks."""
    return str(text).encode("utf-8", "replace")


class Region:
    """A code region: use it in a with-block, or to decorate a function.

    One object serves any number of blocks, also nested and in several threads.
    """

    __slots__ = ("_handle", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._handle = _region(_text(name))

    def __enter__(self) -> None:
        _begin_region(self._handle)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _end_region(self._handle)

    def __call__(self, function: Function) -> Function:
        """Return `function`, decorated so that each call is an execution of this region."""
        if not callable(function) or isinstance(function, (type, staticmethod, classmethod)):
            raise TypeError(f"commlens.region decorates functions, not {function!r}; put it next to the def")
        if _suspends(function):
            raise TypeError(
                f"commlens.region cannot decorate {function!r}: other code runs while a generator or coroutine "
                "waits; use with-blocks in it, around what neither yields nor awaits"
            )

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            _begin_region(self._handle)
            try:
                return function(*args, **kwargs)
            finally:
                _end_region(self._handle)

        return cast(Function, inside)

    def __reduce__(self) -> tuple[object, ...]:
        # A handle is valid only in its process.
        return region, (self._name,)


_cached_region = functools.lru_cache(KEPT)(Region)


@overload
def region(name: str) -> Region: ...
@overload
def region(name: Function) -> Function: ...
def region(name: Any) -> Any:
    """Return a code region, or decorate a function: ``with region("solve"):``, ``@region("solve")``, or ``@region``.

    Parameters
    ----------
    name : str or function
        The name of the region; or a function, whose name becomes the name of the region.

    Returns
    -------
    Region or function
        The region; or the decorated function, if `name` is a function.

    Raises
    ------
    TypeError
        The decorated object is a class, a generator function or a coroutine function.
    """
    if isinstance(name, str):
        return _cached_region(name)
    return _cached_region(str(getattr(name, "__name__", name)))(name)


class Loop:
    """A loop whose iterations commlens measures: use it in a with-block."""

    __slots__ = ("_mode", "_name")

    def __init__(self, name: str, each: bool) -> None:
        self._name = _text(name)
        self._mode = int(bool(each))

    def __enter__(self) -> Loop:
        _loop_begin(self._name, self._mode)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _loop_end(self._name)

    def iteration(self) -> None:
        """Begin the next iteration of the innermost loop; this ends the previous iteration."""
        _loop_iteration()


def _over(items: Iterable[T], here: Loop) -> Iterator[T]:
    """Yield `items`, each in its own iteration."""
    with here:
        for item in items:
            _loop_iteration()
            yield item


@overload
def loop(name: str, *, each: bool = ...) -> Loop: ...
@overload
def loop(name: str, items: Iterable[T], *, each: bool = ...) -> Iterator[T]: ...
def loop(name: str, items: Any = None, *, each: bool = False) -> Any:
    """Measure the iterations of a loop: ``for step in loop("time steps", range(10)):``.

    Without `items`, use the result in a with-block and call ``iteration()`` at the beginning of each iteration.

    Parameters
    ----------
    name : str
        The name of the loop, which is also a region.
    items : iterable, optional
        The items to iterate over.
    each : bool
        Store the first COMMLENS_ITERATIONS iterations separately; otherwise only their sum is stored.

    Returns
    -------
    iterator or Loop
        An iterator over the items; without `items`, a context manager.
    """
    here = Loop(name, each)
    return here if items is None else _over(items, here)


class Metric:
    """A number that the application records: count, sum, minimum, maximum and last value are stored per region."""

    __slots__ = ("_handle", "_of")

    def __init__(self, name: str, unit: str) -> None:
        self._of = name, unit
        self._handle = _metric(_text(name), _text(unit))

    def record(self, value: float) -> None:
        """Record one value for the calling thread's current region.  A value that is not a number is recorded as NaN."""
        try:
            _record(self._handle, value)
        except Exception:
            _record(self._handle, _number(value))

    def __reduce__(self) -> tuple[object, ...]:
        return metric, self._of


def _number(value: object) -> float:
    """Return `value` as a float, also if it is a numpy scalar; NaN if it is not a number."""
    try:
        return float(cast(Any, value))
    except Exception:
        return float("nan")


_cached_metric = functools.lru_cache(KEPT)(Metric)


def metric(name: str, unit: str = "") -> Metric:
    """Return the metric with this name and unit."""
    return _cached_metric(name, unit)


def tag(name: str, value: str) -> None:
    """Attach a tag to the calling thread's current region: ``tag("kind", "IO")``."""
    _tag(_text(name), _text(value))


def version() -> str:
    """Return the version of the profiler, or an empty string if none is loaded."""
    return (_version() or b"").decode()


def active() -> bool:
    """Return whether the profiler counts the MPI calls of this process."""
    return bool(_active())


def pause() -> None:
    """Stop counting in this process until `resume`."""
    _pause()


def resume() -> None:
    """Continue counting after `pause`."""
    _resume()


def reset() -> None:
    """Clear all counters of this process.  Open regions begin again at this point."""
    _reset()


def flush() -> bool:
    """Write a copy of the counters of this process beside the output, for `commlens recover`.

    Returns
    -------
    bool
        False if the copy cannot be written or the profiler does not count.
    """
    return bool(_flush() == 0)


def flush_to(folder: str) -> bool:
    """Write a copy of the counters of this process to `folder`, for example one folder per phase of the program.

    `commlens recover FOLDER` makes a profile of the copies.  Returns False if the copy cannot be written or the profiler
    does not count.
    """
    return bool(_flush_to(os.fsencode(folder)) == 0)


WATCHED = ("sent", "received", "put", "get", "collective")
"""Kinds of traffic that a watch can count, in the order of the C interface."""


class Watch:
    """Counts the messages and bytes between this process and each process of a communicator, in that communicator.

    Counts inside with-blocks; a later with-block continues the same counters.  Without a profiler it has no processes.
    """

    __slots__ = ("_handle",)

    def __init__(self, comm: Any, kind: str = "sent", *, _handle: int | None = None) -> None:
        self._handle = _handle  # first, because __del__() needs it
        if kind not in WATCHED:
            raise ValueError(f"a watch is of {', '.join(WATCHED)}, not of {kind!r}")
        if comm is not None and _profiler is not None:
            from mpi4py import MPI

            self._handle = _watch(MPI._addressof(comm), WATCHED.index(kind))

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        if self._handle is not None:
            _watch_free(self._handle)

    def start(self) -> None:
        """Start or continue counting."""
        _watch_start(self._handle)

    def stop(self) -> None:
        """Stop counting until the next `start`."""
        _watch_stop(self._handle)

    def reset(self) -> None:
        """Clear the counters."""
        _watch_reset(self._handle)

    def snapshot(self) -> Watch:
        """Return a stopped copy of this watch with the same counters."""
        return Watch(None, _handle=_watch_snapshot(self._handle))

    def read(self) -> tuple[list[int], list[int]]:
        """Return the number of messages and of bytes per process.

        Two lists in the order of the ranks of the communicator; both are empty without a profiler.
        """
        if self._handle is None:
            return [], []
        import ctypes

        numbers = ctypes.c_ulong * max(_watch_size(self._handle), 0)
        messages, size = numbers(), numbers()
        _watch_read(self._handle, ctypes.addressof(messages), ctypes.addressof(size))
        return list(messages), list(size)


def watch(comm: Any, kind: str = "sent") -> Watch:
    """Return a watch on an mpi4py communicator; `kind` is one of `WATCHED`."""
    return Watch(comm, kind)


def reorder(comm: Any) -> Any:
    """Return a communicator of the same processes in which those that exchange much are near each other.

    Collective.  Rank r of it shall do from now on what rank r of `comm` did, so the program has to move its data.  The
    order is that of `comm` if another one would not pay (COMMLENS_REORDER_MIN_GAIN), and without a profiler: compare
    the ranks.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        A communicator.  A Cartesian one keeps its grid.

    Returns
    -------
    mpi4py.MPI.Comm
        A new communicator of the same type, which the program frees.
    """
    if _reorder is _nothing:
        # As libcommlens-api does: other processes may have a profiler, and wait for the first step.
        if not comm.Is_inter():
            comm.Split(1, 0).Free()
        return comm.Dup()
    from mpi4py import MPI

    kind: Any = type(comm)
    made = kind.__new__(kind)
    if _reorder(MPI._addressof(comm), MPI._addressof(made)) < 0:
        raise MPI.Exception(MPI.ERR_COMM)
    return made
