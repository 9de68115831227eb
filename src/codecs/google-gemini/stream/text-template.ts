/** Recognises Gemini chunks with nothing but text, so that most of them need no parse. */

import { isObject } from '../../../lib/json/json.ts';
import { JsonTemplate } from '../../../lib/json/json-template.ts';
import { list, object } from '../wire.ts';

/** Members whose value is read at the end, or in the first chunk only. All others must be empty in a chunk that is learned. */
const CHUNK_NOISE: ReadonlySet<string> = new Set([
  'candidates',
  'usageMetadata',
  'modelVersion',
  'responseId',
  'createTime',
]);
const CANDIDATE_NOISE: ReadonlySet<string> = new Set(['content', 'safetyRatings']);

/** Google sends the same JSON around every piece of text, but for the counts of the usage so far. */
export const textTemplate = (): JsonTemplate =>
  new JsonTemplate({
    key: 'text',
    text: onlyText,
    counts: ({ usageMetadata }) => usageMetadata !== undefined,
  });

/** The text of a chunk that holds nothing else. */
function onlyText(chunk: unknown): string | undefined {
  if (!isObject(chunk)) return undefined;
  const candidates = list(chunk.candidates);
  const candidate = candidates?.length === 1 ? object(candidates[0]) : undefined;
  const content = object(candidate?.content);
  const parts = list(content?.parts);
  const part = parts?.length === 1 ? object(parts[0]) : undefined;
  if (candidate === undefined || content === undefined || part === undefined) return undefined;
  for (const key in chunk) if (!CHUNK_NOISE.has(key) && chunk[key]) return undefined;
  for (const key in candidate) {
    if (CANDIDATE_NOISE.has(key) || !candidate[key]) continue;
    const isEmpty = isObject(candidate[key]) && Object.keys(candidate[key]).length === 0;
    if (key !== 'groundingMetadata' || !isEmpty) return undefined;
  }
  for (const key in content) if (key !== 'parts' && key !== 'role') return undefined;
  for (const key in part) if (key !== 'text') return undefined;
  return typeof part.text === 'string' ? part.text : undefined;
}
