/** Recall from captured chats: facts are found despite the questions about them and the replies. */

import { describe, expect, test } from 'bun:test';
import { isFiller, isRequest, kindOf } from '../../../src/features/memory/ranking/event-kinds.ts';
import { formsOf } from '../../../src/features/memory/ranking/known-terms.ts';
import { kindWeight } from '../../../src/features/memory/ranking/rank.ts';
import { FORMS, memories } from './support.ts';

/** A fact in its original wording, a question for it, and the questions and answers about it in between. */
const PAIRS: readonly (readonly [fact: string, query: string, asked: string, reply: string])[] = [
  [
    'My dog is called Rex and I live in Oslo.',
    'dog name',
    'Do you remember the name of my dog?',
    'I am glad that your dog has a good name.',
  ],
  [
    'I am allergic to peanuts.',
    'allergy',
    'Which allergy do I have?',
    'An allergy can be serious.',
  ],
  [
    'We have two children, Ida and Jon.',
    'child',
    'How old is my child?',
    'Every child grows fast.',
  ],
  [
    'I became a vegetarian in March.',
    'vegetarianism',
    'What do you think of vegetarianism?',
    'Vegetarianism has many friends.',
  ],
  [
    'My sister moved to Lisbon last year.',
    'where does my sister live',
    'Where does my sister live?',
    'Your sister may tell you.',
  ],
  [
    'I work as a nurse at the county hospital.',
    'job hospital',
    'What is my job?',
    'A job at a hospital is hard.',
  ],
  [
    'My flight lands at 21:40 on Thursday.',
    'when does my flight land',
    'When does my flight land?',
    'I hope the flight is calm.',
  ],
  [
    'The wifi password of the cabin is bluemoose.',
    'wifi password',
    'What is the wifi password?',
    'Never share a wifi password.',
  ],
  [
    'My favourite dishes are ramen and dumplings.',
    'favourite dish',
    'What is my favourite dish?',
    'A favourite dish warms the heart.',
  ],
  [
    'I keep my boxes of photographs in the attic.',
    'where is the box',
    'Where is the box?',
    'Maybe the box is at home.',
  ],
  [
    'The women of the choir meet on Mondays.',
    'woman choir',
    'Which woman leads the choir?',
    'A choir needs a leader.',
  ],
  [
    'I have had two teeth pulled.',
    'tooth',
    'Does my tooth hurt?',
    'A tooth should be looked after.',
  ],
  [
    'My economic history exam is on the 5th.',
    'economy exam',
    'When is the economy exam?',
    'Good luck for the exam.',
  ],
  [
    'Grandma bakes an apple cake every Sunday.',
    'grandma cake',
    'What cake does grandma bake?',
    'A cake by grandma is the best.',
  ],
  [
    'I drive a green Volvo from 1994.',
    'what car do I drive, Volvo',
    'Do I drive a Volvo?',
    'A Volvo lasts long.',
  ],
  ['My landlord is Mr Novak.', 'landlord', 'Who is my landlord?', 'Talk to your landlord.'],
  [
    'The meeting with the bank is at nine.',
    'bank meeting',
    'When is the bank meeting?',
    'Prepare for the bank meeting.',
  ],
  ['I am afraid of spiders.', 'spider', 'Do I like a spider?', 'A spider is useful.'],
  [
    'Photography is what I do at weekends.',
    'photographic hobby',
    'Is a photographic hobby dear?',
    'A hobby is good for you.',
  ],
  ['My blood type is 0 negative.', 'blood type', 'What is my blood type?', 'Know your blood type.'],
  [
    '我的狗叫豆豆，今年三岁。',
    '狗叫什么名字',
    '你还记得我的狗叫什么名字吗？',
    '你的狗名字很好听。',
  ],
  ['我对花生过敏。', '过敏', '我对什么过敏？', '过敏要小心。'],
  ['我女儿在学钢琴。', '女儿学什么', '我女儿在学什么？', '女儿学习很努力。'],
  ['我住在杭州西湖边。', '住在哪里', '我住在哪里？', '住在哪里都好。'],
  ['我妈妈的生日是五月六日。', '妈妈生日', '妈妈的生日是哪天？', '祝妈妈生日快乐。'],
  ['公司的门禁密码是四五六七。', '门禁密码', '门禁密码是多少？', '门禁密码不要告诉别人。'],
  ['我不吃香菜。', '香菜', '我吃不吃香菜呢？', '香菜味道很特别。'],
  ['我的血型是O型。', '血型', '我的血型是什么？', '血型很重要。'],
  ['下周三要去医院复查膝盖。', '医院复查', '什么时候去医院复查？', '去医院复查别忘了。'],
  ['房东姓王，电话贴在冰箱上。', '房东', '房东姓什么？', '房东人不错。'],
  ['我最喜欢的花是洋桔梗。', '喜欢的花', '我喜欢的花是什么？', '喜欢的花放在窗边。'],
  ['车停在地下二层。', '车停', '车停在哪里了？', '车停好了就行。'],
  ['我在学日语，准备考二级。', '日语考试', '日语考试是哪天？', '日语考试加油。'],
  ['奶奶做的红烧肉最好吃。', '奶奶红烧肉', '奶奶的红烧肉怎么做？', '奶奶的红烧肉真香。'],
  ['我哥哥在深圳做工程师。', '哥哥', '我哥哥在哪里工作？', '哥哥一定很忙。'],
  ['我怕打雷。', '打雷', '我怕不怕打雷？', '打雷的时候别出门。'],
  ['结婚纪念日是十月一日。', '结婚纪念日', '结婚纪念日是哪天？', '结婚纪念日要庆祝。'],
  ['我的猫不喜欢洗澡。', '猫洗澡', '猫洗澡怎么办？', '猫洗澡要慢慢来。'],
  ['健身房的卡到年底过期。', '健身房卡', '健身房的卡什么时候过期？', '健身房的卡记得续。'],
  ['我儿子对猫毛敏感。', '儿子猫毛', '儿子对猫毛敏感吗？', '猫毛要常清理。'],
];

describe.each(FORMS)('facts that were asked about repeatedly, %s', (form) => {
  const files = memories(form);

  test('the set holds forty facts', () => {
    expect(PAIRS).toHaveLength(40);
  });

  test.each(PAIRS)('%s ← %s', async (fact, query, question, reply) => {
    const { memory, recalled } = files.open({ path: files.path(), dedupeMs: 0 });
    const day = 86_400_000;
    const start = Date.now() - 40 * day;
    await memory.capture('s', [
      { text: fact, source: 'user', time: start },
      { text: 'Nice to hear from you.', source: 'assistant', time: start + 1 },
    ]);
    for (let i = 1; i <= 15; i++) {
      await memory.capture('s', [
        { text: question, source: 'user', time: start + i * day },
        { text: reply, source: 'assistant', time: start + i * day + 1 },
      ]);
    }
    const found = await recalled('s', query, 10);
    expect(found).toContain(fact);
    expect(found.indexOf(fact)).toBeLessThan(6);
    // Even one such question could outrank the fact.
    expect((await recalled('s', query, 3)).slice(0, 3)).toContain(fact);
  });

  test('all in one space: each is among the first five', async () => {
    const { memory, recalled } = files.open({ path: files.path() });
    const time = Date.now() - 86_400_000;
    for (const [at, [fact, , query, reply]] of PAIRS.entries()) {
      await memory.capture('s', [
        { text: fact, source: 'user', time: time + at },
        { text: query, source: 'user', time: time + at },
        { text: reply, source: 'assistant', time: time + at + 1 },
      ]);
    }
    const missed: string[] = [];
    for (const [fact, query] of PAIRS) {
      if (!(await recalled('s', query, 5)).includes(fact)) missed.push(fact);
    }
    expect(missed).toEqual([]);
  });

  test("the model's fillers are never recalled, what the user said in the same words is", async () => {
    const { memory, recalled } = files.open({ path: files.path() });
    const time = Date.now() - 86_400_000;
    const turns = [
      ['I feel fine in Oslo, the weather is good.', 'Fine.'],
      ['Good coffee is served at the corner.', 'OK, noted. Sounds good!'],
      ['好的咖啡馆在街角。', '好的，我记住了。'],
      ['Fine, thanks.', 'Thanks, that is good to know.'],
    ] as const;
    for (const [at, [said, reply]] of turns.entries()) {
      await memory.capture('s', [
        { text: said, source: 'user', time: time + 2 * at },
        { text: reply, source: 'assistant', time: time + 2 * at + 1 },
      ]);
    }
    const fillers: readonly string[] = turns.map(([, reply]) => reply);
    for (const query of ['fine', 'good', 'assistant noted', 'good to know', '好的', '记住']) {
      const found = await recalled('s', query, 10);
      expect([query, found.filter((text) => fillers.includes(text))]).toEqual([query, []]);
    }
    expect((await recalled('s', 'fine', 10)).toSorted()).toEqual(['Fine, thanks.', turns[0][0]]);
  });

  test('three hundred questions do not displace a fact', async () => {
    const { book, recalled } = files.open({ path: files.path() });
    const questions = Array.from({ length: 300 }, (_, i) => ({
      text: `Do you remember the name of my dog? (${i})`,
    }));
    await book.add('s', [{ text: 'My dog is called Rex.' }, ...questions], () => '');
    expect((await recalled('s', 'dog name', 5))[0]).toBe('My dog is called Rex.');
  });
});

const weightOf = (text: string, source: string, speaker?: string) =>
  kindWeight({ kind: kindOf(text), source }, speaker);

test('questions are distinguished from statements', () => {
  for (const [, , query] of PAIRS) expect([query, isRequest(query)]).toEqual([query, true]);
  for (const [fact, , , reply] of PAIRS) {
    expect([fact, isRequest(fact)]).toEqual([fact, false]);
    expect([reply, isRequest(reply)]).toEqual([reply, false]);
  }
  for (const says of [
    'My dog is called Rex, do you like him?',
    '我养了一只狗叫豆豆，你喜欢吗？',
    'I moved to Oslo. Where should I eat?',
    'Whatever happens, I stay in Oslo.',
    '',
    '?',
  ]) {
    expect([says, isRequest(says)]).toEqual([says, false]);
  }
  expect(isRequest('Hey Anna, where do I live?')).toBe(true);
  expect(weightOf('Rex is a dog.', 'Luna', 'Luna')).toBeLessThan(1);
  expect(weightOf('Rex is a dog.', 'Luna', 'Max')).toBe(1);
});

test('fillers are distinguished from replies that state something', () => {
  for (const filler of [
    'Fine.',
    'OK, noted!',
    'Got it, thanks 👍',
    "I'll keep that in mind.",
    'Sounds good to me.',
    'You’re very welcome!',
    '好的，我记住了。',
    '嗯嗯，明白！',
    '…',
  ]) {
    expect([filler, isFiller(filler)]).toEqual([filler, true]);
    expect(weightOf(filler, 'assistant')).toBe(0);
    expect(weightOf(filler, 'user')).toBeGreaterThan(0);
  }
  for (const states of [
    'Fine, see you on Monday.',
    'OK, Rex it is.',
    'No, at 9.',
    '好的，周三见。',
    '早上。',
    '你的狗很好。',
    'わかりました。',
    'はい、明日です。',
    ...PAIRS.flatMap(([fact, , , reply]) => [fact, reply]),
  ]) {
    expect([states, isFiller(states)]).toEqual([states, false]);
  }
});

test('forms of a word are found together, different words are not', () => {
  const meet = (one: string, other: string) =>
    formsOf(one).includes(other) || formsOf(other).includes(one);
  for (const [one, other] of [
    ['allergic', 'allergi'],
    ['children', 'child'],
    ['vegetarianism', 'vegetarian'],
    ['boxe', 'box'],
    ['dishe', 'dish'],
    ['women', 'woman'],
    ['musical', 'music'],
  ] as const) {
    expect([one, other, meet(one, other), meet(other, one)]).toEqual([one, other, true, true]);
  }
  for (const [one, other] of [
    ['organism', 'organ'],
    ['sonic', 'soni'],
    ['shoe', 'sho'],
    ['public', 'pub'],
    ['man', 'men2'],
  ] as const) {
    expect([one, other, meet(one, other)]).toEqual([one, other, false]);
  }
});
