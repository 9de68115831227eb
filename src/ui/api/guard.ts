/** Who is asking the page's API: the key behind a request, what it may see, and refusal of other sites' pages. */

import { Elysia } from 'elysia';
import { GatewayError } from '../../conversation/errors.ts';
import type { Principal } from '../../keys/principal.ts';
import type { KeyNames, UiOptions } from './options.ts';

/** Header that every state-changing request must carry, with any value. */
const UI_HEADER = 'x-hopgate-ui';

/** The caller of the API. */
export interface Viewer {
  readonly principal: Principal;
  /** Its id; '' without keys. */
  readonly key: string;
  /** The owner whose exchanges are shown; undefined: those of all keys. */
  readonly owner: string | undefined;
  readonly keys?: KeyNames | undefined;
}

type GuardOptions = Pick<UiOptions, 'access'> & Partial<Pick<UiOptions, 'keys'>>;

/**
 * Gives the routes of the plugin that uses it a `viewer`, or refuses the request. It runs before the
 * query is validated: an invalid key learns nothing but that. An empty parameter counts as left out.
 */
export const guard = (options: GuardOptions) =>
  new Elysia()
    .derive({ as: 'scoped' }, async ({ request }) => ({
      viewer: await viewerOf(request, options),
    }))
    .onTransform({ as: 'scoped' }, ({ query }) => {
      for (const name of Object.keys(query)) if (query[name] === '') delete query[name];
    });

/**
 * The viewer behind a request. A key sees its own exchanges unless its entry says `sees: all`; without
 * keys (loopback only) everything is seen. The API uses no cookies, so a page of another site could at
 * most send requests blindly; those are refused by their Origin and by a header that such a page cannot set.
 * @throws GatewayError authentication, permission
 */
export async function viewerOf(request: Request, { access, keys }: GuardOptions): Promise<Viewer> {
  const { headers, method } = request;
  const principal = await access()(headers);
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin' && site !== 'none') refuse();
  const origin = headers.get('origin');
  if (origin !== null && !isSame(origin, headers.get('host') ?? '')) refuse();
  if (method !== 'GET' && method !== 'HEAD' && !headers.has(UI_HEADER)) {
    throw new GatewayError('permission', `Send the header ${UI_HEADER} with this request.`, {
      code: 'header_missing',
    });
  }
  const { id, sees } = principal;
  return { principal, key: id, owner: sees === 'all' ? undefined : id, keys };
}

function refuse(): never {
  throw new GatewayError('permission', 'Pages of other sites may not use this API.', {
    code: 'origin_not_allowed',
  });
}

const isSame = (origin: string, host: string) =>
  URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
