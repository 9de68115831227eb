/** Who is asking the page's API: the key behind a request, what it may see, and refusal of other sites' pages. */

import { Elysia } from 'elysia';
import type { AuthKey } from '../../config/sections/auth.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { UI_HEADER } from './api.ts';
import type { UiOptions } from './options.ts';

/** The caller of the API. */
export interface Viewer {
  /** Name of the key; '' without keys. */
  readonly key: string;
  /** Whose exchanges are shown; undefined: everyone's. */
  readonly owner: string | undefined;
}

/**
 * Gives the routes of the plugin that uses it a `viewer`, or refuses the request. It runs before the
 * query is validated: an invalid key learns nothing but that. An empty parameter counts as left out.
 */
export const guard = (options: Pick<UiOptions, 'access' | 'config'>) =>
  new Elysia()
    .derive({ as: 'scoped' }, ({ request }) => ({ viewer: viewerOf(request, options) }))
    .onTransform({ as: 'scoped' }, ({ query }) => {
      for (const name of Object.keys(query)) if (query[name] === '') delete query[name];
    });

/**
 * The viewer behind a request. A key sees its own exchanges unless its entry says `sees: all`; without
 * keys (loopback only) everything is seen. The API uses no cookies, so a page of another site could at
 * most send requests blindly; those are refused by their Origin and by a header that such a page cannot set.
 * @throws GatewayError authentication, permission
 */
export function viewerOf(
  request: Request,
  { access, config }: Pick<UiOptions, 'access' | 'config'>,
): Viewer {
  const { headers, method } = request;
  const key = access()(headers);
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin' && site !== 'none') refuse();
  const origin = headers.get('origin');
  if (origin !== null && !isSame(origin, headers.get('host') ?? '')) refuse();
  if (method !== 'GET' && method !== 'HEAD' && !headers.has(UI_HEADER)) {
    throw new GatewayError('permission', `Send the header ${UI_HEADER} with this request.`, {
      code: 'header_missing',
    });
  }
  // Keys of one name cannot be told apart here: they see only what each of them may see.
  const own = config().auth.keys.filter((one: AuthKey) => one.name === key);
  const all = own.length > 0 && own.every(({ sees }) => sees === 'all');
  return { key, owner: key === '' || all ? undefined : key };
}

function refuse(): never {
  throw new GatewayError('permission', 'Pages of other sites may not use this API.', {
    code: 'origin_not_allowed',
  });
}

const isSame = (origin: string, host: string) =>
  URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
