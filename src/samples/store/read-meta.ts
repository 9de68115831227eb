/** Reads the meta of a sample, or makes one up from the files where it is missing, old or made by hand. */

import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { EntryName } from '../../conversation/models/endpoint-names.ts';
import type { Note } from '../../conversation/notes.ts';
import { isObject, type Json, type JsonObject, topLevel, tryParse } from '../../lib/json/json.ts';
import { isRunning, startOf } from '../../lib/process/running.ts';
import { randomBase36 } from '../../lib/text/ids.ts';
import type { SampleMeta, SampleStage, SampleState } from '../sample.ts';
import {
  changedAt,
  fileName,
  isFileOf,
  type SampleFile,
  STAGES,
  sizeOf,
  timeOf,
} from './sample-files.ts';

/**
 * The meta of a sample whose files are known. Files count for more than what the meta says of them.
 * @param own the name of this process's recorder: its open exchanges are no cut ones
 */
export function readMeta(
  root: string,
  entry: EntryName,
  id: string,
  files: readonly SampleFile[],
  own?: string,
): SampleMeta {
  const folder = join(root, entry);
  const value = readJson(join(folder, fileName(id, 'meta', false)));
  const meta = isObject(value) ? (value as unknown as Partial<SampleMeta>) : undefined;
  const elsewhere = meta?.object && wholeOf(meta, folder, entry, id);
  if (elsewhere !== undefined) return elsewhere;
  const state = meta === undefined ? stateWithout(folder, files) : stateOf(meta, own);
  const known = new Map((meta?.edges ?? []).map((stageInfo) => [stageInfo.file, stageInfo]));
  // First the order of the meta file, then all other files.
  const bodies = files.filter(({ stage }) => stage !== 'meta');
  const order = new Map([...known.keys()].map((name, at) => [name, at]));
  const rank = ({ name, stage }: SampleFile) => order.get(name) ?? order.size + stageRank(stage);
  const edges = bodies
    .toSorted((a, b) => rank(a) - rank(b))
    .map(({ stage, name }): SampleStage => {
      const stageInfo = known.get(name);
      if (stageInfo !== undefined && state === 'done') return stageInfo;
      const bytes = sizeOf(join(folder, name));
      return { ...stageInfo, stage, file: name, bytes, ...(state === 'cut' && { cut: true }) };
    });
  return {
    ...meta,
    id,
    entry,
    state,
    time: meta?.time ?? timeOf(id),
    model: meta?.model ?? modelOf(folder, bodies),
    status: meta?.status ?? edges.find(({ stage }) => stage === 'client-response')?.status,
    stream: meta?.stream ?? bodies.some(({ name }) => name.endsWith('.sse')),
    notes: notesOf(meta?.notes),
    masked: meta?.masked ?? 0,
    edges,
  };
}

/**
 * The meta of a sample that is complete and lies there (or in the object store) as its meta says, without
 * looking through the folder of thousands; undefined for any other.
 */
export function readWhole(root: string, entry: EntryName, id: string): SampleMeta | undefined {
  const folder = join(root, entry);
  const value = readJson(join(folder, fileName(id, 'meta', false)));
  return isObject(value)
    ? wholeOf(value as unknown as Partial<SampleMeta>, folder, entry, id)
    : undefined;
}

function wholeOf(
  meta: Partial<SampleMeta>,
  folder: string,
  entry: EntryName,
  id: string,
): SampleMeta | undefined {
  if (meta.id !== id || !Array.isArray(meta.edges)) return undefined;
  if (meta.state !== 'done' && meta.object === undefined) return undefined;
  const there = meta.edges.every(
    ({ file, stage }) =>
      isFileOf(id, stage, file) && (meta.object !== undefined || existsSync(join(folder, file))),
  );
  if (!there || (meta.edges.length === 0 && meta.object === undefined)) return undefined;
  return { ...(meta as SampleMeta), entry, notes: notesOf(meta.notes), masked: meta.masked ?? 0 };
}

/** Short exchanges write their bodies before the meta file: recent files without one are still being written. */
const WRITTEN_WITHIN_MS = 10_000;

function stateWithout(folder: string, files: readonly SampleFile[]): SampleState {
  const since = Date.now() - WRITTEN_WITHIN_MS;
  return files.some(({ name }) => changedAt(join(folder, name)) > since) ? 'open' : 'cut';
}

function stateOf(meta: Partial<SampleMeta>, own: string | undefined): SampleState {
  if (meta.state !== 'open') return meta.state ?? 'done';
  return runs(meta.run ?? '', own) ? 'open' : 'cut';
}

function stageRank(stage: string): number {
  if (stage === 'client-request') return 0;
  if (stage === 'client-response') return 10_000;
  const hop = Number(/^hop(\d+)-/.exec(stage)?.[1] ?? 1);
  const attempt = Number(/try(\d+)-/.exec(stage)?.[1] ?? 99);
  const base = STAGES.findIndex((name) => stage.endsWith(name));
  return hop * 1000 + attempt * 5 + base;
}

/** A meta file made by hand may hold names instead of notes. */
function notesOf(notes: unknown): readonly Note[] {
  if (!Array.isArray(notes)) return [];
  return notes.map((note) => (typeof note === 'string' ? { name: note } : (note as Note)));
}

function modelOf(folder: string, files: readonly SampleFile[]): string | undefined {
  const request = files.find(({ stage }) => stage === 'client-request') ?? files[0];
  if (request === undefined) return undefined;
  const bytes = head(join(folder, request.name));
  const member = topLevel(bytes, new Set(['model']))?.get('model');
  if (member === undefined) return undefined;
  const value = tryParse(
    Buffer.from(bytes.subarray(member.valueStart, member.valueEnd)).toString(),
  );
  return typeof value === 'string' ? value : undefined;
}

/** The first 8 MB of a file. */
function head(path: string): Uint8Array {
  try {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(Math.min(sizeOf(path), 8 * 2 ** 20));
      return bytes.subarray(0, readSync(file, bytes));
    } finally {
      closeSync(file);
    }
  } catch {
    return new Uint8Array(0);
  }
}

/** The value of a JSON file; undefined when the file is missing or broken. */
export function readJson(path: string): Json | JsonObject | undefined {
  try {
    return tryParse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** `<pid>-<random>-<start>`: tells apart a later process with the same pid. The start is left out where it is not known. */
export function runName(): string {
  const start = startOf(process.pid);
  return `${process.pid}-${randomBase36(8)}${start === undefined ? '' : `-${start}`}`;
}

/** @param own the name of this process's recorder, if it has one */
export function runs(name: string, own?: string): boolean {
  if (name === own) return true;
  const [number, , start] = name.split('-');
  const pid = Number(number);
  // The same pid under another name (common in containers) is an earlier process.
  if (pid === process.pid && (own !== undefined || start === undefined)) return own === undefined;
  return isRunning(pid, start);
}
