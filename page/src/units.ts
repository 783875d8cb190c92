// SPDX-License-Identifier: Apache-2.0
// Numbers with three digits and a unit, exactly as commlens.render.units writes them in a terminal.

const TIME_UNITS: [number, string][] = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Rounds halves to the even digit, as Python does; toFixed() rounds them up. Only binary fractions can be halves. */
function fixed(value: number, digits: number): string {
  const scaled = value * 10 ** digits;
  const below = Math.floor(scaled);
  const isHalf = Number.isInteger(value * 2 ** (digits + 1)) && scaled - below === 0.5 && below % 2 === 0;
  return isHalf ? (below / 10 ** digits).toFixed(digits) : value.toFixed(digits);
}

function threeDigits(value: number): string {
  if (value < 9.995) return fixed(value, 2);
  return value < 99.95 ? fixed(value, 1) : fixed(value, 0);
}

export function time(ns: number | null): string {
  if (ns === null) return "-";
  for (const [scale, unit] of TIME_UNITS.slice(0, -1)) {
    if (ns < 999.5 * scale) return scale === 1 ? `${Math.round(ns)} ns` : `${threeDigits(ns / scale)} ${unit}`;
  }
  return `${threeDigits(ns / 1e9)} s`;
}

export function bytes(count: number | null): string {
  if (count === null) return "-";
  if (count < 1024) return `${Math.round(count)} B`;
  let value = count;
  let unit = 0;
  while (value >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${threeDigits(value)} ${BYTE_UNITS[unit]!}`;
}

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 }); // making one takes longer than many uses

export function count(value: number | null): string {
  return value === null ? "-" : GROUPED.format(value);
}

export function share(part: number | null): string {
  if (part === null) return "-";
  if (part === 0) return "0 %";
  return part < 0.0005 ? "<0.1 %" : `${fixed(100 * part, 1)} %`;
}

export function many(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function bound(size: number): [string, string] {
  const unit = size ? Math.min(Math.floor(Math.log2(size) / 10), BYTE_UNITS.length - 1) : 0;
  return [`${size / 1024 ** unit}`, BYTE_UNITS[unit]!];
}

/** Returns the smallest message size of a bin above 0. */
export function smallest(bin: number): string {
  return bound(2 ** (bin - 1)).join(" ");
}

/** Returns the message sizes of a bin: bin k has 2^(k-1) to 2^k - 1 bytes. */
export function size(bin: number): string {
  if (bin === -2) return "PROC_NULL";
  if (bin === -1) return "varies";
  if (bin <= 1) return `${bin} B`;
  const low = 2 ** (bin - 1);
  if (low <= 512) return `${low}-${2 * low - 1} B`;
  const [first, firstUnit] = bound(low);
  const [last, lastUnit] = bound(2 * low);
  return firstUnit === lastUnit ? `${first}-${last} ${lastUnit}` : `${first} ${firstUnit}-${last} ${lastUnit}`;
}

/** Returns a relative change; beyond a factor of 100 its percentage would hide how much that is. */
export function percent(change: number | null): string {
  if (change === null) return "-";
  if (change >= 99) return `×${threeDigits(change + 1)}`;
  return `${change < 0 ? "−" : "+"}${fixed(100 * Math.abs(change), 1)} %`;
}

export type Unit = "text" | "percent" | "count" | "time" | "bytes" | "share" | "size" | "number";

/** Returns a value as the page shows it. */
export function shown(value: string | number | null, unit: Unit): string {
  if (value === null) return "-";
  if (typeof value === "string") return value;
  switch (unit) {
    case "time": return time(value);
    case "bytes": return bytes(value);
    case "share": return share(value);
    case "percent": return percent(value);
    case "size": return size(value);
    case "count": return count(value);
    case "number": return Number.isInteger(value) ? `${value}` : value.toPrecision(4);
    case "text": return `${value}`;
  }
}
