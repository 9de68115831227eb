/** Recognises Chat chunks with nothing but text, so that most of them need no parse. */

import { isObject } from '../../../lib/json/json.ts';
import { JsonTemplate } from '../../../lib/json/json-template.ts';
import { wordSet } from '../../../lib/text/words.ts';
import { list, object } from '../wire.ts';

/** Members whose value is ignored. All others must be empty in a chunk that is learned. */
const CHUNK_NOISE = wordSet(`
  id created model system_fingerprint service_tier provider obfuscation p`);
const CHUNK_OBJECT = 'chat.completion.chunk';

export const textTemplate = (): JsonTemplate =>
  new JsonTemplate({ key: 'content', text: onlyText });

/** The text of a chunk that holds nothing else. */
function onlyText(chunk: unknown): string | undefined {
  if (!isObject(chunk)) return undefined;
  const choices = list(chunk.choices);
  const choice = choices?.length === 1 ? object(choices[0]) : undefined;
  const delta = object(choice?.delta);
  if (choice === undefined || delta === undefined) return undefined;
  for (const key in chunk) {
    if (key === 'choices' || CHUNK_NOISE.has(key)) continue;
    if (key === 'object' ? chunk[key] !== CHUNK_OBJECT : Boolean(chunk[key])) return undefined;
  }
  for (const key in choice) if (key !== 'delta' && choice[key]) return undefined;
  for (const key in delta) {
    if (key !== 'content' && key !== 'role' && delta[key]) return undefined;
  }
  return typeof delta.content === 'string' ? delta.content : undefined;
}
