/** Valid Messages requests for tests to damage. */

import type { JsonObject } from '../../../src/lib/json/json.ts';
import { messagesBody, messagesVoice, Random, requests, session } from './histories.ts';

/** A valid request from some session. */
export function validRequest(seed: number): JsonObject {
  const random = new Random(seed);
  const all = requests(session(seed, 1 + random.below(4)), messagesBody, messagesVoice(seed));
  return random.pick(all);
}
