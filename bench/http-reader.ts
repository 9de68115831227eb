/** Reads HTTP/1.1 answers from raw bytes as they come: heads, fixed lengths, chunked bodies, bodies until close. */

export interface ReplyEvents {
  head(status: number): void;
  /** Body bytes `[start, end)` of `chunk`; the chunk belongs to the caller. */
  body(chunk: Buffer, start: number, end: number): void;
  /** The answer is complete. `keepAlive`: another may follow on this connection. */
  end(keepAlive: boolean): void;
}

export interface ReplyReader {
  push(chunk: Buffer): void;
  /** The connection was closed; true where that is how the running answer ends. */
  closed(): boolean;
}

type State = 'head' | 'length' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'until-close';

const CR = 13;
const LF = 10;

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/** A reader for the answers of one connection, one after the other. @throws on bytes that are not HTTP */
export function createReplyReader(events: ReplyEvents): ReplyReader {
  let state: State = 'head';
  let head = '';
  let left = 0;
  let size = 0;
  let inExtension = false;
  let lineLength = 0;
  let keepAlive = true;

  const finish = () => {
    state = 'head';
    events.end(keepAlive);
  };

  const readHead = (chunk: Buffer, from: number): number => {
    const found = head === '' ? chunk.indexOf('\r\n\r\n', from) : -1;
    let next: number;
    if (found >= 0) {
      head = chunk.toString('latin1', from, found);
      next = found + 4;
    } else {
      const joined = head + chunk.toString('latin1', from);
      const at = joined.indexOf('\r\n\r\n');
      if (at < 0) {
        head = joined;
        return chunk.length;
      }
      next = from + at + 4 - head.length;
      head = joined.slice(0, at);
    }
    const text = head;
    head = '';
    startBody(text);
    return next;
  };

  const startBody = (text: string) => {
    if (!text.startsWith('HTTP/1.')) throw new Error(`not HTTP: ${text.slice(0, 40)}`);
    const status = Number(text.slice(9, 12));
    if (status === 100) return;
    keepAlive = !/\r\nconnection:\s*close/i.test(text);
    events.head(status);
    const length = /\r\ncontent-length:\s*(\d+)/i.exec(text);
    if (/\r\ntransfer-encoding:\s*chunked/i.test(text)) {
      state = 'size';
      size = 0;
      inExtension = false;
    } else if (length !== null) {
      left = Number(length[1]);
      if (left === 0) finish();
      else state = 'length';
    } else if (status === 204 || status === 304) {
      finish();
    } else {
      keepAlive = false;
      state = 'until-close';
    }
  };

  const readSize = (chunk: Buffer, from: number): number => {
    let i = from;
    while (i < chunk.length) {
      const byte = chunk[i++]!;
      if (byte === LF) {
        left = size;
        lineLength = 0;
        state = size === 0 ? 'trailer' : 'chunk';
        return i;
      }
      if (byte === CR || inExtension) continue;
      const digit = hexDigit(byte);
      if (digit >= 0) size = size * 16 + digit;
      else inExtension = true;
    }
    return i;
  };

  const readTrailer = (chunk: Buffer, from: number): number => {
    let i = from;
    while (i < chunk.length) {
      const byte = chunk[i++]!;
      if (byte === CR) continue;
      if (byte !== LF) lineLength++;
      else if (lineLength > 0) lineLength = 0;
      else {
        finish();
        return i;
      }
    }
    return i;
  };

  const take = (chunk: Buffer, from: number): number => {
    const end = Math.min(chunk.length, from + left);
    left -= end - from;
    events.body(chunk, from, end);
    return end;
  };

  return {
    push(chunk) {
      let i = 0;
      while (i < chunk.length) {
        if (state === 'chunk') {
          i = take(chunk, i);
          if (left === 0) {
            state = 'chunk-end';
            left = 2;
          }
        } else if (state === 'chunk-end') {
          const skip = Math.min(left, chunk.length - i);
          i += skip;
          left -= skip;
          if (left === 0) {
            state = 'size';
            size = 0;
            inExtension = false;
          }
        } else if (state === 'size') i = readSize(chunk, i);
        else if (state === 'trailer') i = readTrailer(chunk, i);
        else if (state === 'length') {
          i = take(chunk, i);
          if (left === 0) finish();
        } else if (state === 'until-close') {
          events.body(chunk, i, chunk.length);
          i = chunk.length;
        } else i = readHead(chunk, i);
      }
    },
    closed() {
      if (state !== 'until-close') return false;
      finish();
      return true;
    },
  };
}
