/** Damage that clients, vendors and compactions do to histories; seeded. */

import type { Json } from '../../../src/lib/json/json.ts';
import { type Random, genuineSignature, type Mutable } from './histories.ts';

export type Damage = (list: Mutable[], dice: Random) => void;

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
  (change: (messages: Mutable[], result: Spot, dice: Random) => void): Damage =>
  (messages, dice) => {
    const found = results(messages);
    if (found.length > 0) change(messages, dice.pick(found), dice);
  };

const onCall =
  (change: (messages: Mutable[], call: Spot, dice: Random) => void): Damage =>
  (messages, dice) => {
    const found = calls(messages);
    if (found.length > 0) change(messages, dice.pick(found), dice);
  };

const onMessage =
  (role: string, change: (messages: Mutable[], at: number, dice: Random) => void): Damage =>
  (messages, dice) => {
    const found = messages.flatMap((message, i) => (message?.role === role ? [i] : []));
    if (found.length > 0) change(messages, dice.pick(found), dice);
  };

function rename(messages: Mutable[], from: Json, to: Json): void {
  for (const { block } of calls(messages)) if (block.id === from) block.id = to;
  for (const { block } of results(messages)) if (block.tool_use_id === from) block.tool_use_id = to;
}

const moveResult = (where: 'later' | 'earlier'): Damage =>
  onResult((messages, result, dice) => {
    const hosts = messages.flatMap((message, i) =>
      message?.role === 'user' && (where === 'later' ? i > result.message : i < result.message)
        ? [i]
        : [],
    );
    if (hosts.length === 0) return;
    take(messages, result);
    const list = listOf(messages[dice.pick(hosts)]);
    list.splice(dice.below(list.length + 1), 0, result.block);
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
  'a call has two different results': onResult((messages, { block }, dice) => {
    const users = messages.filter((message) => message?.role === 'user');
    listOf(dice.pick(users)).push({ ...block, content: `R9${++serial}. other` });
  }),
  'a result answers nothing': onMessage('user', (messages, at, dice) => {
    const list = listOf(messages[at]);
    list.splice(dice.below(list.length + 1), 0, {
      type: 'tool_result',
      tool_use_id: `toolu_gone${++serial}`,
      content: dice.chance(0.5) ? `R9${++serial}. stray` : [text()],
    });
  }),
  'a stray result stands inline': onMessage('assistant', (messages, at, dice) => {
    const list = listOf(messages[at]);
    list.splice(dice.below(list.length + 1), 0, {
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
  'two rounds use one id': (messages, dice) => {
    const found = calls(messages);
    if (found.length < 2) return;
    rename(messages, dice.pick(found).block.id!, dice.pick(found).block.id!);
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
  'an id is a number': onCall((messages, { block }, dice) =>
    rename(messages, block.id!, dice.below(5)),
  ),
  'an id is null': onCall((messages, { block }) => rename(messages, block.id!, null)),
  'an id is an object': onCall((messages, { block }) => rename(messages, block.id!, { a: 1 })),
  'a call has no id': onCall((_messages, { block }) => {
    delete block.id;
  }),
  'a result has no id': onResult((_messages, { block }) => {
    delete block.tool_use_id;
  }),
  'an id has foreign characters': onCall((messages, { block }, dice) =>
    rename(
      messages,
      block.id!,
      dice.pick(['functions.Bash:0', 'call|1', 'id with space', '调用一', 'a/b']),
    ),
  ),
  'a client tool wears the clothes of a server tool': onCall(
    (messages, { block, message }, dice) => {
      rename(messages, block.id!, `srvtoolu_${String(block.id).replace(/[^a-z0-9]/gi, '')}`);
      block.type = 'server_tool_use';
      if (dice.chance(0.5))
        listOf(messages[message]).push({ type: 'server_tool_use_delta', partial_json: '{' });
    },
  ),
  'a server tool has no answer': onMessage('assistant', (messages, at, dice) => {
    const list = listOf(messages[at]);
    const id = dice.chance(0.5) ? `srvtoolu_z${++serial}` : `bad:${++serial}`;
    list.splice(dice.below(list.length + 1), 0, {
      type: 'server_tool_use',
      id,
      name: dice.pick(['web_search', 'Read']),
      input: { query: 'x' },
    });
  }),
  'a server answer has no call': onMessage('assistant', (messages, at, dice) => {
    const list = listOf(messages[at]);
    list.splice(dice.below(list.length + 1), 0, {
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
  'a text is blank': onMessage('assistant', (messages, at, dice) => {
    const list = listOf(messages[at]);
    list.splice(dice.below(list.length + 1), 0, {
      type: 'text',
      text: dice.pick(['', ' ', '\n\t']),
    });
  }),
  'a user text is blank': onMessage('user', (messages, at, dice) => {
    const list = listOf(messages[at]);
    list.splice(dice.below(list.length + 1), 0, { type: 'text', text: dice.pick(['', ' ', '\n']) });
  }),
  'a message says nothing': (messages, dice) => {
    messages.splice(dice.below(messages.length + 1), 0, {
      role: dice.pick(['user', 'assistant']),
      content: dice.pick<Json>(['', [], ' ', null, [{ type: 'text', text: '' }]]),
    });
  },
  'a result holds blank text': onResult((_messages, { block }) => {
    block.content = [{ type: 'text', text: '' }];
  }),
  'an error result is empty': onResult((_messages, { block }, dice) => {
    block.content = dice.pick<Json>(['', [], null, ' ', [{ type: 'text', text: '  ' }]]);
    block.is_error = true;
  }),
  'a result holds a foreign block': onResult((_messages, { block }) => {
    block.content = [
      { type: 'thinking', thinking: 'x', signature: '' },
      text(),
      { type: 'video', url: 'x' },
    ];
  }),
  'thinking of another vendor': onMessage('assistant', (messages, at, dice) => {
    listOf(messages[at]).unshift({
      type: 'thinking',
      thinking: 'hm',
      signature: dice.pick([
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
  'thinking stands last': onMessage('assistant', (messages, at, dice) => {
    listOf(messages[at]).push({
      type: 'thinking',
      thinking: 'hm',
      signature: genuineSignature(dice),
    });
  }),
  'thinking stands behind text': onMessage('assistant', (messages, at, dice) => {
    listOf(messages[at]).unshift(text(), {
      type: 'thinking',
      thinking: 'hm',
      signature: genuineSignature(dice),
    });
  }),
  'thinking in a user message': onMessage('user', (messages, at, dice) => {
    listOf(messages[at]).push({
      type: 'thinking',
      thinking: 'hm',
      signature: genuineSignature(dice),
    });
  }),
  'redacted thinking of another vendor': onMessage('assistant', (messages, at) => {
    listOf(messages[at]).unshift({ type: 'redacted_thinking', data: 'not theirs: 1' });
  }),
  'an assistant message is split': onMessage('assistant', (messages, at, dice) => {
    const list = listOf(messages[at]);
    if (list.length < 2) return;
    const rest = list.splice(1 + dice.below(list.length - 1));
    messages.splice(at + 1, 0, { role: 'assistant', content: rest });
  }),
  'text stands behind the calls': onCall((messages, { message }) => {
    listOf(messages[message]).push(text());
  }),
  'a call stands in a user message': onMessage('user', (messages, at, dice) => {
    const list = listOf(messages[at]);
    list.splice(dice.below(list.length + 1), 0, {
      type: 'tool_use',
      id: `toolu_u${++serial}`,
      name: 'Read',
      input: {},
    });
  }),
  'an input is no object': onCall((_messages, { block }, dice) => {
    block.input = dice.pick<Json>(['{"a":1}', null, [1], 5]);
  }),
  'a name is not one': onCall((_messages, { block }, dice) => {
    block.name = dice.pick<Json>(['a b', '', null, 5]);
  }),
  'the end is a prefill with a blank tail': (messages, dice) => {
    messages.push({
      role: 'assistant',
      content: dice.pick<Json>([
        `T9${++serial}. so \n`,
        [text(), { type: 'text', text: `T9${++serial}. and ` }],
      ]),
    });
  },
  'too many cache marks': (messages, dice) => {
    const blocks = find(messages, /^(text|tool_use|tool_result)$/);
    for (let i = 0; i < 6 && blocks.length > 0; i++)
      dice.pick(blocks).block.cache_control = { type: 'ephemeral' };
  },
  'junk among the blocks': (messages, dice) => {
    const list = listOf(dice.pick(messages.filter(isRecord)));
    list.splice(dice.below(list.length + 1), 0, dice.pick(junk));
  },
  'junk among the messages': (messages, dice) => {
    messages.splice(
      dice.below(messages.length + 1),
      0,
      dice.pick<Json>([
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
