import { closed, inherited, type ProgramForm, seconds } from '../file/schema.ts';

const keys = {
  connect: seconds(
    'Seconds until a new connection is established, TLS included; not through a proxy or over HTTP/2.',
  ),
  first_byte: seconds('Seconds until the response begins.'),
  idle: seconds('Seconds between two chunks of a stream.'),
  content: seconds(
    'Seconds without content once a response has begun; comments, pings and empty frames are none.',
  ),
  total: seconds('Seconds for the whole exchange with the upstream.'),
};

export const timeouts = closed('How long an upstream may take; 0 = no limit.', {
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
