/** Delta debugging: the smallest part of a list that still shows an effect, by asking about subsets. */

/**
 * Zeller's ddmin as a dialogue: yields a subset of `items` (in their order), is told whether it still
 * shows the effect, and returns a subset that does and of which no single item can be left out.
 * All of `items` are taken to show it. The empty list is asked about first: when it shows the effect,
 * no item matters. Later subsets are tried from the end, where the newest items stand.
 * @see Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input (2002)
 */
export function* ddmin<T>(items: readonly T[]): Generator<readonly T[], readonly T[], boolean> {
  if (items.length === 0) return items;
  if (yield []) return [];
  let rest = items;
  let parts = 2;
  while (rest.length > 1) {
    const chunks = split(rest, Math.min(parts, rest.length));
    const smaller = yield* firstThatHolds(rest, chunks);
    if (smaller !== undefined) {
      parts = smaller.complement ? Math.max(parts - 1, 2) : 2;
      rest = smaller.items;
    } else if (parts < rest.length) parts *= 2;
    else break;
  }
  return rest;
}

function* firstThatHolds<T>(
  rest: readonly T[],
  chunks: readonly (readonly T[])[],
): Generator<
  readonly T[],
  { readonly items: readonly T[]; readonly complement: boolean } | undefined,
  boolean
> {
  for (const chunk of chunks.toReversed()) {
    if (chunk.length < rest.length && (yield chunk)) return { items: chunk, complement: false };
  }
  // Of two halves each is the other's complement.
  if (chunks.length === 2) return undefined;
  for (const chunk of chunks) {
    const gone = new Set(chunk);
    const items = rest.filter((item) => !gone.has(item));
    if (yield items) return { items, complement: true };
  }
  return undefined;
}

/** `count` pieces of nearly the same length. */
function split<T>(items: readonly T[], count: number): T[][] {
  return Array.from({ length: count }, (_, i) =>
    items.slice(
      Math.floor((i * items.length) / count),
      Math.floor(((i + 1) * items.length) / count),
    ),
  );
}
