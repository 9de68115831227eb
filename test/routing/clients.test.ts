/** Captured requests of real agents get the expected category. */

import { describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import type { ProtocolName } from '../../src/conversation/types.ts';
import { isObject, type Json } from '../../src/lib/json/json.ts';
import { requestFacts } from '../../src/routing/index.ts';
import { PROVIDERS, table } from './support.ts';

const captures = new URL('../../../shared/captures/', import.meta.url);
const protocols: Readonly<Record<string, Codec>> = {
  v1_messages: anthropicMessages,
  v1_chat_completions: openaiChat,
  v1_responses: openaiResponses,
};

async function category(file: string, model?: string): Promise<string> {
  const { body, bytes } = (await Bun.file(new URL(file, captures)).json()) as {
    body: Json;
    bytes: number;
  };
  const protocol = protocols[/\d+-(\w+)\.json$/.exec(file)![1]!]!;
  if (!isObject(body)) throw new Error(`${file} holds no request`);
  const facts = requestFacts({
    model: model ?? String(body.model),
    protocol: protocol.name as ProtocolName,
    stream: true,
    bytes,
    headers: new Headers(),
    affinity: '',
    time: 0,
    request: { conversation: protocol.decodeRequest(body) },
  });
  return table(PROVIDERS).classify(facts);
}

const there = existsSync(captures);

describe(there ? 'captured requests' : 'SKIPPED: the captured requests are not here', () => {
  const cases: [string, string, string][] = [
    [
      'the title of a session (Claude Code)',
      'claude-code/tui-with-title-request/01-v1_messages.json',
      'background',
    ],
    ['its main request', 'claude-code/tui-with-title-request/02-v1_messages.json', 'thinking'],
    [
      'a search on its behalf, old names',
      'claude-code/websearch-claude-sonnet-4-5/03-v1_messages.json',
      'websearch',
    ],
    ['a model of the small kind', 'claude-code/model-haiku/01-v1_messages.json', 'background'],
    ['coding without thinking (Cline)', 'cline/openai/01-v1_chat_completions.json', 'coding'],
    ['a picture read by a tool (Claude Code)', 'claude-code/image/02-v1_messages.json', 'vision'],
    [
      'a search on its behalf, other names',
      'claude-code/websearch-glm-4.6/03-v1_messages.json',
      'websearch',
    ],
    [
      'a session that says nothing of effort (Codex)',
      'codex/basic-gpt-5.1-codex-unknown-name/01-v1_responses.json',
      'coding',
    ],
    ['a session with an effort (pi)', 'pi/chat/01-v1_chat_completions.json', 'thinking'],
    ['a session (opencode)', 'opencode/chat/02-v1_chat_completions.json', 'coding'],
    ['a session (Qwen)', 'qwen/chat/01-v1_chat_completions.json', 'coding'],
    [
      'a title (opencode)',
      'opencode/fault-openai-compatible-400ctx-at-1-basic/01-v1_chat_completions.json',
      'background',
    ],
  ];
  test.skipIf(!there).each(cases)('%s', async (_, file, wanted) => {
    expect(await category(file)).toBe(wanted);
  });
});
