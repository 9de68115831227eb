/** Reads what clients of the memory API send: bodies, JSON lines, query parameters; errors name the field. */

import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import type { NewMemoryEvent, RecallQuery } from '../../conversation/memory.ts';
import type { HeaderFields } from '../../lib/header-list.ts';
import { isObject, type Json, tryParse } from '../../lib/json.ts';
import {
  MOST_AT_ONCE,
  MOST_RECALLED,
  type NewEventBody,
  newEvent,
  newEvents,
  recall,
} from './api-schemas.ts';
import type { ListQuery } from './page-store.ts';

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
    param === ''
      ? 'The body must be a JSON object.'
      : `'${param}' does not fit: ${first?.message}.`,
    param || undefined,
  );
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
export const isLines = (headers: HeaderFields): boolean =>
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

function timeOf(given: string | undefined, name: string): number | undefined {
  if (given === undefined) return undefined;
  const time = /^\d+$/.test(given) ? Number(given) : Date.parse(given);
  if (!Number.isSafeInteger(time)) {
    throw invalid(`'${name}' is neither milliseconds since 1970 nor an ISO 8601 time.`, name);
  }
  return time;
}
