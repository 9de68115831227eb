/** The headers of what the client gets: built anew, hop-by-hop ones never copied. */

import type { Notes } from '../conversation/notes.ts';
import { type Target, targetName } from '../conversation/target.ts';
import { type HeaderFields, HeaderList } from '../lib/header-list.ts';
import { endToEnd } from '../lib/hop-fields.ts';

/** Of the hop, of the body as the upstream framed it, or not an upstream's to set here (nor where a client goes next). */
const HELD_BACK = new Set([
  'alt-svc',
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'location',
  'proxy-authenticate',
  'proxy-connection',
  'server',
  'set-cookie',
  'strict-transport-security',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export interface OwnHeaders {
  readonly requestId: string;
  readonly target: Target | undefined;
  readonly notes: Notes | undefined;
}

/** `x-hopgate-…`: what happened here, on every answer. */
export function ownHeaders(headers: HeaderList, own: OwnHeaders): HeaderList {
  headers.set('x-hopgate-request-id', own.requestId);
  if (own.target !== undefined) {
    headers.set('x-hopgate-target', targetName(own.target));
  }
  const notes = own.notes?.summary() ?? '';
  if (notes !== '') headers.set('x-hopgate-notes', notes);
  return headers;
}

/**
 * An upstream's headers for a client of its own protocol: rate limits, request ids, unknown ones too, but none
 * that its `Connection` names.
 */
export function forwardedHeaders(upstream: HeaderFields): HeaderList {
  return endToEnd(HeaderList.from(upstream), isForwarded);
}

const isForwarded = (name: string) => !HELD_BACK.has(name) && !name.startsWith('x-hopgate-');
