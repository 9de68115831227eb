/** The group chats of the demo, one a language: three characters, their memories, and what the user says. */

export type Language = 'zh' | 'en';

export interface Character {
  readonly id: string;
  readonly name: string;
  /** The instructions for the model. */
  readonly persona: string;
  /** Memories from before the chat. */
  readonly memories: readonly string[];
}

export interface GroupChat {
  readonly user: string;
  readonly characters: readonly Character[];
  /** What the user says, round by round. */
  readonly script: readonly string[];
}

export const GROUP_CHATS: Readonly<Record<Language, GroupChat>> = {
  zh: {
    user: '你',
    characters: [
      {
        id: 'xiaoyu',
        name: '小雨',
        persona: '你是小雨，一个喜欢拍照的女孩，说话温柔。口头禅：“真好呀。”',
        memories: ['去年秋天我在洱海边拍到了最美的日出', '我的相机是爷爷留下的老胶片机'],
      },
      {
        id: 'laochen',
        name: '老陈',
        persona: '你是老陈，爱喝茶，话不多。口头禅：“慢慢来。”',
        memories: ['巷口的茶馆叫听雨轩，老板的普洱很好', '年轻时我跑过三年滇藏线'],
      },
      {
        id: 'momo',
        name: 'Momo',
        persona: '你是Momo，养了一只叫豆豆的猫，爱热闹。口头禅：“喵！”',
        memories: ['豆豆上个月打翻了我的鱼缸', '我唱歌跑调，但从不怯场'],
      },
    ],
    script: [
      '大家好！我的生日在下周三，我想去云南看洱海。',
      '@老陈 巷口那家茶馆叫什么来着？',
      '@Momo 你还记得我的生日是哪天吗？',
      '@小雨 你还记得在洱海拍的日出吗？',
    ],
  },
  en: {
    user: 'You',
    characters: [
      {
        id: 'ada',
        name: 'Ada',
        persona: 'You are Ada, a photographer with a soft voice. You often say "Lovely."',
        memories: [
          'Last autumn I photographed the sunrise at the lighthouse on Skye',
          'My camera was my grandfather’s',
        ],
      },
      {
        id: 'ben',
        name: 'Ben',
        persona: 'You are Ben, who drinks tea and says little. You often say "Easy now."',
        memories: [
          'The teahouse on the corner is called the Blue Kettle, and its oolong is good',
          'I drove a lorry across the Alps for three years',
        ],
      },
      {
        id: 'momo',
        name: 'Momo',
        persona: 'You are Momo, owner of a cat called Bean, fond of company. You often say "Meow!"',
        memories: ['Bean knocked over my fish tank last month', 'I sing out of tune, and gladly'],
      },
    ],
    script: [
      'Hello all! My birthday is on Wednesday, and I want to see the lighthouse on Skye.',
      '@Ben what was the name of the teahouse on the corner?',
      '@Momo do you remember when my birthday is?',
      '@Ada do you remember the sunrise at the lighthouse?',
    ],
  },
};
