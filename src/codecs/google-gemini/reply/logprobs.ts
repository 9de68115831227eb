/** Reads Google's log probabilities of tokens into OpenAI's form, which clients of other protocols read. */

import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { field, number, object, objects, text } from '../wire.ts';

/** `logprobsResult` of a candidate (https://ai.google.dev/api/generate-content#LogprobsResult); []: it has none. */
export function decodeLogprobs(candidate: JsonObject): readonly Json[] {
  const result = object(field(candidate, 'logprobsResult'));
  if (result === undefined) return [];
  const top = objects(field(result, 'topCandidates'));
  return objects(field(result, 'chosenCandidates')).map((chosen, at) => ({
    ...tokenOf(chosen),
    top_logprobs: objects(top[at]?.candidates).map(tokenOf),
  }));
}

function tokenOf(candidate: JsonObject): JsonObject {
  const token = text(candidate.token) ?? '';
  const logprob = number(field(candidate, 'logProbability')) ?? 0;
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
