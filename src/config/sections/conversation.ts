import { choice, closed, text } from '../file/schema.ts';

/** The texts that can be replaced. */
const TEXTS = {
  mentioned: 'Answer of is_mentioned, if mentioned.',
  not_mentioned: 'Answer of is_mentioned, if not.',
  no_messages: 'Answer of get_other_members_messages without messages.',
  recall_description: 'Description of recall_memory.',
  query_description: 'Description of its query.',
  since_description: 'Description of its beginning.',
  until_description: 'Description of its end.',
  forget_description: 'Description of forget_memory.',
  ids_description: 'Description of its ids.',
  messages_description: 'Description of get_other_members_messages.',
  mention_description: 'Description of is_mentioned.',
  recall_limit: 'Sentence about the limit of recalls; {max} is the number.',
};

export const conversation = closed('Conversation tools of chat apps.', {
  locale: choice(
    ['auto', 'zh', 'en'],
    'The language of the texts of tools that models read; auto: that of the conversation.',
  ).byDefault('auto'),
  texts: closed(
    'Your own texts in place of the built-in ones.',
    Object.fromEntries(
      Object.entries(TEXTS).map(([key, description]) => [
        key,
        text(description).optional("the locale's text"),
      ]),
    ),
  )
    .asWritten()
    .byDefault({}),
});
