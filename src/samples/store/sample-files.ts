import { mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENDPOINT_NAMES, type EntryName } from '../../conversation/models/endpoint-names.ts';
import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';

export const ENTRIES: readonly EntryName[] = [...PROTOCOL_NAMES, ...ENDPOINT_NAMES];

const NAME = /^(req_\d+_[0-9A-Za-z]+)_([a-z0-9-]+)\.(json|sse)$/;

export interface SampleFile {
  readonly stage: string;
  readonly name: string;
}

/** `req_…_provider-request.json` taken apart; undefined for any other file. */
export function parseName(name: string): (SampleFile & { readonly id: string }) | undefined {
  const [, id, stage] = NAME.exec(name) ?? [];
  return id === undefined || stage === undefined ? undefined : { id, stage, name };
}

/** Is it the file of this stage of this sample? @param file what stands in a meta file: anything */
export function isFileOf(id: string, stage: string, file: unknown): boolean {
  const parsed = parseName(String(file));
  return parsed?.id === id && parsed.stage === stage;
}

export const isId = (id: string) => /^req_\d+_[0-9A-Za-z]+$/.test(id);
export const isStage = (stage: string) => /^[a-z0-9-]+$/.test(stage);

/** The stages of an exchange of one hop, in their order; those of others end like them (`hop2-try1-provider-request`). */
export const STAGES: readonly string[] = [
  'client-request',
  'provider-request',
  'provider-error',
  'provider-response',
  'client-response',
];

/** Milliseconds since 1970 from `req_<ms>_…`. */
export const timeOf = (id: string) => Number(id.split('_')[1] ?? 0);

/** The file of a stage in the folder of its entry. */
export const fileName = (id: string, stage: string, sse: boolean) =>
  `${id}_${stage}.${sse ? 'sse' : 'json'}`;

/** The file with what is known of a sample besides its bodies. */
export const metaPath = (root: string, entry: EntryName, id: string) =>
  join(root, entry, fileName(id, 'meta', false));

/** The folder of an entry, created (0700) when it is missing. */
export function entryFolder(root: string, entry: EntryName): string {
  const folder = join(root, entry);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Names of all files in the folder of an entry; none without a folder. */
export function namesOf(root: string, entry: EntryName): readonly string[] {
  try {
    return readdirSync(join(root, entry));
  } catch {
    return [];
  }
}

/** Adds a file to those of its sample. @returns false: its name is none of a sample's file */
export function addFile(files: Map<string, SampleFile[]>, file: string): boolean {
  const parsed = parseName(file);
  if (parsed === undefined) return false;
  const { id, ...own } = parsed;
  const others = files.get(id);
  if (others === undefined) files.set(id, [own]);
  else others.push(own);
  return true;
}

/** Files of one sample, found by listing the folder. */
export function filesOf(root: string, entry: EntryName, id: string): readonly SampleFile[] {
  return namesOf(root, entry).flatMap((name) => {
    if (!name.startsWith(id)) return [];
    const parsed = parseName(name);
    return parsed?.id === id ? [{ stage: parsed.stage, name }] : [];
  });
}

/** Bytes of a file; 0 when it is missing. */
export function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

/** When a file was written last, in milliseconds since 1970; 0 when it is missing. */
export function changedAt(path: string): number {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

/** Where a file is written before it is moved into place. */
export const temporaryPath = (path: string) => `${path}.tmp`;

/** The id of the sample of a temporary file that a dead process left; undefined for any other name. */
export function idOfTemporary(name: string): string | undefined {
  return name.endsWith('.tmp') ? parseName(name.slice(0, -'.tmp'.length))?.id : undefined;
}

/** Replaces a file atomically: a reader sees the old content or the new, never a part. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  const beside = temporaryPath(path);
  writeFileSync(beside, content, { mode: 0o600 });
  renameSync(beside, path);
}
