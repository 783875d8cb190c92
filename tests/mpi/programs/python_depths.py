# SPDX-License-Identifier: Apache-2.0
"""Calls MPI in one line of Python again and again, from several depths, and prints how often.

From Python 3.11 on, these calls have the same stack in C.
"""

from __future__ import annotations

import asyncio

from mpi4py import MPI

DEPTHS = 5
ROUNDS = 500

calls = 0


def call():
    global calls
    MPI.COMM_SELF.Iprobe()
    calls += 1


def descend(depth):
    if depth:
        descend(depth - 1)
    else:
        call()


def generate(depth):
    call()
    yield
    if depth > 1:
        yield from generate(depth - 1)


async def call_in_turns():
    for _ in range(ROUNDS):
        call()
        await asyncio.sleep(0)


async def begin_tasks():
    await asyncio.gather(*[call_in_turns() for _ in range(DEPTHS)])


for _ in range(ROUNDS):
    for depth in range(DEPTHS):
        descend(depth)
    list(generate(DEPTHS))
asyncio.run(begin_tasks())
print(calls)
