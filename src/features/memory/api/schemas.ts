/** The TypeBox schemas of the memory API, used to check bodies and to build the OpenAPI document. */

import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';

/** An object without other fields. */
const closed = <T extends TProperties>(fields: T, description?: string): TObject<T> =>
  Type.Object(fields, { additionalProperties: false, ...(description && { description }) });

/** The same under a name of its own in the document. */
const named = <T extends TProperties>($id: string, fields: T, description?: string): TObject<T> =>
  Type.Object(fields, { additionalProperties: false, $id, ...(description && { description }) });

const orNull = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });

const text = Type.String({ minLength: 1, description: 'The text to remember.' });
const source = Type.String({ description: 'Who said it or where it comes from.' });
const tags = Type.Array(Type.String(), { description: 'Words to list events by.' });
const importance = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'From 0 (trivial) to 1 (must not be forgotten).',
});
const time = Type.Union([Type.Number({ minimum: 0 }), Type.String()]);
const id = Type.String({ pattern: '^mem_[0-9a-z]{1,64}$' });

export const newEvent = named('NewEvent', {
  text,
  time: Type.Optional({
    ...time,
    description: 'When it happened: milliseconds since 1970, or ISO 8601. Default: now.',
  }),
  source: Type.Optional(source),
  tags: Type.Optional(tags),
  importance: Type.Optional({ ...importance, default: 0.5 }),
  id: Type.Optional({
    ...id,
    description:
      'The id of an exported event. An event that the space already has stays unchanged.',
  }),
});
export type NewEventBody = Static<typeof newEvent>;

export const eventChange = Type.Partial(Type.Omit(newEvent, ['id']), {
  additionalProperties: false,
  $id: 'EventChange',
  description: 'The fields that change; the others stay.',
});

/** Events of one JSON body at most; an import has no such limit. */
export const MAX_EVENTS = 1000;

export const newEvents = named('NewEvents', {
  events: Type.Array(newEvent, { minItems: 1, maxItems: MAX_EVENTS }),
});

const storedEvent = {
  id,
  time: Type.Integer({ description: 'Milliseconds since 1970.' }),
  text,
  source: Type.Optional(source),
  tags,
  importance,
};
export const event = named('Event', storedEvent);

export const added = named('Added', { events: Type.Array(event) }, 'In the order given.');
export const imported = named('Imported', {
  added: Type.Integer({ description: 'New events.' }),
  known: Type.Integer({ description: 'Events whose id the space already had.' }),
});
export const accepted = named('Accepted', {
  accepted: Type.Integer({ description: 'Events passed on to the external store.' }),
});

export const eventList = named('EventList', {
  events: Type.Array(event),
  next_cursor: orNull(Type.String(), 'The cursor of the next page; null on the last page.'),
});

const spaceCount = closed({
  space: Type.String(),
  events: Type.Integer(),
  waiting: Type.Optional(
    Type.Integer({ description: 'With memory.embeddings: events without a vector yet.' }),
  ),
});
const embeddings = closed(
  {
    refused: Type.Integer({
      description: 'Texts that the endpoint refused since the start; words find them.',
    }),
    failure: Type.Union([closed({ time: Type.String(), message: Type.String() }), Type.Null()]),
  },
  'With memory.embeddings: how the making of vectors goes.',
);
export const spaceList = named('SpaceList', {
  spaces: Type.Array(spaceCount, {
    description: 'The spaces that the key may use, sorted by name.',
  }),
  next_after: orNull(
    Type.String(),
    'The last name of this page, for the next one; null on the last page.',
  ),
  embeddings: Type.Optional(embeddings),
});

export const MAX_RECALLED = 100;

export const recall = named('Recall', {
  query: Type.String({ minLength: 1, description: 'A question or any text.' }),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_RECALLED, default: 10 })),
  max_tokens: Type.Optional(
    Type.Integer({
      minimum: 0,
      description:
        'Tokens, estimated, of all events together: long texts are cut to passages around what is asked for. Default: whole texts.',
    }),
  ),
  since: Type.Optional({ ...time, description: 'Only events from this time on.' }),
  until: Type.Optional({ ...time, description: 'Only events before this time.' }),
  time_zone: Type.Optional(
    Type.String({ description: 'The IANA time zone in which "yesterday" is a day. Default: UTC.' }),
  ),
});
export type RecallBody = Static<typeof recall>;

const recalledEvent = closed({
  ...storedEvent,
  score: Type.Number({ description: 'Higher is better; comparable within one response.' }),
  excerpt: Type.Optional(
    Type.Literal(true, { description: 'The text is a passage of a longer one.' }),
  ),
});
export const recalled = named('Recalled', {
  events: Type.Array(recalledEvent, { description: 'Best first.' }),
});

export const forget = named(
  'Forget',
  {
    ids: Type.Optional(
      Type.Array(Type.String(), { maxItems: 1000, description: 'Ids of events.' }),
    ),
    query: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'Words: up to 100 events that hold every one of them are forgotten.',
      }),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ description: 'Only list what would be forgotten.', default: false }),
    ),
  },
  'By `ids` or by `query`.',
);
export const forgotten = named('Forgotten', {
  forgotten: Type.Integer({ description: 'Removed events; 0 for a dry run.' }),
  events: Type.Array(event, { description: 'Those that `query` found.' }),
});

export const deleted = named('Deleted', { id, deleted: Type.Literal(true) });
export const erased = named('Erased', {
  space: Type.String(),
  erased: Type.Literal(true),
  events: orNull(
    Type.Integer(),
    'Removed events; null where the external store does not report them.',
  ),
  samples: Type.Integer({ description: 'Recorded exchanges of this space that were removed.' }),
});

export const failure = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: orNull(Type.String(), 'The wrong field.'),
      code: Type.Union([Type.String(), Type.Null()]),
    }),
  },
  { $id: 'Failure', description: "An error in OpenAI's shape." },
);
