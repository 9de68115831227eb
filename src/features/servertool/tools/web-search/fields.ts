/** Fields of engines' answers, read without trust in their shape. */

import { isObject, type Json, type JsonObject } from '../../../../lib/json.ts';
import type { Hit } from './engine.ts';

export const object = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

export const list = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? (value as readonly Json[]).filter(isObject) : [];

/** The first that is a string with something in it. */
export function words(...values: readonly (Json | undefined)[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim();
  }
  return '';
}

/** Texts of a list that holds strings. */
export const texts = (value: Json | undefined): readonly string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
};

/** Markup out, entities read, white space as single blanks. */
export function plain(markup: string): string {
  return markup
    .replace(/<[^>]*>/g, '')
    .replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
      const code = decimal !== undefined ? Number(decimal) : hex ? Number.parseInt(hex, 16) : -1;
      if (code >= 0 && code <= 0x10ffff) return String.fromCodePoint(code);
      return ENTITIES[String(name).toLowerCase()] ?? whole;
    })
    .replace(/\s+/g, ' ')
    .trim();
}

/** A hit, or none where no page is named. */
export function hit(
  url: Json | undefined,
  title: string,
  snippet: string,
  published = '',
): readonly Hit[] {
  const address = words(url);
  if (!/^https?:\/\//i.test(address)) return [];
  const found = { title: title === '' ? address : title, url: address, snippet };
  return [published === '' ? found : { ...found, published }];
}
