/** The credentials of a configuration, and those that were fetched for it, in the forms in which a vendor may repeat them. */

import type { Config } from '../config/config.ts';
import { secretsIn } from '../config/secret.ts';
import { fetchedSecrets, onFetched, secretLiterals } from '../lib/text/secret-literals.ts';

interface Known {
  readonly own: readonly string[];
  readonly all: string[];
}

const known = new WeakMap<Config, Known>();
let lists: WeakRef<Known>[] = [];

onFetched(() => {
  lists = lists.filter((list) => list.deref() !== undefined);
  for (const list of lists) fill(list.deref()!);
});

const fill = ({ own, all }: Known): void =>
  void all.splice(0, all.length, ...secretLiterals([...own, ...fetchedSecrets()]));

/** Every spelling of every credential. The list grows with what is fetched while a request is under way. */
export function secretsOf(config: Config): readonly string[] {
  let list = known.get(config);
  if (list === undefined) {
    list = { own: secretsIn(config), all: [] };
    fill(list);
    known.set(config, list);
    lists.push(new WeakRef(list));
  }
  return list.all;
}
