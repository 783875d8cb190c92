// SPDX-License-Identifier: Apache-2.0
// Orders ranks so that those which exchange much are neighbours: average-linkage clustering by chains of nearest
// neighbours. Two clusters that join are turned so that heavy traffic between them has a short way.

/** Traffic from rows to columns; the two directions of a pair are added up. */
export interface Traffic {
  readonly row: ArrayLike<number>;
  readonly column: ArrayLike<number>;
  readonly value: ArrayLike<number>;
}

const MOST_PAIRS = 1 << 20; // the heaviest ones determine the order
const EXACT = 2 ** 52; // sums of integers up to this are the same in any order

/** The peers of each rank with the traffic to and from them, one rank after the other. */
class Links {
  readonly begin: Int32Array;
  readonly peer: Int32Array;
  readonly value: Float64Array;

  constructor({ row, column, value }: Traffic, ranks: number) {
    const pairs: number[] = [];
    let total = 0;
    for (let i = 0; i < value.length && pairs.length < MOST_PAIRS; i++) {
      if (row[i]! < 0 || column[i]! < 0 || row[i] === column[i] || !(value[i]! > 0)) continue;
      pairs.push(i);
      total += 2 * value[i]!;
    }
    this.begin = new Int32Array(ranks + 1);
    for (const i of pairs) for (const rank of [row[i]!, column[i]!]) this.begin[rank + 1]!++;
    for (let rank = 0; rank < ranks; rank++) this.begin[rank + 1]! += this.begin[rank]!;
    const next = this.begin.slice();
    this.peer = new Int32Array(2 * pairs.length);
    this.value = new Float64Array(2 * pairs.length);
    const scale = Math.max(1, total / EXACT);
    const put = (rank: number, peer: number, each: number) => {
      const at = next[rank]!++;
      this.peer[at] = peer;
      this.value[at] = each;
    };
    for (const i of pairs) {
      const each = Math.ceil(value[i]! / scale);
      put(row[i]!, column[i]!, each);
      put(column[i]!, row[i]!, each);
    }
  }
}

class Clusters {
  /** The ranks of each cluster in their order; empty once another cluster has taken them. */
  readonly members: number[][];
  private readonly links: Links;
  private readonly clusterOf: Int32Array;
  private readonly placeOf: Int32Array;
  /** The neighbours of each cluster, each by one of its ranks, maybe several times; and the traffic with them. */
  private readonly peers: number[][];
  private readonly values: number[][];
  private readonly slots: Int32Array;

  constructor(links: Links, ranks: number) {
    this.links = links;
    this.clusterOf = Int32Array.from({ length: ranks }, (_, rank) => rank);
    this.placeOf = new Int32Array(ranks);
    this.slots = new Int32Array(ranks);
    this.members = Array.from(this.clusterOf, (rank) => [rank]);
    const parts = (all: Int32Array | Float64Array) =>
      this.members.map((_, rank) => Array.from(all.subarray(links.begin[rank], links.begin[rank + 1])));
    this.peers = parts(links.peer);
    this.values = parts(links.value);
  }

  /** Adds up what a cluster exchanges with each other one. */
  private tidy(cluster: number): void {
    const [peers, values] = [this.peers[cluster]!, this.values[cluster]!];
    let count = 0;
    for (let i = 0; i < peers.length; i++) {
      const other = this.clusterOf[peers[i]!]!;
      if (other === cluster) continue;
      const slot = this.slots[other]!;
      if (slot < count && peers[slot] === other) values[slot]! += values[i]!;
      else {
        this.slots[other] = count;
        peers[count] = other;
        values[count++] = values[i]!;
      }
    }
    peers.length = values.length = count;
  }

  /** Returns the cluster with the most traffic per pair of ranks; `favourite` if none has more; -1 without neighbours. */
  nearest(cluster: number, favourite: number): number {
    this.tidy(cluster);
    const [peers, values, own] = [this.peers[cluster]!, this.values[cluster]!, this.members[cluster]!.length];
    let best = -1;
    let most = 0;
    for (let i = 0; i < peers.length; i++) {
      const other = peers[i]!;
      const average = values[i]! / (own * this.members[other]!.length); // the same from both sides, or a chain might not end
      const isBetter = average > most || (average === most && best !== favourite && (other === favourite || other < best));
      if (isBetter) [best, most] = [other, average];
    }
    return best;
  }

  /** Joins two clusters; the one with more ranks keeps its number. */
  join(one: number, other: number): void {
    const [kept, gone] = this.members[one]!.length < this.members[other]!.length ? [other, one] : [one, other];
    this.concatenate(kept, gone);
    for (const peer of this.peers[gone]!) this.peers[kept]!.push(peer);
    for (const value of this.values[gone]!) this.values[kept]!.push(value);
    this.peers[gone] = this.values[gone] = this.members[gone] = [];
  }

  private concatenate(kept: number, gone: number): void {
    const [first, second] = [this.members[kept]!, this.members[gone]!];
    const [isFirstTurned, isSecondTurned] = this.turns(kept, gone);
    if (isFirstTurned) first.reverse();
    if (isSecondTurned) second.reverse();
    for (const rank of second) first.push(rank);
    for (let place = isFirstTurned ? 0 : first.length - second.length; place < first.length; place++) {
      this.clusterOf[first[place]!] = kept;
      this.placeOf[first[place]!] = place;
    }
  }

  /** Returns which of two clusters to turn: the sum of traffic over distance between them becomes the largest. */
  private turns(kept: number, gone: number): [boolean, boolean] {
    const [first, second] = [this.members[kept]!.length, this.members[gone]!.length];
    const { begin, peer, value } = this.links;
    const sums = [0, 0, 0, 0];
    for (const rank of this.members[gone]!) {
      const after = this.placeOf[rank]! + 1;
      for (let i = begin[rank]!; i < begin[rank + 1]!; i++) {
        if (this.clusterOf[peer[i]!] !== kept) continue;
        const before = this.placeOf[peer[i]!]!;
        const each = value[i]!;
        sums[0]! += each / (first - 1 - before + after);
        sums[1]! += each / (first - before + second - after);
        sums[2]! += each / (before + after);
        sums[3]! += each / (1 + before + second - after);
      }
    }
    const best = sums.indexOf(Math.max(...sums));
    return [best > 1, best % 2 === 1];
  }
}

/** Returns the numbers from 0 to ranks - 1 in an order by traffic; those without any come last. */
export function byTraffic(traffic: Traffic, ranks: number): number[] {
  const clusters = new Clusters(new Links(traffic, ranks), ranks);
  const done: number[][] = [];
  for (let start = 0; start < ranks; start++) {
    const chain: number[] = [];
    while (chain.length || clusters.members[start]!.length) {
      if (!chain.length) chain.push(start);
      const last = chain.at(-1)!;
      const previous = chain.at(-2) ?? -1;
      const next = clusters.nearest(last, previous);
      if (next < 0) {
        const whole = clusters.members[last]!;
        done.push(whole[0]! > whole.at(-1)! ? whole.reverse() : whole);
        clusters.members[last] = [];
        chain.pop();
      } else if (next === previous) {
        chain.length -= 2;
        clusters.join(previous, last);
      } else chain.push(next);
    }
  }
  const alone = (each: number[]) => Number(each.length === 1);
  const least = new Map(done.map((each) => [each, each.reduce((low, rank) => Math.min(low, rank), ranks)]));
  return done.sort((a, b) => alone(a) - alone(b) || least.get(a)! - least.get(b)!).flat();
}
