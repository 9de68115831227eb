/** The image descriptions that all replicas share: one image, one description. Those of a memory space go with it. */

import { nameHash } from '../../state/erasures.ts';
import type { RoomKind, SharedRoom } from '../../state/shared-entries.ts';
import type { DescriptionStore } from './description-store.ts';

export const SHARED_DESCRIPTIONS: RoomKind = {
  name: 'images',
  ttlMs: 30 * 24 * 3_600_000,
  keep: 'first',
};

/** Images of spaces that are being described at most. */
const MAX_REQUESTED = 1000;

export interface SharedDescriptionStore extends DescriptionStore {
  /** @param space undefined: the images of all exchanges without one */
  prefetch(keys: readonly string[], space: string | undefined): Promise<void> | undefined;
}

/** @param erase voids everything of the space whose name has this hash, for all replicas */
export function sharedDescriptionStore(
  room: SharedRoom<string>,
  erase: (hash: string) => void,
): SharedDescriptionStore {
  /** The epoch of the space when its image was first asked for: an erasure since voids the description. */
  const requested = new Map<string, string>();
  const put = (key: string, text: string, space?: string, epoch?: string): string => {
    room.put([key], text, space, epoch);
    return room.get(key, space) ?? text;
  };
  return {
    get: (key) => room.get(key),
    put: (key, text) => put(key, text),
    settled: (key) => room.settled(key),
    of(name) {
      const space = nameHash(name);
      return {
        get(key) {
          const text = room.get(key, space);
          const epoch = room.epochOf(space);
          const own = `${space}\0${key}`;
          if (text === undefined && epoch !== undefined && !requested.has(own)) {
            if (requested.size >= MAX_REQUESTED) requested.delete(requested.keys().next().value!);
            requested.set(own, epoch);
          }
          return text;
        },
        put(key, text) {
          const own = `${space}\0${key}`;
          const epoch = requested.get(own) ?? room.epochOf(space);
          requested.delete(own);
          return epoch === undefined ? text : put(key, text, space, epoch);
        },
        settled: (key) => room.settled(key, space),
      };
    },
    prefetch: (keys, space) =>
      keys.length === 0 ? undefined : room.prefetch(keys, space && nameHash(space)),
    eraseSpace: (space) => erase(nameHash(space)),
    close: () => {},
    persistent: true,
  };
}
