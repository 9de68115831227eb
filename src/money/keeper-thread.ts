/** A thread that keeps the file of spend: no statement runs on the loop that serves requests. */

import { messageOf } from '../lib/text/thrown.ts';
import { onSetAside } from '../state/versioned-store.ts';
import { takeEarlier } from './earlier-store.ts';
import { type KeepDays, SpendKeeper } from './spend-keeper.ts';
import { fileStore } from './spend-store.ts';

/** Milliseconds that a write waits for another process. */
const BUSY_MS = 1000;

export interface ThreadStart {
  readonly path: string;
  readonly folder: string;
  readonly writer: string;
  readonly hasOthers: boolean;
}

/** To the thread. All but the first have a number, which is in the answer. */
export type ThreadRequest =
  | { readonly start: ThreadStart; readonly keep: KeepDays }
  | {
      readonly ask: number;
      readonly what: 'look' | 'close';
      readonly keep: KeepDays;
      readonly patienceMs?: number;
    };

/** From the thread. */
export type ThreadMessage =
  | { readonly answer: number; readonly through: number }
  | { readonly problem: string }
  | { readonly recovered: true }
  | { readonly refused: string }
  | { readonly aside: { readonly path: string; readonly aside: string; readonly cause: string } };

declare const self: {
  onmessage: ((event: { readonly data: ThreadRequest }) => void) | null;
  postMessage(message: ThreadMessage): void;
};

let keep: KeepDays;
let started: { readonly keeper: SpendKeeper; readonly writer: string } | undefined;
const say = (message: ThreadMessage) => self.postMessage(message);

function start({ path, folder, writer, hasOthers }: ThreadStart): void {
  onSetAside(({ path, aside, cause }) => say({ aside: { path, aside, cause: messageOf(cause) } }));
  const keeper = new SpendKeeper({
    folder,
    path,
    hasOthers,
    own: new Set([writer]),
    open: () => fileStore(path, BUSY_MS),
    keep: () => keep,
    takeEarlier: (store) => takeEarlier(store, path),
    onProblem: (problem) => say({ problem }),
    onRecovered: () => say({ recovered: true }),
    onRefused: (refused) => say({ refused }),
    onLost: () => {},
  });
  started = { keeper, writer };
}

self.onmessage = async ({ data }) => {
  keep = data.keep;
  if ('start' in data) {
    start(data.start);
    return;
  }
  const { keeper, writer } = started!;
  const { ask, what, patienceMs = 0 } = data;
  if (what === 'look') await keeper.look();
  else await keeper.close(patienceMs);
  say({ answer: ask, through: keeper.through(writer) });
  // Its timers are over. An exit of its own accord is an end in order.
  if (what === 'close') process.exit(0);
};
