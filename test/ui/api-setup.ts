/** The compiled gateway with a vendor behind it, and a browser's view of its API. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SseFrame, SseParser } from '../../src/lib/bytes/sse.ts';
import type { JobEvent, UiRow } from '../../src/ui/api/api.ts';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';

export interface ApiSetup {
  readonly gateway: Gateway;
  readonly upstream: FakeUpstream;
  /** Folder of the samples. */
  readonly folder: string;
  readonly config: Record<string, unknown>;
  /** Sends a request to a model and reads the answer until it ends or breaks; returns the exchange's id. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<string>;
  /** A path below `/ui/api/`. */
  api(path: string, init?: RequestInit): Promise<Response>;
  /** The JSON of a path, which must answer with 200. */
  json<T>(path: string, headers?: Record<string, string>): Promise<T>;
  /** A state-changing call as the page sends it. */
  send(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Response>;
  /** Waits until this many exchanges are in the list. */
  rows(count: number, query?: string): Promise<readonly UiRow[]>;
  stop(): Promise<void>;
}

/** @param more parts of the configuration @param ofChat of its provider `chat` */
export async function startApiSetup(
  more: Record<string, unknown> = {},
  ofChat: Record<string, unknown> = {},
): Promise<ApiSetup> {
  const upstream = await startFakeUpstream();
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-api-'));
  const config = threeProviders(upstream, {
    samples: { mode: 'all', dir: folder },
    ...more,
  }) as Record<string, unknown> & { providers: { chat: object } };
  Object.assign(config.providers.chat, ofChat);
  const remove = async () => {
    await upstream.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const gateway = await startGateway(config).catch(async (refused) => {
    await remove();
    throw refused;
  });
  return {
    ...client(gateway),
    gateway,
    upstream,
    folder,
    config,
    async stop() {
      await gateway.stop();
      await remove();
    },
  };
}

/** Only the calls, for a gateway that the caller started. */
export function client(
  gateway: Pick<Gateway, 'url'>,
): Pick<ApiSetup, 'post' | 'api' | 'json' | 'send' | 'rows'> {
  const api = (path: string, init?: RequestInit) => fetch(`${gateway.url}/ui/api/${path}`, init);
  const json = async <T>(path: string, headers: Record<string, string> = {}): Promise<T> => {
    const response = await api(path, { headers });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  };
  return {
    api,
    json,
    async post(path, body, headers = {}) {
      const response = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
      await response.text().catch(() => '');
      return response.headers.get('x-hopgate-request-id') ?? '';
    },
    send: (method, path, body, headers = {}) =>
      api(path, {
        method,
        headers: { 'x-hopgate-ui': '1', 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    async rows(count, query = '') {
      return until(async () => {
        const { rows } = await json<{ rows: readonly UiRow[] }>(`samples?limit=500&${query}`);
        return rows.filter(({ state }) => state !== 'open').length >= count && rows;
      });
    },
  };
}

/** The events of a stream as they arrive; `return()` disconnects. */
export async function* eventsIn<E>(response: Response): AsyncGenerator<E> {
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const parser = new SseParser();
  for await (const chunk of response.body!) {
    for (const { data } of parser.push(chunk as Uint8Array) as SseFrame[]) {
      if (data !== undefined) yield JSON.parse(data) as E;
    }
  }
}

/** The events of a job as they come, until its end. */
export async function* eventsOfJob(
  { json }: Pick<ApiSetup, 'json'>,
  job: string,
  headers: Record<string, string> = {},
): AsyncGenerator<JobEvent> {
  for (let from = 0; ; ) {
    const path = `jobs/${job}?from=${from}`;
    const { events } = await json<{ events: readonly JobEvent[] }>(path, headers);
    yield* events;
    if (events.at(-1)?.type === 'end') return;
    from += events.length;
    await Bun.sleep(10);
  }
}

/** Reads until an event matches, then disconnects; returns all events up to it. */
export async function eventsUntil<E>(
  events: AsyncGenerator<E>,
  fits: (event: E) => boolean,
): Promise<E[]> {
  const received: E[] = [];
  for await (const event of events) {
    received.push(event);
    if (fits(event)) return received;
  }
  throw new Error(`the stream ended before that: ${JSON.stringify(received).slice(0, 2000)}`);
}
