# SPDX-License-Identifier: Apache-2.0
"""Colours that people with defective colour vision tell apart (Tol's "bright"), and characters for no colours."""

from __future__ import annotations

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
OTHER = "#9a9aa4"
"""The colour of all further parts together."""

GLYPHS = "#=+ox%"
OTHER_GLYPH = "."
MOST = len(COLOURS)


def colour(place: int) -> str:
    """Return the colour of a part, from 0 on; OTHER for the last of all.

    >>> colour(0), colour(MOST)
    ('#4477aa', '#9a9aa4')
    """
    return COLOURS[place] if place < MOST else OTHER


def glyph(place: int) -> str:
    """Return the character of a part."""
    return GLYPHS[place] if place < MOST else OTHER_GLYPH
