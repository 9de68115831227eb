/** Reports keys that vendors refuse, each once a minute: a broken key is met by every request. */

import { Throttle } from '../lib/loop/throttle.ts';

type Tell = (provider: string, key: string, status: number) => void;

/** Passes on the first report of a key, and then one a minute. */
export function refusedKeys(tell: Tell, now?: () => number): Tell {
  const throttle = new Throttle({ everyMs: 60_000, most: 1000, ...(now && { now }) });
  return (provider, key, status) => {
    if (throttle.allows(`${provider} ${key} ${status}`)) tell(provider, key, status);
  };
}
