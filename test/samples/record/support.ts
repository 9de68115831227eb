/** Exchanges as the gateway reports them, and a folder to record them in. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GatewayError } from '../../../src/conversation/errors.ts';
import { sessionOf } from '../../../src/conversation/session/session-id.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import { requestId } from '../../../src/lib/text/ids.ts';
import type { ExchangeOutcome, HopRecording, Recording } from '../../../src/samples/recording.ts';

export const TARGET: Target = {
  provider: 'glm',
  model: 'glm-4.7',
  protocol: 'openai-chat',
  profile: { name: 'none' },
};

const utf8 = new TextEncoder();
export const bytes = (text: string) => utf8.encode(text);

export interface Begun {
  readonly body?: string | Uint8Array;
  readonly headers?: Record<string, string>;
  readonly search?: string;
  readonly protocol?: ProtocolName;
  readonly id?: string;
}

export const exchange = ({ body = '{"model":"m"}', headers, search = '', ...more }: Begun = {}) => {
  const sent = typeof body === 'string' ? bytes(body) : body;
  const own = new Headers(headers);
  return {
    id: more.id ?? requestId(),
    protocol: { name: more.protocol ?? ('openai-chat' as const) },
    body: sent,
    headers: own,
    sessionId: sessionOf(own, sent),
    search,
    owner: '',
  };
};

export const told = (more: Partial<ExchangeOutcome> = {}): ExchangeOutcome => ({
  status: 200,
  model: 'm',
  target: TARGET,
  stream: false,
  firstByte: 5,
  total: 9,
  tries: 1,
  hops: 1,
  usage: { input: 10, output: 3 },
  notes: [],
  error: undefined,
  ...more,
});

export const JSON_TYPE = new Headers({ 'content-type': 'application/json' });
export const SSE_TYPE = new Headers({ 'content-type': 'text/event-stream' });

export interface Try {
  readonly hop?: number;
  readonly attempt?: number;
  readonly sent?: string;
  readonly url?: string;
  readonly headers?: Record<string, string>;
  readonly status?: number;
  readonly answer?: readonly (string | Uint8Array)[];
  readonly sse?: boolean;
  readonly error?: GatewayError;
}

/** One complete try. */
export function play(recording: Recording, one: Try = {}): HopRecording {
  const hop = recording.hop(one.hop ?? 1, one.attempt ?? 1, {
    target: TARGET,
    model: 'glm-4.7',
    url: one.url ?? 'https://up.test/v1/chat/completions',
    headers: new Headers(one.headers),
    body: bytes(one.sent ?? '{"model":"glm-4.7"}'),
  });
  if (one.status !== 0) hop.start(one.status ?? 200, one.sse === true ? SSE_TYPE : JSON_TYPE);
  for (const chunk of one.answer ?? []) hop.chunk(typeof chunk === 'string' ? bytes(chunk) : chunk);
  hop.end(one.error);
  return hop;
}

export function scratch(): {
  root: string;
  files(): string[];
  text(name: string): string;
  all(): string;
  remove(): void;
} {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-samples-'));
  const root = join(folder, 'samples');
  const files = () => {
    try {
      return readdirSync(root, { recursive: true, encoding: 'utf8' })
        .filter((name) => statSync(join(root, name)).isFile())
        .sort();
    } catch {
      return [];
    }
  };
  return {
    root,
    files: () => files().filter((name) => !name.startsWith('index.db')),
    text: (name) => readFileSync(join(root, name), 'utf8'),
    all: () =>
      files()
        .map((name) => readFileSync(join(root, name), 'latin1'))
        .join('\n'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
