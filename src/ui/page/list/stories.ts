/** Questions and answers of the rows on the screen: asked for in batches once scrolling ends, and kept. */

import { useLayoutEffect, useMemo } from 'preact/hooks';
import type { Story, UiRow } from '../../api/api.ts';
import { get } from '../kit/fetching.ts';
import { useRedraw } from '../kit/hooks.ts';

/** The exchange of a story: a row, or the first one of a session. */
type Told = Pick<UiRow, 'id' | 'state'>;

/** Milliseconds for which the list must not change: rows that are scrolled past are not asked for. */
const STILL = 80;
const BATCH = 25;
const MAX_KEPT = 2000;

/** @param come called when stories have come */
function createStoryShelf(come: () => void) {
  const stop = new AbortController();
  const { signal } = stop;
  /** By id; `state` of the row when it was asked for: what runs says more later. */
  const known = new Map<string, { readonly state: string; readonly story: Story | undefined }>();
  let wanted: readonly Told[] = [];
  let timer = 0;
  let asking = false;

  const missing = () => wanted.filter((row) => known.get(row.id)?.state !== row.state);

  async function ask(): Promise<void> {
    if (asking) return;
    asking = true;
    try {
      for (let rows = missing(); rows.length > 0 && !signal.aborted; rows = missing()) {
        const batch = rows.slice(0, BATCH);
        const ids = batch.map(({ id }) => id).join(',');
        const { stories } = await get('/stories', { ids }, signal);
        const told = new Map(stories.map((story) => [story.id, story]));
        for (const { id, state } of batch) {
          known.delete(id);
          known.set(id, { state, story: told.get(id) });
        }
        for (const id of known.keys()) {
          if (known.size <= MAX_KEPT) break;
          known.delete(id);
        }
        come();
      }
    } catch {
      // The rows stand without stories; they are asked for again when the list changes.
    }
    asking = false;
  }

  return {
    /** The story of a row, where it is known; for a running exchange, as far as it was known last. */
    of: ({ id }: Pick<UiRow, 'id'>) => known.get(id)?.story,
    /** Asks for those of these rows that are not known. */
    want(rows: readonly Told[]) {
      wanted = rows;
      clearTimeout(timer);
      if (missing().length > 0) timer = window.setTimeout(() => void ask(), STILL);
    },
    close() {
      stop.abort();
      clearTimeout(timer);
    },
  };
}

/** A shelf that lasts as long as the component, which is drawn again when stories have come. */
export function useStories() {
  const redraw = useRedraw();
  const shelf = useMemo(() => createStoryShelf(redraw), []);
  useLayoutEffect(() => shelf.close, []);
  return shelf;
}
