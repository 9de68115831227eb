/** The schema of one entry under `providers`, and of the timeouts and retries that the whole file shares. */

import { Type } from '@sinclair/typebox';
import {
  byDefault,
  choice,
  closed,
  count,
  credential,
  flag,
  headerValue,
  named,
  oneOrMore,
  optional,
  seconds,
  text,
} from '../file/schema-words.ts';

export const PROTOCOL_NAMES = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;

/** Legal provider names: they stand before a slash in model ids and never look like a number. */
export const PROVIDER_NAME = '^[A-Za-z][A-Za-z0-9_.-]*$';

const timeoutKeys = {
  connect: seconds(
    'Seconds until a new connection stands, TLS included; 0 = no limit. Not through a proxy or over HTTP/2.',
  ),
  first_byte: seconds('Seconds until the response begins; 0 = no limit.'),
  idle: seconds('Seconds between two chunks of a stream; 0 = no limit.'),
  content: seconds(
    'Seconds of an answer that has begun without a word of it, whatever comes to keep the connection alive (comments, pings, empty frames); 0 = no limit.',
  ),
  total: seconds('Seconds for the whole exchange with the upstream; 0 = no limit.'),
};
const retryKeys = {
  attempts: count('Tries on one target before the next one, the first included.', 1),
  base_delay: seconds('Seconds before the second try; doubles with each further one, with jitter.'),
  max_delay: seconds('The longest pause between two tries, in seconds.'),
  max_cooldown: seconds(
    'The longest time in seconds that a key is left alone after a refusal, whatever Retry-After says.',
  ),
};
const inherited = 'that of the top level';

export const timeouts = closed(
  {
    connect: byDefault(timeoutKeys.connect, 10),
    first_byte: byDefault(timeoutKeys.first_byte, 600),
    idle: byDefault(timeoutKeys.idle, 300),
    content: optional(timeoutKeys.content, 'first_byte and idle together'),
    total: byDefault(timeoutKeys.total, 0),
  },
  'How long an upstream may take.',
);

export const retry = closed(
  {
    attempts: byDefault(retryKeys.attempts, 2),
    base_delay: byDefault(retryKeys.base_delay, 0.5),
    max_delay: byDefault(retryKeys.max_delay, 8),
    max_cooldown: byDefault(retryKeys.max_cooldown, 300),
  },
  'What happens when a try fails before the first byte reached the client.',
);

const usd = (description: string) =>
  Type.Number({ minimum: 0, maximum: 1_000_000, description: `USD per million ${description}` });

const price = closed(
  {
    input: usd('prompt tokens.'),
    output: usd('generated tokens, reasoning included.'),
    cached: optional(usd("prompt tokens read from the vendor's cache."), 'as input'),
    cache_write: optional(usd('prompt tokens written to it.'), 'as input'),
    cache_write_1h: optional(usd('prompt tokens written to it for one hour.'), 'as cache_write'),
  },
  'What a model costs.',
);

/** What `prices` holds; said here, since TypeScript tires of working out a schema this deep. */
type Prices = Readonly<
  Record<
    string,
    {
      readonly input: number;
      readonly output: number;
      readonly cached?: number;
      readonly cache_write?: number;
      readonly cache_write_1h?: number;
    }
  >
>;

export const provider = closed(
  {
    preset: optional(
      text('A vendor that hopgate knows; fills in whatever is left out below.'),
      'the preset with the name of the provider, where base_url is left out',
    ),
    protocol: optional(
      choice(PROTOCOL_NAMES, 'What the upstream speaks.'),
      "the preset's; needed without one",
    ),
    base_url: optional(
      Type.String({
        pattern: '^(https?://.+|demo:)$',
        'x-mismatch': 'must begin with https:// or http://',
        'x-meant': 'https://{}',
        'x-url': 'base',
        description:
          "What the vendor's own SDK takes: before /chat/completions or /responses, or before /v1/messages.",
      }),
      "the preset's; needed without one",
    ),
    keys: optional(
      oneOrMore(
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
        credential('A key, usually "${SOME_VARIABLE}" or "${file:/path}".'),
        'Keys, used in turn.',
      ),
      "the preset's environment variables",
    ),
    auth: optional(
      choice(['bearer', 'x-api-key', 'api-key', 'none'], 'The header that carries the key.'),
      'x-api-key for anthropic-messages, else bearer',
    ),
    profile: optional(
      text('Vendor quirks by name; none = an upstream of unknown make.'),
      "the preset's, else none",
    ),
    models: optional(
      oneOrMore(
        text('A model name or a glob; "*" = any.'),
        'Names that this provider serves, as the vendor spells them.',
      ),
      "the preset's, else none (reachable through routes and as provider/model)",
    ),
    prices: byDefault(
      Type.Unsafe<Prices>(
        named(
          price,
          'Prices by model name or glob; an exact name counts before globs, those in their order. Used for the costs that samples and charts show.',
        ),
      ),
      {},
    ),
    headers: byDefault(
      named(
        headerValue(),
        'Header name → value, sent with every request.',
        "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
      ),
      {},
    ),
    query: byDefault(named(Type.String(), 'Parameter → value, appended to the URL.'), {}),
    timeouts: byDefault(
      closed(
        {
          connect: optional(timeoutKeys.connect, inherited),
          first_byte: optional(timeoutKeys.first_byte, inherited),
          idle: optional(timeoutKeys.idle, inherited),
          content: optional(timeoutKeys.content, inherited),
          total: optional(timeoutKeys.total, inherited),
        },
        'How long this upstream may take.',
      ),
      {},
    ),
    retry: byDefault(
      closed(
        {
          attempts: optional(retryKeys.attempts, inherited),
          base_delay: optional(retryKeys.base_delay, inherited),
          max_delay: optional(retryKeys.max_delay, inherited),
          max_cooldown: optional(retryKeys.max_cooldown, inherited),
        },
        'Retries of this upstream.',
      ),
      {},
    ),
    proxy: optional(
      Type.String({ pattern: '^https?://.+$', description: 'An HTTP proxy for this upstream.' }),
      'a direct connection',
    ),
    http2: byDefault(flag('Speak HTTP/2 to this upstream.'), false),
    concurrency: byDefault(
      count(
        'Requests at the same time; 0 = no limit. Where a route has another target with room, further requests go there, else they wait.',
      ),
      0,
    ),
    tls: byDefault(
      closed(
        {
          verify: byDefault(flag("Check the upstream's certificate."), true),
          ca_file: optional(text('PEM file with further authorities.'), "the system's"),
          cert_file: optional(text('PEM file with a client certificate.'), 'none'),
          key_file: optional(text("PEM file with the client certificate's key."), 'none'),
        },
        'TLS towards this upstream.',
      ),
      {},
    ),
  },
  'An upstream: one base URL, one protocol, one set of keys.',
);
