/** The prompt in a body of each protocol, piece by piece, as a vendor reads it. */

import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import { type Piece, type Prompt, pieceOf } from './caches.ts';

const list = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? (value as readonly Json[]).filter(isObject) : [];

/** A text alone is a list with one part. */
const parts = (value: Json | undefined, type = 'text'): readonly JsonObject[] =>
  typeof value === 'string' ? [{ type, text: value }] : list(value);

/** The piece of a part with its mark, which is no part of the prompt. */
function marked(part: JsonObject, head: unknown, turn = false): Piece {
  const { cache_control, prompt_cache_breakpoint, ...rest } = part;
  const mark = cache_control ?? prompt_cache_breakpoint;
  const { type, text, content } = rest;
  if (mark !== undefined && (String(type).includes('thinking') || text === '')) {
    throw new Error('cache_control cannot be set for empty text blocks or thinking');
  }
  const plain = content === undefined ? rest : { ...rest, content: unmarked(content) };
  return pieceOf([head, plain], { mark: isObject(mark) ? mark : undefined, turn });
}

const unmarked = (value: Json): Json =>
  typeof value === 'string'
    ? [{ type: 'text', text: value }]
    : list(value).map(({ cache_control: _, ...rest }) => rest);

export const PROMPTS: Readonly<Record<ProtocolName, (body: JsonObject) => Prompt>> = {
  'anthropic-messages': (body) => {
    // Another choice of tools, or other thinking, is another prompt from the messages on.
    const mode = [body.tool_choice, body.thinking];
    return {
      pieces: [
        ...list(body.tools).map((tool) => marked(tool, 'tool')),
        ...parts(body.system).map((part) => marked(part, 'system')),
        ...list(body.messages).flatMap(({ role, content }) =>
          parts(content).map((part) => marked(part, [role, mode])),
        ),
      ],
    };
  },
  'openai-chat': (body) => ({
    key: typeof body.prompt_cache_key === 'string' ? body.prompt_cache_key : undefined,
    pieces: [
      ...list(body.tools).map((tool) => marked(tool, 'tool')),
      ...list(body.messages).flatMap(({ content, tool_calls, ...message }) => {
        const asked = message.role === 'user' || message.role === 'tool';
        const said = parts(content);
        return [
          ...said.map((part, i) => marked(part, message, asked && i === said.length - 1)),
          ...list(tool_calls).map((call) => pieceOf(call)),
        ];
      }),
    ],
  }),
  'openai-responses': (body) => ({
    key: typeof body.prompt_cache_key === 'string' ? body.prompt_cache_key : undefined,
    pieces: [
      ...list(body.tools).map((tool) => marked(tool, 'tool')),
      ...(body.instructions === undefined ? [] : [pieceOf(body.instructions)]),
      ...list(body.input).flatMap(({ content, ...item }) => {
        const asked = item.role === 'user' || String(item.type).endsWith('_output');
        const said = parts(content, 'input_text');
        if (said.length === 0) return [pieceOf(item, { turn: asked })];
        return said.map((part, i) => marked(part, item, asked && i === said.length - 1));
      }),
    ],
  }),
  'google-gemini': (body) => ({
    pieces: [
      ...list(body.tools).map((tool) => pieceOf(tool)),
      ...(body.systemInstruction === undefined ? [] : [pieceOf(body.systemInstruction)]),
      ...list(body.contents).flatMap(({ role, parts: said }) =>
        list(said).map((part) => pieceOf([role, part])),
      ),
    ],
  }),
};
