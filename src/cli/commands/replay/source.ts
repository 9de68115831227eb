/** Finds the requests that arguments name: samples, their files and folders, or a file with any request body. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { ProtocolName } from '../../../conversation/types.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import { parseWhere } from '../../../samples/replay/filter.ts';
import {
  fromExported,
  fromSample,
  type ReplaySource,
  requireSample,
} from '../../../samples/replay/source.ts';
import type { ExportedSample, SampleStore } from '../../../samples/sample.ts';
import { openSampleStore } from '../../../samples/store/sample-store.ts';
import { bodyProtocol } from '../../body-protocol.ts';
import { type Invocation, UsageError } from '../../command.ts';
import { readNamed } from '../../whole-file.ts';

/**
 * Everything that the arguments name, each request once: a shell's `*` may name all files of a sample.
 * @throws UsageError or GatewayError when there is no such thing, or it is no request
 */
export async function sourcesNamed(
  samples: SampleStore,
  names: readonly string[],
  invocation: Invocation,
): Promise<readonly ReplaySource[]> {
  const found = new Map<string, ReplaySource>();
  for (const name of names) {
    for (const [key, source] of await sourcesOf(samples, name, invocation)) {
      if (!found.has(key)) found.set(key, source);
    }
  }
  return [...found.values()];
}

/** The one request that an argument names. @throws UsageError for a folder with several samples */
export async function sourceNamed(
  samples: SampleStore,
  name: string,
  invocation: Invocation,
): Promise<ReplaySource> {
  const [first, ...others] = await sourcesOf(samples, name, invocation);
  if (first === undefined || others.length > 0) {
    throw new UsageError(`${name} is a folder of ${others.length + 1} samples: name one of them.`);
  }
  return first[1];
}

/** A source, with a key that is the same when two arguments name the same request. */
type KeyedSource = readonly [key: string, source: ReplaySource];

const SAMPLE_FILE = /^(req_\d+_[0-9A-Za-z]+)_([a-z0-9-]+)\.(?:json|sse)$/;

async function sourcesOf(
  samples: SampleStore,
  name: string,
  invocation: Invocation,
): Promise<readonly KeyedSource[]> {
  const { io, text } = invocation;
  const path = resolve(io.cwd, name);
  const wanted = text('stage');
  const of = async (
    from: SampleStore,
    id: string,
    stage = 'client-request',
  ): Promise<KeyedSource> => {
    const meta = requireSample(from, id);
    await from.fetch(meta);
    return [`${from.root} ${meta.id} ${stage}`, fromSample(from, meta, stage)];
  };
  if (!existsSync(path)) return [await of(samples, name, wanted)];
  if (statSync(path).isDirectory()) {
    return inFolder(path, (store, id) => of(store, id, wanted));
  }
  const [, id, stage = ''] = SAMPLE_FILE.exec(basename(path)) ?? [];
  if (id !== undefined) {
    const store = openSampleStore(dirname(dirname(path)));
    try {
      const own = stage.endsWith('request') ? stage : undefined;
      if (store.find(id) !== undefined) return [await of(store, id, wanted ?? own)];
    } finally {
      store.close();
    }
  }
  return [[path, fromFile(path, name, invocation)]];
}

/** All samples of a folder, oldest first: the folder of all protocols, or that of one. */
async function inFolder(
  path: string,
  source: (samples: SampleStore, id: string) => Promise<KeyedSource>,
): Promise<readonly KeyedSource[]> {
  const holdsFiles = readdirSync(path).some((file) => SAMPLE_FILE.test(file));
  const samples = openSampleStore(holdsFiles ? dirname(path) : path);
  try {
    const rows = samples.list(holdsFiles ? { entry: basename(path) } : {});
    if (rows.length === 0) throw new UsageError(`There are no samples in ${path}.`);
    const sources: KeyedSource[] = [];
    for (const { id } of rows.toReversed()) sources.push(await source(samples, id));
    return sources;
  } finally {
    samples.close();
  }
}

function fromFile(path: string, name: string, { text }: Invocation): ReplaySource {
  const value = tryParse(readNamed(path).toString());
  if (!isObject(value)) throw new UsageError(`${name} is no JSON object.`);
  if (value.hopgate_sample === 1) {
    return fromExported(value as unknown as ExportedSample, text('stage'));
  }
  return {
    name: basename(path),
    protocol:
      (text('protocol') as ProtocolName | undefined) ?? bodyProtocol(value) ?? 'openai-chat',
    body: readNamed(path),
    headers: new Headers(),
    search: '',
    direct: false,
    target: undefined,
    answer: undefined,
  };
}

/** What is sent: the newest samples that fit, or those that are named. @throws UsageError for none */
export async function selectSources(
  store: SampleStore,
  named: readonly string[],
  invocation: Invocation,
): Promise<readonly ReplaySource[]> {
  const { number, text } = invocation;
  const last =
    number('last') ?? (named.length === 0 && text('where') !== undefined ? 1 : undefined);
  if (last !== undefined) {
    const filter = parseWhere(text('where') ?? '', Date.now());
    const stage = text('stage') ?? 'client-request';
    const found = store.list(filter).flatMap(({ id }) => {
      const meta = store.find(id);
      return meta?.edges.some((edge) => edge.stage === stage) === true ? [meta] : [];
    });
    if (found.length === 0) throw new UsageError(`No sample in ${store.root} fits.`);
    const wanted = found.slice(0, last);
    for (const meta of wanted) await store.fetch(meta);
    return wanted.map((meta) => fromSample(store, meta, stage));
  }
  if (named.length === 0)
    throw new UsageError('"hopgate replay" needs an id, a file, or --last N.');
  return sourcesNamed(store, named, invocation);
}
