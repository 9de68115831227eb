/** Tells of keys that vendors refuse, each once in a while: a broken key is met by every request. */

type Tell = (provider: string, key: string, status: number) => void;

const AGAIN_MS = 60_000;
const MOST_KNOWN = 1000;

/** Passes on what is told of a key for the first time, or for the first time in a minute. */
export function refusedKeys(tell: Tell, now: () => number = () => performance.now()): Tell {
  const told = new Map<string, number>();
  return (provider, key, status) => {
    const name = `${provider} ${key} ${status}`;
    const last = told.get(name);
    const time = now();
    if (last !== undefined && time - last < AGAIN_MS) return;
    // Keys come and go with reloads.
    if (told.size >= MOST_KNOWN) told.clear();
    told.set(name, time);
    tell(provider, key, status);
  };
}
