import { join } from 'node:path';
import { choice, closed, count, list, path } from '../file/schema.ts';

export const SAMPLE_MODES = ['off', 'errors', 'all'] as const;
export type SampleMode = (typeof SAMPLE_MODES)[number];

export const samples = closed('Recording of exchanges.', {
  mode: choice(SAMPLE_MODES, 'Which exchanges are kept on disk, credentials masked.').byDefault(
    'errors',
  ),
  dir: path('The folder.').orElse('$HOPGATE_HOME/samples', ({ environment }) =>
    join(environment.home, 'samples'),
  ),
  keep_days: count('Days after which a sample is deleted; 0 = never.').byDefault(14),
  keep_failed_days: count('The same for exchanges in which something failed; 0 = never.').byDefault(
    90,
  ),
  max_bytes: count(
    'Above this size the oldest are deleted, failed ones last (under load, above a tenth more and what is being written). 0 = no limit.',
  ).byDefault(2 ** 31),
  max_count: count(
    'Above this number the oldest of the key that has most are deleted; failed ones are counted separately (under load, above a tenth more and a few hundred). 0 = no limit.',
  ).byDefault(20_000),
  redact: list(
    choice(['texts', 'images'], 'A kind of content.'),
    'Content that is blanked in recorded bodies; structure and lengths stay.',
  ).byDefault([]),
});
