/** The texts of the conversation tools for models, by locale; each of them can be replaced. */

export type Locale = 'zh' | 'en';

export const LOCALES: readonly Locale[] = ['zh', 'en'];

export interface Texts {
  /** Results of `is_mentioned`. */
  readonly mentioned: string;
  readonly not_mentioned: string;
  /** The result of `get_other_members_messages` where there are no messages. */
  readonly no_messages: string;
  /** Descriptions of the tools. */
  readonly recall_description: string;
  readonly query_description: string;
  readonly messages_description: string;
  readonly mention_description: string;
  /** The limit of recalls, in the instructions and in the tool's description; `{max}` is the number. */
  readonly recall_limit: string;
}

export const TEXT_NAMES = [
  'mentioned',
  'not_mentioned',
  'no_messages',
  'recall_description',
  'query_description',
  'messages_description',
  'mention_description',
  'recall_limit',
] as const satisfies readonly (keyof Texts)[];

const TEXTS: Readonly<Record<Locale, Texts>> = {
  zh: {
    mentioned: '被提及，需要发言',
    not_mentioned: '未被提及，可自行判断',
    no_messages: '本轮其他成员没有发言',
    recall_description:
      '回忆：在记忆中检索与 query 相关的过往事件，返回 {"events":[…]}，没有相关记忆时 events 为空。',
    query_description: '要回忆的内容：关键词或一句话',
    messages_description: '返回本轮其他成员的发言。',
    mention_description: '返回自己在本轮是否被 @ 提及。',
    recall_limit: '每轮最多回忆（recall_memory）{max} 次，上下文中本轮已完成的回忆计算在内。',
  },
  en: {
    mentioned: 'You were mentioned and need to speak',
    not_mentioned: 'You were not mentioned; decide for yourself whether to speak',
    no_messages: 'The other members have said nothing this round',
    recall_description:
      'Recall: searches the memory for past events that have to do with the query and returns {"events":[…]}; no events where nothing is remembered.',
    query_description: 'What to recall: key words or a sentence',
    messages_description: 'Returns what the other members have said this round.',
    mention_description: 'Returns whether you were mentioned (@) this round.',
    recall_limit:
      'Recall (recall_memory) at most {max} times per turn; recalls of this turn that are already in the context count.',
  },
};

/** The texts of a locale with replacements; later ones replace earlier ones. */
export function textsOf(locale: Locale, ...over: readonly (Partial<Texts> | undefined)[]): Texts {
  return Object.assign({}, TEXTS[locale], ...over);
}

/** `recall_limit` with its number. */
export const limitText = (texts: Texts, max: number): string =>
  texts.recall_limit.replaceAll('{max}', String(max));
