/** Bounds what clients' unfinished messages take, which the runtime puts together without telling anybody. */

/** A connection, as far as it matters here. */
export interface IdleSocket {
  /** Whose it is. */
  readonly owner: string;
  /** Nothing runs or waits on it. */
  readonly idle: boolean;
  /** When its last message was whole, or it was opened; only grows. */
  readonly heardAt: number;
  /** Closes it; its client connects again when it has something to say. */
  yield(): void;
}

export interface IdleSocketsOptions {
  /** Bytes of unfinished bodies, of all clients together; 0 = no limit. */
  readonly unfinishedBytes: () => number;
  /** Bytes of memory of this process. */
  readonly memory: () => number;
  readonly everyMs?: number;
}

const LOOK_EVERY_MS = 1000;
/** Idle connections of all owners that are kept in any case, by turns; each owner keeps one. */
const MAX_KEPT = 12;
/** So many messages fill the bytes that there are for unfinished bodies. */
const MESSAGES = 16;
/** Of `unfinished_bytes`: a process that is smaller than this holds no more than it may. */
const USUAL_TIMES = 2;

/** Bytes of one message. @param bodyBytes of a body; 0 = no limit, as for `unfinishedBytes` */
export const messageBytes = (bodyBytes: number, unfinishedBytes: number): number =>
  unfinishedBytes > 0 ? Math.min(bodyBytes, Math.ceil(unfinishedBytes / MESSAGES)) : bodyBytes;

/**
 * What has come of a message shows in the memory of the process alone. So connections on which nothing runs are closed
 * where that has grown and an owner has many of them: those first that have been silent for the longest time.
 */
export class IdleSockets {
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly open: ReadonlySet<IdleSocket>,
    private readonly options: IdleSocketsOptions,
  ) {}

  /** One more is open. */
  watch(): void {
    if (this.#timer !== undefined || this.open.size <= MAX_KEPT) return;
    this.#timer = setInterval(() => this.#look(), this.options.everyMs ?? LOOK_EVERY_MS);
    this.#timer.unref();
  }

  #look(): void {
    if (this.open.size <= MAX_KEPT) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const most = this.options.unfinishedBytes();
    if (most === 0 || this.options.memory() <= USUAL_TIMES * most) return;
    const owners = Map.groupBy(
      [...this.open].filter(({ idle }) => idle),
      ({ owner }) => owner,
    );
    const kept = Math.max(1, Math.floor(MAX_KEPT / owners.size));
    for (const sockets of owners.values()) {
      if (sockets.length <= kept) continue;
      sockets.sort((a, b) => b.heardAt - a.heardAt);
      for (const socket of sockets.slice(kept)) socket.yield();
    }
  }
}
