/** The OpenAPI document of the memory API, built from the schemas that check its bodies. */

import type { TSchema } from '@sinclair/typebox';
import * as schemas from './schemas.ts';

/** Those with a name. */
const SCHEMAS = Object.values(schemas).filter(
  (one): one is Exclude<typeof one, number> => typeof one === 'object',
);

const ref = (schema: TSchema) => ({ $ref: `#/components/schemas/${schema.$id}` });
const json = (schema: TSchema, ...more: TSchema[]) => ({
  'application/json': {
    schema: more.length === 0 ? ref(schema) : { oneOf: [schema, ...more].map(ref) },
  },
});
const answer = (description: string, schema: TSchema, ...more: TSchema[]) => ({
  description,
  content: json(schema, ...more),
});
const FAILURES: Readonly<Record<number, string>> = {
  400: 'A field is not valid; `param` names it.',
  401: 'No key, or an unknown one.',
  403: 'The key may not use this space, or the origin of the page is not allowed.',
  404: 'The event does not exist, or the memory is switched off.',
  409: 'The event exists with another text.',
  413: 'A limit was reached; the message names its configuration key.',
  501: 'The events are stored by an external service.',
};
const failures = (...statuses: number[]) =>
  Object.fromEntries(
    statuses.map((status) => [status, answer(FAILURES[status]!, schemas.failure)]),
  );
const query = (name: string, description: string, schema: object) => {
  return { name, in: 'query', description, schema };
};
const pageLimit = (description: string) =>
  query('limit', description, { type: 'integer', minimum: 1, maximum: 1000, default: 100 });
const time = { oneOf: [{ type: 'integer' }, { type: 'string', format: 'date-time' }] };

const space = {
  name: 'space',
  in: 'path',
  required: true,
  description: 'The name of the space, percent-encoded. A space exists from its first event on.',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
};
const event = { name: 'id', in: 'path', required: true, schema: { type: 'string' } };
const lines = { 'application/x-ndjson': { schema: { type: 'string' } } };

const PATHS = {
  '/v1/memory': {
    get: {
      operationId: 'listSpaces',
      summary: 'Lists the spaces that have events and that the key may use, by name.',
      parameters: [
        pageLimit('Spaces per page.'),
        query('after', '`next_after` of the previous page.', { type: 'string' }),
      ],
      responses: { 200: answer('A page.', schemas.spaceList), ...failures(400, 401, 404, 501) },
    },
  },
  '/v1/memory/{space}/events': {
    parameters: [space],
    post: {
      operationId: 'addEvents',
      summary: 'Adds one event or several (all or none), or imports JSON lines.',
      requestBody: {
        required: true,
        content: { ...json(schemas.newEvent, schemas.newEvents), ...lines },
      },
      responses: {
        200: answer(
          'All events were known already; or the counts of an import.',
          schemas.event,
          schemas.added,
          schemas.imported,
        ),
        201: answer('The added event, or the events of the list.', schemas.event, schemas.added),
        202: answer('Passed on to the external store.', schemas.accepted),
        ...failures(400, 401, 403, 404, 409, 413),
      },
    },
    get: {
      operationId: 'listEvents',
      summary: 'Lists events by time.',
      parameters: [
        query('since', 'Events from this time on: milliseconds since 1970 or ISO 8601.', time),
        query('until', 'Events before this time.', time),
        query('tag', 'Only events with this tag.', { type: 'string' }),
        query('order', 'The order by time.', { enum: ['desc', 'asc'], default: 'desc' }),
        pageLimit('Events per page.'),
        query('cursor', '`next_cursor` of the previous page.', { type: 'string' }),
      ],
      responses: {
        200: answer('A page.', schemas.eventList),
        ...failures(400, 401, 403, 404, 501),
      },
    },
  },
  '/v1/memory/{space}/events/{id}': {
    parameters: [space, event],
    get: {
      operationId: 'getEvent',
      summary: 'Returns one event.',
      responses: { 200: answer('The event.', schemas.event), ...failures(401, 403, 404, 501) },
    },
    patch: {
      operationId: 'changeEvent',
      summary: 'Changes some fields of an event and indexes it again.',
      requestBody: { required: true, content: json(schemas.eventChange) },
      responses: {
        200: answer('The changed event.', schemas.event),
        ...failures(400, 401, 403, 404, 413, 501),
      },
    },
    delete: {
      operationId: 'deleteEvent',
      summary: 'Removes an event from the memory and its indexes.',
      responses: { 200: answer('Removed.', schemas.deleted), ...failures(401, 403, 404, 501) },
    },
  },
  '/v1/memory/{space}/recall': {
    parameters: [space],
    post: {
      operationId: 'recall',
      summary: 'Returns the events that match a question best; none for an unknown space.',
      requestBody: { required: true, content: json(schemas.recall) },
      responses: { 200: answer('Best first.', schemas.recalled), ...failures(400, 401, 403, 404) },
    },
  },
  '/v1/memory/{space}/forget': {
    parameters: [space],
    post: {
      operationId: 'forgetEvents',
      summary: 'Removes events by their ids, or those that hold all words of a text.',
      requestBody: { required: true, content: json(schemas.forget) },
      responses: {
        200: answer('The removed events.', schemas.forgotten),
        ...failures(400, 401, 403, 404, 501),
      },
    },
  },
  '/v1/memory/{space}/export': {
    parameters: [space],
    get: {
      operationId: 'exportSpace',
      summary:
        'Returns all events as JSON lines, oldest first; adding them again restores the space.',
      responses: {
        200: { description: 'One event per line.', content: lines },
        ...failures(401, 403, 404, 501),
      },
    },
  },
  '/v1/memory/{space}': {
    parameters: [space],
    delete: {
      operationId: 'eraseSpace',
      summary:
        'Erases a space everywhere: events, vectors, queued events, and recorded exchanges that used it.',
      responses: { 200: answer('Erased.', schemas.erased), ...failures(401, 403, 404) },
    },
  },
};

/** Replaces named schemas by references: in OpenAPI an `$id` would change the base of inner references. */
function withReferences(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withReferences);
  if (typeof part !== 'object' || part === null) return part;
  if ('$id' in part) return ref(part as TSchema);
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [key, withReferences(value)]),
  );
}

export function openapiDocument(version: string): object {
  const components = Object.fromEntries(
    SCHEMAS.map((schema) => {
      const { $id, ...rest } = schema;
      return [$id, withReferences(rest)];
    }),
  );
  return {
    openapi: '3.1.0',
    info: {
      title: 'hopgate memory',
      version,
      description: 'Events that conversations recall, stored in strictly separate spaces.',
    },
    security: [{ bearer: [] }, { apiKey: [] }, {}],
    paths: PATHS,
    components: {
      schemas: components,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
    },
  };
}
