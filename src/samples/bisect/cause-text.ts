/** Describes the cause that a bisection found in a sentence. */

import type { ProtocolName } from '../../conversation/types.ts';
import { type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { dotted, valueAt } from '../../lib/json/pointer.ts';
import { type CauseFinding, describePlace } from './cause.ts';

/** `41 KB`, `312 bytes`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} byte${bytes === 1 ? '' : 's'}`;
  if (bytes < 1_000_000) return `${trim(bytes / 1000)} KB`;
  return `${trim(bytes / 1_000_000)} MB`;
}

const trim = (value: number) =>
  value < 10 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value));

function contentKind(value: Json | undefined): string {
  if (typeof value !== 'string') return 'JSON';
  if (/^data:image\//.test(value)) return 'image';
  const parsed = /^\s*[[{]/.test(value) ? tryParse(value) : undefined;
  return parsed === undefined ? 'text' : 'JSON';
}

/** `the last tool result: 41 KB JSON at messages[17].content`, with the bytes that are enough and other places. */
export function causeText(
  body: JsonObject,
  protocol: ProtocolName,
  { cause, also }: CauseFinding,
): string {
  const { at, bytes, enough } = cause;
  const what = `${describePlace(body, protocol, at)}: ${size(bytes)} ${contentKind(valueAt(body, at))} at ${dotted(at)}`;
  const part = enough < bytes ? `; ${size(enough)} of it are enough` : '';
  const more = also.filter((pointer) => !pointer.startsWith(at)).map(dotted);
  return `${what}${part}${more.length > 0 ? `; only together with ${more.join(', ')}` : ''}`;
}
