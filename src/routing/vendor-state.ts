/** Parts of the prompt that a vendor keeps: a target of another protocol cannot read them, and would answer without them. */

import { invalid } from '../conversation/errors.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';
import { isObject, type Json } from '../lib/json/json.ts';
import type { RoutedTarget } from './request.ts';

/**
 * Fields that stand for instructions or messages, as paths:
 * - Responses (https://platform.openai.com/docs/api-reference/responses/create): `conversation`, and `prompt`, a stored prompt
 * - Gemini (https://ai.google.dev/api/caching): `cachedContent`, also in Google's own form of Chat
 *   (https://ai.google.dev/gemini-api/docs/openai#extra-body)
 * - OpenRouter (https://openrouter.ai/docs/features/presets): `preset`, which holds instructions
 *
 * Not among them: `previous_response_id` and `item_reference`, which the gateway resolves; ids of files, for which a mention
 * stands in the prompt; `container`, which goes with the tool whose sandbox it is; `background` and `store`, which ask for
 * nothing that the model reads.
 */
const FIELDS: Readonly<Record<ProtocolName, readonly (readonly string[])[]>> = {
  'openai-responses': [['conversation'], ['prompt'], ['preset']],
  'openai-chat': [['extra_body', 'google', 'cached_content'], ['cached_content'], ['preset']],
  'google-gemini': [['cachedContent'], ['cached_content']],
  'anthropic-messages': [['preset']],
};

interface AskedRequest {
  /** Has the body a member of this name at its top? */
  has(name: string): boolean;
  readonly conversation: Conversation;
}

/**
 * The targets that may have what the request refers to, in their order: all of them, or those of the client's protocol.
 * @throws GatewayError invalid_request that names the field if none is left
 */
export function targetsWithState(
  request: AskedRequest,
  client: ProtocolName,
  targets: readonly RoutedTarget[],
): readonly RoutedTarget[] {
  if (targets.every(({ target }) => target.protocol === client)) return targets;
  const path = FIELDS[client].find(
    (names) => request.has(names[0]!) && isSet(request.conversation.origin?.value, names),
  );
  if (path === undefined) return targets;
  const own = targets.filter(({ target }) => target.protocol === client);
  if (own.length > 0) return own;
  const field = path.join('.');
  const { provider, protocol } = targets[0]!.target;
  throw invalid(
    `'${field}' refers to content that its vendor keeps. The provider ${provider} of this model speaks another protocol (${protocol}) and cannot read it. Send the content itself, or use a model of the vendor that keeps it.`,
    field,
  );
}

function isSet(body: Json | undefined, path: readonly string[]): boolean {
  let value = body;
  for (const name of path) value = isObject(value) ? value[name] : undefined;
  return value !== undefined && value !== null && value !== '';
}
