/** Invented migrations between versions of the configuration, for tests of how they are applied. */

import { isMap, isScalar } from 'yaml';
import type { ConfigMigration } from '../../src/config/file/migrations.ts';

/** A key gets another name, and a value another unit. */
export const STEPS: readonly ConfigMigration[] = [
  {
    change: '"address" is called "listen"',
    apply: ({ contents }) => {
      const pair = isMap(contents)
        ? contents.items.find(({ key }) => isNamed(key, 'address'))
        : undefined;
      if (pair !== undefined && isScalar(pair.key)) pair.key.value = 'listen';
    },
  },
  {
    change: 'keep_alive is in seconds',
    apply: (document) => {
      const given = document.get('keep_alive');
      if (typeof given === 'number') document.set('keep_alive', given / 1000);
    },
  },
];
const isNamed = (key: unknown, name: string) => isScalar(key) && key.value === name;
