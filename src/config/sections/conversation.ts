/** The section `conversation`: language and texts of the tools that a chat app's conversation offers to models. */

import { choice, closed, text } from '../file/schema.ts';

/** The texts that can be replaced. */
const TEXTS = {
  mentioned: 'What is_mentioned answers when the model was mentioned.',
  not_mentioned: 'What is_mentioned answers when it was not.',
  no_messages: 'What get_other_members_messages answers when there are none.',
  recall_description: 'The description of recall_memory.',
  query_description: 'The description of its query.',
  since_description: 'The description of its beginning.',
  until_description: 'The description of its end.',
  forget_description: 'The description of forget_memory.',
  ids_description: 'The description of its ids.',
  messages_description: 'The description of get_other_members_messages.',
  mention_description: 'The description of is_mentioned.',
  recall_limit: 'The sentence about the limit of recalls; {max} is the number.',
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
