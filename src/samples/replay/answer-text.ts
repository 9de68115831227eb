/** The text of an answer for people to read: text, refusals and tool calls, without reasoning. */

import type { Codec, UpstreamContext } from '../../codecs/codec.ts';
import { Notes } from '../../conversation/notes.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import { NO_PROFILE } from '../../conversation/target.ts';
import type { Block, Conversation } from '../../conversation/types.ts';
import { SseParser } from '../../lib/bytes/sse.ts';
import { parseJson, tryParse } from '../../lib/json/json.ts';
import type { CompleteAnswer } from './outcome.ts';

/** Characters of an answer that are kept; the rest is cut off and counted. */
export const ANSWER_CHARACTERS = 100_000;

const EMPTY: Conversation = {
  model: '',
  system: [],
  turns: [],
  tools: [],
  settings: { stream: false },
};

/**
 * The text of an answer in `protocol`, at most {@link ANSWER_CHARACTERS} characters. Undefined when the
 * answer is an error or cannot be read. A cut stream gives the text up to the cut.
 * @param request the body of the request, in the same protocol: decoders look up tool names in it
 */
export function answerText(
  protocol: Codec,
  request: Uint8Array,
  { status, headers, body }: CompleteAnswer,
): string | undefined {
  if (status >= 400) return undefined;
  const streamed = (headers.get('content-type') ?? '').includes('event-stream');
  try {
    const context = contextOf(protocol, request);
    const blocks = streamed
      ? streamedBlocks(protocol, context, body)
      : protocol.decodeReply(parseJson(new TextDecoder().decode(body)), context).blocks;
    const text = blocks.flatMap(textsOf).join('\n\n');
    const more = text.length - ANSWER_CHARACTERS;
    if (more <= 0) return text;
    return `${text.slice(0, ANSWER_CHARACTERS)}\n… ${more} more characters`;
  } catch {
    return undefined;
  }
}

function contextOf(protocol: Codec, request: Uint8Array): UpstreamContext {
  const target = { provider: '', model: '', protocol: protocol.name, profile: NO_PROFILE };
  let sent = EMPTY;
  try {
    sent = protocol.decodeRequest(tryParse(new TextDecoder().decode(request)) ?? null);
  } catch {
    // The answer can be decoded without its request.
  }
  return { sent, target, notes: new Notes() };
}

function streamedBlocks(
  protocol: Codec,
  context: UpstreamContext,
  body: Uint8Array,
): readonly Block[] {
  const parser = new SseParser();
  const decoder = protocol.decodeStream(context);
  const fold = new ReplyBuilder();
  for (const frame of [...parser.push(body), ...parser.end()]) {
    for (const event of decoder.push(frame)) fold.push(event);
  }
  for (const event of decoder.end()) fold.push(event);
  return fold.reply.blocks;
}

function textsOf(block: Block): readonly string[] {
  switch (block.type) {
    case 'text':
    case 'refusal':
      return block.text === '' ? [] : [block.text];
    case 'tool-call':
      return [`→ ${block.name} ${block.input}`];
    default:
      return [];
  }
}
