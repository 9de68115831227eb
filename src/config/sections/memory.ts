/** The schema of `memory`: where events are kept, how they are found, and how many there may be. */

import { Type } from '@sinclair/typebox';
import {
  byDefault,
  closed,
  count,
  credential,
  flag,
  optional,
  seconds,
  text,
} from '../file/schema-words.ts';

const address = (description: string) =>
  Type.String({
    pattern: '^https?://.+$',
    'x-mismatch': 'must begin with https:// or http://',
    'x-url': 'whole',
    description,
  });

const embeddings = closed(
  {
    provider: text(
      'A provider of this file with an OpenAI-style /embeddings endpoint; its address, keys and limits are used.',
    ),
    model: text('The embedding model, as the vendor spells it.'),
    dimensions: optional(
      Type.Integer({ minimum: 8, maximum: 8192, description: 'Asked of the model.' }),
      "the model's own",
    ),
    timeout: byDefault(
      seconds('Seconds that a recall waits for the vector of its query; then words alone decide.'),
      2,
    ),
  },
  'Vectors beside the words.',
);

const memoryLimits = closed(
  {
    text: byDefault(count("Characters of an event's text.", 1), 8000),
    tags: byDefault(count('Tags of an event.'), 32),
    events: byDefault(count('Events of a space.', 1), 100_000),
    bytes: byDefault(count('Bytes of all texts together, all spaces.', 1), 2 ** 30),
  },
  'How much there may be.',
);

export const memory = closed(
  {
    enabled: byDefault(
      flag('Whether there is a memory: its API, and what conversations recall.'),
      true,
    ),
    path: optional(text('The database file.'), '$HOPGATE_HOME/memory.db'),
    dedupe: byDefault(
      seconds('Seconds within which the same words of the same source are captured once.'),
      86_400,
    ),
    embeddings: optional(embeddings, 'words alone'),
    limits: byDefault(memoryLimits, {}),
    url: optional(
      address(
        'An external store instead of the database: gets POST {space, query, limit}, gives {events: […]}.',
      ),
      'the database',
    ),
    capture_url: optional(
      address('Where the external store takes POST {space, events: […]}.'),
      'the same as url',
    ),
    key: optional(credential("The external store's key, sent as a bearer token."), 'none'),
    timeout: byDefault(seconds('Seconds that the external store may take.'), 5),
  },
  'Memory of events.',
);
