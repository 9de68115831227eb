/** When the bytes of a stream arrived: enough to play the stream again, small enough for the meta file. */

/** Times that are kept; at this number every second one is dropped and later ones are taken farther apart. */
const MAX = 400;

/** Times of one body; `add` is called for each chunk. */
export class ChunkTimings {
  #bytes: number[] = [];
  #times: number[] = [];
  #gap = 0;

  /** @param bytes received before this chunk @param ms since the exchange began */
  add(bytes: number, ms: number): void {
    const last = this.#times.at(-1);
    if (last !== undefined && ms - last < this.#gap) return;
    this.#bytes.push(bytes);
    this.#times.push(ms);
    if (this.#times.length < MAX) return;
    this.#bytes = this.#bytes.filter((_, i) => i % 2 === 0);
    this.#times = this.#times.filter((_, i) => i % 2 === 0);
    this.#gap = Math.max(1, this.#gap * 2);
  }

  /** `ms:byte` pairs separated by spaces: when the bytes from that offset on arrived. '' for a body in one piece. */
  get text(): string {
    if (this.#times.length < 2) return '';
    return this.#times.map((ms, i) => `${Math.round(ms)}:${this.#bytes[i]}`).join(' ');
  }
}
