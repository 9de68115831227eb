/** Services that the operator has named: when their tools are offered, their credentials, and their redirects. */

import { type ServerTool, ToolError } from '../tool.ts';

/** A credential from the configuration. It prints as nothing and is revealed only where it is sent. */
export interface Revealable {
  reveal(): string;
}

/** The values in the clear, to be used at once for sending. */
export const revealed = (
  values: Readonly<Record<string, Revealable>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.reveal()]));

/** When a tool with these keywords is offered; without keywords, always. Case is ignored. */
export function offeredFor(
  keywords: readonly string[] | undefined,
): Pick<ServerTool, 'inject' | 'wanted'> {
  if (keywords === undefined) return { inject: 'force' };
  const lowered = keywords.map((keyword) => keyword.toLowerCase());
  return {
    inject: 'selective',
    wanted: (userText) => {
      const text = userText.toLowerCase();
      return lowered.some((keyword) => text.includes(keyword));
    },
  };
}

const IMAGE = /^image\/(?:png|jpeg|gif|webp)$/;

/** The type of an image that models read, as it is registered; undefined: something else. */
export function imageType(written: string): string | undefined {
  const type = written.split(';')[0]!.trim().toLowerCase().replace('image/jpg', 'image/jpeg');
  return IMAGE.test(type) ? type : undefined;
}

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
