/** A client of the Responses API over WebSocket, as bare as one can be: what it sends and all that it gets. */

import type { JsonObject } from '../../src/lib/json/json.ts';
import { until } from './until.ts';

export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
}

export class ResponsesSocket {
  /** Everything that came, parsed. */
  readonly frames: JsonObject[] = [];
  end: SocketEnd | undefined;
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => void this.frames.push(JSON.parse(String(data)));
    socket.onclose = ({ code, reason }) => {
      this.end = { code, reason };
    };
  }

  /** @param url `http://…` of a gateway. @throws where the upgrade is refused */
  static async open(
    url: string,
    headers: Readonly<Record<string, string>> = {},
    path = '/v1/responses',
  ): Promise<ResponsesSocket> {
    const socket = new WebSocket(url.replace('http', 'ws') + path, { headers } as never);
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve();
      socket.onerror = () => reject(new Error('the upgrade was refused'));
    });
    return new ResponsesSocket(socket);
  }

  send(frame: JsonObject | string | Uint8Array<ArrayBuffer>): void {
    const raw = typeof frame === 'string' || frame instanceof Uint8Array;
    this.#socket.send(raw ? frame : JSON.stringify(frame));
  }

  /** Asks for a response. */
  create(more: JsonObject): void {
    this.send({ type: 'response.create', ...more });
  }

  /** The nth (from 0) frame that is the end of a response, or an error with a status. */
  last(n = 0, streamId?: string): Promise<JsonObject> {
    const isLast = (frame: JsonObject) =>
      frame.stream_id === streamId &&
      (/^response\.(completed|failed|incomplete)$/.test(String(frame.type)) ||
        (frame.type === 'error' && frame.status !== undefined));
    return until(
      () => this.frames.filter(isLast)[n],
      () => JSON.stringify(this.frames.map(({ type }) => type)),
    );
  }

  closed(): Promise<SocketEnd> {
    return until(() => this.end);
  }

  close(): void {
    this.#socket.close();
  }
}

/** The texts of a response's messages. */
export function textOf(frame: JsonObject): string {
  const { output } = frame.response as { output: { content?: { text?: string }[] }[] };
  return output
    .flatMap(({ content }) => content ?? [])
    .map(({ text }) => text ?? '')
    .join('');
}

export const idOf = (frame: JsonObject): string => (frame.response as { id: string }).id;
