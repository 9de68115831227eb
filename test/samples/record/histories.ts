/** Agents' histories in each protocol with one part that a vendor refuses. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { encryptedFor } from '../../support/fake-upstream/seals.ts';

/** The envelope of an older gateway around a result; GLM answers it with 500 Operation failed. */
export const envelope = (bytes: number): string => {
  const inner = 'total 12\\n-rw-r--r-- 1 dev dev 4096 file.ts\\n'.repeat(Math.ceil(bytes / 48));
  return JSON.stringify({
    version: 'rcc.tool.v1',
    tool: { name: 'shell', call_id: 'call_29' },
    executed: { command: ['ls', '-la'] },
    result: {
      exit_code: 0,
      success: true,
      stdout: inner.slice(0, bytes),
      output: { metadata: {} },
    },
  });
};

const tools = (wrap: (name: string) => Json) => ['shell', 'read_file', 'update_plan'].map(wrap);
const schema: JsonObject = { type: 'object', properties: { command: { type: 'string' } } };

/**
 * A history of `messages` messages: instructions, a task, then rounds of call and result; the last result is `last`.
 */
export function chatHistory(messages = 60, last = envelope(41_000)): JsonObject {
  const list: Json[] = [
    { role: 'system', content: 'You are a coding agent. '.repeat(40) },
    {
      role: 'user',
      content: 'Please list the files of this project and tell me what it is about.',
    },
  ];
  for (let i = 1; list.length < messages - 1; i++) {
    const id = `call_${i}`;
    list.push({
      role: 'assistant',
      content: null,
      tool_calls: [
        { id, type: 'function', function: { name: 'shell', arguments: `{"command":"ls ${i}"}` } },
      ],
    });
    const final = list.length === messages - 1;
    list.push({
      role: 'tool',
      tool_call_id: id,
      content: final ? last : `file-${i}.ts\n`.repeat(20 + i),
    });
  }
  if (list.length < messages) list.push({ role: 'user', content: 'Go on.' });
  return {
    model: 'glm-4.7',
    messages: list,
    tools: tools((name) => ({
      type: 'function',
      function: { name, description: `Runs ${name}. `.repeat(20), parameters: schema },
    })),
    tool_choice: 'auto',
    temperature: 0.7,
    stream: false,
  };
}

export function messagesHistory(rounds: number, last: string): JsonObject {
  const list: Json[] = [
    { role: 'user', content: 'Please look around in this project for me, and thoroughly.' },
  ];
  for (let i = 1; i <= rounds; i++) {
    list.push({
      role: 'assistant',
      content: [
        { type: 'text', text: `Step ${i}.` },
        { type: 'tool_use', id: `toolu_${i}a`, name: 'shell', input: { command: `ls ${i}` } },
        { type: 'tool_use', id: `toolu_${i}b`, name: 'read_file', input: { path: `f${i}` } },
      ],
    });
    list.push({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: `toolu_${i}a`, content: `file-${i}.ts\n`.repeat(30) },
        {
          type: 'tool_result',
          tool_use_id: `toolu_${i}b`,
          content: i === rounds ? last : 'fine '.repeat(30),
        },
      ],
    });
  }
  return {
    model: 'claude-x',
    max_tokens: 1000,
    system: 'You are a coding agent. '.repeat(30),
    messages: list,
    tools: tools((name) => ({
      name,
      description: `Runs ${name}. `.repeat(20),
      input_schema: schema,
    })),
    stream: true,
  };
}

export function responsesHistory(rounds: number, last: string): JsonObject {
  const input: Json[] = [
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'Please look around in this project for me, and thoroughly.' },
      ],
    },
  ];
  for (let i = 1; i <= rounds; i++) {
    input.push({
      type: 'reasoning',
      id: `rs_${i}`,
      summary: [],
      encrypted_content: encryptedFor(`step ${i}`),
    });
    input.push({
      type: 'function_call',
      call_id: `call_${i}`,
      name: 'shell',
      arguments: `{"command":"ls ${i}"}`,
    });
    input.push({
      type: 'function_call_output',
      call_id: `call_${i}`,
      output: i === rounds ? last : `file-${i}.ts\n`.repeat(30),
    });
  }
  return {
    model: 'gpt-x',
    instructions: 'You are a coding agent. '.repeat(30),
    input,
    tools: tools((name) => ({
      type: 'function',
      name,
      description: `Runs ${name}. `.repeat(20),
      parameters: schema,
      strict: null,
    })),
    store: false,
  };
}
