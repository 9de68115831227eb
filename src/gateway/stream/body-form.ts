/** Tells a stream of events from JSON by its first bytes; servers and relays label both in every way. */

import { firstNonBlank } from './quiet-bytes.ts';

const FIELDS = ['data:', 'event:', 'id:', 'retry:', 'error:', ':', '\ufeff'];
const MAX_FIELD = 6;
const OBJECT = 0x7b;
const LIST = 0x5b;
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** What a body is; undefined: its first bytes do not say it. */
export function formOf(bytes: Uint8Array): 'events' | 'json' | undefined {
  const at = firstNonBlank(bytes);
  if (at < 0) return undefined;
  if (bytes[at] === OBJECT || bytes[at] === LIST) return 'json';
  const head = utf8.decode(bytes.subarray(at, at + MAX_FIELD));
  const whole = at + MAX_FIELD <= bytes.length;
  const isField = FIELDS.some(
    (field) => head.startsWith(field) || (!whole && field.startsWith(head)),
  );
  return isField ? 'events' : undefined;
}

/** Is a body of this type and with these first bytes a stream of events? What it is counts more than what it is called. */
export function isEvents(contentType: string, bytes: Uint8Array | undefined): boolean {
  const form = bytes === undefined ? undefined : formOf(bytes);
  return form === undefined ? contentType.includes('event-stream') : form === 'events';
}
