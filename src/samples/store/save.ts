/** Writes a capture to its files: whatever waits is masked and appended, the meta file last. */

import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { maskSplit } from '../mask/split-secrets.ts';
import type { Capture } from '../record/capture.ts';
import type { Edge } from '../record/edge.ts';
import type { SampleMeta } from '../sample.ts';
import { metaOf, metaText } from './meta.ts';
import { besideOf, entryFolder, metaPath } from './sample-files.ts';

export interface SaveOptions {
  readonly root: string;
  /** Names this process in files of open exchanges. */
  readonly run: string;
  /** The capture gives memory back. */
  readonly free: (capture: Capture, bytes: number) => void;
}

const PRIVATE = { mode: 0o600 } as const;
/** Bytes written at a time. */
const BATCH = 2 ** 20;

/**
 * Writes what there is. Resolves with the meta when the exchange is over and complete on disk.
 * @throws what the file system throws
 */
export async function save(
  capture: Capture,
  options: SaveOptions,
): Promise<SampleMeta | undefined> {
  const folder = entryFolder(options.root, capture.entry);
  const path = metaPath(options.root, capture.entry, capture.id);
  // Known before it is written: an edge that comes meanwhile waits for the next round.
  const last = capture.told !== undefined;
  capture.prepare();
  if (!last && !capture.announced) {
    const { text } = metaText(metaOf(capture, 'open', options.run), capture.secrets.literals);
    await replace(path, text);
    capture.announced = true;
  }
  const edges = [...capture.edges];
  // Names first: the try that counts takes over the name of the one before it.
  for (const edge of edges) await renameEdge(capture, edge, folder);
  await Promise.all(edges.map((edge) => saveEdge(capture, edge, folder, options)));
  if (!last) return undefined;
  for (const edge of edges) if (edge.sse) await maskAcrossEvents(capture, edge, folder);
  const { text, meta } = metaText(metaOf(capture, 'done', options.run), capture.secrets.literals);
  await replace(path, text);
  return meta;
}

/**
 * Moved into place whole: another process that lists samples would take half a meta file for an
 * exchange that was cut, and write that into the index.
 */
async function replace(path: string, content: string | Uint8Array): Promise<void> {
  const beside = besideOf(path);
  await writeFile(beside, content, PRIVATE);
  await rename(beside, path);
}

async function renameEdge(capture: Capture, edge: Edge, folder: string): Promise<void> {
  const name = edge.name(capture.id);
  if (edge.file === undefined || edge.file === name) return;
  await rename(join(folder, edge.file), join(folder, name));
  edge.file = name;
}

async function saveEdge(
  capture: Capture,
  edge: Edge,
  folder: string,
  { free }: SaveOptions,
): Promise<void> {
  if (!edge.dirty) return;
  const name = edge.name(capture.id);
  const { pieces, taken } = await edge.drain();
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (capture.dropped || (length === 0 && edge.file !== undefined)) return;
  const path = join(folder, edge.file ?? name);
  await write(path, edge.file === undefined, pieces);
  edge.file ??= name;
  edge.written += length;
  // Who was dropped meanwhile has given back all there was.
  if (capture.dropped) return;
  free(capture, taken);
}

/** Most bodies are one write; a large one is several, and never in memory once more as a whole. */
async function write(path: string, fresh: boolean, pieces: readonly Uint8Array[]): Promise<void> {
  const file = await open(path, fresh ? 'w' : 'a', PRIVATE.mode);
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

/** A key that a model says word by word stands in no single event: the finished stream is looked at once more. */
async function maskAcrossEvents(capture: Capture, edge: Edge, folder: string): Promise<void> {
  if (edge.file === undefined || capture.dropped) return;
  const path = join(folder, edge.file);
  const bytes = await readFile(path);
  const count = await maskSplit(bytes, capture.secrets.literals);
  if (count === 0) return;
  edge.splitMasked = count;
  await replace(path, bytes);
}

/** Removes whatever of a capture is on disk. */
export async function unsave(capture: Capture, root: string): Promise<void> {
  const folder = join(root, capture.entry);
  const files = capture.edges.map(({ file }) => file).filter((file) => file !== undefined);
  await Promise.all(files.map((file) => rm(join(folder, file), { force: true })));
  if (capture.announced) await rm(metaPath(root, capture.entry, capture.id), { force: true });
}
