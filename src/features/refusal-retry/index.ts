/** Retries a refused history without what the vendor named in its error. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { GatewayError } from '../../conversation/errors.ts';
import { historyRefusal, isSession } from '../../conversation/refusal/refusal.ts';
import type { Conversation, FunctionTool, ProtocolName } from '../../conversation/types.ts';
import type { Feature, FeatureContext } from '../feature.ts';
import { withoutEmpty } from './empty.ts';
import { withoutEncrypted, withoutKept, withoutOddSearches, withResultsAsText } from './kept.ts';
import { withShorterTexts } from './long-texts.ts';
import { RefusedMedia, withoutKnownMedia, withoutMedia } from './media.ts';
import { withoutPairs } from './pairs.ts';
import {
  type NoteStripped,
  withoutThinking,
  withPlaceholders,
  withUncheckedSignatures,
} from './thinking.ts';

/**
 * Works on the tries that follow a refusal of the history (`context.refusals`), and on requests to targets that have
 * refused media. Place it before tool pairing, which repairs calls that lose their result here. The client does not get
 * the error, because it would send the same history again in every request.
 */
export function refusalRetry(media = new RefusedMedia()): Feature {
  return {
    name: 'after-refusal',
    mayApply: (_body, { refusals, target }) => refusals !== undefined || media.isKnown(target),
    request(conversation, context) {
      const { target, refusals = [] } = context;
      const after = refusals.reduce(
        (current, error) => withoutRefused(current, error, context, media),
        conversation,
      );
      // Behind the refusals, which name places of what was asked.
      return media.isKnown(target) && isSession(conversation)
        ? withoutKnownMedia(after, (one) => media.has(context, one), strippedOf(context))
        : after;
    },
  };
}

const strippedOf =
  ({ notes }: FeatureContext): NoteStripped =>
  (where, what) =>
    notes.add('stripped_after_refusal', where, what);

function withoutRefused(
  conversation: Conversation,
  error: GatewayError,
  context: FeatureContext,
  media: RefusedMedia,
): Conversation {
  const { target, notes } = context;
  const refusal = historyRefusal(error);
  const own = conversation.origin?.protocol === target.protocol;
  const stripped = strippedOf(context);
  switch (refusal?.kind) {
    case 'thinking':
      return withoutThinking(conversation, own ? refusal : {}, stripped);
    case 'thinking-head': {
      const bare = withoutThinking(conversation, {}, stripped);
      const { settings } = bare;
      if (settings.reasoning?.enabled === false) return bare;
      stripped('thinking', 'off for this request: the tool loop does not begin with thinking');
      return withParts(bare, { settings: { ...settings, reasoning: { enabled: false } } });
    }
    case 'thinking-missing':
      // In Messages thinking has a signature, which vendor fit gives it.
      return target.protocol === 'anthropic-messages'
        ? conversation
        : withPlaceholders(conversation, own ? refusal.message : undefined, stripped);
    case 'call-signature':
      return withUncheckedSignatures(conversation, target, refusal.invalid, stripped);
    case 'kept':
      return withoutKept(conversation, refusal.incomplete, stripped);
    case 'encrypted':
      return withoutEncrypted(conversation, refusal.of, stripped);
    case 'action':
      return withoutOddSearches(conversation, stripped);
    case 'empty':
      return withoutEmpty(conversation, stripped);
    case 'strict':
      return withoutStrict(conversation, target.protocol, stripped);
    case 'references':
      return withResultsAsText(conversation, stripped);
    case 'pairing':
      return withoutPairs(conversation, error.message, stripped);
    case 'tools-missing':
      return withCalledTools(conversation, (name) => notes.add('tools_declared', '/tools', name));
    case 'too-long':
      return withShorterTexts(conversation, refusal, stripped);
    case 'media':
      // A model without images: vision describes them, or vendor fit and the codec mention them.
      return refusal.facts === undefined
        ? withoutMedia(conversation, refusal, own, stripped, (one) => media.add(context, one))
        : conversation;
    // `shape` and `setting` are handled by vendor fit, `fields` when the body is written.
    default:
      return conversation;
  }
}

/** A Responses tool that does not say what it is is strict. */
function withoutStrict(
  conversation: Conversation,
  protocol: ProtocolName,
  stripped: NoteStripped,
): Conversation {
  const tools = mapUnchanged(conversation.tools, (tool) =>
    tool.type === 'function' &&
    (protocol === 'openai-responses' ? tool.strict !== false : tool.strict === true)
      ? editNode(tool, { strict: false })
      : tool,
  );
  if (tools !== conversation.tools) stripped('/tools', 'strict');
  return withParts(conversation, { tools });
}

/**
 * Clients leave the tools out of a request for a summary or a title. The schema is open, and the model may
 * call none of them.
 */
function withCalledTools(
  conversation: Conversation,
  onDeclared: (name: string) => void,
): Conversation {
  if (conversation.tools.length > 0) return conversation;
  const tools = new Map<string, FunctionTool>();
  for (const { blocks } of conversation.turns) {
    for (const block of blocks) {
      if (block.type !== 'tool-call' || block.by !== 'client') continue;
      const { name, namespace } = block;
      const schema = { type: 'object', properties: {} };
      tools.set(JSON.stringify([namespace, name]), { type: 'function', name, namespace, schema });
    }
  }
  if (tools.size === 0) return conversation;
  for (const { name } of tools.values()) onDeclared(name);
  const settings = { ...conversation.settings, toolChoice: { type: 'none' } as const };
  return withParts(conversation, { tools: [...tools.values()], settings });
}
