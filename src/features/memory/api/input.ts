/** Parses and checks requests to the memory API: bodies, JSON lines, query parameters. Errors name the field. */

import type { Static, TSchema } from '@sinclair/typebox';
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value';
import { GatewayError, invalid } from '../../../conversation/errors.ts';
import type { NewMemoryEvent, RecallQuery } from '../../../conversation/memory.ts';
import type { ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { isObject, type Json, tryParse } from '../../../lib/json/json.ts';
import { isTimeZone } from '../../../lib/text/calendar.ts';
import type { EventChange } from '../backend.ts';
import type { ListQuery } from '../store/event-pages.ts';
import {
  eventChange,
  forget,
  MAX_EVENTS,
  MAX_RECALLED,
  type NewEventBody,
  newEvent,
  newEvents,
  type RecallBody,
  recall,
} from './schemas.ts';

export type EventInput = NewMemoryEvent & { readonly id?: string };

/** A single event (`at` is ''), or the list under `events`. */
export interface EventInputs {
  readonly events: readonly EventInput[];
  readonly at: '' | 'events';
}

const parseJsonBody = (body: Uint8Array): Json => {
  const value = tryParse(new TextDecoder().decode(body));
  if (value === undefined) throw invalid('The request body is not valid JSON.');
  return value;
};

/** @throws GatewayError invalid_request that names the first wrong field */
function checkSchema(schema: TSchema, value: Json, at: string): void {
  if (Value.Check(schema, value)) return;
  const first = Value.Errors(schema, value).First();
  const path = (first?.path ?? '')
    .replace(/\/(\d+)/g, '[$1]')
    .replace(/\//g, '.')
    .replace(/^\./, '');
  const param = [at, path].filter((part) => part !== '').join('.');
  throw invalid(
    param === '' || first === undefined
      ? 'The body must be a JSON object.'
      : `'${shortened(param)}' ${problemOf(first)}`,
    param === '' ? undefined : shortened(param),
  );
}

/** A field's name for a message: clients can send names of any length. */
const shortened = (param: string) => (param.length <= 100 ? param : `${param.slice(0, 100)}…`);

/** The problem of a field, as the end of a sentence. */
function problemOf({ type, schema }: ValueError): string {
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return `is missing.${schema.description === undefined ? '' : ` ${schema.description}`}`;
    case ValueErrorType.ObjectAdditionalProperties:
      return `is not known here. Known fields: ${Object.keys(schema.properties).join(', ')}.`;
    case ValueErrorType.StringMinLength:
    case ValueErrorType.ArrayMinItems:
      return 'must not be empty.';
    case ValueErrorType.StringPattern:
      return 'must be mem_ followed by up to 64 of 0-9a-z.';
    case ValueErrorType.String:
      return 'must be text (a JSON string).';
    case ValueErrorType.Number:
      return 'must be a number.';
    case ValueErrorType.Integer:
      return 'must be a whole number.';
    case ValueErrorType.NumberMinimum:
    case ValueErrorType.IntegerMinimum:
      return `must be at least ${schema.minimum}.`;
    case ValueErrorType.NumberMaximum:
    case ValueErrorType.IntegerMaximum:
      return `must be at most ${schema.maximum}.`;
    case ValueErrorType.Array:
      return 'must be a list.';
    case ValueErrorType.ArrayMaxItems:
      return `has more than ${schema.maxItems} entries.`;
    case ValueErrorType.Object:
      return 'must be an object.';
    case ValueErrorType.Union:
      return 'must be milliseconds since 1970 or an ISO 8601 time.';
    default:
      return `is not valid. ${schema.description ?? ''}`.trim();
  }
}

function toEventInput({ time, ...event }: NewEventBody, at: string): EventInput {
  if (typeof time !== 'string') return { ...event, ...(time !== undefined && { time }) };
  const parsedTime = Date.parse(time);
  if (Number.isNaN(parsedTime)) {
    const param = at === '' ? 'time' : `${at}.time`;
    throw invalid(`'${param}' is neither milliseconds since 1970 nor an ISO 8601 time.`, param);
  }
  return { ...event, time: parsedTime };
}

/** `{text, …}` or `{events: [{text, …}, …]}`. @throws GatewayError invalid_request, or too_large for too many events */
export function readEvents(body: Uint8Array): EventInputs {
  const value = parseJsonBody(body);
  if (isObject(value) && 'events' in value) {
    if (Array.isArray(value.events) && value.events.length > MAX_EVENTS) {
      throw new GatewayError(
        'too_large',
        `A body takes at most ${MAX_EVENTS} events; send more as JSON lines (application/x-ndjson).`,
        { param: 'events', code: 'memory_limit' },
      );
    }
    checkSchema(newEvents, value, '');
    const given = value.events as unknown as readonly NewEventBody[];
    return { events: given.map((one, at) => toEventInput(one, `events[${at}]`)), at: 'events' };
  }
  checkSchema(newEvent, value, '');
  return { events: [toEventInput(value as unknown as NewEventBody, '')], at: '' };
}

/** Does the body contain one event per line? */
export const isJsonLines = (headers: ReadonlyHeaders): boolean =>
  /^application\/(x-ndjson|ndjson|jsonl|x-jsonlines)\b/i.test(headers.get('content-type') ?? '');

/** An event of an import with the number of its line, from 1. */
export interface EventLine {
  readonly line: number;
  readonly event: EventInput;
}

/** The events of JSON lines; skips empty lines. @throws GatewayError invalid_request that names the line */
export function* readLines(body: Uint8Array): Generator<EventLine> {
  const lines = new TextDecoder().decode(body).split('\n');
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const at = `line ${index + 1}`;
    const value = tryParse(line);
    if (value === undefined) throw invalid(`Line ${index + 1} is not valid JSON.`, at);
    checkSchema(newEvent, value, at);
    yield { line: index + 1, event: toEventInput(value as unknown as NewEventBody, at) };
  }
}

/** The fields of an event to change. @throws GatewayError invalid_request, also where there is none */
export function readChange(body: Uint8Array): EventChange {
  const value = parseJsonBody(body);
  checkSchema(eventChange, value, '');
  if (Object.keys(value as object).length === 0)
    throw invalid('The body has no field to change.', 'text');
  return toEventInput(value as unknown as NewEventBody, '');
}

/** The query of a recall. @throws GatewayError invalid_request that names the field */
export function readRecall(body: Uint8Array): RecallQuery {
  const value = parseJsonBody(body);
  if (isObject(value) && typeof value.limit === 'number' && value.limit > MAX_RECALLED) {
    throw invalid(`A recall returns at most ${MAX_RECALLED} events.`, 'limit');
  }
  checkSchema(recall, value, '');
  const { max_tokens, since, until, time_zone, ...given } = value as unknown as RecallBody;
  if (time_zone !== undefined && !isTimeZone(time_zone)) {
    throw invalid("'time_zone' must be an IANA time zone, e.g. Europe/Berlin.", 'time_zone');
  }
  return {
    ...given,
    maxTokens: max_tokens,
    since: timeOf(since, 'since'),
    until: timeOf(until, 'until'),
    timeZone: time_zone,
  };
}

/** The ids or words to forget. @throws GatewayError invalid_request that names the field */
export function readForget(body: Uint8Array): Static<typeof forget> {
  const value = parseJsonBody(body);
  checkSchema(forget, value, '');
  const given = value as unknown as Static<typeof forget>;
  if ((given.ids === undefined) === (given.query === undefined)) {
    throw invalid("Give either 'ids' or 'query'.", 'query');
  }
  return given;
}

const PAGE = 100;
const MAX_PAGE = 1000;

function pageLimit(search: URLSearchParams): number {
  const limit = Number(search.get('limit') ?? PAGE);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw invalid(`'limit' must be a whole number from 1 to ${MAX_PAGE}.`, 'limit');
}

/** The query of a list of events. @throws GatewayError invalid_request that names the parameter */
export function readList(search: URLSearchParams): ListQuery {
  const given = (name: string) => search.get(name) ?? undefined;
  const order = given('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw invalid("'order' must be asc or desc.", 'order');
  return {
    order,
    limit: pageLimit(search),
    since: timeOf(given('since'), 'since'),
    until: timeOf(given('until'), 'until'),
    tag: given('tag'),
    cursor: given('cursor'),
  };
}

/** The query of the list of spaces. @throws GatewayError invalid_request that names the parameter */
export function readSpaces(search: URLSearchParams): { after: string; limit: number } {
  return { after: search.get('after') ?? '', limit: pageLimit(search) };
}

function timeOf(given: string | number | undefined, name: string): number | undefined {
  if (given === undefined) return undefined;
  const text = String(given);
  const time = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (!Number.isSafeInteger(time)) {
    throw invalid(`'${name}' is neither milliseconds since 1970 nor an ISO 8601 time.`, name);
  }
  return time;
}
