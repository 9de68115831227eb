/** What a tool of one vendor has found is read by the next one, in every protocol: else the model works blindly. */

import { expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';

const messages = (...content: readonly object[]): JsonObject => ({
  model: 'm',
  max_tokens: 9,
  messages: [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: [...content, { type: 'text', text: 'Done.' }] as JsonObject[] },
    { role: 'user', content: 'more' },
  ],
});
const responses = (item: object): JsonObject => ({
  model: 'm',
  input: [
    { role: 'user', content: 'go' },
    item as JsonObject,
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] },
    { role: 'user', content: 'more' },
  ],
});
const use = (name: string) => ({ type: 'server_tool_use', id: 'srvtoolu_1', name, input: {} });
const of = (type: string, content: unknown) => ({ type, tool_use_id: 'srvtoolu_1', content });

const HISTORIES: readonly (readonly [what: string, client: ProtocolName, body: JsonObject])[] = [
  [
    'a web search',
    'anthropic-messages',
    messages(
      use('web_search'),
      of('web_search_tool_result', [
        {
          type: 'web_search_result',
          url: 'https://a.test/FOUND',
          title: 'A',
          encrypted_content: 'x',
        },
      ]),
    ),
  ],
  [
    'code that ran',
    'anthropic-messages',
    messages(
      use('bash_code_execution'),
      of('bash_code_execution_tool_result', {
        type: 'bash_code_execution_result',
        stdout: 'FOUND',
        stderr: '',
        return_code: 0,
        content: [],
      }),
    ),
  ],
  [
    'an MCP tool',
    'anthropic-messages',
    messages(
      { type: 'mcp_tool_use', id: 'srvtoolu_1', name: 'echo', server_name: 's', input: {} },
      {
        ...of('mcp_tool_result', [{ type: 'text', text: 'FOUND' }]),
        is_error: false,
      },
    ),
  ],
  [
    'a tool search',
    'anthropic-messages',
    messages(
      use('tool_search_tool_regex'),
      of('tool_search_tool_result', {
        type: 'tool_search_tool_search_result',
        tool_references: [{ type: 'tool_reference', tool_name: 'FOUND' }],
      }),
    ),
  ],
  [
    'an MCP tool',
    'openai-responses',
    responses({
      type: 'mcp_call',
      id: 'mcp_1',
      server_label: 's',
      name: 'echo',
      arguments: '{}',
      output: 'FOUND',
    }),
  ],
  [
    'code that ran',
    'openai-responses',
    responses({
      type: 'code_interpreter_call',
      id: 'ci_1',
      status: 'completed',
      container_id: 'c',
      code: 'print()',
      outputs: [{ type: 'logs', logs: 'FOUND' }],
    }),
  ],
  [
    'a search of files',
    'openai-responses',
    responses({
      type: 'file_search_call',
      id: 'fs_1',
      status: 'completed',
      queries: ['q'],
      results: [{ file_id: 'f', filename: 'a.md', text: 'FOUND', score: 1 }],
    }),
  ],
];

const CASES = HISTORIES.flatMap(([what, client, body]) =>
  (Object.keys(CODECS) as ProtocolName[])
    .filter((vendor) => vendor !== client)
    .map((vendor) => [what, client, vendor, body] as const),
);

test.each(CASES)('%s of a %s client onto %s', (_what, client, protocol, body) => {
  const notes = new Notes();
  const conversation = CODECS[client].decodeRequest(body);
  const target = { provider: 'other', model: 'm', protocol, profile: NO_PROFILE };
  const sent = JSON.stringify(CODECS[protocol].encodeRequest(conversation, target, notes));
  expect(sent).toContain('FOUND');
  // Beside what the model said, not within it.
  expect(sent).not.toContain('FOUNDDone');
  expect(sent).toContain('Done.');
  expect(notes.all.map(({ name }) => name)).toContain('content_bridged');
});
