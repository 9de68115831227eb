/** Asks a model through a gateway of this process, in conversation terms, as an exchange of its own. */

import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { GatewayError } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import { NO_PROFILE } from '../conversation/profile-facts.ts';
import type { Target } from '../conversation/target.ts';
import type { Gateway } from '../gateway/types.ts';
import { WITHOUT_KEY } from '../keys/principal.ts';
import { isObject, parseJson } from '../lib/json/json.ts';
import { requestId } from '../lib/text/ids.ts';
import type { AskModel } from './exchange-setup.ts';

/**
 * `target` is a `provider/model`, addressed directly. Responses is the protocol in between, since it
 * can say hosted tools, images and citations.
 * @returns a function that rejects with GatewayError when the model gave no answer
 */
export function askThrough(gateway: Gateway): AskModel {
  return async (target, conversation, signal, payer) => {
    const sent = { ...conversation, model: target, origin: undefined };
    const wire: Target = {
      provider: 'gateway',
      model: target,
      protocol: openaiResponses.name,
      profile: { ...NO_PROFILE, hostedTools: ['web_search'] },
    };
    const notes = new Notes();
    const body = openaiResponses.encodeRequest(sent, wire, notes);
    const response = await gateway({
      id: requestId(),
      protocol: openaiResponses,
      body: new TextEncoder().encode(JSON.stringify({ ...body, model: target, stream: false })),
      headers: new Headers({ 'user-agent': 'hopgate' }),
      sessionId: '',
      search: '',
      signal,
      principal: WITHOUT_KEY,
      owner: '',
      payer,
      started: performance.now(),
    });
    const value = parseJson(await response.text());
    if (!response.ok) {
      const error = isObject(value) && isObject(value.error) ? value.error.message : undefined;
      throw new GatewayError('upstream', typeof error === 'string' ? error : 'No answer.', {
        status: response.status,
      });
    }
    return openaiResponses.decodeReply(value, { sent, target: wire, notes });
  };
}
