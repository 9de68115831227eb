/** Writes a capture to its files: waiting chunks are masked and appended, the meta file comes last. */

import { mkdirSync } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Patch } from '../mask/split-mask.ts';
import type { Capture } from '../record/capture.ts';
import type { StageBody } from '../record/stage-body.ts';
import type { SampleMeta } from '../sample.ts';
import { metaOf, metaText } from './meta.ts';
import { metaPath, temporaryPath } from './sample-files.ts';

export interface SaveOptions {
  readonly root: string;
  /** The name of this process in files of open exchanges. */
  readonly run: string;
  /** Bytes that a body under way must have for a write. */
  readonly least: number;
  /** Called when the capture releases memory. */
  readonly release: (capture: Capture, bytes: number) => void;
}

const PRIVATE = { mode: 0o600 } as const;
const WHOLE = { ...PRIVATE, flag: 'w' } as const;
const MORE = { ...PRIVATE, flag: 'a' } as const;
const NOTHING = new Uint8Array(0);
/** Bytes written at a time. */
const BATCH = 2 ** 20;

/**
 * Writes what the capture holds. Resolves with the meta once the exchange is over and complete on disk.
 * @throws what the file system throws
 */
export async function save(
  capture: Capture,
  options: SaveOptions,
): Promise<SampleMeta | undefined> {
  const folder = join(options.root, capture.entry);
  const path = metaPath(options.root, capture.entry, capture.id);
  // Read before anything is written: a stage that comes meanwhile waits for the next call.
  const last = capture.outcome !== undefined;
  capture.prepare();
  if (!last && !capture.announced) {
    const { text } = metaText(metaOf(capture, 'open', options.run), capture.secrets.literals);
    await replace(path, text);
    capture.announced = true;
  }
  const bodies = [...capture.stages];
  // Files are renamed first: the try that counts takes the name of the one before it.
  for (const body of bodies) await renameBody(capture, body, folder);
  await Promise.all(bodies.map((body) => saveBody(capture, body, folder, options)));
  if (!last) return undefined;
  const { text, meta } = metaText(metaOf(capture, 'done', options.run), capture.secrets.literals);
  await replace(path, text);
  return meta;
}

/**
 * Replaces a file atomically: another process that lists samples would take half a meta file for a cut
 * exchange, and write that into the index.
 */
async function replace(path: string, content: string | Uint8Array): Promise<void> {
  const beside = temporaryPath(path);
  await inFolder(path, () => writeFile(beside, content, PRIVATE));
  await rename(beside, path);
}

/** The folder (0700) is made where it is missing: to look first would be one more call for each exchange. */
async function inFolder<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if ((thrown as { code?: unknown } | null)?.code !== 'ENOENT') throw thrown;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return work();
  }
}

async function renameBody(capture: Capture, body: StageBody, folder: string): Promise<void> {
  const name = body.name(capture.id);
  if (body.file === undefined || body.file === name) return;
  await rename(join(folder, body.file), join(folder, name));
  body.file = name;
}

async function saveBody(
  capture: Capture,
  body: StageBody,
  folder: string,
  { release, least }: SaveOptions,
): Promise<void> {
  if (!body.dirty && !(least === 0 && body.ready)) return;
  const name = body.name(capture.id);
  const { pieces, bytes, patches } = await body.drain(least);
  if (capture.dropped || (bytes + patches.length === 0 && body.file !== undefined)) return;
  const path = join(folder, body.file ?? name);
  if (bytes > 0 || body.file === undefined) await write(path, body.file === undefined, pieces);
  if (patches.length > 0) await correct(path, patches);
  body.file ??= name;
  body.written += bytes;
  // A capture that was dropped meanwhile has released its memory already.
  if (capture.dropped) return;
  release(capture, bytes);
}

async function correct(path: string, patches: readonly Patch[]): Promise<void> {
  const file = await open(path, 'r+');
  try {
    for (const { at, bytes } of patches) await file.write(bytes, 0, bytes.length, at);
  } finally {
    await file.close();
  }
}

/** Most bodies are one write; large ones are several, so that no second copy of the whole is in memory. */
async function write(path: string, fresh: boolean, pieces: readonly Uint8Array[]): Promise<void> {
  if (pieces.length <= 1) {
    // One call to the file system's threads in place of three.
    const content = pieces[0] ?? NOTHING;
    await inFolder(path, () => writeFile(path, content, fresh ? WHOLE : MORE));
    return;
  }
  const file = await inFolder(path, () => open(path, fresh ? 'w' : 'a', PRIVATE.mode));
  try {
    for (let at = 0; at < pieces.length; ) {
      const batch: Uint8Array[] = [];
      for (let bytes = 0; at < pieces.length && bytes < BATCH; at++) {
        batch.push(pieces[at]!);
        bytes += pieces[at]!.length;
      }
      await file.writeFile(batch.length === 1 ? batch[0]! : Buffer.concat(batch));
    }
  } finally {
    await file.close();
  }
}

export async function removeSaved(capture: Capture, root: string): Promise<void> {
  const folder = join(root, capture.entry);
  const files = capture.stages.map(({ file }) => file).filter((file) => file !== undefined);
  await Promise.all(files.map((file) => rm(join(folder, file), { force: true })));
  if (capture.announced) await rm(metaPath(root, capture.entry, capture.id), { force: true });
}
