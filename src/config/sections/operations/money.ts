/** The keys `unpriced` and `spend`: what happens to models without a price, and how long spend rows are kept. */

import { choice, closed, count } from '../../file/schema.ts';

export const unpriced = choice(
  ['count', 'refuse'],
  'Models without a price: count = they are used, but their cost is unknown and no budget counts it; refuse = they are not used.',
).byDefault('count');

export const spend = closed(
  'What requests cost: one row for each try at an upstream, in `$HOPGATE_HOME/state/spend.db`, and in `engines.database` where there is one.',
  {
    keep_days: count(
      'Days after which the rows of single tries are deleted; 0 = never. In a shared database they are deleted by whole months. Totals stay.',
    ).byDefault(90),
    keep_totals_days: count(
      'Days after which totals by hour, day and month are deleted; 0 = never.',
    ).byDefault(0),
  },
);
