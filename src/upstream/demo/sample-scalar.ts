/** Strings and numbers that fit a schema: formats, patterns, lengths, bounds and steps. */

import type { Json, JsonObject } from '../../lib/json/json.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { fitsPattern, satisfies } from './fits.ts';
import { MAX_TEXT, samplePattern } from './sample-pattern.ts';

// One valid value a format (JSON Schema 2020-12, section 7.3, and what OpenAPI adds).
const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  duration: 'P1D',
  email: 'demo@example.com',
  'idn-email': 'demo@example.com',
  hostname: 'example.com',
  'idn-hostname': 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/demo',
  iri: 'https://example.com/demo',
  url: 'https://example.com/demo',
  'uri-reference': '/demo',
  'iri-reference': '/demo',
  'uri-template': '/demo/{id}',
  uuid: '00000000-0000-4000-8000-000000000000',
  'json-pointer': '/demo',
  'relative-json-pointer': '0/demo',
  regex: '^demo$',
  byte: 'ZGVtbw==',
  base64: 'ZGVtbw==',
};

// Tried against a pattern before one is built for it: they read better.
const PLAIN = [
  'demo',
  'Demo',
  'DEMO',
  'a',
  'A',
  '1',
  '2026-01-01',
  '12:00',
  '1.0.0',
  'en',
  '/demo',
];

const FILLING = ' demo';

/** The text in the length that the schema asks for; undefined where the text would be too long to be useful. */
function fitLength(text: string, schema: JsonObject): string | undefined {
  const min = typeof schema.minLength === 'number' ? schema.minLength : 0;
  const max = typeof schema.maxLength === 'number' ? schema.maxLength : Number.POSITIVE_INFINITY;
  if (min > MAX_TEXT) return undefined;
  const letters = [...text];
  const wanted = Math.max(min, Math.min(max, letters.length));
  const more = Math.max(0, Math.ceil((wanted - letters.length) / FILLING.length));
  return [...letters, ...FILLING.repeat(more)].slice(0, wanted).join('');
}

/**
 * A string for the schema.
 * @param name the property it is for: part of the text where nothing else is asked
 * @param variant 0, 1, 2, …: different strings where the schema leaves room
 */
export function sampleString(
  schema: JsonObject,
  name: string,
  variant: number,
): string | undefined {
  const format = typeof schema.format === 'string' ? memberOf(FORMATS, schema.format) : undefined;
  const mark = variant === 0 ? '' : String(variant + 1);
  const base = name === '' ? `demo${mark}` : `demo ${name}${mark && ` ${mark}`}`;
  if (typeof schema.pattern !== 'string') return format ?? fitLength(base, schema);
  const built: (string | undefined)[] = [];
  for (let more = 0; more <= 64; more = more < 4 ? more + 1 : more * 2) {
    built.push(samplePattern(schema.pattern, more + variant));
  }
  // A pattern that cannot be checked takes what was built for it.
  const known = fitsPattern(schema.pattern, '', schema) !== undefined;
  const candidates = known ? [format, base, ...PLAIN.slice(variant), ...built] : built;
  return candidates.find(
    (one) => one !== undefined && satisfies(one, { ...schema, type: 'string' }),
  );
}

/** A number for the schema, an integer where that is asked; undefined where none was found. */
export function sampleNumber(
  schema: JsonObject,
  integer: boolean,
  variant: number,
): number | undefined {
  const number = (value: Json | undefined) => (typeof value === 'number' ? value : undefined);
  const low = Math.max(
    number(schema.minimum) ?? Number.NEGATIVE_INFINITY,
    number(schema.exclusiveMinimum) ?? Number.NEGATIVE_INFINITY,
  );
  const high = Math.min(
    number(schema.maximum) ?? Number.POSITIVE_INFINITY,
    number(schema.exclusiveMaximum) ?? Number.POSITIVE_INFINITY,
  );
  const step = number(schema.multipleOf) ?? (integer ? 1 : undefined);
  const candidates = [1, 2, 3, 5, 10, 0, 0.5];
  if (step !== undefined && step > 0) {
    const start = Number.isFinite(low)
      ? Math.ceil(low / step)
      : Math.floor(Math.min(high, 0) / step);
    const back = Number.isFinite(low) ? 1 : -1;
    for (let i = 0; i < 200; i++) candidates.push((start + back * i) * step);
  } else if (Number.isFinite(low)) {
    const room = Number.isFinite(high) ? high - low : 8;
    candidates.push(low, ...[2, 4, 8, 3, 5, 7].map((part) => low + room / part), high);
  } else if (Number.isFinite(high)) candidates.push(high, high - 1, high - 2);
  const rule = { ...schema, type: integer ? 'integer' : 'number' };
  const fitting = new Set(candidates.filter((one) => Number.isFinite(one) && satisfies(one, rule)));
  return [...fitting][variant] ?? [...fitting][0];
}
