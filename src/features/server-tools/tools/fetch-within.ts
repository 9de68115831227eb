/** Asks a service that the operator has named, and follows its redirects within its own origin alone. */

import { ToolError } from '../tool.ts';

const MAX_REDIRECTS = 3;

/** `content-length` and `content-type` go with the body. */
const OF_BODIES = ['content-length', 'content-type'];

/**
 * Keys stand in headers, bodies and addresses, and must not reach another host; nor may what a service redirects to be
 * in the operator's network.
 * @param name of the tool, in its errors
 * @throws ToolError where it redirects elsewhere, whatever `send` throws
 */
export async function fetchWithin(
  name: string,
  first: URL,
  init: RequestInit,
  send: (url: string, init: RequestInit) => Promise<Response> = (url, own) => fetch(url, own),
): Promise<Response> {
  let url = first;
  let asked = init;
  for (let hop = 0; ; hop++) {
    const response = await send(url.href, { ...asked, redirect: 'manual' });
    const location = response.status >= 300 ? response.headers.get('location') : null;
    if (location === null || response.status === 304 || response.status >= 400) return response;
    await response.body?.cancel();
    const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
    if (next?.origin !== first.origin || hop >= MAX_REDIRECTS) {
      throw new ToolError(`${name} redirects to another host, which is not followed.`);
    }
    url = next;
    if (response.status === 303 && asked.method !== undefined && asked.method !== 'GET') {
      const { body: _, ...rest } = asked;
      const headers = new Headers(asked.headers);
      for (const name of OF_BODIES) headers.delete(name);
      asked = { ...rest, method: 'GET', headers };
    }
  }
}
