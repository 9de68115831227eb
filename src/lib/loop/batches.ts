/**
 * Lists of at most so many items, in order, and of at most so much together: a larger item is a list of its own.
 * @param sizeOf left out: only the number of items counts
 */
export function* batchesOf<T>(
  items: Iterable<T>,
  mostItems: number,
  mostSize = Number.POSITIVE_INFINITY,
  sizeOf: (item: T) => number = () => 0,
): Generator<readonly T[]> {
  let batch: T[] = [];
  let size = 0;
  for (const item of items) {
    const own = sizeOf(item);
    if (batch.length === mostItems || (batch.length > 0 && size + own > mostSize)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(item);
    size += own;
  }
  if (batch.length > 0) yield batch;
}
