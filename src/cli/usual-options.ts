/** Options that several commands share. */

import type { OptionSpec } from './command.ts';

export const jsonOption = (summary = 'print JSON, for scripts'): OptionSpec => ({
  name: 'json',
  summary,
});

export const YES: OptionSpec = { name: 'yes', short: 'y', summary: 'do not ask' };
