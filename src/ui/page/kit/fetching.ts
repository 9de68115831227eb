/** Requests to the API: sends the key, turns failures into messages, and reads event streams. */

import type { ApiFailure } from '../../api/api.ts';

const ROOT = '/ui/api';
const KEY = 'hopgate-key';

/** A failed request; `status` 0: the gateway could not be reached. */
export class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Called when the gateway needs a key, or refuses the one that was sent. */
let onLocked: (wrong: boolean) => void = () => {};

export function whenLocked(handler: (wrong: boolean) => void): void {
  onLocked = handler;
}

/** The key stays in this tab only, until the tab is closed. */
export const key = {
  get: (): string => sessionStorage.getItem(KEY) ?? '',
  set: (value: string): void =>
    value === '' ? sessionStorage.removeItem(KEY) : sessionStorage.setItem(KEY, value),
};

export interface Ask {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly signal?: AbortSignal;
}

/** An answer of the API. @throws Refused; AbortError when the signal ends it */
export async function ask(path: string, { method = 'GET', body, query, signal }: Ask = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  const headers: Record<string, string> = {};
  const sent = key.get();
  if (sent !== '') headers.authorization = `Bearer ${sent}`;
  if (method !== 'GET') headers['x-hopgate-ui'] = '1';
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response: Response;
  try {
    response = await fetch(`${ROOT}${path}${search.size > 0 ? `?${search}` : ''}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ?? null,
      cache: 'no-store',
      credentials: 'omit',
    });
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
    throw new Refused(0, 'The gateway cannot be reached. Is it running?');
  }
  if (response.ok) return response;
  const message = await messageOf(response);
  if (response.status === 401) onLocked(sent !== '');
  throw new Refused(response.status, message);
}

async function messageOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as ApiFailure;
    return error.message;
  } catch {
    return `The gateway answered with status ${response.status}.`;
  }
}

/** @throws Refused */
export async function json<T>(path: string, options?: Ask): Promise<T> {
  const response = await ask(path, options);
  return (await response.json()) as T;
}

/** The `data` of every event of a stream, in order, until it ends. @throws Refused */
export async function* follow<T>(path: string, options?: Ask): AsyncGenerator<T> {
  const response = await ask(path, options);
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body!) {
    rest += decoder.decode(chunk, { stream: true });
    const frames = rest.split(/\r?\n\r?\n/);
    rest = frames.pop()!;
    for (const frame of frames) {
      const data = frame
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n');
      if (data !== '') yield JSON.parse(data) as T;
    }
  }
}

/** The message for a failure; undefined for an aborted request. */
export function failureText(thrown: unknown): string | undefined {
  if (thrown instanceof DOMException && thrown.name === 'AbortError') return undefined;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
