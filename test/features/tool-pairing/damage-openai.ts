/** Damage to histories in OpenAI's shapes: Chat messages and Responses items; seeded. */

import type { Json } from '../../../src/lib/json/json.ts';
import type { Damage } from './damage.ts';
import type { Mutable, Random } from './histories.ts';

/** The keys under which a protocol stores the damaged parts. */
interface Form {
  isResult(entry: Mutable): boolean;
  idKey: string;
  contentKey: string;
  /** The objects that hold the ids of an entry's calls, under `callKey`. */
  callsIn(entry: Mutable): Mutable[];
  callKey: string;
  stray(id: string, text: string): Mutable;
  user(text: string): Mutable;
  assistant(text: string): Mutable;
}

const isRecord = (value: unknown): value is Mutable =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const CHAT: Form = {
  isResult: (entry) => entry.role === 'tool',
  idKey: 'tool_call_id',
  contentKey: 'content',
  callsIn: (entry) =>
    Array.isArray(entry.tool_calls) ? (entry.tool_calls as Mutable[]).filter(isRecord) : [],
  callKey: 'id',
  stray: (id, text) => ({ role: 'tool', tool_call_id: id, content: text }),
  user: (text) => ({ role: 'user', content: text }),
  assistant: (text) => ({ role: 'assistant', content: text }),
};

const RESPONSES: Form = {
  isResult: (entry) => entry.type === 'function_call_output',
  idKey: 'call_id',
  contentKey: 'output',
  callsIn: (entry) => (entry.type === 'function_call' ? [entry] : []),
  callKey: 'call_id',
  stray: (id, text) => ({ type: 'function_call_output', call_id: id, output: text }),
  user: (text) => ({ role: 'user', content: text }),
  assistant: (text) => ({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text }],
  }),
};

let serial = 0;

function common(form: Form): Record<string, Damage> {
  const results = (list: Mutable[]) =>
    list.filter((entry) => isRecord(entry) && form.isResult(entry));
  const calls = (list: Mutable[]) => list.filter(isRecord).flatMap(form.callsIn);
  const onResult =
    (change: (list: Mutable[], result: Mutable, random: Random) => void): Damage =>
    (list, random) => {
      const found = results(list);
      if (found.length > 0) change(list, random.pick(found), random);
    };
  const rename = (list: Mutable[], from: Json | undefined, to: Json) => {
    for (const call of calls(list)) if (call[form.callKey] === from) call[form.callKey] = to;
    for (const result of results(list)) if (result[form.idKey] === from) result[form.idKey] = to;
  };
  const onCall =
    (change: (list: Mutable[], call: Mutable, random: Random) => void): Damage =>
    (list, random) => {
      const found = calls(list);
      if (found.length > 0) change(list, random.pick(found), random);
    };
  const drop = (list: Mutable[], entry: Mutable) => {
    const at = list.indexOf(entry);
    if (at >= 0 && list.length > 1) list.splice(at, 1);
  };
  const insert = (list: Mutable[], entry: Mutable, random: Random) =>
    list.splice(random.below(list.length + 1), 0, entry);
  return {
    'a result is missing': onResult(drop),
    'a result stands anywhere': onResult((list, result, random) => {
      drop(list, result);
      if (!list.includes(result)) insert(list, result, random);
    }),
    'a result comes twice': onResult((list, result, random) =>
      insert(list, structuredClone(result), random),
    ),
    'a call has two different results': onResult((list, result, random) =>
      insert(list, { ...result, [form.contentKey]: `R9${++serial}. other` }, random),
    ),
    'a result answers nothing': (list, random) =>
      insert(list, form.stray(`call_gone${++serial}`, `R9${++serial}. stray`), random),
    'a message stands before the results': onResult((list, result) => {
      list.splice(list.indexOf(result), 0, form.user(`T9${++serial}. wait`));
    }),
    'an assistant message stands before the results': onResult((list, result) => {
      list.splice(list.indexOf(result), 0, form.assistant(`T9${++serial}. hm`));
    }),
    'two calls have one id': onCall((list, call, random) =>
      rename(list, call[form.callKey], random.pick(calls(list))[form.callKey] ?? 'x'),
    ),
    'an id is a number': onCall((list, call, random) =>
      rename(list, call[form.callKey], random.below(4)),
    ),
    'an id is null': onCall((list, call) => rename(list, call[form.callKey], null)),
    'an id is too long': onCall((list, call) =>
      rename(list, call[form.callKey], 'x'.repeat(65 + (++serial % 40))),
    ),
    'a call has no id': onCall((_list, call) => {
      delete call[form.callKey];
    }),
    'a result has no id': onResult((_list, result) => {
      delete result[form.idKey];
    }),
    'a result has no content': onResult((_list, result, random) => {
      result[form.contentKey] = random.pick<Json>([null, 5, { a: 1 }]);
    }),
    'an entry is missing': (list, random) => drop(list, random.pick(list)),
    'junk among the entries': (list, random) =>
      insert(
        list,
        random.pick<Json>([
          null,
          7,
          'T71. hello',
          {},
          { role: 'tool', content: 'T72. x' },
          { content: 'T73. y' },
        ]) as Mutable,
        random,
      ),
    'system amid the results': onResult((list, result) => {
      list.splice(list.indexOf(result), 0, { role: 'system', content: `T9${++serial}. note` });
    }),
  };
}

export const CHAT_DAMAGE: Readonly<Record<string, Damage>> = {
  ...common(CHAT),
  'a call is missing': (list, random) => {
    const hosts = list.filter((entry) => isRecord(entry) && CHAT.callsIn(entry).length > 0);
    if (hosts.length > 0) (random.pick(hosts).tool_calls as Json[]).pop();
  },
  'the list of calls is empty': (list, random) => {
    list.splice(random.below(list.length + 1), 0, {
      role: 'assistant',
      content: null,
      tool_calls: [],
    });
  },
  'content is null': (list, random) => {
    list.splice(random.below(list.length + 1), 0, {
      role: random.pick(['user', 'assistant', 'system']),
      content: null,
    });
  },
  'content is an empty list': (list, random) => {
    list.splice(random.below(list.length + 1), 0, {
      role: random.pick(['user', 'assistant', 'system']),
      content: [],
    });
  },
  'arguments are an object': (list, random) => {
    const found = list.filter(isRecord).flatMap(CHAT.callsIn);
    if (found.length === 0) return;
    const call = random.pick(found);
    if (isRecord(call.function)) call.function.arguments = random.pick<Json>([{ a: 1 }, null, 5]);
  },
  'a name is not one': (list, random) => {
    const found = list.filter(isRecord).flatMap(CHAT.callsIn);
    if (found.length === 0) return;
    const call = random.pick(found);
    if (isRecord(call.function)) call.function.name = random.pick<Json>(['a b', null, '']);
  },
  'a call does not say its type': (list, random) => {
    const found = list.filter(isRecord).flatMap(CHAT.callsIn);
    if (found.length > 0) delete random.pick(found).type;
  },
};

const onItem =
  (change: (item: Mutable, random: Random, list: Mutable[]) => void): Damage =>
  (list, random) => {
    const found = list.filter(isRecord);
    if (found.length > 0) change(random.pick(found), random, list);
  };

export const RESPONSES_DAMAGE: Readonly<Record<string, Damage>> = {
  ...common(RESPONSES),
  'a call is missing': (list, random) => {
    const found = list.filter((item) => isRecord(item) && item.type === 'function_call');
    if (found.length > 0 && list.length > 1) list.splice(list.indexOf(random.pick(found)), 1);
  },
  'an item has an id of another kind': onItem((item, random) => {
    item.id = random.pick<Json>([`call_${++serial}`, 'x:y', 7, 'a'.repeat(70)]);
  }),
  'two items have one id': onItem((item, random, list) => {
    const other = random.pick(list.filter(isRecord));
    if (other.type === item.type && other.id !== undefined) item.id = other.id;
  }),
  'an item has lost its id': onItem((item) => {
    delete item.id;
  }),
  'reasoning leads to nothing': (list, random) => {
    list.splice(random.below(list.length + 1), 0, {
      type: 'reasoning',
      id: `rs_s${++serial}`,
      summary: [],
      encrypted_content: 'gAAAAAx',
    });
  },
  'reasoning has no summary': (list, random) => {
    list.splice(random.below(list.length + 1), 0, {
      type: 'reasoning',
      id: `rs_u${++serial}`,
      encrypted_content: 'gAAAAAx',
    });
  },
  'an assistant speaks in input text': (list, random) => {
    list.splice(random.below(list.length + 1), 0, {
      role: 'assistant',
      content: [{ type: 'input_text', text: `T9${++serial}. me` }],
    });
  },
  'a reference to what is not stored': (list, random) => {
    list.splice(random.below(list.length + 1), 0, {
      type: 'item_reference',
      id: `msg_q${++serial}`,
    });
  },
  'arguments are an object': (list, random) => {
    const found = list.filter((item) => isRecord(item) && item.type === 'function_call');
    if (found.length > 0) random.pick(found).arguments = random.pick<Json>([{ a: 1 }, null, 5]);
  },
};
