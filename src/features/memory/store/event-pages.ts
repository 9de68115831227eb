/** Paged lists of events. A cursor names an event, not an offset, so events added or removed meanwhile shift nothing. */

import { invalid } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';

/** Conditions of a list; all of them must hold. */
export interface ListQuery {
  /** Milliseconds since 1970, inclusive. */
  readonly since?: number;
  /** Milliseconds since 1970, exclusive. */
  readonly until?: number;
  readonly tag?: string;
  readonly limit: number;
  /** The `next` of the previous page. */
  readonly cursor?: string;
  /** `desc`: newest first. */
  readonly order: 'asc' | 'desc';
}

export interface EventPage {
  readonly events: readonly MemoryEvent[];
  /** The cursor of the next page; undefined on the last one. */
  readonly next?: string;
}

/** Names an event, the last one of a page. */
export const cursorOf = ({ time, seq }: { readonly time: number; readonly seq: number }): string =>
  Buffer.from(JSON.stringify({ t: time, r: seq })).toString('base64url');

/** Time and row of a cursor. @throws GatewayError for one that {@link cursorOf} did not make */
export function cursorPosition(cursor: string): readonly [number, number] {
  const value = tryParse(Buffer.from(cursor, 'base64url').toString());
  if (isObject(value) && Number.isSafeInteger(value.t) && Number.isSafeInteger(value.r)) {
    return [value.t as number, value.r as number];
  }
  throw invalid('The cursor is not valid; use `next_cursor` of the previous page.', 'cursor');
}
