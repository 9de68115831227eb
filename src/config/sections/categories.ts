import { words } from '../../lib/text/words.ts';
import { closed, count, list, type ProgramForm, text } from '../file/schema.ts';

export const CATEGORIES = [
  'vision',
  'websearch',
  'longcontext',
  'background',
  'thinking',
  'coding',
  'tools',
  'default',
] as const;
export type Category = (typeof CATEGORIES)[number];

export const categories = closed('Settings of the classifier behind `when: { category: … }`.', {
  longcontext_tokens: count('Tokens above which a prompt is longcontext.', 1).byDefault(60_000),
  background_models: list(
    text('A glob.'),
    'Model names that agents use for small side jobs.',
  ).byDefault(['*haiku*', '*-nano*', '*-flash-lite*']),
  coding_tools: list(
    text('A glob.'),
    'Names of tools that only an agent that edits code has; case does not matter.',
  ).byDefault(
    words(`
      edit multiedit notebook*edit write editor apply_patch exec_command edit_file write_file
      create_file write_to_file replace replace_in_file search_replace str_replace* insert_edit_into_file
    `),
  ),
});

export type CategorySettings = ProgramForm<typeof categories>;
