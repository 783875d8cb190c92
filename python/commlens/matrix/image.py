# SPDX-License-Identifier: Apache-2.0
"""Draws a matrix as PNG or SVG.

Both are made from one list of things to draw; the picture of the matrix itself is the same PNG in both, so that the size
of a file does not depend on how many pairs there are.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commlens.base.escape import Target, escape
from commlens.matrix.facts import Facts
from commlens.matrix.query import TITLES
from commlens.matrix.shades import Cells, folded, value_text
from commlens.render.shades import colours

Pixels = NDArray[np.uint8]

SIDE = 768  # pixels of a matrix at least, where its cells allow
MOST_CELLS = 1024
MOST_KEYS = 64  # nodes or sockets that the legend lists
COLOURS = 256
GLYPH = 2  # pixels of a dot of a letter
LETTER = 6 * GLYPH
MARGIN = 12
BAR = 20

INK, PAPER, LINE = (40, 40, 48), (255, 255, 255), (150, 150, 158)

# Seven rows of five dots for each letter, two hexadecimal digits a row.
LETTERS = {
    "0": "0e11131519110e",
    "1": "040c040404040e",
    "2": "0e11010608101f",
    "3": "0e11010601110e",
    "4": "02060a121f0202",
    "5": "1f101e0101110e",
    "6": "0608101e11110e",
    "7": "1f010204040808",
    "8": "0e11110e11110e",
    "9": "0e11110f01020c",
    "A": "0e11111f111111",
    "B": "1e11111e11111e",
    "C": "0e11101010110e",
    "D": "1c12111111121c",
    "E": "1f10101e10101f",
    "F": "1f10101e101010",
    "G": "0e11101711110f",
    "H": "1111111f111111",
    "I": "0e04040404040e",
    "J": "0702020202120c",
    "K": "11121418141211",
    "L": "1010101010101f",
    "M": "111b1515111111",
    "N": "11191515131111",
    "O": "0e11111111110e",
    "P": "1e11111e101010",
    "Q": "0e11111115120d",
    "R": "1e11111e141211",
    "S": "0f10100e01011e",
    "T": "1f040404040404",
    "U": "1111111111110e",
    "V": "11111111110a04",
    "W": "11111115151b11",
    "X": "11110a040a1111",
    "Y": "11110a04040404",
    "Z": "1f01020408101f",
    ".": "00000000000c0c",
    ",": "000000000c0408",
    ":": "000c0c000c0c00",
    "-": "0000001f000000",
    "/": "01010204081010",
    "(": "02040808080402",
    ")": "08040202020408",
    "*": "00150e1f0e1500",
    "_": "0000000000001f",
    "=": "00001f001f0000",
    "?": "0e110102040004",
}


@dataclass
class Drawing:
    """A picture of images and words; positions are pixels from the upper left corner.

    Attributes
    ----------
    images : list of (left, top, pixels)
    words : list of (left, top, text)
    frames : list of (left, top, width, height)
    """

    width: int
    height: int
    images: list[tuple[int, int, Pixels]] = field(default_factory=list)
    words: list[tuple[int, int, str]] = field(default_factory=list)
    frames: list[tuple[int, int, int, int]] = field(default_factory=list)


def drawing(facts: Facts, heading: str) -> Drawing:
    """Return the picture of a matrix with its axes and legend."""
    axis, what = facts.axis, facts.what
    cells = folded(facts.pairs, len(axis.labels), MOST_CELLS, what)
    times = max(1, -(-SIDE // cells.count))
    side = times * cells.count
    labels = [escape(label, Target.LINE) for label in axis.labels]
    names = labels if axis.noun == "rank" else [str(i) for i in range(len(labels))]
    left = MARGIN + LETTER * max(map(len, names)) + 4
    top = MARGIN + 5 * LETTER
    low, high = cells.range
    begin, end = cells.scale
    bounds = [value_text(what, bound, short=True) for bound in (high, (begin * end) ** 0.5, min(begin, low))]
    right = left + side + 2 * MARGIN
    keys = [f"{i} {label}" for i, label in enumerate(labels[:MOST_KEYS])] if axis.noun != "rank" else []
    if keys and len(labels) > MOST_KEYS:
        keys.append(f"and {len(labels) - MOST_KEYS:,} more")
    title = escape(f"{TITLES[facts.matrix.kind]}{heading}: {what}", Target.LINE)
    fold = f", a cell is {cells.block} x {cells.block}" if cells.block > 1 else ""
    foot = f"rows send, columns receive, by {axis.noun}{fold}, logarithmic scale"
    words = max(len(text) for text in (title, foot, *keys)) * LETTER + 2 * MARGIN
    width = max(right + BAR + 8 + LETTER * max(map(len, bounds)) + MARGIN, words)
    result = Drawing(width, top + side + MARGIN + 2 * LETTER * (1 + len(keys)))
    result.words.append((MARGIN, MARGIN, title))
    for cell in tick_cells(cells, max(map(len, names))):
        name = names[cell * cells.block]
        result.words.append((left + cell * times, top - 2 * LETTER, name))
    for cell in tick_cells(cells, 2):
        name = names[cell * cells.block]
        result.words.append((left - 4 - LETTER * len(name), top + cell * times, name))
    result.images.append((left, top, painted(cells).repeat(times, axis=0).repeat(times, axis=1)))
    result.frames.append((left - 1, top - 1, side + 2, side + 2))
    if high > low:
        scale = painted_colours(COLOURS)[::-1].repeat(-(-side // COLOURS), axis=0)[:side]
        result.images.append((right, top, np.repeat(scale[:, None, :], BAR, axis=1)))
    else:
        result.images.append((right, top, np.broadcast_to(painted_colours(1), (BAR, BAR, 3))))
    places = (top, top + side // 2, top + side - 7 * GLYPH)
    for text, place in zip(bounds if high > low else bounds[:1], places):
        result.words.append((right + BAR + 8, place, text))
    for i, text in enumerate((foot, *keys)):
        result.words.append((MARGIN, top + side + MARGIN + 2 * LETTER * i, text))
    return result


def tick_cells(cells: Cells, letters: int) -> Sequence[int]:
    """Return the cells that have a tick label."""
    apart = -(-cells.count * LETTER * (letters + 2) // SIDE)
    step = 1
    while step < apart:
        step *= 2
    return range(0, cells.count, step)


def painted_colours(count: int) -> Pixels:
    """Return `count` colours, from small to large values."""
    return np.array(colours(count), dtype=np.uint8)


def painted(cells: Cells) -> Pixels:
    """Return one pixel for each cell."""
    palette = np.concatenate([np.array([PAPER], dtype=np.uint8), painted_colours(COLOURS)])
    return palette[cells.levels(COLOURS)]


def png(pixels: Pixels) -> bytes:
    """Return pixels, height x width x 3, as a PNG file."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    # Each row begins with how it is filtered: 0, not at all.
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )


def letter(character: str) -> Pixels:
    """Return the dots of a letter, 7 x 5, each 0 or 1."""
    code = LETTERS.get(character.upper(), LETTERS["?"])
    rows = np.frombuffer(bytes.fromhex(code), dtype=np.uint8)
    return np.unpackbits(rows[:, None], axis=1)[:, 3:]


def write_png(result: Drawing, path: Path) -> None:
    """Write a picture as PNG."""
    pixels = np.empty((result.height, result.width, 3), dtype=np.uint8)
    pixels[:] = PAPER
    for left, top, width, height in result.frames:
        pixels[top : top + height, left : left + width] = LINE
    for left, top, image in result.images:
        pixels[top : top + image.shape[0], left : left + image.shape[1]] = image
    for left, top, text in result.words:
        for i, character in enumerate(text):
            if character == " ":
                continue
            dots = letter(character).repeat(GLYPH, axis=0).repeat(GLYPH, axis=1)
            corner = pixels[top : top + dots.shape[0], left + i * LETTER : left + i * LETTER + dots.shape[1]]
            corner[dots[: corner.shape[0], : corner.shape[1]] == 1] = INK
    path.write_bytes(png(pixels))


def write_svg(result: Drawing, path: Path) -> None:
    """Write a picture as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{result.width}" height="{result.height}" '
        f'viewBox="0 0 {result.width} {result.height}" font-family="monospace" font-size="{LETTER + 6}">',
        f'<rect width="100%" height="100%" fill="{css(PAPER)}"/>',
    ]
    for left, top, width, height in result.frames:
        parts.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="{css(LINE)}"/>')
    for left, top, image in result.images:
        data = base64.b64encode(png(image)).decode()
        parts.append(
            f'<image x="{left}" y="{top}" width="{image.shape[1]}" height="{image.shape[0]}" '
            f'image-rendering="pixelated" href="data:image/png;base64,{data}"/>'
        )
    for left, top, text in result.words:
        parts.append(
            f'<text x="{left}" y="{top + 7 * GLYPH}" fill="{css(INK)}" textLength="{len(text) * LETTER}" '
            f'xml:space="preserve">{escape(text, Target.HTML)}</text>'
        )
    path.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")


def css(colour: tuple[int, int, int]) -> str:
    """Return a colour as SVG has it.

    >>> css((255, 0, 16))
    '#ff0010'
    """
    return "#" + "".join(f"{part:02x}" for part in colour)
