/** Who asks the page's API: the key behind a request, what it may see, and pages of other sites kept out. */

import type { AuthKey } from '../../config/sections/auth.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { UI_HEADER } from './api.ts';
import type { UiParts } from './parts.ts';

/** Who asks. */
export interface Viewer {
  /** Name of the key; '' without keys. */
  readonly key: string;
  /** Whose exchanges are shown: undefined for everybody's. */
  readonly owner: string | undefined;
}

/**
 * The viewer behind a request. A key sees its own exchanges unless its entry says `sees: all`; without
 * keys (loopback only) everything is seen. Cookies are not used anywhere, so a page of another site
 * could at most send blindly; that is refused by its Origin and by a header that it cannot set.
 * @throws GatewayError authentication, permission
 */
export function viewerOf(
  request: Request,
  { access, config }: Pick<UiParts, 'access' | 'config'>,
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
  // Keys of one name cannot be told apart here: what they may see is what each of them may.
  const own = config().auth.keys.filter((one: AuthKey) => one.name === key);
  const all = own.length > 0 && own.every(({ sees }) => sees === 'all');
  return { key, owner: key === '' || all ? undefined : key };
}

function refuse(): never {
  throw new GatewayError('permission', 'Pages of other sites may not ask this.', {
    code: 'origin_not_allowed',
  });
}

const isSame = (origin: string, host: string) =>
  URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
