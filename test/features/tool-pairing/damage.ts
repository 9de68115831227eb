/** Damage that clients, vendors and compactions do to histories; seeded. */

import type { Json } from '../../../src/lib/json/json.ts';
import { genuineSignature, type Mutable, type Random } from './histories.ts';

export type Damage = (list: Mutable[], random: Random) => void;

interface Spot {
  readonly message: number;
  readonly index: number;
  readonly block: Mutable;
}

const isRecord = (value: unknown): value is Mutable =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const listOf = (message: Mutable | undefined): Json[] => {
  if (message === undefined) return [];
  if (typeof message.content === 'string') {
    message.content = message.content === '' ? [] : [{ type: 'text', text: message.content }];
  }
  if (!Array.isArray(message.content)) message.content = [];
  return message.content as Json[];
};

function find(messages: Mutable[], type: RegExp): Spot[] {
  return messages.flatMap((message, at) =>
    isRecord(message) && Array.isArray(message.content)
      ? (message.content as Json[]).flatMap((block, index) =>
          isRecord(block) && type.test(String(block.type)) ? [{ message: at, index, block }] : [],
        )
      : [],
  );
}

const results = (messages: Mutable[]) => find(messages, /^tool_result$/);
const calls = (messages: Mutable[]) => find(messages, /^(server_)?tool_use$/);

function take(messages: Mutable[], spot: Spot): void {
  const list = messages[spot.message]!.content as Json[];
  const at = list.indexOf(spot.block);
  if (at >= 0) list.splice(at, 1);
}

const callOf = (messages: Mutable[], result: Spot) =>
  calls(messages).find(({ block }) => block.id === result.block.tool_use_id);

let serial = 0;
const text = (): Mutable => ({ type: 'text', text: `T9${++serial}. said` });

/** Changes one result, if there is one. */
const onResult =
  (change: (messages: Mutable[], result: Spot, random: Random) => void): Damage =>
  (messages, random) => {
    const found = results(messages);
    if (found.length > 0) change(messages, random.pick(found), random);
  };

const onCall =
  (change: (messages: Mutable[], call: Spot, random: Random) => void): Damage =>
  (messages, random) => {
    const found = calls(messages);
    if (found.length > 0) change(messages, random.pick(found), random);
  };

const onMessage =
  (role: string, change: (messages: Mutable[], at: number, random: Random) => void): Damage =>
  (messages, random) => {
    const found = messages.flatMap((message, i) => (message?.role === role ? [i] : []));
    if (found.length > 0) change(messages, random.pick(found), random);
  };

function rename(messages: Mutable[], from: Json, to: Json): void {
  for (const { block } of calls(messages)) if (block.id === from) block.id = to;
  for (const { block } of results(messages)) if (block.tool_use_id === from) block.tool_use_id = to;
}

const moveResult = (where: 'later' | 'earlier'): Damage =>
  onResult((messages, result, random) => {
    const hosts = messages.flatMap((message, i) =>
      message?.role === 'user' && (where === 'later' ? i > result.message : i < result.message)
        ? [i]
        : [],
    );
    if (hosts.length === 0) return;
    take(messages, result);
    const list = listOf(messages[random.pick(hosts)]);
    list.splice(random.below(list.length + 1), 0, result.block);
  });

const inline = (offset: 0 | 1, talksOn: boolean): Damage =>
  onResult((messages, result) => {
    const call = callOf(messages, result);
    if (call === undefined) return;
    take(messages, result);
    const list = messages[call.message]!.content as Json[];
    list.splice(list.indexOf(call.block) + offset, 0, result.block);
    if (talksOn) list.push(text());
  });

const junk: readonly Json[] = [
  null,
  5,
  'T77. bare words',
  {},
  [],
  { type: 'nonsense', text: 'T78. odd' },
  { type: 7 },
  true,
];

/** Damage to Messages histories, by name. */
export const MESSAGES_DAMAGE: Readonly<Record<string, Damage>> = {
  'a result is missing': onResult(take),
  'a result stands after text': onResult((messages, { message, block }) => {
    const list = listOf(messages[message]);
    list.splice(list.indexOf(block), 1);
    list.push(text(), block);
  }),
  'text stands before the results': onResult((messages, { message }) => {
    listOf(messages[message]).unshift(text());
  }),
  'a result stands inline behind its call': inline(1, false),
  'a result stands inline before its call': inline(0, false),
  'the model talks on behind an inline result': inline(1, true),
  'the model talks on behind an inline result before its call': inline(0, true),
  'a result stands in a later user message': moveResult('later'),
  'a result stands in an earlier user message': moveResult('earlier'),
  'results are split over messages': onResult((messages, result) => {
    take(messages, result);
    messages.splice(result.message + 1, 0, { role: 'user', content: [result.block] });
  }),
  'results are parted by an assistant message': onResult((messages, result) => {
    take(messages, result);
    messages.splice(
      result.message + 1,
      0,
      { role: 'assistant', content: [text()] },
      { role: 'user', content: [result.block] },
    );
  }),
  'results come in another order': onResult((messages, { message }) => {
    listOf(messages[message]).reverse();
  }),
  'a result comes twice': onResult((messages, { message, block }) => {
    listOf(messages[message]).push(structuredClone(block));
  }),
  'a call has two different results': onResult((messages, { block }, random) => {
    const users = messages.filter((message) => message?.role === 'user');
    listOf(random.pick(users)).push({ ...block, content: `R9${++serial}. other` });
  }),
  'a result answers nothing': onMessage('user', (messages, at, random) => {
    const list = listOf(messages[at]);
    list.splice(random.below(list.length + 1), 0, {
      type: 'tool_result',
      tool_use_id: `toolu_gone${++serial}`,
      content: random.chance(0.5) ? `R9${++serial}. stray` : [text()],
    });
  }),
  'a stray result stands inline': onMessage('assistant', (messages, at, random) => {
    const list = listOf(messages[at]);
    list.splice(random.below(list.length + 1), 0, {
      type: 'tool_result',
      tool_use_id: 'toolu_lost',
      content: `R9${++serial}. lost`,
    });
  }),
  'a call is missing': onCall(take),
  'an assistant message is missing': onMessage('assistant', (messages, at) => {
    if (messages.length > 1) messages.splice(at, 1);
  }),
  'a user message is missing': onMessage('user', (messages, at) => {
    if (messages.length > 1) messages.splice(at, 1);
  }),
  'two rounds use one id': (messages, random) => {
    const found = calls(messages);
    if (found.length < 2) return;
    rename(messages, random.pick(found).block.id!, random.pick(found).block.id!);
  },
  'every round begins with the same ids': (messages) => {
    let k = 0;
    messages.forEach((message) => {
      if (message?.role !== 'assistant' || !Array.isArray(message.content)) return;
      k = 0;
      for (const block of message.content as Json[]) {
        if (isRecord(block) && block.type === 'tool_use')
          rename(messages, block.id!, `call_${k++}`);
      }
    });
  },
  'an id is a number': onCall((messages, { block }, random) =>
    rename(messages, block.id!, random.below(5)),
  ),
  'an id is null': onCall((messages, { block }) => rename(messages, block.id!, null)),
  'an id is an object': onCall((messages, { block }) => rename(messages, block.id!, { a: 1 })),
  'a call has no id': onCall((_messages, { block }) => {
    delete block.id;
  }),
  'a result has no id': onResult((_messages, { block }) => {
    delete block.tool_use_id;
  }),
  'an id has foreign characters': onCall((messages, { block }, random) =>
    rename(
      messages,
      block.id!,
      random.pick(['functions.Bash:0', 'call|1', 'id with space', '调用一', 'a/b']),
    ),
  ),
  'a client tool wears the clothes of a server tool': onCall(
    (messages, { block, message }, random) => {
      rename(messages, block.id!, `srvtoolu_${String(block.id).replace(/[^a-z0-9]/gi, '')}`);
      block.type = 'server_tool_use';
      if (random.chance(0.5))
        listOf(messages[message]).push({ type: 'server_tool_use_delta', partial_json: '{' });
    },
  ),
  'a server tool has no answer': onMessage('assistant', (messages, at, random) => {
    const list = listOf(messages[at]);
    const id = random.chance(0.5) ? `srvtoolu_z${++serial}` : `bad:${++serial}`;
    list.splice(random.below(list.length + 1), 0, {
      type: 'server_tool_use',
      id,
      name: random.pick(['web_search', 'Read']),
      input: { query: 'x' },
    });
  }),
  'a server answer has no call': onMessage('assistant', (messages, at, random) => {
    const list = listOf(messages[at]);
    list.splice(random.below(list.length + 1), 0, {
      type: 'web_search_tool_result',
      tool_use_id: `srvtoolu_y${++serial}`,
      content: [],
    });
  }),
  'a server answer stands before its call': onMessage('assistant', (messages, at) => {
    const id = `srvtoolu_w${++serial}`;
    const list = listOf(messages[at]);
    list.unshift(
      { type: 'web_search_tool_result', tool_use_id: id, content: [] },
      { type: 'server_tool_use', id, name: 'web_search', input: { query: 'x' } },
    );
  }),
  'a text is blank': onMessage('assistant', (messages, at, random) => {
    const list = listOf(messages[at]);
    list.splice(random.below(list.length + 1), 0, {
      type: 'text',
      text: random.pick(['', ' ', '\n\t']),
    });
  }),
  'a user text is blank': onMessage('user', (messages, at, random) => {
    const list = listOf(messages[at]);
    list.splice(random.below(list.length + 1), 0, {
      type: 'text',
      text: random.pick(['', ' ', '\n']),
    });
  }),
  'a message says nothing': (messages, random) => {
    messages.splice(random.below(messages.length + 1), 0, {
      role: random.pick(['user', 'assistant']),
      content: random.pick<Json>(['', [], ' ', null, [{ type: 'text', text: '' }]]),
    });
  },
  'a result holds blank text': onResult((_messages, { block }) => {
    block.content = [{ type: 'text', text: '' }];
  }),
  'an error result is empty': onResult((_messages, { block }, random) => {
    block.content = random.pick<Json>(['', [], null, ' ', [{ type: 'text', text: '  ' }]]);
    block.is_error = true;
  }),
  'a result holds a foreign block': onResult((_messages, { block }) => {
    block.content = [
      { type: 'thinking', thinking: 'x', signature: '' },
      text(),
      { type: 'video', url: 'x' },
    ];
  }),
  'thinking of another vendor': onMessage('assistant', (messages, at, random) => {
    listOf(messages[at]).unshift({
      type: 'thinking',
      thinking: 'hm',
      signature: random.pick([
        '',
        'zhipu-sig',
        'c2lnbmF0dXJl',
        'hopgate1.cs.glm.',
        '0f'.repeat(32),
        Buffer.from('a signature in plain words, twice over').toString('base64'),
      ]),
    });
  }),
  'thinking without a signature': onMessage('assistant', (messages, at) => {
    listOf(messages[at]).unshift({ type: 'thinking', thinking: 'hm' });
  }),
  'the thinking of a turn is lost': onMessage('assistant', (messages, at) => {
    const list = listOf(messages[at]);
    messages[at]!.content = list.filter((block) => !isRecord(block) || block.type !== 'thinking');
  }),
  'thinking stands last': onMessage('assistant', (messages, at, random) => {
    listOf(messages[at]).push({
      type: 'thinking',
      thinking: 'hm',
      signature: genuineSignature(random),
    });
  }),
  'thinking stands behind text': onMessage('assistant', (messages, at, random) => {
    listOf(messages[at]).unshift(text(), {
      type: 'thinking',
      thinking: 'hm',
      signature: genuineSignature(random),
    });
  }),
  'thinking in a user message': onMessage('user', (messages, at, random) => {
    listOf(messages[at]).push({
      type: 'thinking',
      thinking: 'hm',
      signature: genuineSignature(random),
    });
  }),
  'redacted thinking of another vendor': onMessage('assistant', (messages, at) => {
    listOf(messages[at]).unshift({ type: 'redacted_thinking', data: 'not theirs: 1' });
  }),
  'an assistant message is split': onMessage('assistant', (messages, at, random) => {
    const list = listOf(messages[at]);
    if (list.length < 2) return;
    const rest = list.splice(1 + random.below(list.length - 1));
    messages.splice(at + 1, 0, { role: 'assistant', content: rest });
  }),
  'text stands behind the calls': onCall((messages, { message }) => {
    listOf(messages[message]).push(text());
  }),
  'a call stands in a user message': onMessage('user', (messages, at, random) => {
    const list = listOf(messages[at]);
    list.splice(random.below(list.length + 1), 0, {
      type: 'tool_use',
      id: `toolu_u${++serial}`,
      name: 'Read',
      input: {},
    });
  }),
  'an input is no object': onCall((_messages, { block }, random) => {
    block.input = random.pick<Json>(['{"a":1}', null, [1], 5]);
  }),
  'a name is not one': onCall((_messages, { block }, random) => {
    block.name = random.pick<Json>(['a b', '', null, 5]);
  }),
  'the end is a prefill with a blank tail': (messages, random) => {
    messages.push({
      role: 'assistant',
      content: random.pick<Json>([
        `T9${++serial}. so \n`,
        [text(), { type: 'text', text: `T9${++serial}. and ` }],
      ]),
    });
  },
  'too many cache marks': (messages, random) => {
    const blocks = find(messages, /^(text|tool_use|tool_result)$/);
    for (let i = 0; i < 6 && blocks.length > 0; i++)
      random.pick(blocks).block.cache_control = { type: 'ephemeral' };
  },
  'junk among the blocks': (messages, random) => {
    const list = listOf(random.pick(messages.filter(isRecord)));
    list.splice(random.below(list.length + 1), 0, random.pick(junk));
  },
  'junk among the messages': (messages, random) => {
    messages.splice(
      random.below(messages.length + 1),
      0,
      random.pick<Json>([
        null,
        7,
        'T79. hello',
        {},
        { role: 'tool', content: 'T80. x' },
        { content: 'T81. y' },
      ]) as Mutable,
    );
  },
  'calls run on in the next assistant message': onCall((messages, { message, block }) => {
    take(messages, { message, index: 0, block });
    messages.splice(message + 1, 0, { role: 'assistant', content: [block] });
  }),
};
