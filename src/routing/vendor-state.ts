/** Only its vendor can go on with parts of the prompt that it keeps, and with a turn that it paused. */

import { invalid } from '../conversation/errors.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';
import { containsAny, needles } from '../lib/bytes/bytes.ts';
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

/** The protocol whose vendors pause a turn, and what calls of their own tools have in it. */
const PAUSING: ProtocolName = 'anthropic-messages';
const VENDOR_CALL = needles('server_tool_use');

/**
 * The targets that may go on with a turn that a vendor paused, if there are any; else all. A call that waits for its result is
 * run where it was made (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons#pause-turn).
 * @param after the target that answered the hop before; undefined: this is the first hop
 */
export function targetsOfPaused(
  request: Pick<AskedRequest, 'conversation'> & { readonly bytes: Buffer },
  client: ProtocolName,
  targets: readonly RoutedTarget[],
  later?: { readonly conversation?: Conversation; readonly after?: Target },
): readonly RoutedTarget[] {
  const after = later?.after;
  if (targets.length < 2 || (after?.protocol ?? client) !== PAUSING) return targets;
  const own = targets.filter(({ target }) =>
    after === undefined ? target.protocol === PAUSING : target.provider === after.provider,
  );
  if (own.length === 0 || own.length === targets.length) return targets;
  if (after === undefined && !containsAny(request.bytes, VENDOR_CALL)) return targets;
  try {
    return isPaused(later?.conversation ?? request.conversation) ? own : targets;
  } catch {
    // The body cannot be read here; a vendor of its protocol may be able to.
    return targets;
  }
}

function isPaused({ turns }: Conversation): boolean {
  const blocks = turns.at(-1)?.blocks ?? [];
  const answered = new Set(
    blocks.map((block) => (block.type === 'tool-result' ? block.callId : '')),
  );
  return blocks.some(
    (block) => block.type === 'tool-call' && block.by === 'provider' && !answered.has(block.id),
  );
}

function isSet(body: Json | undefined, path: readonly string[]): boolean {
  let value = body;
  for (const name of path) value = isObject(value) ? value[name] : undefined;
  return value !== undefined && value !== null && value !== '';
}
