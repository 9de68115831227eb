/** The exchanges that the samples show: the client's request and the vendor's answer. Everything is made up. */

import type { JsonObject } from '../../src/lib/json/json.ts';
import { call, type Raw, refuse, type Step, say } from '../support/fake-upstream/index.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

export interface Case {
  /** `req_<ms>_<word>`. */
  readonly id: string;
  readonly entry: ProtocolName;
  readonly about: string;
  readonly body: string;
  readonly steps: readonly Step[];
}

const chunk = (delta: JsonObject, finish: string | null = null, more: JsonObject = {}) =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_790_000_000,
    model: 'deepseek-chat',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  })}\n\n`;

/** A model that writes its call as text, in chunks that split the markup. */
const leak: Raw = {
  raw: [
    chunk({ role: 'assistant', content: 'I will look.\n\n<｜DS' }),
    chunk({ content: 'ML｜function_calls>\n<｜DSML｜invoke name="read' }),
    chunk({ content: '_file">\n<｜DSML｜parameter name="path" string="true">notes' }),
    chunk({
      content: '.txt</｜DSML｜parameter>\n<｜DSML｜parameter name="lines" string="false">20',
    }),
    chunk({ content: '</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜func' }),
    chunk({ content: 'tion_calls>' }),
    chunk({}, 'stop', { usage: { prompt_tokens: 90, completion_tokens: 40, total_tokens: 130 } }),
    'data: [DONE]\n\n',
  ].join(''),
};

/** The envelope that some gateways put around a tool result, with many unneeded fields. */
const record = JSON.stringify({
  version: 'rcc.tool.v1',
  tool: { name: 'shell', call_id: 'call_2' },
  executed: { command: ['ls', '-R', 'orchard'] },
  result: {
    exit_code: 0,
    success: true,
    stdout: Array.from({ length: 220 }, (_, i) => `orchard/row-${i}/tree-${i * 7}.txt  ripe`).join(
      '\n',
    ),
  },
});

const shell = (id: string, command: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'shell', arguments: JSON.stringify({ command }) },
});

const read = (id: string, path: string): JsonObject => ({
  type: 'tool_use',
  id,
  name: 'Read',
  input: { path },
});
const result = (id: string, content: string): JsonObject => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
});

export const CASES: readonly Case[] = [
  {
    id: 'req_1790000000006_search',
    entry: 'anthropic-messages',
    about: 'Two searches run by the gateway between three hops, one stream for the client.',
    body: JSON.stringify({
      model: 'glm-4.7',
      max_tokens: 1024,
      stream: true,
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }],
      messages: [{ role: 'user', content: 'When is high tide in Norden, and is it spring tide?' }],
    }),
    steps: [
      call({ name: 'web_search', arguments: { query: 'high tide Norden' } }),
      call({ name: 'web_search', arguments: { query: 'spring tide this week' } }),
      say('High tide is at noon [1], and it is spring tide [3].'),
    ],
  },
  {
    id: 'req_1790000000007_glm500',
    entry: 'openai-chat',
    about:
      'A huge record of an executed tool as the last result; the vendor fails at it with 500 Operation failed.',
    body: JSON.stringify({
      model: 'glm-4.7',
      messages: [
        { role: 'system', content: 'You are a coding agent.' },
        { role: 'user', content: 'What grows in the orchard?' },
        { role: 'assistant', content: null, tool_calls: [shell('call_1', 'ls')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'orchard\nshed' },
        { role: 'assistant', content: null, tool_calls: [shell('call_2', 'ls -R orchard')] },
        { role: 'tool', tool_call_id: 'call_2', content: record },
      ],
      tools: [
        {
          type: 'function',
          function: {
            name: 'shell',
            description: 'Runs a command.',
            parameters: {
              type: 'object',
              properties: { command: { type: 'string' } },
              required: ['command'],
            },
          },
        },
      ],
    }),
    steps: [refuse(500, {}, { error: { code: '500', message: 'Operation failed' } })],
  },
  {
    id: 'req_1790000000008_order',
    entry: 'anthropic-messages',
    about:
      'Results behind the user’s next words, one of them late and one missing: paired before the vendor sees them.',
    body: JSON.stringify({
      model: 'claude-sonnet-4-5',
      max_tokens: 512,
      stream: true,
      tools: [
        {
          name: 'Read',
          description: 'Reads a file',
          input_schema: {
            type: 'object',
            properties: { path: { type: 'string' } },
            required: ['path'],
          },
        },
      ],
      messages: [
        { role: 'user', content: 'Compare a.txt, b.txt and c.txt.' },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'Reading all three.' },
            read('toolu_a', 'a.txt'),
            read('toolu_b', 'b.txt'),
            read('toolu_c', 'c.txt'),
          ],
        },
        {
          role: 'user',
          content: [{ type: 'text', text: 'Hurry, please.' }, result('toolu_b', 'pears')],
        },
        { role: 'user', content: [result('toolu_a', 'apples')] },
      ],
    }),
    steps: [say('a.txt has apples, b.txt has pears; c.txt could not be read.')],
  },
  {
    id: 'req_1790000000009_dsml',
    entry: 'openai-chat',
    about: 'A call that leaked into the text as DSML comes out as the call it is.',
    body: JSON.stringify({
      model: 'deepseek-chat',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'What do my notes say?' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'read_file',
            description: 'Reads a file.',
            parameters: {
              type: 'object',
              properties: { path: { type: 'string' }, lines: { type: 'integer' } },
              required: ['path'],
            },
          },
        },
      ],
    }),
    steps: [leak],
  },
];
