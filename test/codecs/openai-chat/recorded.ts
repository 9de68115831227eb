/** Loads recorded exchanges and captured requests of the Chat protocol, if they are available. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ClientContext, UpstreamContext } from '../../../src/codecs/codec.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/lib/json/json.ts';

const root = (folder: string) =>
  fileURLToPath(new URL(`../../../../shared/${folder}`, import.meta.url));
const FIXTURES = root('fixtures');
const CAPTURES = root('captures');

export const recordedIsThere = existsSync(`${FIXTURES}/index.json`);
export const capturesAreThere = existsSync(CAPTURES);

export interface Row {
  readonly file: string;
  readonly provider: string;
  readonly protocol: string;
  readonly kind: 'sse' | 'json';
  readonly status: number | null;
  readonly request: string | null;
  readonly anomalies: readonly string[];
}

/** Every recorded Chat exchange. */
export const rows: readonly Row[] = recordedIsThere
  ? (JSON.parse(readFileSync(`${FIXTURES}/index.json`, 'utf8')) as Row[]).filter(
      (row) => row.protocol === 'chat' && row.file.includes('-chat/'),
    )
  : [];

export const bytesOf = (file: string): Uint8Array =>
  new Uint8Array(readFileSync(`${FIXTURES}/${file}`));

export const jsonOf = (file: string) => parseJson(readFileSync(`${FIXTURES}/${file}`, 'utf8'));

export const requestOf = (row: Row): JsonObject | undefined => {
  const value = row.request === null ? undefined : jsonOf(row.request);
  return isObject(value) ? value : undefined;
};

/** Bodies that real clients posted to `/v1/chat/completions`. */
export function capturedBodies(): readonly (readonly [name: string, body: JsonObject])[] {
  if (!capturesAreThere) return [];
  const found: (readonly [string, JsonObject])[] = [];
  for (const name of readdirSync(CAPTURES, { recursive: true }) as string[]) {
    if (!name.endsWith('v1_chat_completions.json')) continue;
    const exchange = parseJson(readFileSync(`${CAPTURES}/${name}`, 'utf8'));
    const body = isObject(exchange) ? exchange.body : undefined;
    if (isObject(body)) found.push([name, body]);
  }
  return found;
}

export const target = (profile: Partial<Target['profile']> = {}): Target => ({
  provider: 'vendor',
  model: 'model-x',
  protocol: 'openai-chat',
  profile: { name: 'test', ...profile },
});

export const NOTHING_SENT: Conversation = {
  model: 'model-x',
  system: [],
  turns: [],
  tools: [],
  settings: { stream: true },
};

export const upstream = (sent: Conversation = NOTHING_SENT): UpstreamContext => ({
  sent,
  target: target(),
  notes: new Notes(),
});

export const client = (request: Conversation = NOTHING_SENT): ClientContext => ({
  request: request,
  requestId: 'req_1_abc',
  provider: 'vendor',
  notes: new Notes(),
});
