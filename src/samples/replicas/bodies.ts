/** The bodies of a sample as sealed objects: one after the other, cut into parts that fit into memory. They are fetched when the sample is opened. */

import { existsSync } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../../conversation/errors.ts';
import { limitParallel } from '../../lib/loop/limit-parallel.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import type { Objects } from '../../state/engines/engine.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { SampleMeta, SharedBodies } from '../sample.ts';
import { entryFolder, temporaryPath } from '../store/sample-files.ts';
import type { SharingStore } from './folder-store.ts';

/** Bytes of a part. */
export const PART_BYTES = 8 * 2 ** 20;
/** For a part over a slow line. */
const PART_MS = 30_000;
const LIST_MS = 5000;

export interface BodyStore {
  readonly objects: Objects;
  readonly seal: TextSeal;
}

/** Of all bodies of a sample. */
export const bytesOf = ({ sizes }: Pick<SharedBodies, 'sizes'>): number =>
  sizes.reduce((sum, size) => sum + size, 0);

/** Why bodies cannot be read: they are gone, or cannot be opened with the secrets of this configuration. */
export class UnreadableBodies extends Error {
  override readonly name = 'UnreadableBodies';
}

const placeOf = (key: string, part: number) => `samples ${key}/${part}`;
const partOf = (key: string, part: number) => `${key}/${part}`;

/** The bodies of a sample on this disk as they would be stored; undefined: one is missing. */
export async function planBodies(
  root: string,
  meta: SampleMeta,
  key: string,
): Promise<SharedBodies | undefined> {
  const sizes: number[] = [];
  for (const { file } of meta.edges) {
    const found = await stat(join(root, meta.entry, file)).catch(() => undefined);
    if (found === undefined) return undefined;
    sizes.push(found.size);
  }
  return { key, sizes, parts: Math.ceil(bytesOf({ sizes }) / PART_BYTES) };
}

/**
 * Stores the bodies of a sample, a part at a time.
 * @param onPart called after each part, with its bytes
 * @throws EngineAway, or the file system's error when a body was removed meanwhile
 */
export async function storeBodies(
  { objects, seal }: BodyStore,
  root: string,
  meta: SampleMeta,
  { key, sizes }: SharedBodies,
  onPart: (bytes: number) => Promise<void>,
): Promise<void> {
  let part = 0;
  let pieces: Uint8Array[] = [];
  let held = 0;
  const flush = async () => {
    const sealed = seal.seal(Buffer.concat(pieces), placeOf(key, part));
    await objects.put(partOf(key, part), sealed, PART_MS);
    await onPart(held);
    part++;
    pieces = [];
    held = 0;
  };
  for (const [at, { file }] of meta.edges.entries()) {
    const handle = await open(join(root, meta.entry, file), 'r');
    try {
      for (let from = 0; from < sizes[at]!; ) {
        const size = Math.min(PART_BYTES - held, sizes[at]! - from);
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(size), 0, size, from);
        if (bytesRead < size) throw new Error(`${file} became shorter while it was uploaded`);
        pieces.push(buffer);
        held += size;
        from += size;
        if (held === PART_BYTES) await flush();
      }
    } finally {
      await handle.close();
    }
  }
  if (held > 0) await flush();
}

/**
 * Writes the bodies of a sample to their files, each of them whole or not at all.
 * @throws EngineAway, UnreadableBodies, or the file system's error
 */
export async function fetchBodies(
  { objects, seal }: BodyStore,
  root: string,
  meta: SampleMeta,
  { key, sizes, parts }: SharedBodies,
): Promise<void> {
  const folder = entryFolder(root, meta.entry);
  let part = 0;
  let rest: Uint8Array = new Uint8Array(0);
  const next = async () => {
    const stored =
      part < parts ? await objects.get(partOf(key, part), undefined, PART_MS) : undefined;
    if (stored === undefined) throw new UnreadableBodies(`the object ${key} is not there any more`);
    const plain = seal.open(stored, placeOf(key, part));
    if (plain === undefined) {
      throw new UnreadableBodies(
        `the object ${key} cannot be opened: is its secret in engines.seal?`,
      );
    }
    part++;
    rest = plain;
  };
  for (const [at, { file }] of meta.edges.entries()) {
    const path = join(folder, file);
    // Two processes may fetch it at once.
    const own = crypto.randomUUID().slice(0, 8);
    const beside = temporaryPath(path.replace(/(\.\w+)$/, `-${own}$1`));
    const handle = await open(beside, 'w', 0o600);
    try {
      for (let left = sizes[at] ?? 0; left > 0; ) {
        if (rest.length === 0) await next();
        const piece = rest.subarray(0, left);
        await handle.writeFile(piece);
        rest = rest.subarray(piece.length);
        left -= piece.length;
      }
      await handle.close();
      await rename(beside, path);
    } catch (thrown) {
      await handle.close().catch(() => {});
      await rm(beside, { force: true });
      throw thrown;
    }
  }
}

/** Removes the objects of a sample and lists them until none is left. @throws EngineAway */
export async function removeBodies(
  objects: Objects,
  { key, parts }: Pick<SharedBodies, 'key' | 'parts'>,
): Promise<void> {
  for (let part = 0; part < parts; part++) await objects.remove(partOf(key, part), LIST_MS);
  for (;;) {
    const left = await objects.list(`${key}/`, '', LIST_MS);
    if (left.length === 0) return;
    for (const one of left) await objects.remove(one.key, LIST_MS);
  }
}

/** Objects that are fetched at the same time. */
const PARALLEL = 4;

export interface FetcherOptions extends BodyStore {
  readonly root: string;
  readonly store: Pick<SharingStore, 'hold'>;
}

export class BodyFetcher {
  readonly #limited = limitParallel(PARALLEL);
  readonly #fetching = new Map<string, Promise<void>>();

  constructor(private readonly options: FetcherOptions) {}

  /**
   * Resolves when the bodies of a sample lie in the folder.
   * @throws GatewayError not_found when they are gone, overloaded when they cannot be fetched now
   */
  fetch(meta: SampleMeta): Promise<void> {
    const { object } = meta;
    if (object === undefined || this.#isHere(meta)) return Promise.resolve();
    let fetching = this.#fetching.get(meta.id);
    if (fetching === undefined) {
      fetching = this.#limited(() => this.#fetch(meta, object)).finally(() =>
        this.#fetching.delete(meta.id),
      );
      this.#fetching.set(meta.id, fetching);
    }
    return fetching;
  }

  #isHere({ entry, edges }: SampleMeta): boolean {
    return edges.every(({ file }) => existsSync(join(this.options.root, entry, file)));
  }

  async #fetch(meta: SampleMeta, object: SharedBodies): Promise<void> {
    const { root, store } = this.options;
    try {
      await fetchBodies(this.options, root, meta, object);
      store.hold(meta, bytesOf(object));
    } catch (cause) {
      const reason = messageOf(cause);
      const message = `The bodies of ${meta.id}, which another replica recorded, cannot be read: ${reason}.`;
      throw cause instanceof UnreadableBodies
        ? new GatewayError('not_found', message, { cause })
        : new GatewayError('overloaded', message, { cause, retryAfter: 10 });
    }
  }
}
