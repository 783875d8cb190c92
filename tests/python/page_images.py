# SPDX-License-Identifier: Apache-2.0
"""Screenshots of the page, reduced to blocks of colour, and their comparison with stored ones.

A block is the average of 8 by 8 pixels. Two images are the same if each block is about as dark as the blocks around its
place in the other image: text may move by a pixel and have other edges, but nothing may appear or disappear.
"""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from browser import Browser
from PIL import Image  # of matplotlib

BLOCK = 8
"""Width and height of a block in pixels."""

STEP = 17
"""Difference of neighbouring levels of a stored colour: 16 levels make small files."""

TOLERANCE = 30
"""How much a colour, from 0 to 255, may lie outside those around its place in the other image."""

MOST_DIFFERENT = 20
"""Number of blocks that may differ: a line of text has more."""

HIGHEST = 3000
"""Pixels from the top of a page that an image shows."""

Blocks = np.ndarray[Any, np.dtype[np.uint8]]
"""Colours by row, column and channel."""

FONTS = {"400": "DejaVuSans.ttf", "700": "DejaVuSans-Bold.ttf"}
USE_FONTS = """\
const finished = arguments[arguments.length - 1];
const faces = Object.entries(arguments[0]).map(([weight, data]) =>
  new FontFace("Reference", Uint8Array.from(atob(data), (each) => each.charCodeAt(0)), { weight }));
const style = document.createElement("style");
style.textContent = "* { font-family: Reference !important; caret-color: transparent !important; }";
Promise.all(faces.map((face) => face.load())).then(() => {
  faces.forEach((face) => document.fonts.add(face));
  document.head.append(style);
  finished();
});"""


def use_fonts(tab: Browser) -> None:
    """Let the open page use the fonts that matplotlib contains: lines break in the same places on each machine."""
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    tab.run_async(
        USE_FONTS,
        {weight: base64.b64encode((folder / name).read_bytes()).decode() for weight, name in FONTS.items()},
    )


def screenshot(tab: Browser) -> bytes:
    """Return the whole page as PNG, without scroll bars."""
    tab.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    tab.run_async("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    width, height = tab.run("return [innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, HIGHEST), "scale": 1}
    found = tab.driver.execute_cdp_cmd(
        "Page.captureScreenshot",
        {"format": "png", "captureBeyondViewport": True, "optimizeForSpeed": True, "clip": clip},
    )
    return base64.b64decode(found["data"])


def reduced(png: bytes) -> Blocks:
    """Return the blocks of a PNG, in the colours that a stored image can have."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    rows, columns = pixels.shape[0] // BLOCK, pixels.shape[1] // BLOCK
    whole = pixels[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK, 3)
    blocks: Blocks = (np.round(whole.mean(axis=(1, 3)) / STEP) * STEP).astype(np.uint8)
    return blocks


def write(blocks: Blocks, path: Path) -> None:
    """Write blocks as a small PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(blocks).save(path, optimize=True)


def read(path: Path) -> Blocks:
    """Return the blocks that `write` has written."""
    return np.asarray(Image.open(path).convert("RGB"))


def neighbours(blocks: Blocks) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return nine copies of the blocks, in which those around each block, itself included, are at its place."""
    padded = np.pad(blocks.astype(np.int64), ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows, columns = blocks.shape[:2]
    return np.stack([padded[y : y + rows, x : x + columns] for y in range(3) for x in range(3)])


def differing(seen: Blocks, wanted: Blocks) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return for each block whether it differs.

    It is darker or brighter than all blocks around its place in the other image, and the averages around it differ. The
    first alone also finds text that has moved by a pixel, the second alone an edge that has moved by a few.
    """
    around_seen, around_wanted = neighbours(seen), neighbours(wanted)
    apart = np.zeros(seen.shape, dtype=bool)
    for one, other in ((seen, around_wanted), (wanted, around_seen)):
        apart |= (one < other.min(axis=0) - TOLERANCE) | (one > other.max(axis=0) + TOLERANCE)
    average = np.abs(around_seen.mean(axis=0) - around_wanted.mean(axis=0))
    found: np.ndarray[Any, np.dtype[np.bool_]] = (apart & (average > TOLERANCE / 2)).any(axis=2)
    return found


def differences(seen: Blocks, wanted: Blocks) -> int:
    """Return how many blocks differ; heights may differ by one block."""
    if abs(len(seen) - len(wanted)) > 1 or seen.shape[1] != wanted.shape[1]:
        return max(seen[..., 0].size, wanted[..., 0].size)
    rows = min(len(seen), len(wanted))
    seen, wanted = seen[:rows], wanted[:rows]
    return int(np.count_nonzero(differing(seen, wanted)))
