/** Fields of engines' answers, read without trust in their shape. */

import { readEntities } from '../../../../lib/http/html-entities.ts';
import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import type { SearchHit } from './engine.ts';

export const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

export const objectsOf = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? (value as readonly Json[]).filter(isObject) : [];

/** The first that is a string with something in it. */
export function firstText(...values: readonly (Json | undefined)[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim();
  }
  return '';
}

/** Texts of a list that holds strings. */
export const textsOf = (value: Json | undefined): readonly string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];

/** Markup out, entities read, white space as single blanks. */
export function plainText(markup: string): string {
  return readEntities(withoutTags(markup)).replace(/\s+/g, ' ').trim();
}

/** An angle bracket without its partner is text. */
function withoutTags(markup: string): string {
  const kept: string[] = [];
  let from = 0;
  for (let at = markup.indexOf('<'); at >= 0; at = markup.indexOf('<', from)) {
    const end = markup.indexOf('>', at);
    if (end < 0) break;
    kept.push(markup.slice(from, at));
    from = end + 1;
  }
  return from === 0 ? markup : kept.join('') + markup.slice(from);
}

/** A hit, or none where no page is named. */
export function searchHit(
  url: Json | undefined,
  title: string,
  snippet: string,
  published = '',
): readonly SearchHit[] {
  const address = firstText(url);
  if (!/^https?:\/\//i.test(address)) return [];
  const found = { title: title === '' ? address : title, url: address, snippet };
  return [published === '' ? found : { ...found, published }];
}
