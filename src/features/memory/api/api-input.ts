/** Reads what clients of the memory API send: bodies, JSON lines, query parameters; errors name the field. */

import type { TSchema } from '@sinclair/typebox';
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value';
import { GatewayError, invalid } from '../../../conversation/errors.ts';
import type { NewMemoryEvent, RecallQuery } from '../../../conversation/memory.ts';
import type { ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { isObject, type Json, tryParse } from '../../../lib/json/json.ts';
import type { EventChange } from '../base.ts';
import type { ListQuery } from '../store/page-store.ts';
import {
  eventChange,
  MOST_AT_ONCE,
  MOST_RECALLED,
  type NewEventBody,
  newEvent,
  newEvents,
  recall,
} from './api-schemas.ts';

export type GivenEvent = NewMemoryEvent & { readonly id?: string };

/** One event, or several under `at`. */
export interface GivenEvents {
  readonly events: readonly GivenEvent[];
  readonly at: '' | 'events';
}

const parsed = (body: Uint8Array): Json => {
  const value = tryParse(new TextDecoder().decode(body));
  if (value === undefined) throw invalid('The request body is not valid JSON.');
  return value;
};

/** @throws GatewayError invalid_request for the first field that does not fit */
function checked(schema: TSchema, value: Json, at: string): void {
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
      : `'${shown(param)}' ${wanted(first)}`,
    param === '' ? undefined : shown(param),
  );
}

/** Names of fields are the client's, of any length. */
const shown = (param: string) => (param.length <= 100 ? param : `${param.slice(0, 100)}…`);

/** What a field must be, in words. */
function wanted({ type, schema }: ValueError): string {
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return `is missing.${schema.description === undefined ? '' : ` ${schema.description}`}`;
    case ValueErrorType.ObjectAdditionalProperties:
      return `is not a field here. Known are: ${Object.keys(schema.properties).join(', ')}.`;
    case ValueErrorType.StringMinLength:
    case ValueErrorType.ArrayMinItems:
      return 'must not be empty.';
    case ValueErrorType.StringPattern:
      return 'must be mem_ and up to 64 of 0-9a-z.';
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
      return `is not as it must be. ${schema.description ?? ''}`.trim();
  }
}

function eventOf({ time, ...event }: NewEventBody, at: string): GivenEvent {
  if (typeof time !== 'string') return { ...event, ...(time !== undefined && { time }) };
  const parsedTime = Date.parse(time);
  if (Number.isNaN(parsedTime)) {
    const param = at === '' ? 'time' : `${at}.time`;
    throw invalid(`'${param}' is neither milliseconds since 1970 nor an ISO 8601 time.`, param);
  }
  return { ...event, time: parsedTime };
}

/** `{text, …}` or `{events: [{text, …}, …]}`. */
export function readEvents(body: Uint8Array): GivenEvents {
  const value = parsed(body);
  if (isObject(value) && 'events' in value) {
    if (Array.isArray(value.events) && value.events.length > MOST_AT_ONCE) {
      throw new GatewayError(
        'too_large',
        `A body takes at most ${MOST_AT_ONCE} events; send more as JSON lines (application/x-ndjson).`,
        { param: 'events', code: 'memory_limit' },
      );
    }
    checked(newEvents, value, '');
    const given = value.events as unknown as readonly NewEventBody[];
    return { events: given.map((one, at) => eventOf(one, `events[${at}]`)), at: 'events' };
  }
  checked(newEvent, value, '');
  return { events: [eventOf(value as unknown as NewEventBody, '')], at: '' };
}

/** Does the body come as one event a line? */
export const isLines = (headers: ReadonlyHeaders): boolean =>
  /^application\/(x-ndjson|ndjson|jsonl|x-jsonlines)\b/i.test(headers.get('content-type') ?? '');

/** The number of a line, from 1, and its event. */
export interface GivenLine {
  readonly line: number;
  readonly event: GivenEvent;
}

/** The events of JSON lines, empty lines passed over; errors name the line. */
export function* readLines(body: Uint8Array): Generator<GivenLine> {
  const lines = new TextDecoder().decode(body).split('\n');
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const at = `line ${index + 1}`;
    const value = tryParse(line);
    if (value === undefined) throw invalid(`Line ${index + 1} is not valid JSON.`, at);
    checked(newEvent, value, at);
    yield { line: index + 1, event: eventOf(value as unknown as NewEventBody, at) };
  }
}

/** The fields of an event that are to be changed. */
export function readChange(body: Uint8Array): EventChange {
  const value = parsed(body);
  checked(eventChange, value, '');
  if (Object.keys(value as object).length === 0) throw invalid('Nothing is to be changed.', 'text');
  return eventOf(value as unknown as NewEventBody, '');
}

export function readRecall(body: Uint8Array): RecallQuery {
  const value = parsed(body);
  if (isObject(value) && typeof value.limit === 'number' && value.limit > MOST_RECALLED) {
    throw invalid(`A recall gives at most ${MOST_RECALLED} events.`, 'limit');
  }
  checked(recall, value, '');
  return value as unknown as RecallQuery;
}

const PAGE = 100;
const LONGEST_PAGE = 1000;

export function readList(search: URLSearchParams): ListQuery {
  const given = (name: string) => search.get(name) ?? undefined;
  const order = given('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw invalid("'order' is asc or desc.", 'order');
  const limit = Number(given('limit') ?? PAGE);
  if (!Number.isInteger(limit) || limit < 1 || limit > LONGEST_PAGE) {
    throw invalid(`'limit' is a whole number from 1 to ${LONGEST_PAGE}.`, 'limit');
  }
  return {
    order,
    limit,
    since: timeOf(given('since'), 'since'),
    until: timeOf(given('until'), 'until'),
    tag: given('tag'),
    cursor: given('cursor'),
  };
}

const SPACES = 100;
const MOST_SPACES = 1000;

/** Of the list of spaces. */
export function readSpaces(search: URLSearchParams): { after: string; limit: number } {
  const limit = Number(search.get('limit') ?? SPACES);
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_SPACES) {
    throw invalid(`'limit' is a whole number from 1 to ${MOST_SPACES}.`, 'limit');
  }
  return { after: search.get('after') ?? '', limit };
}

function timeOf(given: string | undefined, name: string): number | undefined {
  if (given === undefined) return undefined;
  const time = /^\d+$/.test(given) ? Number(given) : Date.parse(given);
  if (!Number.isSafeInteger(time)) {
    throw invalid(`'${name}' is neither milliseconds since 1970 nor an ISO 8601 time.`, name);
  }
  return time;
}
