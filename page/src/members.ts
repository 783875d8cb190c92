// SPDX-License-Identifier: Apache-2.0
// The members of a communicator in the order of its ranks, and their places in a Cartesian topology.

/** Returns the world ranks of members as the profile writes them: "0-3", "0-14:2, 5". */
export function members(text: string): number[] {
  return text.split(",").flatMap((part) => {
    const [, first, last, step] = /^\s*(\d+)(?:-(\d+))?(?::(\d+))?\s*$/.exec(part) ?? [];
    if (first === undefined) return [];
    const low = Number(first);
    const high = last === undefined ? low : Number(last);
    const stride = Math.max(1, Number(step ?? 1));
    return Array.from({ length: Math.max(0, Math.floor((high - low) / stride) + 1) }, (_, i) => low + i * stride);
  });
}

/** Returns the dimensions of a Cartesian topology, "cart 4x2 periodic 10"; null for others. */
export function grid(topology: string | null): number[] | null {
  const found = /^cart (\d+(?:x\d+)*)/.exec(topology ?? "");
  return found ? found[1]!.split("x").map(Number) : null;
}

/** Returns the coordinates of a rank of a communicator, the last one the fastest, as in MPI_Cart_coords. */
export function coordinates(rank: number, dimensions: number[]): number[] {
  const found: number[] = [];
  let rest = rank;
  for (const size of [...dimensions].reverse()) {
    found.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return found;
}
