# SPDX-License-Identifier: Apache-2.0
"""Tells the profiler what a program is doing, if there is one: the C interface (commlens.h) for Python.

The profiler is preloaded, so its functions are found in the process itself.  Where there is none, functions without
effect are called instead, and nothing else differs: what a program gets, and what it is refused, is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast, overload

if TYPE_CHECKING:
    import ctypes
    from types import TracebackType

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

# Bits of co_flags: generators, coroutines, asynchronous generators.  The module inspect has names for them, but takes
# longer to load than all of this.
SUSPENDS = 0x20 | 0x80 | 0x200
KEPT = 4096
"""How many names are remembered; others are looked up each time."""


def _find_profiler() -> ctypes.PyDLL | None:
    """Return what this process has loaded, if a profiler is among it."""
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
    """Return a function of the profiler, or one without effect.

    Types are those of ctypes.  While a function that `waits` runs, other threads do.
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


def _suspends(function: Any) -> bool:
    """Return whether a call of `function` gives what goes on later, a generator or a coroutine."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return bool(getattr(code, "co_flags", 0) & SUSPENDS)


def _text(text: str) -> bytes:
    """Return `text` as the profiler wants it; what cannot be UTF-8 becomes a question mark."""
    return str(text).encode("utf-8", "replace")


class Region:
    """A part of the program with a name: for a with-block, or to decorate a function.

    One object serves any number of blocks, nested and in several threads too.
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
        """Return `function` with its calls being this region."""
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
        # A handle means something in its process only.
        return region, (self._name,)


_cached_region = functools.lru_cache(KEPT)(Region)


@overload
def region(name: str) -> Region: ...
@overload
def region(name: Function) -> Function: ...
def region(name: Any) -> Any:
    """Name a part of the program: ``with region("solve"):``, ``@region("solve")``, or ``@region`` alone.

    Parameters
    ----------
    name : str or function
        The region's name; or a function, whose calls become a region that is called like it.

    Returns
    -------
    Region or function
        The region; or the function, decorated.

    Raises
    ------
    TypeError
        A class, a generator function or a coroutine function is decorated.
    """
    if isinstance(name, str):
        return _cached_region(name)
    return _cached_region(str(getattr(name, "__name__", name)))(name)


class Loop:
    """A loop whose iterations are looked at, for a with-block."""

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
        """Begin the next iteration of the innermost loop, which ends the one before."""
        _loop_iteration()


def _over(items: Iterable[T], here: Loop) -> Iterator[T]:
    """Yield `items`, each in an iteration of its own."""
    with here:
        for item in items:
            _loop_iteration()
            yield item


@overload
def loop(name: str, *, each: bool = ...) -> Loop: ...
@overload
def loop(name: str, items: Iterable[T], *, each: bool = ...) -> Iterator[T]: ...
def loop(name: str, items: Any = None, *, each: bool = False) -> Any:
    """Look at the iterations of a loop: ``for step in loop("time steps", range(10)):``.

    Without `items` it is for a with-block in which ``iteration()`` is called at the beginning of each.

    Parameters
    ----------
    name : str
        The loop is a region of this name.
    items : iterable, optional
        What to iterate over.
    each : bool
        Keep the iterations apart, the first COMMLENS_ITERATIONS of them; else they are counted as a sum.

    Returns
    -------
    iterator or Loop
        The items; without them a context manager.
    """
    here = Loop(name, each)
    return here if items is None else _over(items, here)


class Metric:
    """A quantity of the program's own."""

    __slots__ = ("_handle", "_of")

    def __init__(self, name: str, unit: str) -> None:
        self._of = name, unit
        self._handle = _metric(_text(name), _text(unit))

    def record(self, value: float) -> None:
        """Tell a value of it, here and now.  What is no number counts as NaN."""
        try:
            _record(self._handle, value)
        except Exception:
            _record(self._handle, _number(value))

    def __reduce__(self) -> tuple[object, ...]:
        return metric, self._of


def _number(value: object) -> float:
    """Return the number that `value` is, such as one of numpy, or NaN."""
    try:
        return float(cast(Any, value))
    except Exception:
        return float("nan")


_cached_metric = functools.lru_cache(KEPT)(Metric)


def metric(name: str, unit: str = "") -> Metric:
    """Return the quantity of this name and unit, to record values of it."""
    return _cached_metric(name, unit)


def tag(name: str, value: str) -> None:
    """Say something of the region this thread is in that does not change: ``tag("kind", "IO")``."""
    _tag(_text(name), _text(value))


def version() -> str:
    """Return the version of the profiler, or an empty text when none is loaded."""
    return (_version() or b"").decode()


def active() -> bool:
    """Return whether MPI calls of this process are being counted."""
    return bool(_active())


def pause() -> None:
    """Count nothing on this process until `resume`."""
    _pause()


def resume() -> None:
    """Count again."""
    _resume()


def reset() -> None:
    """Forget what this process has counted so far; regions that are under way begin here."""
    _reset()


def flush() -> bool:
    """Copy what this process has counted beside the output, for `commlens recover`.

    Returns
    -------
    bool
        False when it cannot be written or nothing is counted.
    """
    return bool(_flush() == 0)


def flush_to(folder: str) -> bool:
    """Copy what this process has counted into a folder of its own, such as one for each phase of the program.

    `commlens recover FOLDER` makes a profile of it.  Returns False when it cannot be written or nothing is counted.
    """
    return bool(_flush_to(_text(folder)) == 0)


WATCHED = ("sent", "received", "written", "read", "collective")
"""What a watch can be of, in the order of the C interface."""


class Watch:
    """Counts what this process has to do with each process of a communicator, in that communicator.

    In a with-block it counts, and goes on counting in the next one.  Without the profiler it is of no processes.
    """

    __slots__ = ("_handle",)

    def __init__(self, comm: Any, kind: str = "sent", *, _handle: int | None = None) -> None:
        if kind not in WATCHED:
            raise ValueError(f"a watch is of {', '.join(WATCHED)}, not of {kind!r}")
        self._handle = _handle
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
        """Begin to count, or go on."""
        _watch_start(self._handle)

    def stop(self) -> None:
        """Count no more, until it is started again."""
        _watch_stop(self._handle)

    def reset(self) -> None:
        """Forget what it has counted."""
        _watch_reset(self._handle)

    def snapshot(self) -> Watch:
        """Return another one, which is stopped and has counted as much."""
        return Watch(None, _handle=_watch_snapshot(self._handle))

    def read(self) -> tuple[list[int], list[int]]:
        """Return the messages and the bytes for each process, in the order of their ranks."""
        if self._handle is None:
            return [], []
        import ctypes

        numbers = ctypes.c_ulong * max(_watch_size(self._handle), 0)
        messages, size = numbers(), numbers()
        _watch_read(self._handle, ctypes.addressof(messages), ctypes.addressof(size))
        return list(messages), list(size)


def watch(comm: Any, kind: str = "sent") -> Watch:
    """Return a watch of a communicator of mpi4py; `kind` is one of `WATCHED`."""
    return Watch(comm, kind)
