/** When the bytes of a stream came: enough to play it again, little enough to keep beside it. */

/** Places that are remembered; beyond it every second one is forgotten and the next ones are farther apart. */
const MOST = 400;

/** Notes of one body, `add` once for each chunk. */
export class ChunkTimings {
  #bytes: number[] = [];
  #times: number[] = [];
  #gap = 0;

  /** @param bytes that had come before this chunk @param ms since the exchange began */
  add(bytes: number, ms: number): void {
    const last = this.#times.at(-1);
    if (last !== undefined && ms - last < this.#gap) return;
    this.#bytes.push(bytes);
    this.#times.push(ms);
    if (this.#times.length < MOST) return;
    this.#bytes = this.#bytes.filter((_, i) => i % 2 === 0);
    this.#times = this.#times.filter((_, i) => i % 2 === 0);
    this.#gap = Math.max(1, this.#gap * 2);
  }

  /** `ms:bytes` with spaces between: from this byte on, at this time. '' when it came in one piece. */
  get text(): string {
    if (this.#times.length < 2) return '';
    return this.#times.map((ms, i) => `${Math.round(ms)}:${this.#bytes[i]}`).join(' ');
  }
}
