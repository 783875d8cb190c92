# SPDX-License-Identifier: Apache-2.0
"""Formats numbers with three digits and a unit."""

from __future__ import annotations

TIME_UNITS = ((1, "ns"), (10**3, "µs"), (10**6, "ms"), (10**9, "s"))
LONGEST_NAME, LONGEST_PATH = 40, 60  # characters; the whole text is in csv, json and the profile
BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def three_digits(value: float) -> str:
    """Return `value`, below 1000, with three significant digits.

    >>> three_digits(1.234), three_digits(12.34), three_digits(123.4)
    ('1.23', '12.3', '123')
    """
    for decimals, limit in ((2, 9.995), (1, 99.95)):
        if value < limit:
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def time_text(ns: int | None) -> str:
    """Return a time with its unit, at most seconds.

    >>> [time_text(ns) for ns in (0, 999, 1000, 999_600, 12_345_678, 4_000_000_000_000)]
    ['0 ns', '999 ns', '1.00 µs', '1.00 ms', '12.3 ms', '4000 s']
    """
    if ns is None:
        return "-"
    for scale, unit in TIME_UNITS[:-1]:
        if ns < 999.5 * scale:
            return f"{ns} ns" if scale == 1 else f"{three_digits(ns / scale)} {unit}"
    return f"{three_digits(ns / 10**9)} s"


def bytes_text(count: int | None) -> str:
    """Return a volume with its binary unit.

    >>> [bytes_text(n) for n in (0, 1023, 1536, 1 << 20, 123 << 30)]
    ['0 B', '1023 B', '1.50 KiB', '1.00 MiB', '123 GiB']
    """
    if count is None:
        return "-"
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in BYTE_UNITS:
        if value < 1023.5 or unit == BYTE_UNITS[-1]:
            break
        value /= 1024
    return f"{three_digits(value)} {unit}"


def average_text(value: float | None) -> str:
    """Return an average number of calls, with one digit after the point unless it is whole.

    >>> [average_text(x) for x in (0, 0.01, 2.5, 100.0, 1234.56, None)]
    ['0', '<0.1', '2.5', '100', '1,234.6', '-']
    """
    if value is None:
        return "-"
    return "<0.1" if 0 < value < 0.05 else f"{value:,.1f}".removesuffix(".0")


def share_text(share: float | None) -> str:
    """Return a share of 1 in per cent.

    >>> [share_text(x) for x in (0, 0.00001, 0.0123, 0.5, 1)]
    ['0 %', '<0.1 %', '1.2 %', '50.0 %', '100.0 %']
    """
    if share is None:
        return "-"
    if share == 0:
        return "0 %"
    return "<0.1 %" if share < 0.0005 else f"{100 * share:.1f} %"


def name_text(name: str) -> str:
    """Return the name of a code region; for a very long one its beginning.

    >>> name_text("solve"), name_text("x" * 99) == "x" * 39 + "…"
    ('solve', True)
    """
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def path_text(path: str) -> str:
    """Return the path of a code region; for a very long one its end.

    >>> path_text("solve/norm"), path_text("x" * 99 + "/norm") == "…" + "x" * 54 + "/norm"
    ('solve/norm', True)
    """
    return path if len(path) <= LONGEST_PATH else "…" + path[1 - LONGEST_PATH :]


def _bound(size: int) -> tuple[str, str]:
    """Return a power of two as number and unit: 65536 -> 64, KiB."""
    unit = max(0, min((size.bit_length() - 1) // 10, len(BYTE_UNITS) - 1)) if size else 0
    return str(size >> (10 * unit)), BYTE_UNITS[unit]


def size_text(low: int | None, high: int | None, *, is_null: bool = False) -> str:
    """Return a range of message sizes; from 1 KiB on, the upper bound is exclusive.

    is_null : the messages are to MPI_PROC_NULL, so that their size does not matter

    >>> [size_text(*r) for r in ((0, 0), (1, 1), (8, 15), (1024, 2047), (512, 8191), (1 << 20, None))]
    ['0 B', '1 B', '8-15 B', '1-2 KiB', '512 B-8 KiB', '>= 1 MiB']
    >>> size_text(None, None)
    'varies'
    >>> size_text(None, None, is_null=True)
    'PROC_NULL'
    """
    if is_null:
        return "PROC_NULL"
    if low is None:
        return "varies"
    if high is None:
        return ">= " + " ".join(_bound(low))
    if low == high:
        return f"{low} B"
    if high < 1024:
        return f"{low}-{high} B"
    (first, first_unit), (last, last_unit) = _bound(low), _bound(high + 1)
    return (
        f"{first}-{last} {last_unit}"
        if first_unit == last_unit or low == 0
        else f"{first} {first_unit}-{last} {last_unit}"
    )
