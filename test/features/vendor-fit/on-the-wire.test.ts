/** The bytes that leave the gateway: the client's own while no vendor fact applies, the vendor's spelling otherwise. */

import { describe, expect, test } from 'bun:test';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Target } from '../../../src/conversation/target.ts';
import { SHORT_RESULTS, toolResults } from '../../../src/features/tool-results/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import { ClientRequest } from '../../../src/gateway/client-request.ts';
import { prepare } from '../../../src/gateway/prepare.ts';
import { wholeBytes } from '../../../src/lib/bytes/byte-list.ts';
import { Abort } from '../../../src/lib/loop/abort.ts';
import { memoryRoom } from '../../support/entries.ts';
import { PROTOCOLS, targetOf } from './vendor.ts';

const LEDGER = memoryRoom(SHORT_RESULTS);

async function bytesFor(text: string, target: Target) {
  const notes = new Notes();
  const protocol = PROTOCOLS[target.protocol];
  const prepared = await prepare({
    request: new ClientRequest(protocol, new TextEncoder().encode(text)),
    target,
    protocol,
    features: [toolResults({ limit: 20, ledger: LEDGER }), vendorFit()],
    notes,
    hop: { number: 1 },
    abort: new Abort(),
  });
  const body = new TextDecoder().decode(wholeBytes(prepared.body));
  return { body, notes: notes.summary() };
}

describe('on the wire', () => {
  test('odd spaces, numbers and keys stay in a body that needs no change', async () => {
    const text = '{ "messages":[{"role":"user","content":"a"}],"x_own": 1.0,  "model":"glm-4.7" }';
    for (const vendor of ['glm', 'deepseek', 'mistral', 'openai-chat', 'vllm']) {
      const sent = await bytesFor(text, targetOf(vendor, 'glm-4.7'));
      expect(sent).toEqual({ body: text, notes: '' });
    }
  });

  test('one fact is applied, and everything else keeps its place and value', async () => {
    const text =
      '{"x_own":1.5,"model":"glm-4.7","max_completion_tokens":5,"messages":[{"role":"user","content":"a","name":"n"}]}';
    const sent = await bytesFor(text, targetOf('glm', 'glm-4.7'));
    expect(JSON.parse(sent.body)).toEqual({
      x_own: 1.5,
      model: 'glm-4.7',
      max_tokens: 5,
      messages: [{ role: 'user', content: 'a', name: 'n' }],
    });
    expect(sent.notes).toBe('parameter_mapped');
  });

  test('both passes together: short results, fitted choices, each change with its note', async () => {
    const record = JSON.stringify({
      version: 'rcc.tool.v1',
      executed: { command: ['ls'] },
      result: { exit_code: 0, output: 'a long list of many files' },
    });
    const call = { id: 'c1', type: 'function', function: { name: 'ls', arguments: '{}' } };
    const text = JSON.stringify({
      model: 'glm-4.7',
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: record },
      ],
      tools: [{ type: 'function', function: { name: 'ls', parameters: { type: 'object' } } }],
      tool_choice: 'required',
      temperature: 0,
    });
    const sent = await bytesFor(text, targetOf('glm', 'glm-4.7'));
    const body = JSON.parse(sent.body);
    expect(body.messages[1].tool_calls).toEqual([call]);
    expect(body.messages[2].content).toBe('执行成功\na long list of ...(truncated)');
    expect([body.tool_choice, body.temperature]).toEqual(['auto', 0.01]);
    expect(sent.notes).toBe('tool_text_shortened,parameter_mapped=2,content_bridged');
  });
});
