/** Delta debugging: finds the smallest part of a list that still shows an effect, by testing subsets. */

/**
 * Zeller's ddmin as a generator: it yields a subset of `items` (in their order), receives whether that still shows
 * the effect, and returns a subset that does and from which no single item can be removed. It assumes that all of
 * `items` show the effect. It tries the empty list first: if that shows the effect, no item matters. It tries later
 * subsets from the end, where the newest items are.
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
