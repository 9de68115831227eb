/** An event on its way between the file of a machine and the database of all replicas, and how its two forms compare. */

import type { MemoryEvent } from '../../../conversation/memory.ts';
import { nameHash } from '../../../state/erasures.ts';
import type { Standing } from '../../../state/move/paged-move.ts';

export interface MovedEvent {
  readonly space: string;
  readonly event: MemoryEvent;
  /** UTF-8 bytes of its text. */
  readonly bytes: number;
}

/** The vector of an event as it is stored; both are empty where the model gave none. */
export interface StoredVector {
  readonly model: string;
  readonly signs: Uint8Array;
  readonly vector: Uint8Array;
}

/** Equal for events that say the same. */
export const formOf = ({ id, time, text, source = '', tags, importance }: MemoryEvent): string =>
  nameHash(JSON.stringify([id, time, text, source, tags, importance]));

/** Forms of an event: here, where it comes from, and as it was when a move wrote it last. */
export interface Forms {
  readonly source: string;
  /** Undefined: it is not there. */
  readonly target: string | undefined;
  /** Undefined: no move wrote it. */
  readonly moved: string | undefined;
  readonly isErased: boolean;
}

export function standingOf({ source, target, moved, isErased }: Forms): Standing {
  if (target === undefined) {
    if (moved !== undefined) return 'removed';
    return isErased ? 'erased' : 'missing';
  }
  // Where one side is as it was moved, the other one is newer.
  if (target === source || moved === source) return 'there';
  return moved === target ? 'missing' : 'differs';
}
