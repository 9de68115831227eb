/** The texts of the conversation tools for models, by locale; each of them can be replaced. */

export type Locale = 'zh' | 'en';

export const LOCALES: readonly Locale[] = ['zh', 'en'];

const ENGLISH = {
  // Results of `is_mentioned`.
  mentioned: 'You were mentioned and need to speak',
  not_mentioned: 'You were not mentioned; decide for yourself whether to speak',
  // The result of `get_other_members_messages` where there are no messages.
  no_messages: 'The other members have said nothing this round',
  // Descriptions of the tools.
  recall_description:
    'Recall: searches the memory for past events that have to do with the query and returns {"events":[…]}; no events where nothing is remembered. Where two events contradict each other, the one with the later time holds.',
  query_description: 'What to recall: key words or a sentence',
  since_description: 'Only events from this time on, ISO 8601; optional',
  until_description: 'Only events before this time, ISO 8601; optional',
  forget_description:
    'Forget: removes events from the memory, only where the user asks for it; returns {"forgotten": how many}.',
  ids_description: 'The ids of the events to remove, as recall_memory gave them',
  messages_description: 'Returns what the other members have said this round.',
  mention_description: 'Returns whether you were mentioned (@) this round.',
  // The limit of recalls, in the instructions and in the tool's description; `{max}` is the number.
  recall_limit:
    'Recall (recall_memory) at most {max} times per turn; recalls of this turn that are already in the context count.',
};

export type Texts = Readonly<Record<keyof typeof ENGLISH, string>>;

export const TEXT_NAMES = Object.keys(ENGLISH);

const TEXTS: Readonly<Record<Locale, Texts>> = {
  zh: {
    mentioned: '被提及，需要发言',
    not_mentioned: '未被提及，可自行判断',
    no_messages: '本轮其他成员没有发言',
    recall_description:
      '回忆：在记忆中检索与 query 相关的过往事件，返回 {"events":[…]}，没有相关记忆时 events 为空。两个事件矛盾时，以 time 较新的为准。',
    query_description: '要回忆的内容：关键词或一句话',
    since_description: '只要此时间及以后的事件，ISO 8601；可不填',
    until_description: '只要此时间以前的事件，ISO 8601；可不填',
    forget_description:
      '忘记：从记忆中删除事件，仅在用户要求忘记时使用，返回 {"forgotten": 个数}。',
    ids_description: '要删除的事件的 id（来自 recall_memory）',
    messages_description: '返回本轮其他成员的发言。',
    mention_description: '返回自己在本轮是否被 @ 提及。',
    recall_limit: '每轮最多回忆（recall_memory）{max} 次，上下文中本轮已完成的回忆计算在内。',
  },
  en: ENGLISH,
};

/** The texts of a locale with replacements; later ones replace earlier ones. */
export function textsOf(locale: Locale, ...over: readonly (Partial<Texts> | undefined)[]): Texts {
  return Object.assign({}, TEXTS[locale], ...over);
}

export const limitText = (texts: Texts, max: number): string =>
  texts.recall_limit.replaceAll('{max}', String(max));
