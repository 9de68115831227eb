/** The headers of what the client gets: built anew, hop-by-hop ones never copied. */

import type { Notes } from '../conversation/notes.ts';
import { type Target, targetName } from '../conversation/target.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../lib/http/headers.ts';
import { endToEnd } from '../lib/http/hop-fields.ts';
import { encodeHeaderText } from '../lib/text/printable-text.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';

/**
 * Of the hop, of the body as the upstream framed it, or not an upstream's to set here (nor where a client goes
 * next): whatever a browser would take for a word of this origin.
 */
const HELD_BACK = new Set([
  'accept-ch',
  'alt-svc',
  'clear-site-data',
  'connection',
  'content-disposition',
  'content-length',
  'content-location',
  'critical-ch',
  'date',
  'document-policy',
  'expect-ct',
  'feature-policy',
  'keep-alive',
  'link',
  'location',
  'nel',
  'origin-agent-cluster',
  'origin-trial',
  'permissions-policy',
  'public-key-pins',
  'referrer-policy',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'server',
  'service-worker-allowed',
  'set-cookie',
  'set-cookie2',
  'set-login',
  'sourcemap',
  'speculation-rules',
  'strict-transport-security',
  'supports-loading-mode',
  'te',
  'timing-allow-origin',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'www-authenticate',
  'x-frame-options',
  // Of the vendor's own catalogue: Codex would ask for this gateway's list again at each answer.
  'x-models-etag',
  'x-sourcemap',
  'x-xss-protection',
]);
const HELD_BACK_BEGINNINGS = [
  'access-control-',
  'attribution-reporting-',
  'content-security-policy',
  'cross-origin-',
  'proxy-',
  'sec-',
  'x-hopgate-',
];

export interface OwnHeaders {
  readonly requestId: string;
  readonly target: Target | undefined;
  readonly notes: Notes | undefined;
}

const targets = new WeakMap<Target, string>();

/** `provider/model` as a header can carry it: names in any script are percent-encoded, long ones cut. */
export function targetText(target: Target): string {
  let text = targets.get(target);
  if (text === undefined) {
    text = encodeHeaderText(targetName(target));
    targets.set(target, text);
  }
  return text;
}

// Names of notes are this program's own: as many as a repaired history can have.
const MOST_NOTES = 4096;

/** `x-hopgate-…`: what happened here, on every answer. */
export function ownHeaders(headers: FlatHeaders, own: OwnHeaders): FlatHeaders {
  headers.set('x-hopgate-request-id', own.requestId);
  if (own.target !== undefined) {
    headers.set('x-hopgate-target', targetText(own.target));
  }
  const notes = own.notes?.summary() ?? '';
  if (notes !== '') headers.set('x-hopgate-notes', encodeHeaderText(notes, MOST_NOTES));
  return headers;
}

/**
 * An upstream's headers for a client of its own protocol: rate limits, request ids, unknown ones too, but none
 * that its `Connection` names, and no secret of this gateway.
 */
export function forwardedHeaders(
  upstream: ReadonlyHeaders,
  secrets: readonly string[] = [],
): FlatHeaders {
  const headers = endToEnd(FlatHeaders.from(upstream), isForwarded);
  for (let i = 0; i < headers.size; i++) {
    const value = headers.value(i);
    const safe = maskLiterals(value, secrets);
    if (safe !== value) headers.set(headers.name(i), safe);
  }
  return headers;
}

// The same names come with every answer; so many are remembered at most.
const MOST_KNOWN = 1000;
const known = new Map<string, boolean>();

function isForwarded(name: string): boolean {
  let forwarded = known.get(name);
  if (forwarded === undefined) {
    forwarded =
      !HELD_BACK.has(name) && !HELD_BACK_BEGINNINGS.some((beginning) => name.startsWith(beginning));
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(name, forwarded);
  }
  return forwarded;
}
