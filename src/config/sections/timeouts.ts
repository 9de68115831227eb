/** The section `timeouts`, and a provider's own: how long an upstream may take. */

import { closed, inherited, type ProgramForm, seconds } from '../file/schema.ts';

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

export const timeouts = closed('How long an upstream may take.', {
  connect: keys.connect.byDefault(10),
  first_byte: keys.first_byte.byDefault(600),
  idle: keys.idle.byDefault(300),
  content: keys.content.optional('that of first_byte'),
  total: keys.total.byDefault(0),
});

export const providerTimeouts = closed(
  'How long this upstream may take: the keys of `timeouts`.',
  inherited(keys),
);

export type TimeoutsConfig = Required<ProgramForm<typeof timeouts>>;

/** A provider's timeouts, with those of the top level where it has none. */
export function resolveTimeouts(
  own: ProgramForm<typeof providerTimeouts>,
  base: ProgramForm<typeof timeouts>,
): TimeoutsConfig {
  const all = { ...base, ...own };
  // A vendor that answers only with comments has not begun to answer.
  return { ...all, contentMs: all.contentMs ?? all.firstByteMs };
}
