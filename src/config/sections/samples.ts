/** The section `samples`: which exchanges are recorded, where, and for how long. */

import { type Static, Type } from '@sinclair/typebox';
import { type Environment, homePath } from '../environment.ts';
import { byDefault, choice, closed, count, optional, text } from '../file/schema-types.ts';

export const SAMPLE_MODES = ['off', 'errors', 'all'] as const;
export type SampleMode = (typeof SAMPLE_MODES)[number];

export const samples = closed(
  {
    mode: byDefault(
      choice(SAMPLE_MODES, 'Which exchanges are kept on disk, credentials masked.'),
      'errors',
    ),
    dir: optional(text('The folder.'), '$HOPGATE_HOME/samples'),
    keep_days: byDefault(count('Days after which a sample is deleted; 0 = never.'), 14),
    keep_failed_days: byDefault(
      count('The same for exchanges in which something failed; 0 = never.'),
      90,
    ),
    max_bytes: byDefault(
      count(
        'Above this size the oldest are deleted, failed ones last. When very many arrive at once, the size may be exceeded by a tenth and by what is being written. 0 = no limit.',
      ),
      2 ** 31,
    ),
    max_count: byDefault(
      count(
        'Above this number the oldest of the key that has most are deleted; failed ones are counted separately. When very many arrive at once, the number may be exceeded by a tenth and a few hundred. 0 = no limit.',
      ),
      20_000,
    ),
    redact: byDefault(
      Type.Array(choice(['texts', 'images'], 'A kind of content.'), {
        description: 'Content that is blanked in recorded bodies; structure and lengths stay.',
      }),
      [],
    ),
  },
  'Recording of exchanges.',
);

export interface SamplesConfig {
  readonly mode: SampleMode;
  readonly dir: string;
  /** Days; 0 = for ever. */
  readonly keepDays: number;
  /** Days for exchanges in which something failed; 0 = for ever. */
  readonly keepFailedDays: number;
  /** Bytes of all samples together; 0 = no limit. */
  readonly maxBytes: number;
  /** How many that did not fail, and how many that did; 0 = no limit. */
  readonly maxCount: number;
  /** Content that is blanked in kept bodies. */
  readonly redact: readonly ('texts' | 'images')[];
}

export const resolveSamples = (
  own: Static<typeof samples>,
  environment: Environment,
): SamplesConfig => ({
  mode: own.mode,
  dir: homePath(own.dir, 'samples', environment),
  keepDays: own.keep_days,
  keepFailedDays: own.keep_failed_days,
  maxBytes: own.max_bytes,
  maxCount: own.max_count,
  redact: own.redact,
});
