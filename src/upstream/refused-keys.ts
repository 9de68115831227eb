/** Reports keys that vendors refuse, each once a minute: a broken key is met by every request. */

type Tell = (provider: string, key: string, status: number) => void;

const AGAIN_MS = 60_000;
const MOST_KNOWN = 1000;

/** Passes on the first report of a key, and then one a minute. */
export function refusedKeys(tell: Tell, now: () => number = () => performance.now()): Tell {
  const reported = new Map<string, number>();
  return (provider, key, status) => {
    const name = `${provider} ${key} ${status}`;
    const last = reported.get(name);
    const time = now();
    if (last !== undefined && time - last < AGAIN_MS) return;
    // Keys come and go with reloads.
    if (reported.size >= MOST_KNOWN) reported.clear();
    reported.set(name, time);
    tell(provider, key, status);
  };
}
