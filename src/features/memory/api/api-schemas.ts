/** The shapes of the memory API: bodies are checked against them, and its OpenAPI document is made of them. */

import { type Static, Type } from '@sinclair/typebox';

const closed = { additionalProperties: false } as const;

const text = Type.String({ minLength: 1, description: 'What is to be remembered.' });
const source = Type.String({ description: 'Who said it or where it comes from.' });
const tags = Type.Array(Type.String(), { description: 'Words to list events by.' });
const importance = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'From 0 (trivial) to 1 (must not be forgotten).',
});
const id = Type.String({ pattern: '^mem_[0-9a-z]{1,64}$' });

export const newEvent = Type.Object(
  {
    text,
    time: Type.Optional(
      Type.Union([Type.Number({ minimum: 0 }), Type.String()], {
        description: 'When it happened: milliseconds since 1970, or ISO 8601. Default: now.',
      }),
    ),
    source: Type.Optional(source),
    tags: Type.Optional(tags),
    importance: Type.Optional({ ...importance, default: 0.5 }),
    id: Type.Optional({
      ...id,
      description: 'Of an exported event. One that the space has already is left as it is.',
    }),
  },
  { ...closed, $id: 'NewEvent' },
);
export type NewEventBody = Static<typeof newEvent>;

export const eventChange = Type.Partial(Type.Omit(newEvent, ['id']), {
  ...closed,
  $id: 'EventChange',
  description: 'The fields that change; the others stay.',
});

/** Events of one JSON body; an import has no such limit. */
export const MOST_AT_ONCE = 1000;

export const newEvents = Type.Object(
  { events: Type.Array(newEvent, { minItems: 1, maxItems: MOST_AT_ONCE }) },
  { ...closed, $id: 'NewEvents' },
);

const kept = {
  id,
  time: Type.Integer({ description: 'Milliseconds since 1970.' }),
  text,
  source: Type.Optional(source),
  tags,
  importance,
};
export const event = Type.Object(kept, { ...closed, $id: 'Event' });

export const added = Type.Object(
  { events: Type.Array(event) },
  { ...closed, $id: 'Added', description: 'In the order given.' },
);
export const imported = Type.Object(
  {
    added: Type.Integer({ description: 'New events.' }),
    known: Type.Integer({ description: 'Events whose id the space had already.' }),
  },
  { ...closed, $id: 'Imported' },
);
export const accepted = Type.Object(
  { accepted: Type.Integer({ description: 'Events handed on to the external store.' }) },
  { ...closed, $id: 'Accepted' },
);

export const eventList = Type.Object(
  {
    events: Type.Array(event),
    next_cursor: Type.Union([Type.String(), Type.Null()], {
      description: 'For the next page; null on the last one.',
    }),
  },
  { ...closed, $id: 'EventList' },
);

export const spaceList = Type.Object(
  {
    spaces: Type.Array(Type.Object({ space: Type.String(), events: Type.Integer() }, closed), {
      description: 'Those that the key may use, by name.',
    }),
    next_after: Type.Union([Type.String(), Type.Null()], {
      description: 'The next page stands behind this name; null on the last one.',
    }),
  },
  { ...closed, $id: 'SpaceList' },
);
export const MOST_RECALLED = 100;

export const recall = Type.Object(
  {
    query: Type.String({ minLength: 1, description: 'A question or any text.' }),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST_RECALLED, default: 10 })),
  },
  { ...closed, $id: 'Recall' },
);
export const recalled = Type.Object(
  {
    events: Type.Array(
      Type.Object(
        {
          ...kept,
          score: Type.Number({ description: 'Higher fits better; comparable within one answer.' }),
        },
        closed,
      ),
      { description: 'Best first.' },
    ),
  },
  { ...closed, $id: 'Recalled' },
);

export const deleted = Type.Object(
  { id, deleted: Type.Literal(true) },
  { ...closed, $id: 'Deleted' },
);
export const erased = Type.Object(
  {
    space: Type.String(),
    erased: Type.Literal(true),
    events: Type.Union([Type.Integer(), Type.Null()], {
      description: 'Events removed; null where the external store does not say.',
    }),
    samples: Type.Integer({ description: 'Recorded exchanges of this space that were removed.' }),
  },
  { ...closed, $id: 'Erased' },
);

export const failure = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()], { description: 'The field at fault.' }),
      code: Type.Union([Type.String(), Type.Null()]),
    }),
  },
  { $id: 'Failure', description: "An error in OpenAI's shape." },
);
