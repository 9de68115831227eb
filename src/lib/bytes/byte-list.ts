/** Bytes in several pieces, joined only for those who need them in one. */

/** The pieces are ranges of buffers that others may hold too: nobody changes them. */
export class ByteList {
  /** Bytes in all. */
  readonly length: number;

  constructor(
    /** In order, none empty. */
    readonly pieces: readonly Uint8Array[],
  ) {
    let length = 0;
    for (const piece of pieces) length += piece.length;
    this.length = length;
  }
}

/** All in one: the same object where it is one already. A list is copied with each call. */
export function wholeBytes(bytes: Uint8Array | ByteList): Uint8Array {
  if (!(bytes instanceof ByteList)) return bytes;
  const { pieces } = bytes;
  if (pieces.length === 1) return pieces[0]!;
  // Not filled with zeros first, and no part of a buffer that others use.
  const whole = Buffer.allocUnsafeSlow(bytes.length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** In order, as they are. */
export const bytePieces = (bytes: Uint8Array | ByteList): readonly Uint8Array[] =>
  bytes instanceof ByteList ? bytes.pieces : [bytes];

/** A copy of the first bytes, at most so many. */
export function firstBytes({ pieces }: ByteList, most: number): Uint8Array {
  const first: Uint8Array[] = [];
  let left = most;
  for (let i = 0; i < pieces.length && left > 0; i++) {
    const part = pieces[i]!.subarray(0, left);
    first.push(part);
    left -= part.length;
  }
  return wholeBytes(new ByteList(first));
}

/** What stands from this byte on. */
export function piecesFrom({ pieces }: ByteList, from: number): readonly Uint8Array[] {
  let left = from;
  const rest: Uint8Array[] = [];
  for (const piece of pieces) {
    if (left < piece.length) rest.push(piece.subarray(left));
    left = Math.max(0, left - piece.length);
  }
  return rest;
}
