/** Questions without a word in common with what answers them: only vectors find these. */

/** The fact, said by a speaker of the labelled set, and the question. */
export type Paraphrase = readonly [source: string, fact: string, question: string];

export const PARAPHRASES: readonly Paraphrase[] = [
  [
    'Maya',
    'I quit cigarettes last spring and have not touched one since.',
    'Is Maya still a smoker?',
  ],
  ['Jonas', 'We adopted a kitten from the shelter on Saturday.', 'Which pet does he own?'],
  ['Tom', 'My back hurts whenever I sit for long.', 'Does anybody have spine problems?'],
  ['Maya', 'Standing on a ladder makes my knees shake.', 'Who is afraid of heights?'],
  [
    'Jonas',
    'After the layoffs I am looking for something new in logistics.',
    'Who became unemployed?',
  ],
  ['Tom', 'Milk gives me a stomach ache.', 'Can he tolerate dairy products?'],
  ['Maya', 'I get to the office by bicycle every day.', 'How does she commute?'],
  ['Jonas', 'Our little girl was born in March.', 'When did they become parents?'],
  ['Tom', 'I only fall asleep after two at night.', 'Does anyone suffer from insomnia?'],
  ['Maya', 'I play the cello in the city orchestra.', 'What musical instrument is her hobby?'],
  ['林晓', '我每天骑自行车去公司。', '她平时怎么通勤？'],
  ['阿哲', '站在梯子上我的腿就发抖。', '谁恐高？'],
  ['陈曦', '喝牛奶肚子就不舒服。', '谁乳糖不耐受？'],
  ['林晓', '晚上两点以后才睡得着。', '谁失眠？'],
  ['阿哲', '公司裁员，正在投简历。', '谁失业？'],
  ['陈曦', '周六从收容所领养了一只小狗。', '她养宠物吗？'],
  ['林晓', '三月份生了个女儿。', '哪位当妈妈？'],
  ['阿哲', '坐久了腰就疼。', '谁的脊椎有毛病？'],
  ['陈曦', '在市乐团拉大提琴。', '她会什么乐器？'],
  ['林晓', '已经半年没碰过香烟。', '她成功戒烟吗？'],
];
