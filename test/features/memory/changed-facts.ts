/** Facts that changed: what was said first, what was said later, and the question whose answer is the later one. */

export const CHANGED: readonly (readonly [before: string, after: string, question: string])[] = [
  ['I live in Hamburg.', 'I moved to Munich last week.', 'Where do I live?'],
  [
    'I work as a nurse at the county hospital.',
    'I started a new job as a teacher.',
    'What is my job?',
  ],
  ['My phone number is 555 1234.', 'My new phone number is 555 9876.', 'What is my phone number?'],
  [
    'My favourite colour is blue.',
    'Green is my favourite colour now.',
    'What is my favourite colour?',
  ],
  ['I drive a red Volvo.', 'I sold the Volvo and bought a Tesla.', 'What car do I drive?'],
  [
    'My girlfriend is called Anna.',
    'Anna and I broke up, I am with Julia now.',
    'Who is my girlfriend?',
  ],
  [
    'The meeting is on Monday at ten.',
    'The meeting was moved to Tuesday at eleven.',
    'When is the meeting?',
  ],
  ['I am a vegetarian.', 'I eat meat again since summer.', 'Am I a vegetarian?'],
  ['I drink two cups of coffee every day.', 'I gave up coffee and drink tea.', 'What do I drink?'],
  [
    'The wifi password is bluemoose.',
    'We changed the wifi password to redfox.',
    'What is the wifi password?',
  ],
  [
    'My cat weighs five kilos.',
    'The vet says my cat is at six kilos now.',
    'How much does my cat weigh?',
  ],
  [
    'I go to the gym on Fridays.',
    'My gym day is Wednesday from now on.',
    'On which day do I go to the gym?',
  ],
  ['我住在北京。', '我上周搬到上海了。', '我住在哪里？'],
  ['我在银行上班。', '我跳槽去了一家游戏公司。', '我在哪里上班？'],
  ['我的手机号是13800001111。', '我换手机号了，新的是13900002222。', '我的手机号是多少？'],
  ['我最喜欢的歌手是周杰伦。', '我现在最喜欢的歌手是陈奕迅。', '我最喜欢的歌手是谁？'],
  ['我女朋友叫小丽。', '我和小丽分手了，现在和小芳在一起。', '我女朋友叫什么？'],
  ['我的车是丰田。', '我把丰田卖了，换了一辆比亚迪。', '我开什么车？'],
  ['我每天喝咖啡。', '我戒咖啡了，改喝绿茶。', '我每天喝什么？'],
  ['会议在周三下午三点。', '会议改到周四上午十点。', '会议是什么时候？'],
];
