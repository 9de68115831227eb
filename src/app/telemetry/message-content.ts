/** Message content as span attributes: opt-in, bounded, and masked like samples. */

import type { Config } from '../../config/config.ts';
import { secretsIn } from '../../config/secret.ts';
import { Notes } from '../../conversation/notes.ts';
import { NO_PROFILE } from '../../conversation/profile-facts.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { Summary } from '../../gateway/types.ts';
import { type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { runAtOnce } from '../../lib/loop/steps.ts';
import { secretSpellings } from '../../lib/text/secret-spellings.ts';
import { readReply } from '../../samples/decode/decode-body.ts';
import { maskText } from '../../samples/mask/body-mask.ts';
import type { TracedExchange } from '../../telemetry/otel/exchange-spans.ts';
import { CODECS } from '../codecs.ts';
import { mendBody } from '../responses/mend-body.ts';

/** Characters of one text. */
const MAX_TEXT = 8192;
/** Characters of all texts of one attribute; of messages the last ones stay. */
const MAX_CONTENT = 65_536;
/** Looked at behind the end of a text, so that a secret across it is masked whole. */
const BEHIND = 4096;

/** The settings that limit samples also limit spans. */
export interface ContentRules {
  /** Routes of which nothing is to be recorded. `samples.mode` is about files, and off where a collector has them instead. */
  readonly unrecorded: ReadonlySet<string>;
  /** Known secrets in all their spellings. */
  readonly literals: readonly string[];
  readonly withoutTexts: boolean;
  readonly withoutImages: boolean;
}

export function contentRules(config: Config): ContentRules {
  const { redact } = config.samples;
  const unrecorded = config.routes.filter(({ samples }) => samples === 'off');
  return {
    unrecorded: new Set(unrecorded.map(({ name }) => name)),
    literals: secretsIn(config)
      .flatMap((secret) => secretSpellings(secret))
      .sort((a, b) => b.length - a.length),
    withoutTexts: redact.includes('texts'),
    withoutImages: redact.includes('images'),
  };
}

/**
 * As the JSON schemas of the conventions want it
 * (opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-input-messages.json and …-output-messages.json).
 */
export function messageContent(summary: Summary, rules: ContentRules): TracedExchange['call'] {
  const { exchange, route, finish } = summary;
  if (rules.withoutTexts || (route !== undefined && rules.unrecorded.has(route))) return {};
  const conversation = conversationOf(summary);
  if (conversation === undefined) return {};
  const write = new Parts(rules);
  const system = write.parts(conversation.system);
  const answer = write.parts(answerOf(exchange, conversation));
  return {
    systemInstructions: system.length === 0 ? undefined : JSON.stringify(system),
    inputMessages: JSON.stringify(write.messages(conversation.turns)),
    outputMessages:
      answer.length === 0
        ? undefined
        : JSON.stringify([{ role: 'assistant', parts: answer, finish_reason: finish ?? 'error' }]),
  };
}

function conversationOf({ request }: Summary): Conversation | undefined {
  try {
    return request?.conversation;
  } catch {
    return undefined;
  }
}

function answerOf({ trace, protocol }: Summary['exchange'], sent: Conversation): readonly Block[] {
  const answer = trace?.answer;
  if (answer === undefined || answer.status >= 400) return [];
  const body = {
    bytes: Buffer.concat(answer.chunks),
    sse: answer.sse,
    protocol: protocol.name,
    stageInfo: { stage: 'client.response', file: '', bytes: 0, status: answer.status },
  };
  const target = { provider: '', model: '', protocol: protocol.name, profile: NO_PROFILE };
  const context = { sent, target, notes: new Notes() };
  const { reply } = runAtOnce(readReply(body, context, { protocols: CODECS, mend: mendBody }));
  return reply.blocks;
}

class Parts {
  constructor(private readonly rules: ContentRules) {}

  /** The last messages that fit. */
  messages(turns: readonly Turn[]): readonly Json[] {
    const out: Json[] = [];
    let left = MAX_CONTENT;
    for (const { role, blocks } of turns.toReversed()) {
      const parts = this.parts(blocks);
      left -= JSON.stringify(parts).length;
      if (left < 0 && out.length > 0) break;
      const results = blocks.length > 0 && blocks.every(({ type }) => type === 'tool-result');
      out.push({ role: results ? 'tool' : role, parts });
    }
    return out.reverse();
  }

  /** The first parts that fit. */
  parts(blocks: readonly Block[]): Json[] {
    const out: Json[] = [];
    let left = MAX_CONTENT;
    for (const block of blocks) {
      const part = this.#part(block);
      if (part === undefined) continue;
      left -= JSON.stringify(part).length;
      if (left < 0 && out.length > 0) break;
      out.push(part);
    }
    return out;
  }

  #part(block: Block): JsonObject | undefined {
    switch (block.type) {
      case 'text':
      case 'refusal':
        return { type: 'text', content: this.#text(block.text) };
      case 'reasoning':
        return block.text === ''
          ? undefined
          : { type: 'reasoning', content: this.#text(block.text) };
      case 'tool-call': {
        const input = this.#text(block.input);
        const { id, name } = block;
        return { type: 'tool_call', id, name, arguments: tryParse(input) ?? input };
      }
      case 'tool-result': {
        const texts = block.content.flatMap((one) => (one.type === 'text' ? [one.text] : []));
        return {
          type: 'tool_call_response',
          id: block.callId,
          response: this.#text(texts.join('\n')),
        };
      }
      case 'media': {
        const { media, source } = block;
        // Bytes of images do not belong into a span.
        if (source.type !== 'url' || this.rules.withoutImages) return { type: media };
        return { type: 'uri', modality: media, uri: this.#text(source.url) };
      }
      case 'opaque':
        return block.text === undefined
          ? { type: block.name }
          : { type: 'text', content: this.#text(block.text) };
    }
  }

  #text(text: string): string {
    const masked = maskText(text.slice(0, MAX_TEXT + BEHIND), this.rules.literals);
    if (masked.length <= MAX_TEXT) return masked;
    return `${masked.slice(0, MAX_TEXT)}… (${text.length} characters)`;
  }
}
