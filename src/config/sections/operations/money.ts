/** The keys `unpriced` and `spend`: what happens to models without a price, and how long spend rows are kept. */

import { byDefault, choice, closed, count } from '../../file/schema.ts';

export const unpriced = byDefault(
  choice(
    ['count', 'refuse'],
    'Models without a price: count = they are used, but their cost is unknown and no budget counts it; refuse = they are not used.',
  ),
  'count',
);

export const spend = closed(
  {
    keep_days: byDefault(
      count(
        'Days after which the rows of single tries are deleted; 0 = never. In a shared database they are deleted by whole months. Totals stay.',
      ),
      90,
    ),
    keep_totals_days: byDefault(
      count('Days after which totals by hour, day and month are deleted; 0 = never.'),
      0,
    ),
  },
  'What requests cost: one row for each try at an upstream, in `$HOPGATE_HOME/state/spend.db`, and in `engines.database` where there is one.',
);
