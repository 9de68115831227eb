/** Valid Messages requests for tests to damage. */

import type { JsonObject } from '../../../src/lib/json/json.ts';
import { Random, messagesBody, messagesVoice, requests, session } from './histories.ts';

/** A valid request from some session. */
export function validRequest(seed: number): JsonObject {
  const dice = new Random(seed);
  const all = requests(session(seed, 1 + dice.below(4)), messagesBody, messagesVoice(seed));
  return dice.pick(all);
}
