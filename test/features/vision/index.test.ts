/** Images for models without vision: described once, always with the same text, and never a broken session. */

import { afterAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { DESCRIPTIONS } from '../../../src/features/vision/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import { context, dataUrl, eyes, PNG, png, signal } from './support.ts';

const image = (name: string) => ({ type: 'image_url', image_url: { url: dataUrl(name) } });
const text = (message: string) => ({ type: 'text', text: message });
const user = (...content: object[]) => ({ role: 'user', content });
const chat = (...messages: object[]) => ({ model: 'm', messages }) as unknown as Json;
const described = (message: string) =>
  `[An image, put into words because this model cannot see:\n${message}\n]`;

describe('what goes out', () => {
  test('Chat: a description in the place of the image, and the user question with it', async () => {
    const { send, requests } = eyes();
    const { wire, notes } = await send('openai-chat', chat(user(text('What is it?'), image('a'))));
    expect(JSON.stringify(wire)).not.toContain('image_url');
    expect(wire.messages).toEqual([
      { role: 'user', content: [text('What is it?'), text(described('seen 1'))] },
    ]);
    expect(notes).toEqual(['image as a description']);
    const { target, conversation } = requests[0]!;
    expect(target).toBe('v/eyes');
    expect(conversation).toMatchObject({ tools: [], system: [], settings: { stream: false } });
    const [textPart, shown] = conversation.turns[0]!.blocks;
    expect(textPart).toMatchObject({ text: expect.stringContaining('What is it?') });
    expect(shown).toEqual({
      type: 'media',
      media: 'image',
      source: { type: 'base64', mediaType: 'image/png', data: png('a') },
    });
  });

  test('Messages: images of users and of tool results, cache marks kept', async () => {
    const source = { type: 'base64', media_type: 'image/jpeg', data: PNG };
    const cached = { type: 'image', source, cache_control: { type: 'ephemeral' } };
    const other = { type: 'image', source: { ...source, data: png('b') } };
    const body = {
      model: 'm',
      max_tokens: 9,
      messages: [
        { role: 'user', content: [text('Look'), cached] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'shot', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: [other] }] },
      ],
    };
    const { send, requests } = eyes();
    const { wire } = await send('anthropic-messages', body as unknown as Json);
    const [first, , third] = wire.messages as unknown as { content: JsonObject[] }[];
    expect(first!.content[1]).toEqual({
      type: 'text',
      text: expect.stringMatching(/seen [12]/),
      cache_control: { type: 'ephemeral' },
    } as never);
    expect(JSON.stringify(third)).toContain('seen');
    expect(JSON.stringify(wire)).not.toContain('base64');
    // The type comes from the bytes, not from the client's declaration.
    const types = requests.map(({ conversation }) => conversation.turns[0]!.blocks[1]);
    expect(types[0]).toMatchObject({ source: { mediaType: 'image/png' } });
  });

  test('Responses: images of messages and of function outputs', async () => {
    const body = {
      model: 'm',
      input: [
        { role: 'user', content: [{ type: 'input_image', image_url: dataUrl('a') }] },
        { role: 'user', content: [{ type: 'input_text', text: 'And this?' }] },
        { type: 'function_call', call_id: 'c', name: 'shot', arguments: '{}' },
        {
          type: 'function_call_output',
          call_id: 'c',
          output: [{ type: 'input_image', image_url: dataUrl('b') }],
        },
      ],
    };
    const { send, requests } = eyes();
    const { wire, notes } = await send('openai-responses', body as unknown as Json);
    expect(JSON.stringify(wire)).not.toContain('input_image');
    expect(JSON.stringify(wire)).toContain('seen 1');
    expect(notes).toHaveLength(2);
    // The image came before its text.
    const question = requests[0]!.conversation.turns[0]!.blocks[0];
    expect(question).toMatchObject({ text: expect.stringContaining('And this?') });
  });

  test('a target with vision, and a request without images, stay unchanged', async () => {
    const { send, requests, feature } = eyes();
    const body = chat(user(text('hi'), image('a')));
    for (const images of [true, undefined]) {
      const { sent, conversation } = await send(
        'openai-chat',
        body,
        context('openai-chat', { images }),
      );
      expect(sent).toBe(conversation);
    }
    const plain = await send('openai-chat', chat(user(text('hi'))));
    expect(plain.sent).toBe(plain.conversation);
    expect(requests).toEqual([]);
    const looks = (value: unknown, images?: boolean) =>
      feature.mayApply!(Buffer.from(JSON.stringify(value)), context('openai-chat', { images }));
    expect(looks(body, false)).toBe(true);
    expect(looks(body, true)).toBe(false);
    expect(looks(chat(user(text('hi'))), false)).toBe(false);
    expect(looks({ input: 'x', previous_response_id: 'resp_1' }, false)).toBe(true);
    expect(looks({ source: { type: 'base64' }, type: 'image' }, false)).toBe(true);
    expect(looks({ type: 'input_image' }, false)).toBe(true);
  });

  test('a second pass changes nothing more', async () => {
    const { send, feature } = eyes();
    const { sent } = await send('openai-chat', chat(user(image('a'))));
    expect(feature.request!(sent, context())).toBe(sent);
  });
});

describe('each image once', () => {
  test('each image is described once, for all later questions in any order', async () => {
    const turn = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 5 }), async (turns) => {
        const { send, requests } = eyes();
        const messages: object[] = [];
        let before: readonly Json[] = [];
        for (const [index, names] of turns.entries()) {
          messages.push(user(text(`question ${index}`), ...names.map(image)));
          const { wire } = await send('openai-chat', chat(...messages));
          const now = wire.messages as readonly Json[];
          // The sent text stays unchanged, byte for byte.
          expect(JSON.stringify(now.slice(0, before.length))).toBe(JSON.stringify(before));
          before = now;
          messages.push({ role: 'assistant', content: `answer ${index}` });
        }
        expect(requests).toHaveLength(new Set(turns.flat()).size);
      }),
      { numRuns: 60 },
    );
  });

  test('parallel requests share one description', async () => {
    const { send, requests } = eyes({}, async () => {
      await Bun.sleep(30);
      return 'slowly';
    });
    const body = chat(user(image('a'), image('a')));
    const all = await Promise.all([1, 2, 3].map(() => send('openai-chat', body)));
    expect(requests).toHaveLength(1);
    expect(new Set(all.map(({ wire }) => JSON.stringify(wire))).size).toBe(1);
  });

  test('the number of parallel descriptions is limited', async () => {
    let now = 0;
    let most = 0;
    const { send, requests } = eyes({ parallel: 3 }, async () => {
      most = Math.max(most, ++now);
      await Bun.sleep(5);
      now--;
      return 'x';
    });
    await send('openai-chat', chat(user(...Array.from({ length: 20 }, (_, i) => image(`${i}`)))));
    expect([requests.length, most]).toEqual([20, 3]);
  });
});

describe('failures', () => {
  const body = chat(user(text('What?'), image('a'), image('b')));

  test('without a vision model a placeholder is sent, with a note', async () => {
    const { send, requests } = eyes({ settings: () => undefined });
    const { wire, notes } = await send('openai-chat', body);
    expect(wire.messages).toEqual([
      {
        role: 'user',
        content: [text('What?'), text('[image not shown]'), text('[image not shown]')],
      },
    ]);
    expect(notes).toEqual(['image as a mention', 'image as a mention']);
    expect(requests).toEqual([]);
  });

  test.each([
    ['rejects', () => Promise.reject(new Error('no credit'))],
    ['says nothing', () => Promise.resolve(' \n')],
    ['hangs', () => new Promise<string>(() => {})],
  ])(
    'a model that %s costs the image, not the session, and leaves no description',
    async (_what, answer) => {
      const descriptions = memoryRoom(DESCRIPTIONS);
      const store = () => descriptions;
      const settings = () => ({ target: 'v/eyes', timeoutMs: 50 });
      const failing = eyes({ store, settings }, answer);
      const { wire } = await failing.send('openai-chat', body);
      expect(JSON.stringify(wire)).toContain('[image not shown]');
      expect(failing.events).toHaveLength(2);
      expect(failing.events[0]).toStartWith('vision.failed: ');
      // The next try of the same request does not wait for it again.
      await failing.send('openai-chat', body);
      expect(failing.requests).toHaveLength(2);
      // A working model is not held up.
      const { notes } = await eyes({ store }).send('openai-chat', body);
      expect(notes).toEqual(['image as a description', 'image as a description']);
    },
  );

  test('one failed image does not affect the others', async () => {
    const { send } = eyes({}, async (_target, { turns }) => {
      const shown = JSON.stringify(turns);
      if (shown.includes(png('a'))) throw new Error('no');
      return 'seen';
    });
    const { notes } = await send('openai-chat', body);
    expect(notes).toEqual(['image as a mention', 'image as a description']);
  });

  test('a client that leaves ends the wait; the description continues for its next try', async () => {
    let done: (text: string) => void = () => {};
    const { feature, send, requests } = eyes({}, () => new Promise((resolve) => (done = resolve)));
    const { openaiChat } = await import('../../../src/codecs/openai-chat/index.ts');
    const abort = new AbortController();
    const one = chat(user(image('a')));
    const waiting = feature.prepare!(openaiChat.decodeRequest(one), context(), abort.signal);
    await Bun.sleep(5);
    abort.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    done('late but seen');
    await Bun.sleep(5);
    const { wire } = await send('openai-chat', one);
    expect(JSON.stringify(wire)).toContain('late but seen');
    expect(requests).toHaveLength(1);
  });

  test('a text model that is configured as its own vision model is not asked', async () => {
    const { send, requests } = eyes({ settings: () => ({ target: 'p/text', timeoutMs: 100 }) });
    const { notes } = await send('openai-chat', body);
    expect([requests.length, notes[0]]).toEqual([0, 'image as a mention']);
  });

  test('a file that only a vendor can open becomes a placeholder', async () => {
    const { send, requests } = eyes();
    const input = [{ role: 'user', content: [{ type: 'input_image', file_id: 'file_1' }] }];
    const { notes } = await send('openai-responses', { model: 'm', input });
    expect([requests.length, notes]).toEqual([0, ['image as a mention']]);
  });
});

describe('images by address', () => {
  let hits: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url);
      hits.push(pathname);
      if (pathname === '/page')
        return new Response('<p>', { headers: { 'content-type': 'text/html' } });
      if (pathname === '/inside') return Response.redirect('http://169.254.169.254/', 302);
      return new Response(Buffer.from(PNG, 'base64'), {
        headers: { 'content-type': 'image/jpeg' },
      });
    },
  });
  afterAll(() => server.stop(true));
  const at = (path: string, host = '127.0.0.1') =>
    chat(user({ type: 'image_url', image_url: { url: `http://${host}:${server.port}${path}` } }));
  const allow = [`127.0.0.1:${server.port}`];

  test('are fetched once by the gateway and sent as bytes', async () => {
    const { send, requests } = eyes({ allow });
    await send('openai-chat', at('/pic'));
    await send('openai-chat', at('/pic'));
    expect(hits).toEqual(['/pic']);
    expect(requests).toHaveLength(1);
    expect(requests[0]!.conversation.turns[0]!.blocks[1]).toMatchObject({
      source: { type: 'base64', mediaType: 'image/png', data: PNG },
    });
  });

  test.each(['/pic', '/inside', '/page'])(
    '%s in the response, or no image, is not forwarded',
    async (path) => {
      hits = [];
      const listed = path === '/pic' ? [] : allow;
      const { send, requests, events } = eyes({ allow: listed });
      const { notes } = await send('openai-chat', at(path));
      expect([requests.length, notes]).toEqual([0, ['image as a mention']]);
      expect(events[0]).toStartWith('vision.failed: ');
      if (path === '/pic') expect(hits).toEqual([]);
    },
  );

  test.each(['localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', 'rebind.test'])(
    'no request goes to %s',
    async (host) => {
      hits = [];
      const { send, requests } = eyes({ resolve: async () => ['127.0.0.1'] });
      await send('openai-chat', at('/pic', host));
      expect([hits, requests]).toEqual([[], []]);
    },
  );
});

test('prepare never rejects because of a conversation’s content', async () => {
  const { feature } = eyes({}, async () => {
    throw 'a string';
  });
  const { openaiChat } = await import('../../../src/codecs/openai-chat/index.ts');
  const conversation = openaiChat.decodeRequest(
    chat(user({ type: 'image_url', image_url: { url: 'not a url' } }, image('x'))),
  );
  await feature.prepare!(conversation, context(), signal());
});
