/** Cursor sends bodies of Responses to `/chat/completions`: they are read, and answered as Chat answers. */

import { afterEach, describe, expect, test } from 'bun:test';
import {
  call,
  type FakeUpstream,
  type Protocol,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

let upstream: FakeUpstream | undefined;
let gateway: InProcess | undefined;
afterEach(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

async function start(protocol: Protocol) {
  upstream = await startFakeUpstream({ protocols: [protocol], models: ['m1'] });
  gateway = await startInProcess({
    providers: {
      vendor: {
        protocol,
        base_url: upstream.baseUrl(protocol),
        models: ['m1'],
        keys: ['sk-upstream'],
      },
    },
    routes: [{ to: ['vendor/m1'] }],
  });
  return { upstream, url: gateway.url };
}

const post = (url: string, body: unknown) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const PATCH = '*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch';

const SHELL = {
  type: 'function',
  name: 'Shell',
  description: 'Runs a command.',
  parameters: { type: 'object', properties: { command: { type: 'string' } } },
};
const APPLY_PATCH = {
  type: 'custom',
  name: 'ApplyPatch',
  description: 'Edits files.',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
};

/** What the threads at forum.cursor.com show of a request, shortened. */
const cursor = (more: object = {}) => ({
  model: 'm1',
  input: [
    { role: 'system', content: 'You are an agent in an editor.' },
    { role: 'user', content: [{ type: 'input_text', text: 'List the files.' }] },
  ],
  tools: [SHELL, APPLY_PATCH],
  tool_choice: 'auto',
  store: false,
  include: ['reasoning.encrypted_content'],
  reasoning: { effort: 'medium', summary: 'auto' },
  text: { verbosity: 'low' },
  stream: true,
  stream_options: { include_usage: true },
  ...more,
});

/** The chunks of a stream of Chat. */
const chunksOf = (text: string): { choices: { delta: Delta; finish_reason: string | null }[] }[] =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)));

interface Delta {
  readonly content?: string;
  readonly tool_calls?: {
    readonly id?: string;
    readonly type?: string;
    readonly function?: { readonly name?: string; readonly arguments?: string };
  }[];
}

const textOf = (text: string) =>
  chunksOf(text)
    .map(({ choices }) => choices[0]?.delta.content ?? '')
    .join('');

const VENDORS: readonly Protocol[] = ['openai-chat', 'openai-responses', 'anthropic-messages'];

describe.each(VENDORS)('towards %s', (protocol) => {
  test('a stream of Chat answers, and the vendor gets what it takes', async () => {
    const { upstream, url } = await start(protocol);
    upstream.answerWith(() => say('Two files.'));
    const answer = await post(url, cursor());
    expect(answer.headers.get('x-hopgate-notes')).toContain('responses_form_read');
    const text = await answer.text();
    expect(textOf(text)).toBe('Two files.');
    expect(text).toContain('"usage":{');
    expect(text).toContain('data: [DONE]');
    expect(upstream.refusals).toEqual([]);
    const [request] = upstream.modelRequests;
    expect(JSON.stringify(request!.body)).toContain('List the files.');
    expect(JSON.stringify(request!.body)).toContain('You are an agent in an editor.');
  });

  test('a whole answer is one of Chat', async () => {
    const { upstream, url } = await start(protocol);
    upstream.answerWith(() => say('Two files.'));
    const answer = await post(url, cursor({ stream: false, stream_options: undefined }));
    expect(await answer.json()).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: 'Two files.' }, finish_reason: 'stop' }],
    });
  });

  test('a plain text as input, with instructions', async () => {
    const { upstream, url } = await start(protocol);
    upstream.answerWith(() => say('Hi.'));
    const answer = await post(url, { model: 'm1', instructions: 'Be kind.', input: 'Hello' });
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'Hi.' } }] });
    const sent = JSON.stringify(upstream.modelRequests[0]!.body);
    expect([sent.includes('Be kind.'), sent.includes('Hello')]).toEqual([true, true]);
  });

  test('a freeform tool is called as a function whose arguments are the text, and comes back', async () => {
    const { upstream, url } = await start(protocol);
    let asked = 0;
    upstream.answerWith(() => {
      asked++;
      // Elsewhere the tool is a function with one string.
      if (asked > 1) return say('Done.');
      return protocol === 'anthropic-messages'
        ? call({ name: 'ApplyPatch', arguments: { input: PATCH } })
        : { parts: [{ kind: 'custom', name: 'ApplyPatch', input: PATCH }] };
    });
    const first = chunksOf(await (await post(url, cursor())).text());
    const calls = first.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    expect(calls[0]).toMatchObject({ type: 'function', function: { name: 'ApplyPatch' } });
    expect(calls.map((one) => one.function?.arguments ?? '').join('')).toBe(PATCH);
    expect(first.some(({ choices }) => choices[0]?.finish_reason === 'tool_calls')).toBe(true);

    const history = (item: object, result: object) =>
      cursor({ input: [...cursor().input, item, result] });
    const id = calls[0]!.id!;
    for (const body of [
      history(
        { type: 'function_call', call_id: id, name: 'ApplyPatch', arguments: PATCH },
        { type: 'function_call_output', call_id: id, output: 'Patched.' },
      ),
      history(
        { type: 'custom_tool_call', call_id: id, name: 'ApplyPatch', input: PATCH },
        { type: 'custom_tool_call_output', call_id: id, output: 'Patched.' },
      ),
    ]) {
      expect(textOf(await (await post(url, body)).text())).toBe('Done.');
      const sent = JSON.stringify(upstream.modelRequests.at(-1)!.body);
      expect([sent.includes('Begin Patch'), sent.includes('Patched.')]).toEqual([true, true]);
    }
    expect(upstream.refusals).toEqual([]);
  });

  test('messages of Chat with a freeform tool of Responses among the tools of Chat', async () => {
    const { upstream, url } = await start(protocol);
    upstream.answerWith(() => say('Done.'));
    const { name, description, parameters } = SHELL;
    const answer = await post(url, {
      model: 'm1',
      messages: [
        { role: 'user', content: 'Edit.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'ApplyPatch', arguments: PATCH } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'Patched.' },
      ],
      tools: [{ type: 'function', function: { name, description, parameters } }, APPLY_PATCH],
    });
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'Done.' } }] });
    expect(upstream.refusals).toEqual([]);
  });

  test('a large one is read as well', async () => {
    const { upstream, url } = await start(protocol);
    upstream.answerWith(() => say('Done.'));
    const input = Array.from({ length: 300 }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: `${i} ${'word '.repeat(100)}`,
    }));
    const answer = await post(url, cursor({ input: [...input, { role: 'user', content: 'Go.' }] }));
    expect(textOf(await answer.text())).toBe('Done.');
    expect(upstream.refusals).toEqual([]);
  });
});

test('what is neither is refused by the name of the field that Chat needs', async () => {
  const { url } = await start('openai-chat');
  for (const [body, param] of [
    [{ model: 'm1' }, 'messages'],
    [{ model: 'm1', tools: [APPLY_PATCH] }, 'messages'],
    [{ model: 'm1', input: 7 }, 'input'],
  ] as const) {
    const answer = await post(url, body);
    expect(answer.status).toBe(400);
    const { error } = (await answer.json()) as { error: { param: string } };
    expect(error.param).toBe(param);
  }
});
