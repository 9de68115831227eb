/** Options that several commands of the table take. */

import type { OptionSpec } from './command.ts';

export const json = (summary = 'print JSON, for scripts'): OptionSpec => ({
  name: 'json',
  summary,
});
