/** What the words of a command line name to be sent: samples, their files and folders, or any request body in a file. */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { ProtocolName } from '../../../conversation/types.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import {
  fromExported,
  fromSample,
  type ReplaySource,
  requireSample,
} from '../../../samples/replay/source.ts';
import type { ExportedSample, SampleStore } from '../../../samples/sample.ts';
import { bodyProtocol } from '../../body-protocol.ts';
import { type Invocation, UsageError } from '../../command.ts';

/**
 * Everything that is named, each request once, though a shell's `*` may name all the files of a sample.
 * @throws UsageError or GatewayError when there is no such thing, or it is no request
 */
export function sourcesNamed(
  book: SampleStore,
  names: readonly string[],
  invocation: Invocation,
): readonly ReplaySource[] {
  const found = new Map<string, ReplaySource>();
  for (const name of names) {
    for (const [key, source] of sourcesOf(book, name, invocation)) {
      if (!found.has(key)) found.set(key, source);
    }
  }
  return [...found.values()];
}

/** The one thing that is named. @throws UsageError when it is a folder of several */
export function sourceNamed(book: SampleStore, name: string, invocation: Invocation): ReplaySource {
  const [first, ...others] = sourcesOf(book, name, invocation);
  if (first === undefined || others.length > 0) {
    throw new UsageError(`${name} is a folder of ${others.length + 1} samples: name one of them.`);
  }
  return first[1];
}

/** With what tells two of them apart. */
type Named = readonly [key: string, source: ReplaySource];

const SAMPLE_FILE = /^(req_\d+_[0-9A-Za-z]+)_([a-z0-9-]+)\.(?:json|sse)$/;

function sourcesOf(book: SampleStore, name: string, invocation: Invocation): readonly Named[] {
  const { io, text, deps } = invocation;
  const path = resolve(io.cwd, name);
  const edge = text('edge');
  const of = (from: SampleStore, id: string, stage = 'client-request'): Named => {
    const meta = requireSample(from, id);
    return [`${from.root} ${meta.id} ${stage}`, fromSample(from, meta, stage)];
  };
  if (!existsSync(path)) return [of(book, name, edge)];
  if (statSync(path).isDirectory()) {
    return inFolder(path, invocation, (beside, id) => of(beside, id, edge));
  }
  const [, id, stage = ''] = SAMPLE_FILE.exec(basename(path)) ?? [];
  if (id !== undefined) {
    const beside = deps.samples(dirname(dirname(path)));
    try {
      const own = stage.endsWith('request') ? stage : undefined;
      if (beside.find(id) !== undefined) return [of(beside, id, edge ?? own)];
    } finally {
      beside.close();
    }
  }
  return [[path, fromFile(path, name, invocation)]];
}

/** All samples of a folder, be it that of all entries or of one, oldest first. */
function inFolder(
  path: string,
  { deps }: Invocation,
  source: (book: SampleStore, id: string) => Named,
): readonly Named[] {
  const holdsFiles = readdirSync(path).some((file) => SAMPLE_FILE.test(file));
  const book = deps.samples(holdsFiles ? dirname(path) : path);
  try {
    const rows = book.list(holdsFiles ? { entry: basename(path) } : {});
    if (rows.length === 0) throw new UsageError(`There are no samples in ${path}.`);
    return rows.toReversed().map(({ id }) => source(book, id));
  } finally {
    book.close();
  }
}

function fromFile(path: string, name: string, { text }: Invocation): ReplaySource {
  const value = tryParse(readFileSync(path, 'utf8'));
  if (!isObject(value)) throw new UsageError(`${name} is no JSON object.`);
  if (value.hopgate_sample === 1) {
    return fromExported(value as unknown as ExportedSample, text('edge'));
  }
  return {
    name: basename(path),
    protocol:
      (text('protocol') as ProtocolName | undefined) ?? bodyProtocol(value) ?? 'openai-chat',
    body: readFileSync(path),
    headers: new Headers(),
    search: '',
    direct: false,
    target: undefined,
    answer: undefined,
  };
}
