/** The protocols of suites that hold a table of their own for each: Gemini has its suites beside its codec and in `e2e/`. */

import type { ProtocolName } from '../../src/conversation/types.ts';

export type SuiteProtocol = Exclude<ProtocolName, 'google-gemini'>;
