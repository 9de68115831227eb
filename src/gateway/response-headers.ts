/** The headers of the client's answer: built from scratch, hop-by-hop ones never copied. */

import type { Notes } from '../conversation/notes.ts';
import { type Target, targetName } from '../conversation/target.ts';
import { endToEnd, FlatHeaders, type ReadonlyHeaders } from '../lib/http/headers.ts';
import { encodeHeaderText } from '../lib/text/printable-text.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';
import { crossesToClient } from '../upstream/border.ts';

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
const MAX_NOTES = 4096;

/** `x-hopgate-…`: what happened here, on every answer. */
export function ownHeaders(headers: FlatHeaders, own: OwnHeaders): FlatHeaders {
  headers.set('x-hopgate-request-id', own.requestId);
  if (own.target !== undefined) {
    headers.set('x-hopgate-target', targetText(own.target));
  }
  const notes = own.notes?.summary() ?? '';
  if (notes !== '') headers.set('x-hopgate-notes', encodeHeaderText(notes, MAX_NOTES));
  return headers;
}

/**
 * An upstream's headers for a client of its own protocol: those that may cross (rate limits, request ids), but none
 * that its `Connection` names, and no secret of this gateway.
 */
export function forwardedHeaders(
  upstream: ReadonlyHeaders,
  secrets: readonly string[] = [],
): FlatHeaders {
  const headers = endToEnd(FlatHeaders.from(upstream), crossesToClient);
  for (let i = 0; i < headers.size; i++) {
    const value = headers.value(i);
    const safe = maskLiterals(value, secrets);
    if (safe !== value) headers.set(headers.name(i), safe);
  }
  return headers;
}
