/** Readers for fields of engines' answers, whose shape is not trusted. */

import { readEntities } from '../../../../lib/http/html-entities.ts';
import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import type { SearchHit } from './engine.ts';

export const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

/** The first value that is a string and not blank, trimmed; '' without one. */
export function firstText(...values: readonly (Json | undefined)[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim();
  }
  return '';
}

/** The strings of a list. */
export const textsOf = (value: Json | undefined): readonly string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];

/** Text without markup: tags removed, entities resolved, white space collapsed. */
export function plainText(markup: string): string {
  return readEntities(withoutTags(markup)).replace(/\s+/g, ' ').trim();
}

/** Removes tags; an angle bracket without its counterpart stays. */
function withoutTags(markup: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = markup.indexOf('<'); at >= 0; at = markup.indexOf('<', from)) {
    const end = markup.indexOf('>', at);
    if (end < 0) break;
    parts.push(markup.slice(from, at));
    from = end + 1;
  }
  return from === 0 ? markup : parts.join('') + markup.slice(from);
}

/** A list of one hit; empty without a web address. */
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
