/** A tool history that no decoder can read is mended on the live path, and only such a one. */

import { describe, expect, test } from 'bun:test';
import { repairBody } from '../../src/features/tool-pairing/index.ts';
import { ClientRequest } from '../../src/gateway/client-request.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { PROTOCOLS } from './scripted.ts';

const request = (protocol: ProtocolName, body: unknown) =>
  new ClientRequest(PROTOCOLS[protocol], new TextEncoder().encode(JSON.stringify(body)), {
    mend: repairBody,
  });

const call = { type: 'tool_use', id: 7, name: 'Read', input: {} };
const result = { type: 'tool_result', tool_use_id: 7, content: 'one' };
const messages = [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: [call, null] },
  { role: 'user', content: [result] },
];

describe('a body that cannot be read as it is', () => {
  test('ids that are numbers and blocks that are null are mended, and said so', () => {
    const asked = request('anthropic-messages', { model: 'm', max_tokens: 9, messages });
    expect(asked.repairs.map(({ name }) => name)).toEqual(['malformed_content_mended']);
    const blocks = asked.conversation.turns.flatMap((turn) => turn.blocks);
    const ids = blocks.flatMap((block) =>
      block.type === 'tool-call' ? [block.id] : block.type === 'tool-result' ? [block.callId] : [],
    );
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
  });

  test('a sound history is not touched', () => {
    const sound = messages.map((message) =>
      message.role === 'user' && typeof message.content === 'string'
        ? message
        : JSON.parse(JSON.stringify(message).replaceAll('7', '"toolu_7"').replace(',null', '')),
    );
    const asked = request('anthropic-messages', { model: 'm', max_tokens: 9, messages: sound });
    expect(asked.repairs).toEqual([]);
  });

  test('without a tool history a malformed field stays a 400 that names it', () => {
    const body = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 5 }] };
    expect(() => request('anthropic-messages', body)).toThrow(/messages\.0\.content/);
  });
});
