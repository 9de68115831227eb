/** Rooms of entries in this process, with and without a file. */

import { basename, dirname } from 'node:path';
import { MemoryEntries, type MemoryEntriesOptions } from '../../src/state/key-value/memory.ts';
import type { EntryLimits, Room, RoomFileKind, RoomKind } from '../../src/state/key-value/room.ts';

/** A room that lasts as long as the process. */
export const memoryRoom = <Entry>(
  kind: RoomKind<Entry>,
  limits: Partial<EntryLimits> = {},
): Room<Entry> => new MemoryEntries().room({ ...kind, memory: { ...kind.memory, ...limits } });

export interface FileRoom<Entry> {
  readonly it: Room<Entry>;
  readonly store: MemoryEntries;
  flush(): void;
  close(): void;
}

/** A room with a file, as one of several processes has it open. */
export function fileRoom<Entry>(
  kind: RoomKind<Entry>,
  path: string,
  {
    file = {},
    memory = {},
    ...options
  }: Omit<MemoryEntriesOptions, 'folder'> & {
    readonly file?: Partial<RoomFileKind>;
    readonly memory?: Partial<EntryLimits>;
  } = {},
): FileRoom<Entry> {
  const store = new MemoryEntries({ folder: dirname(path), ...options });
  const it = store.room({
    ...kind,
    memory: { ...kind.memory, ...memory },
    file: { ...kind.file!, ...file, name: basename(path) },
  });
  store.open();
  return { it, store, flush: () => store.flush(), close: () => void store.close() };
}
