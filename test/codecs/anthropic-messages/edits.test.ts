/** Edits of a Messages request: unedited parts stay byte for byte. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { editNode, withParts } from '../../../src/conversation/edit.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { wrapSeal } from '../../../src/conversation/seal.ts';
import type { Block, Conversation } from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { target } from './recorded.ts';

describe('edits of a request in its own protocol', () => {
  const body = {
    model: 'm',
    max_tokens: 4000,
    system: [
      { type: 'text', text: 'x-anthropic-billing-header: v=1;' },
      { type: 'text', text: 's', cache_control: { type: 'ephemeral' } },
    ],
    messages: [
      { role: 'user', content: 'go' },
      { role: 'system', content: 'careful', output_config: { effort: 'low' } },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 't', signature: 'sig' },
          {
            type: 'tool_use',
            id: 'a',
            name: 'bash',
            input: { command: 'ls' },
            caller: { type: 'direct' },
          },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'a',
            content: 'out',
            is_error: false,
            cache_control: { type: 'ephemeral', ttl: '1h' },
          },
        ],
      },
    ],
    tools: [
      { type: 'bash_20250124', name: 'bash' },
      { type: 'web_search_20250305', name: 'web_search', max_uses: 8 },
    ],
    thinking: { type: 'enabled', budget_tokens: 2000 },
    metadata: { user_id: 'u' },
    output_config: { effort: 'high', task_budget: 5 },
    context_management: {
      edits: [
        { type: 'clear_thinking_20251015', keep: 'all' },
        { type: 'clear_tool_uses_20250919' },
      ],
    },
  };
  const request = anthropicMessages.decodeRequest(body);
  const encode = (conversation: Conversation) =>
    JSON.parse(
      JSON.stringify(
        anthropicMessages.encodeRequest(conversation, target({ model: 'm' }), new Notes()),
      ),
    );

  test('the billing header has no text, client-run tools have a schema, hosted ones a name', () => {
    expect(request.system[0]).toMatchObject({ type: 'opaque', name: 'billing_header' });
    expect(request.system[0]).not.toHaveProperty('text');
    expect(request.tools[0]).toMatchObject({
      type: 'function',
      name: 'bash',
      schema: { type: 'object' },
    });
    expect(request.tools[1]).toMatchObject({
      type: 'hosted',
      name: 'web_search',
      kind: 'web_search_20250305',
      options: { max_uses: 8 },
    });
  });

  test('after a changed result everything else stays unchanged', () => {
    const turns = request.turns.map((turn, i) => {
      if (i !== 3) return turn;
      const block = turn.blocks[0] as Extract<Block, { type: 'tool-result' }>;
      return editNode(turn, {
        blocks: [editNode(block, { content: [{ type: 'text', text: 'short' }] })],
      });
    });
    const expected = structuredClone(body) as typeof body;
    (expected.messages[3]!.content as JsonObject[])[0] = {
      type: 'tool_result',
      tool_use_id: 'a',
      content: 'short',
      is_error: false,
      cache_control: { type: 'ephemeral', ttl: '1h' },
    };
    expect(encode(withParts(request, { turns }))).toEqual(expected);
  });

  test('a changed call keeps its fields without a common meaning', () => {
    const turns = request.turns.map((turn) =>
      editNode(turn, {
        blocks: turn.blocks.map((block) =>
          block.type === 'tool-call' ? editNode(block, { id: 'b' }) : block,
        ),
      }),
    );
    const messages = encode(withParts(request, { turns })).messages;
    expect(messages[2].content[1]).toEqual({
      type: 'tool_use',
      id: 'b',
      name: 'bash',
      input: { command: 'ls' },
      caller: { type: 'direct' },
    });
    expect(messages[0]).toEqual(body.messages[0]);
  });

  test('thinking removed in the open loop removes its parameter and the dependent context edit', () => {
    const turns = request.turns.map((turn) =>
      turn.role === 'assistant' ? editNode(turn, { blocks: turn.blocks.slice(1) }) : turn,
    );
    const sent = encode(withParts(request, { turns }));
    expect(sent.thinking).toBeUndefined();
    expect(sent.context_management).toEqual({ edits: [{ type: 'clear_tool_uses_20250919' }] });
  });

  test('after a changed setting the others stay unchanged', () => {
    const sent = encode(
      withParts(request, {
        settings: { ...request.settings, temperature: 1, maxTokens: 5000, user: 'v' },
      }),
    );
    expect(sent).toEqual({ ...body, max_tokens: 5000, temperature: 1, metadata: { user_id: 'v' } });
    const off = encode(
      withParts(request, { settings: { ...request.settings, reasoning: undefined } }),
    );
    expect(off.thinking).toBeUndefined();
    expect(off.output_config).toEqual({ task_budget: 5 });
  });

  test('without tools there is no tool choice', () => {
    const chosen = anthropicMessages.decodeRequest({
      ...body,
      tool_choice: { type: 'tool', name: 'web_search' },
    });
    expect(chosen.settings.toolChoice).toEqual({
      type: 'tool',
      name: 'web_search',
      kind: 'hosted',
    });
    const sent = encode(withParts(chosen, { tools: [] }));
    expect(sent).not.toHaveProperty('tools');
    expect(sent).not.toHaveProperty('tool_choice');
  });

  test("thinking with another vendor's seal never reaches a Messages upstream", () => {
    const signature = wrapSeal({
      protocol: 'openai-responses',
      provider: 'oa',
      kind: 'encrypted',
      value: 'gAAA',
    });
    const carried = anthropicMessages.decodeRequest({
      ...body,
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 't', signature },
            { type: 'text', text: 'x' },
          ],
        },
        { role: 'user', content: 'on' },
      ],
    });
    expect(carried.turns[1]!.blocks[0]).toMatchObject({
      type: 'reasoning',
      sealed: { protocol: 'openai-responses', provider: 'oa', value: 'gAAA' },
    });
    const notes = new Notes();
    const sent = anthropicMessages.encodeRequest(carried, target(), notes);
    expect(JSON.stringify(sent)).not.toContain('hopgate1.');
    expect((sent.messages as readonly JsonObject[])[1]).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'x' }],
    });
    expect(notes.summary()).toBe('reasoning_dropped');
  });
});
