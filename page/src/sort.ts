// SPDX-License-Identifier: Apache-2.0
// Orders places of arrays by numbers, without a function that compares: there may be a million.

/** Returns the places of small numbers by their number; equal ones keep their order. Those of number n go from begin[n] to begin[n + 1]. */
export function grouped(numbers: ArrayLike<number>, most: number): { order: Uint32Array; begin: Uint32Array } {
  const begin = new Uint32Array(most + 1);
  for (let i = 0; i < numbers.length; i++) begin[numbers[i]! + 1]!++;
  for (let i = 1; i < begin.length; i++) begin[i]! += begin[i - 1]!;
  const next = begin.slice();
  const order = new Uint32Array(numbers.length);
  for (let i = 0; i < numbers.length; i++) order[next[numbers[i]!]!++] = i;
  return { order, begin };
}

/** Returns the places of values, the largest first; equal ones keep their order. */
export function descending(values: Float64Array): Uint32Array {
  const sorted = values.slice().sort();
  const smaller = (value: number) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle]! < value) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const { length } = values;
  return Uint32Array.from(values.map((value, i) => (length - 1 - smaller(value)) * length + i).sort(), (key) => key % length);
}
