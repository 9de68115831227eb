/** Reads events in the forms of other memory services: plain texts, or objects with other field names. */

import { GatewayError } from '../../conversation/errors.ts';
import type { RecalledEvent } from '../../conversation/memory.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { DEFAULT_IMPORTANCE, type MemoryLimits, NAME_LENGTH } from './event.ts';

const LISTS = ['events', 'memories', 'results', 'items', 'data'];
const TEXTS = ['text', 'content', 'memory', 'event', 'summary', 'fact'];
const TIMES = ['time', 'timestamp', 'created_at', 'createdAt', 'date'];
const SOURCES = ['source', 'speaker', 'author', 'from'];
const SCORES = ['score', 'similarity', 'relevance'];

/**
 * Reads `{events: […]}`, the same under another usual name or one level down (`{data: {events}}`), or a
 * bare list. Keeps its order. @throws GatewayError upstream when there is no list
 */
export function readExternalEvents(
  answer: Json | undefined,
  limits: MemoryLimits,
  now: number,
): readonly RecalledEvent[] {
  const list = listIn(answer, 2);
  if (list === undefined) {
    throw new GatewayError('upstream', 'The external memory answered without {"events": […]}.');
  }
  return list.flatMap((item, at) => {
    const fields: JsonObject = isObject(item) ? item : { text: item };
    const text = first(fields, TEXTS, (value) =>
      typeof value === 'string' && value.trim() !== '' ? value.slice(0, limits.text) : undefined,
    );
    if (text === undefined) return [];
    const source = first(fields, SOURCES, (value) =>
      typeof value === 'string' && value !== '' ? value.slice(0, NAME_LENGTH) : undefined,
    );
    const tags = Array.isArray(fields.tags) ? (fields.tags as Json[]) : [];
    const id = typeof fields.id === 'string' || typeof fields.id === 'number' ? `${fields.id}` : '';
    const weight = first(fields, ['importance', 'weight'], numberOf);
    return [
      {
        id: id === '' ? `mem_external${at + 1}` : id.slice(0, NAME_LENGTH),
        time: first(fields, TIMES, timeOf) ?? now,
        text: text.toWellFormed(),
        ...(source !== undefined && { source }),
        tags: tags.filter((tag) => typeof tag === 'string').slice(0, limits.tags),
        importance: Math.min(1, Math.max(0, weight ?? DEFAULT_IMPORTANCE)),
        // Without scores the order of the list is the ranking.
        score: first(fields, SCORES, numberOf) ?? 1 / (at + 1),
      },
    ];
  });
}

function listIn(value: Json | undefined, depth: number): readonly Json[] | undefined {
  if (Array.isArray(value)) return value as readonly Json[];
  if (!isObject(value) || depth === 0) return undefined;
  for (const name of LISTS) {
    const found = listIn(value[name], depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function first<T>(
  fields: JsonObject,
  names: readonly string[],
  read: (value: Json) => T | undefined,
): T | undefined {
  for (const name of names) {
    const value = fields[name];
    const found = value === undefined ? undefined : read(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

const numberOf = (value: Json) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

/** Milliseconds since 1970; a number below 1e11 is taken as seconds. */
function timeOf(value: Json): number | undefined {
  const number =
    typeof value === 'string' && !/^\d+$/.test(value) ? Date.parse(value) : Number(value);
  if (!Number.isFinite(number) || number < 0) return undefined;
  return Math.round(number < 1e11 ? number * 1000 : number);
}
