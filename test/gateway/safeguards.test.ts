/** Claude Code's `safeguards` and the flag that they need reach a vendor together, or neither does. */

import { afterEach, describe, expect, test } from 'bun:test';
import { decode, encode } from '../codecs/anthropic-messages/scenes.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const FLAG = 'dangerous-tool-use-2026-09-03';
const OTHER = 'interleaved-thinking-2025-05-14';
const SAFEGUARDS = [{ type: 'dangerous_tool_use', classifier_context: { v: 1 } }];
const RESULTS = [{ type: 'dangerous_tool_use', status: { type: 'available', tool_uses: {} } }];

let gateway: InProcess | undefined;
let vendor: ReturnType<typeof Bun.serve> | undefined;
afterEach(async () => {
  await gateway?.stop();
  vendor?.stop(true);
});

interface Seen {
  readonly flags: readonly string[];
  readonly body: Record<string, unknown>;
}

const frames = [
  {
    type: 'message_start',
    message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi.' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null, safeguard_results: RESULTS },
    usage: { output_tokens: 1 },
  },
  { type: 'message_stop' },
];

/** A vendor of Messages that answers with verdicts, behind a gateway. */
async function start(provider: object = {}, more: object = {}) {
  const seen: Seen[] = [];
  vendor = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as Seen['body'];
      const flags = request.headers.get('anthropic-beta')?.split(',') ?? [];
      seen.push({ flags: flags.map((flag) => flag.trim()), body });
      if (body.stream !== true) {
        return Response.json({
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [{ type: 'text', text: 'Hi.' }],
          stop_reason: 'end_turn',
          usage: { input_tokens: 1, output_tokens: 1 },
          safeguard_results: RESULTS,
        });
      }
      const text = frames.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`);
      return new Response(text.join(''), { headers: { 'content-type': 'text/event-stream' } });
    },
  });
  gateway = await startInProcess({
    providers: {
      v: {
        protocol: 'anthropic-messages',
        base_url: `http://127.0.0.1:${vendor.port}`,
        models: ['m'],
        keys: ['k'],
        ...provider,
      },
    },
    ...more,
  });
  const { url } = gateway;
  const ask = (flags: string | undefined, body: object) =>
    fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(flags === undefined ? {} : { 'anthropic-beta': flags }),
      },
      body: JSON.stringify({
        model: 'm',
        max_tokens: 10,
        messages: [{ role: 'user', content: 'Hello' }],
        ...body,
      }),
    });
  return { seen, ask };
}

const LONG = { system: 'word '.repeat(20_000) };

describe.each([
  ['small', {}],
  ['large', LONG],
])('a %s body', (_, more) => {
  test.each([
    ['with the flag', `${OTHER},${FLAG}`, [OTHER, FLAG], false],
    ['with another flag', OTHER, [OTHER, FLAG], true],
    ['without any flag', undefined, [FLAG], true],
  ])('%s arrives with it', async (_name, flags, expected, noted) => {
    const { seen, ask } = await start();
    const answer = await ask(flags, { safeguards: SAFEGUARDS, ...more });
    expect(((await answer.json()) as Record<string, unknown>).safeguard_results).toEqual(RESULTS);
    expect(seen[0]!.flags).toEqual(expected);
    expect(seen[0]!.body.safeguards).toEqual(SAFEGUARDS);
    const notes = answer.headers.get('x-hopgate-notes') ?? '';
    expect(notes.includes('parameter_defaulted')).toBe(noted);
  });
});

test('the flag alone goes on as it came, as Claude Code sends it outside auto mode', async () => {
  const { seen, ask } = await start();
  await ask(`${OTHER}, ${FLAG}`, {});
  expect(seen[0]!.flags).toEqual([OTHER, FLAG]);
});

test.each([
  ['a profile without the flag', { betas: [OTHER] }],
  ['a profile that drops the field', { dropParams: ['safeguards'] }],
])('%s: neither arrives, and both are told', async (_, profile) => {
  const { seen, ask } = await start({ profile: 'own' }, { profiles: { own: profile } });
  const answer = await ask(`${OTHER},${FLAG}`, { safeguards: SAFEGUARDS });
  expect(answer.status).toBe(200);
  expect(seen[0]!.flags).toEqual([OTHER]);
  expect(seen[0]!.body.safeguards).toBeUndefined();
  expect(answer.headers.get('x-hopgate-notes')).toContain('parameter_dropped=2');
});

test('verdicts come through a stream that is decoded and written again', () => {
  const { sent } = encode(decode(frames));
  expect(sent.find(({ type }) => type === 'message_delta')).toMatchObject({
    delta: { safeguard_results: RESULTS },
  });
});
