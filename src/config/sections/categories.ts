/** The section `categories`: how the built-in classifier tells kinds of requests apart. */

import { type Static, Type } from '@sinclair/typebox';
import { byDefault, closed, count, text } from '../file/schema-types.ts';

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

export const categories = closed(
  {
    longcontext_tokens: byDefault(count('Tokens above which a prompt is longcontext.', 1), 60_000),
    background_models: byDefault(
      Type.Array(text('A glob.'), {
        description: 'Model names that agents use for small side jobs.',
      }),
      ['*haiku*', '*-nano*', '*-flash-lite*'],
    ),
    coding_tools: byDefault(
      Type.Array(text('A glob.'), {
        description: 'Names of tools that only an agent that edits code has; case does not matter.',
      }),
      [
        'edit',
        'multiedit',
        'notebook*edit',
        'write',
        'editor',
        'apply_patch',
        'exec_command',
        'edit_file',
        'write_file',
        'create_file',
        'write_to_file',
        'replace',
        'replace_in_file',
        'search_replace',
        'str_replace*',
        'insert_edit_into_file',
      ],
    ),
  },
  'Settings of the classifier behind `when: { category: … }`.',
);

export interface CategorySettings {
  /** Tokens above which a request is `longcontext`. */
  readonly longcontextTokens: number;
  /** Globs of model names that agents use for small side jobs. */
  readonly backgroundModels: readonly string[];
  /** Globs of tool names that mean "this agent edits files". */
  readonly codingTools: readonly string[];
}

export const resolveCategories = (own: Static<typeof categories>): CategorySettings => ({
  longcontextTokens: own.longcontext_tokens,
  backgroundModels: own.background_models,
  codingTools: own.coding_tools,
});
