/** Spaces and groups that talk at the same time: no data crosses from one to another. */

import { Database } from 'bun:sqlite';
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { call, type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { leakyVendor, type Plan } from '../support/leaky-vendor.ts';
import { stopAll } from '../support/tool-servers.ts';
import { until } from '../support/until.ts';
import { type AppReply, ask, CLIENTS, remember, remembered } from './chat-app-clients.ts';

setDefaultTimeout(120_000);

let upstream: FakeUpstream;
let gateway: Gateway;
/** A configuration whose keys are bound to spaces. */
let keyed: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  [gateway, keyed] = await Promise.all([
    startGateway(threeProviders(upstream, { samples: { mode: 'all' } })),
    startGateway(
      threeProviders(upstream, {
        memory: { limits: { key_bytes: 2500 } },
        auth: {
          keys: [
            { name: 'ann', key: 'key-of-ann', spaces: ['ann-*'] },
            { name: 'bob', key: 'key-of-bob', spaces: ['bob-*'] },
            { name: 'all', key: 'key-of-all' },
          ],
        },
      }),
    ),
  ]);
}, 120_000);
afterEach(() => upstream.clear());
afterAll(() => stopAll(gateway, keyed, upstream));

/** A group with a unique word in its memory, its messages and its members. */
const groupOf = (n: number, run: string) => ({
  secret: `秘密${run}${String.fromCodePoint(0x4e00 + 97 * n)}${n}x`,
  space: `g${run}-${n}`,
  n,
});
type Group = ReturnType<typeof groupOf>;

const hopgateOf = ({ secret, space }: Group, recall: string, capture: boolean) => ({
  conversation: {
    mode: 'group',
    self: { id: 'me', name: '我' },
    others: `甲: ${secret}`,
    mentions: [],
  },
  memory: { space, recall, capture },
  tool_events: true,
});

describe('isolation as a property', () => {
  test('groups that say the same words at the same time see only their own memories', async () => {
    let run = 0;
    const turn = fc.record({
      group: fc.integer({ min: 0, max: 2 }),
      client: fc.constantFrom(...CLIENTS),
      recall: fc.constantFrom('always', 'auto'),
      capture: fc.boolean(),
      stream: fc.boolean(),
      leaks: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 4, maxLength: 12 }), async (turns) => {
        upstream.clear();
        const groups = [0, 1, 2].map((n) => groupOf(n, `r${run}`));
        run++;
        for (const { space, secret } of groups)
          await remember(gateway, space, [`记得吗 ${secret}`]);
        // The model asks for everything it can get and repeats nothing, so all replies are equal.
        upstream.answerWith(
          leakyVendor(
            ({ text }): Plan =>
              text.includes('"第二"') || text.includes('\\"第二\\"')
                ? { text: '好的，我知道了。' }
                : {
                    calls: [
                      { name: 'recall_memory', arguments: { query: '第二' } },
                      { name: 'recall_memory', arguments: { query: '记得吗 秘密' } },
                      { name: 'get_other_members_messages', arguments: {} },
                    ],
                  },
            { leaks: (n) => turns[n % turns.length]!.leaks },
          ),
        );
        const messages = ['记得吗', '好的，我知道了。', '记得吗'];
        const replies: AppReply[] = await Promise.all(
          turns.map(({ group, client, recall, capture, stream }) =>
            ask(gateway, {
              client,
              messages: messages,
              stream,
              hopgate: hopgateOf(groups[group]!, recall, capture),
            }),
          ),
        );
        for (const [at, { raw, status, text }] of replies.entries()) {
          expect(status).toBe(200);
          expect(text).toContain('好的，我知道了。');
          const own = groups[turns[at]!.group]!;
          for (const other of groups) if (other !== own) expect(raw).not.toContain(other.secret);
          expect(raw).toContain(own.secret);
        }
        // No request to the vendor mixes two groups.
        for (const { body } of upstream.modelRequests) {
          const text = JSON.stringify(body);
          const received = groups.filter(({ secret }) => text.includes(secret));
          expect(received.length).toBeLessThanOrEqual(1);
        }
        for (const { space, secret } of groups) {
          const events = JSON.stringify(await remembered(gateway, space, 1));
          for (const other of groups) {
            if (other.space !== space) expect(events).not.toContain(other.secret);
          }
          expect(events).toContain(secret);
        }
      }),
      { numRuns: 12 },
    );
  });
});

describe('spaces bound to keys', () => {
  const asking = (client: (typeof CLIENTS)[number], key: string, space: string) =>
    ask(keyed, {
      client,
      messages: ['你好'],
      stream: true,
      headers: { authorization: `Bearer ${key}` },
      hopgate: { memory: { space, recall: 'always', capture: true } },
    });

  for (const client of CLIENTS) {
    test(`${client}: another key's space is a 403 in the client's protocol, and no vendor gets the request`, async () => {
      upstream.answerWith(() => say('好'));
      const refused = await asking(client, 'key-of-bob', 'ann-1');
      expect(refused.status).toBe(403);
      const body = JSON.parse(refused.raw) as { error: { type: string; message: string } };
      expect(body.error.message).toContain('memory space');
      expect(body.error.type).toBe(
        client === 'anthropic-messages' ? 'permission_error' : 'invalid_request_error',
      );
      expect(upstream.modelRequests).toEqual([]);
      expect((await asking(client, 'key-of-ann', 'ann-1')).status).toBe(200);
      expect((await asking(client, 'key-of-all', 'ann-1')).status).toBe(200);
      expect((await asking(client, 'wrong', 'ann-1')).status).toBe(401);
      // A header cannot override the body.
      const headers = { authorization: 'Bearer key-of-bob', 'x-hopgate-memory-space': 'ann-1' };
      expect((await ask(keyed, { client, messages: ['你好'], headers })).status).toBe(403);
    });
  }

  test('what a chat captures is in the share of its key', async () => {
    upstream.answerWith(() => say('ok'));
    const parts = async (space: string) => {
      const headers = { authorization: 'Bearer key-of-all' };
      const answer = await fetch(`${keyed.url}/v1/memory/${space}/events`, { headers });
      const { events } = (await answer.json()) as { events: readonly { text: string }[] };
      return events.filter(({ text }) => text.startsWith('word')).length;
    };
    const sayMuch = (key: string, space: string) =>
      ask(keyed, {
        client: 'openai-chat',
        messages: [Array.from({ length: 600 }, (_, i) => `word${i}`).join(' ')],
        stream: false,
        headers: { authorization: `Bearer ${key}` },
        hopgate: { memory: { space, recall: 'off', capture: true } },
      });
    await sayMuch('key-of-ann', 'ann-full');
    await until(async () => (await parts('ann-full')) > 0);
    expect(await parts('ann-full')).toBe(1);
    await sayMuch('key-of-all', 'ann-full');
    // Of three parts of 2000 characters and less a share takes one; the first one is known by now.
    await until(async () => (await parts('ann-full')) > 1);
    expect(await parts('ann-full')).toBe(2);
    await sayMuch('key-of-bob', 'bob-full');
    await until(async () => (await parts('bob-full')) > 0);
    expect(await parts('bob-full')).toBe(1);
  });

  test('memories of one key’s chat stay in that key’s space', async () => {
    upstream.answerWith(() => say('收到'));
    for (const who of ['ann', 'bob']) {
      await ask(keyed, {
        client: 'openai-chat',
        messages: [`我是${who}`],
        stream: false,
        headers: { authorization: `Bearer key-of-${who}` },
        hopgate: { memory: { space: `${who}-chat`, recall: 'off', capture: true } },
      });
    }
    const admin = { authorization: 'Bearer key-of-all' };
    const events = await remembered(keyed, 'ann-chat', 2, admin);
    expect(events.map(({ text }) => text).sort()).toEqual(['我是ann', '收到']);
  });
});

describe('a wrong field', () => {
  for (const client of CLIENTS) {
    test(`${client}: a wrong field is a 400 in the client's protocol that names it`, async () => {
      for (const [hopgate, headers, name] of [
        [{ memory: { space: 's', recall: 'maybe' } }, {}, 'hopgate.memory.recall'],
        [
          { conversation: { mode: 'group', self: 1, mentoins: [] } },
          {},
          'hopgate.conversation.mentoins',
        ],
        [
          undefined,
          { 'x-hopgate-memory-space': 's', 'x-hopgate-max-recalls': 'x' },
          'x-hopgate-max-recalls',
        ],
        [undefined, { 'x-hopgate-extension': 'e30x' }, 'x-hopgate-extension'],
      ] as const) {
        const reply = await ask(gateway, { client, messages: ['你好'], hopgate, headers });
        expect(reply.status).toBe(400);
        const { error } = JSON.parse(reply.raw) as { error: Record<string, string> };
        expect(error.message).toContain(name);
        expect(error.type).toBe('invalid_request_error');
        if (client !== 'anthropic-messages') expect(error.param).toBe(name);
      }
      expect(upstream.modelRequests).toEqual([]);
    });
  }
});

describe('extension headers', () => {
  for (const client of CLIENTS) {
    test(`${client}: headers do what the body would, and are not forwarded`, async () => {
      const space = `头 ${client}`;
      await remember(gateway, space, ['猫叫豆豆']);
      upstream.answerWith(leakyVendor(({ results }) => ({ text: results.join('|') })));
      const conversation = {
        mode: 'group',
        self: { id: 'a', name: '小明' },
        others: '乙: 喵',
        mentions: ['a'],
        locale: 'en',
      };
      const reply = await ask(gateway, {
        client,
        messages: ['猫叫什么'],
        headers: {
          'x-hopgate-extension': Buffer.from(JSON.stringify({ conversation })).toString(
            'base64url',
          ),
          'x-hopgate-memory-space': encodeURIComponent(space),
          'x-hopgate-recall': 'always',
          'x-hopgate-max-recalls': '2',
          'x-hopgate-tool-events': 'true',
        },
      });
      expect(reply.text).toContain('乙: 喵|You were mentioned and need to speak|{"events":[');
      expect(reply.text).toContain('猫叫豆豆');
      expect(reply.events).toHaveLength(6);
      const { headers, bytes } = upstream.modelRequests[0]!;
      expect(Object.keys(headers).filter((name) => name.startsWith('x-hopgate'))).toEqual([]);
      const sent = Buffer.from(bytes).toString();
      expect(sent).not.toContain('hopgate');
      expect(sent).toContain('at most 2 times');
    });
  }
});

/** Files of the gateway's state that hold a text, including database rows, compressed or not. */
function holding(text: string): readonly string[] {
  const state = join(gateway.home, 'state');
  const files = readdirSync(state, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return files.filter(
    (file) => readFileSync(file).includes(text) || (file.endsWith('.db') && rowsHold(file, text)),
  );
}

function rowsHold(file: string, text: string): boolean {
  const database = new Database(file, { readonly: true });
  try {
    const tables = database
      .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .all();
    return tables.some(({ name }) =>
      database
        .query(`SELECT * FROM "${name}"`)
        .values()
        .flat()
        .some((value) => unpacked(value).includes(text)),
    );
  } finally {
    database.close();
  }
}

function unpacked(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!(value instanceof Uint8Array)) return '';
  try {
    return Buffer.from(Bun.zstdDecompressSync(value)).toString();
  } catch {
    return Buffer.from(value).toString();
  }
}

describe('a turn that continues with the client’s own calls', () => {
  const OWN = {
    type: 'function',
    function: { name: 'roll_dice', parameters: { type: 'object', properties: {} } },
  };

  test('recalled memories return with the client’s results, and appear nowhere else', async () => {
    await remember(gateway, 'mixed', ['骰子上次是六点']);
    const both = call(
      { name: 'recall_memory', arguments: { query: '骰子' }, id: 'call_rec0000000000000000001' },
      { name: 'roll_dice', arguments: {}, id: 'call_own0000000000000000001' },
    );
    upstream.enqueue(both, say('四点，上次是六点。'));
    const hopgate = { memory: { space: 'mixed', recall: 'auto' } };
    const first = await ask(gateway, {
      client: 'openai-chat',
      messages: ['掷骰子'],
      hopgate,
      more: { tools: [OWN] },
    });
    expect(first.calls).toEqual(['call_own0000000000000000001']);
    expect(first.raw).not.toContain('recall_memory');
    const messages = [
      { role: 'user', content: '掷骰子' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_own0000000000000000001',
            type: 'function',
            function: { name: 'roll_dice', arguments: '{}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_own0000000000000000001', content: '4' },
    ];
    const go = (space: string) =>
      ask(gateway, {
        client: 'openai-chat',
        messages: [],
        hopgate: { memory: { space, recall: 'auto' } },
        more: { tools: [OWN], messages },
      });
    await go('mixed');
    expect(JSON.stringify(upstream.modelRequests.at(-1)!.body)).toContain('骰子上次是六点');
    upstream.enqueue(say('四点。'));
    await go('mixed2');
    expect(JSON.stringify(upstream.modelRequests.at(-1)!.body)).not.toContain('骰子上次是六点');
    // An erased space also disappears from turns in progress.
    await fetch(`${gateway.url}/v1/memory/mixed`, { method: 'DELETE' });
    upstream.enqueue(say('四点。'));
    await go('mixed');
    expect(JSON.stringify(upstream.modelRequests.at(-1)!.body)).not.toContain('骰子上次是六点');
  });

  test('recalled memories do not reach the gateway’s state on disk', async () => {
    await remember(gateway, 'disk', ['磁盘金丝雀一二三']);
    for (const client of CLIENTS) {
      for (const stream of [true, false]) {
        upstream.enqueue(
          call({ name: 'recall_memory', arguments: { query: '金丝雀' } }),
          say('这是一个很长的回答，'.repeat(12)),
        );
        const hopgate = { memory: { space: 'disk', recall: 'always' }, tool_events: true };
        const reply = await ask(gateway, { client, messages: ['说说金丝雀'], stream, hopgate });
        expect(reply.raw).toContain('磁盘金丝雀');
      }
    }
    await Bun.sleep(300);
    // The search does find the text where it may be, so it is able to fail.
    expect(holding('磁盘金丝雀').map((file) => basename(file))).toContain('memory.db');
    expect((await fetch(`${gateway.url}/v1/memory/disk`, { method: 'DELETE' })).ok).toBe(true);
    await Bun.sleep(300);
    expect(holding('磁盘金丝雀')).toEqual([]);
  });
});
