/** Options, and choices of options, that several commands share. */

import type { OptionSpec } from './command.ts';

/** The choices wherever a protocol is named. */
export { PROTOCOL_NAMES } from '../config/sections/providers.ts';

export const jsonOption = (summary = 'print JSON, for scripts'): OptionSpec => ({
  name: 'json',
  summary,
});

export const YES: OptionSpec = { name: 'yes', short: 'y', summary: 'do not ask' };
