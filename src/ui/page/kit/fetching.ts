/** Requests to the page's API and to the admin API: sends the key, turns failures into messages, and reads event streams. */

import type { Answers, ApiFailure } from '../../api/api.ts';
import { t } from './language.ts';

export const ROOT = '/ui/api';

/** A failed request; `status` 0: the gateway could not be reached. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string | undefined;
  constructor(status: number, message: string, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Why the gateway wants a key: none was sent, a wrong one, or one that only the admin API takes. */
export type Locked = 'missing' | 'wrong' | 'admin-key';

let onLocked: (why: Locked) => void = () => {};

/** Called when a request to the page's API is refused for its key. */
export function whenLocked(handler: (why: Locked) => void): void {
  onLocked = handler;
}

/** A key that stays in this tab only, until the tab is closed. */
const storedKey = (name: string) => ({
  get: (): string => sessionStorage.getItem(name) ?? '',
  set: (value: string): void =>
    value === '' ? sessionStorage.removeItem(name) : sessionStorage.setItem(name, value),
});

/** For the exchanges. */
export const key = storedKey('hopgate-key');
/** For the admin API. */
export const adminKey = storedKey('hopgate-admin-key');

/** Values of a path, such as that of `:id`, and of its query; what is empty is left out. */
export type Params = Readonly<Record<string, string | number | undefined>>;

export interface Ask {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  readonly params?: Params | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** An answer of the page's API. @throws Refused; AbortError when the signal ends it */
export async function ask(path: string, options: Ask = {}): Promise<Response> {
  const sent = key.get();
  const headers: Record<string, string> =
    options.method === undefined ? {} : { 'x-hopgate-ui': '1' };
  try {
    return await send(`${ROOT}${path}`, sent, { ...options, headers });
  } catch (thrown) {
    if (thrown instanceof Refused && thrown.status === 401) {
      onLocked(sent === '' ? 'missing' : thrown.code === 'admin_key' ? 'admin-key' : 'wrong');
    }
    throw thrown;
  }
}

/** An address with these values in the place of `:id` and other names; all others are its query. */
function filled(path: string, params: Params): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  const url = path.replace(/:(\w+)/g, (_, name: string) => {
    const value = search.get(name) ?? '';
    search.delete(name);
    return encodeURIComponent(value);
  });
  return search.size > 0 ? `${url}?${search}` : url;
}

export async function send(
  path: string,
  sent: string,
  { method = 'GET', body, params = {}, signal, headers: more }: Ask,
): Promise<Response> {
  const headers: Record<string, string> = { ...more };
  if (sent !== '') headers.authorization = `Bearer ${sent}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response: Response;
  try {
    response = await fetch(filled(path, params), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ?? null,
      cache: 'no-store',
      credentials: 'omit',
    });
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
    throw new Refused(0, t`The gateway cannot be reached. Is it running?`);
  }
  if (response.ok) return response;
  throw await refusalOf(response);
}

async function refusalOf(response: Response): Promise<Refused> {
  const { status } = response;
  try {
    const { error } = (await response.json()) as ApiFailure;
    return new Refused(status, error.message, error.code);
  } catch {
    return new Refused(status, t`The gateway answered with status ${status}.`);
  }
}

/** What an answer says. @throws Refused */
export const jsonOf = async <T>(answer: Promise<Response>): Promise<T> =>
  (await (await answer).json()) as T;

export const json = <T>(path: string, options?: Ask): Promise<T> => jsonOf(ask(path, options));

/** What a path of the page's API answers with. @throws Refused; AbortError when the signal ends it */
export const get = <P extends keyof Answers>(
  path: P,
  params?: Params,
  signal?: AbortSignal,
): Promise<Answers[P]> => json(path, { params, signal });

/** One event of a stream: its name, and its data; '' for what is not there. */
export function frameOf(frame: string): { readonly event: string; readonly data: string } {
  const lines = frame.split(/\r?\n/);
  const of = (name: string) =>
    lines
      .filter((line) => line.startsWith(name))
      .map((line) => line.slice(name.length).replace(/^ /, ''))
      .join('\n');
  return { event: of('event:'), data: of('data:') };
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
      const { data } = frameOf(frame);
      if (data !== '') yield JSON.parse(data) as T;
    }
  }
}

/** The message for a failure; undefined for an aborted request. */
export function failureText(thrown: unknown): string | undefined {
  if (thrown instanceof DOMException && thrown.name === 'AbortError') return undefined;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
