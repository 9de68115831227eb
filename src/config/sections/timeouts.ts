/** The section `timeouts`, and a provider's own: how long an upstream may take. */

import type { Static } from '@sinclair/typebox';
import { byDefault, closed, inherited, ms, optional, seconds } from '../file/schema-types.ts';

const keys = {
  connect: seconds(
    'Seconds until a new connection is established, TLS included; 0 = no limit. Does not apply through a proxy or over HTTP/2.',
  ),
  first_byte: seconds('Seconds until the response begins; 0 = no limit.'),
  idle: seconds('Seconds between two chunks of a stream; 0 = no limit.'),
  content: seconds(
    'Seconds without content once a response has begun, even if comments, pings or empty frames keep the connection alive; 0 = no limit.',
  ),
  total: seconds('Seconds for the whole exchange with the upstream; 0 = no limit.'),
};

export const timeouts = closed(
  {
    connect: byDefault(keys.connect, 10),
    first_byte: byDefault(keys.first_byte, 600),
    idle: byDefault(keys.idle, 300),
    content: optional(keys.content, 'that of first_byte'),
    total: byDefault(keys.total, 0),
  },
  'How long an upstream may take.',
);

export const providerTimeouts = closed(inherited(keys), 'How long this upstream may take.');

/** Milliseconds; 0 = no limit. */
export interface TimeoutsConfig {
  /** Until a new connection is established, TLS included. */
  readonly connectMs: number;
  /** Until the response headers are here. */
  readonly firstByteMs: number;
  /** Between two chunks of a stream. */
  readonly idleMs: number;
  /** Without content once a response has begun, whatever keeps the connection alive. */
  readonly contentMs: number;
  readonly totalMs: number;
}

/** A provider's timeouts, with those of the top level where it has none. */
export function resolveTimeouts(
  own: Static<typeof providerTimeouts>,
  base: Static<typeof timeouts>,
): TimeoutsConfig {
  const firstByteMs = ms(own.first_byte ?? base.first_byte);
  const content = own.content ?? base.content;
  return {
    connectMs: ms(own.connect ?? base.connect),
    firstByteMs,
    idleMs: ms(own.idle ?? base.idle),
    // A vendor that answers only with comments has not begun to answer.
    contentMs: content === undefined ? firstByteMs : ms(content),
    totalMs: ms(own.total ?? base.total),
  };
}
