/** The WebSockets of a server: the upgrade, the runtime's callbacks, slow readers, and the end of a connection. */

import type { Codec } from '../../codecs/codec.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { TurnStates } from '../../conversation/session/turn-state.ts';
import { WITHOUT_KEY } from '../../keys/principal.ts';
import { FlatHeaders } from '../../lib/http/headers.ts';
import { requestId } from '../../lib/text/ids.ts';
import type { Access } from '../auth.ts';
import { refusedUpgrade } from '../errors.ts';
import type { Receiver, ReceiveSettings } from '../receive.ts';
import { localUrl, targetOf } from '../request-path.ts';
import { gatewayErrorFrame } from './error-frames.ts';
import { type IdleSocket, IdleSockets, messageBytes } from './idle-sockets.ts';
import { LaneMemory, MemoryPool } from './response-memory.ts';
import { type AnswerOptions, type FrameWriter, RunAnswer } from './run-answer.ts';
import { type Run, type SessionPort, SocketSession } from './session.ts';

type Socket = Bun.ServerWebSocket<SocketConnection>;

/** What is needed of the server that runs. */
export interface Upgrader {
  upgrade(request: Request, options: { data: SocketConnection }): boolean;
}

export interface SocketLimits {
  /** Milliseconds; 0 = no limit. */
  readonly connectionMs: number;
  /** Bytes of a request. */
  readonly bodyBytes: number;
  /** As {@link IdleSocketsOptions.unfinishedBytes}. */
  readonly unfinishedBytes: number;
  /** Milliseconds that what runs gets at the end of a connection. */
  readonly endMs: number;
  /** Milliseconds of silence until a sign of life; 0 = none. */
  readonly keepAliveMs: number;
}

export interface SocketsOptions {
  readonly serve: Receiver;
  readonly warmUp: Receiver;
  readonly access: () => Access;
  /** An upgrade was refused. */
  readonly onRefused: ReceiveSettings['onRefused'];
  readonly connections: Pick<ReceiveSettings['connections'], 'hold' | 'ownerOf' | 'release'>;
  /** The address of the client, as far as it is asked for; left out: it never is. */
  readonly address?: (request: Request) => string | undefined;
  readonly limits: () => SocketLimits;
}

/** Seconds after which the runtime asks a silent client whether it is there, and closes when it does not say so. */
const IDLE_S = 120;

/** Characters of conversations that all connections together remember. */
const MAX_REMEMBERED = 256 * 1024 * 1024;

/** The runtime holds so much for a client that does not read before it gives it up; writers wait long before. */
const MAX_BUFFERED = 256 * 1024 * 1024;
const LITTLE_BUFFERED = 64 * 1024;

/** Of errors that a client has not read. */
const MAX_UNREAD = 1024 * 1024;

/** So much above the limit is read, so that it can be refused in words. */
const ROOM_FOR_WORDS = 1024 * 1024;

const MINUTE_MS = 60_000;

/** Close code (the IANA registry). */
const TRY_AGAIN = 1013;
const CLOSE_MS = 500;

const frameBytes = ({ bodyBytes, unfinishedBytes }: SocketLimits): number =>
  messageBytes(bodyBytes, unfinishedBytes);

/** Fields that belong to the upgrade and to no request behind it. */
const OF_THE_UPGRADE = /^(?:connection|upgrade|content-length|transfer-encoding|sec-websocket-.*)$/;
const BETA = 'openai-beta';
const SOCKET_BETA = /^responses_websockets=/;

export class Sockets {
  readonly #pool: MemoryPool;
  readonly #open = new Set<SocketConnection>();
  readonly #idle: IdleSockets;
  #server: Upgrader | undefined;
  #away = false;

  constructor(private readonly options: SocketsOptions) {
    this.#pool = new MemoryPool({
      most: () => options.limits().bodyBytes,
      mostOfAll: MAX_REMEMBERED,
    });
    this.#idle = new IdleSockets(this.#open, {
      unfinishedBytes: () => options.limits().unfinishedBytes,
      memory: () => process.memoryUsage.rss(),
    });
  }

  /** Without a server there is no upgrade. */
  attach(server: Upgrader): void {
    this.#server = server;
  }

  /** For `Bun.serve`. */
  handlers(): Bun.WebSocketHandler<SocketConnection> {
    return {
      open: (socket) => {
        this.#open.add(socket.data);
        socket.data.opened(socket);
        this.#idle.watch();
        if (this.#away) socket.data.session.goAway();
      },
      message: (socket, message) => socket.data.received(message),
      drain: (socket) => socket.data.drained(),
      close: (socket) => {
        this.#open.delete(socket.data);
        socket.data.closed();
      },
      idleTimeout: IDLE_S,
      sendPings: true,
      // Compressing each event costs more than sending it, and memory for each socket.
      perMessageDeflate: false,
      maxPayloadLength: frameBytes(this.options.limits()) + ROOM_FOR_WORDS,
      backpressureLimit: MAX_BUFFERED,
      closeOnBackpressureLimit: true,
    };
  }

  /** Answers the upgrade. Undefined: the connection is a socket now. Never throws. */
  async upgrade(request: Request, codec: Codec): Promise<Response | undefined> {
    const { limits, access, onRefused, connections } = this.options;
    const started = performance.now();
    const refuse = (error: GatewayError) => {
      const id = requestId();
      onRefused(request, codec, id, error, WITHOUT_KEY, performance.now() - started);
      return refusedUpgrade(codec, error, id);
    };
    let owner = '';
    try {
      const principal = await access()(FlatHeaders.from(request.headers));
      owner = connections.ownerOf(request, principal.id);
    } catch (thrown) {
      if (thrown instanceof GatewayError) return refuse(thrown);
      throw thrown;
    }
    if (this.#server === undefined) return refuse(notOffered());
    const data = new SocketConnection(this.options, limits(), this.#pool, request, codec, owner);
    return this.#server.upgrade(request, { data }) ? undefined : refuse(noHandshake());
  }

  /** Clients are sent to another process, or none is left: each connection closes when nothing runs on it. */
  goAway(): void {
    this.#away = true;
    for (const connection of [...this.#open]) connection.session.goAway();
  }
}

/** One connection: the port of its session. */
export class SocketConnection implements SessionPort, FrameWriter, IdleSocket {
  readonly session: SocketSession;
  readonly #memory: LaneMemory;
  heardAt = performance.now();
  readonly #answers = new Set<RunAnswer>();
  readonly #url: string;
  readonly #headers: FlatHeaders;
  readonly #turnStates = new TurnStates();
  readonly #address: string | undefined;
  #socket: Socket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Characters of {@link send} since the client had read all. */
  #unread = 0;
  /** The client is slow. */
  #slow: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  constructor(
    private readonly options: SocketsOptions,
    private readonly limits: SocketLimits,
    pool: MemoryPool,
    request: Request,
    private readonly codec: Codec,

    /** Who holds what its client has sent. */
    readonly owner: string,
  ) {
    this.#memory = new LaneMemory(pool);
    this.#url = localUrl(targetOf(request.url)).href;
    this.#headers = requestHeaders(request.headers);
    this.#address = options.address?.(request);
    const minutes = limits.connectionMs / MINUTE_MS;
    const session = { frameBytes: frameBytes(limits), minutes };
    this.session = new SocketSession(this, session, this.#memory);
  }

  opened(socket: Socket): void {
    this.#socket = socket;
    const { connectionMs, endMs } = this.limits;
    if (connectionMs <= 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = setTimeout(() => this.session.endNow(), endMs);
      this.session.expire();
    }, connectionMs);
  }

  received(message: string | Uint8Array): void {
    this.heardAt = performance.now();
    this.session.receive(message);
  }

  get idle(): boolean {
    return this.session.idle;
  }

  yield(): void {
    this.close(TRY_AGAIN, 'Too many idle connections. Connect again for the next request.');
    // A client that does not answer the close frame would keep what it has sent.
    setTimeout(() => this.#socket?.terminate(), CLOSE_MS).unref();
  }

  closed(): void {
    clearTimeout(this.#timer);
    this.#socket = undefined;
    this.session.closed();
    for (const answer of [...this.#answers]) answer.gone();
    this.drained();
  }

  drained(): void {
    const left = this.#socket?.getBufferedAmount() ?? 0;
    if (this.#slow === undefined || left > LITTLE_BUFFERED) return;
    const { resolve } = this.#slow;
    this.#slow = undefined;
    resolve();
  }

  write(frames: readonly string[]): Promise<void> | undefined {
    const socket = this.#socket;
    if (socket === undefined) return undefined;
    if (frames.length === 1) {
      const took = socket.sendText(frames[0]!) > 0;
      if (took && this.#slow === undefined) return undefined;
    } else {
      socket.cork(() => {
        for (const frame of frames) socket.sendText(frame);
      });
    }
    if (this.#slow !== undefined) return this.#slow.promise;
    if (socket.getBufferedAmount() <= LITTLE_BUFFERED) return undefined;
    this.#slow = Promise.withResolvers();
    return this.#slow.promise;
  }

  /** Beside the answers, whose writers wait: a client that reads none of these is cut off. */
  send(text: string): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    socket.sendText(text);
    if (socket.getBufferedAmount() <= LITTLE_BUFFERED) this.#unread = 0;
    else {
      this.#unread += text.length;
      if (this.#unread > MAX_UNREAD) socket.terminate();
    }
  }

  sendError(error: GatewayError, streamId?: string): void {
    this.send(gatewayErrorFrame(this.codec, error, requestId(), streamId));
  }

  hold(bytes: number): void {
    this.options.connections.hold(this.owner, bytes);
  }

  release(bytes: number): void {
    this.options.connections.release(this.owner, bytes);
  }

  start(run: Run): void {
    const answer = new RunAnswer(this.#answering(), run, this.#memory.of(run.streamId));
    this.#answers.add(answer);
    void answer.done().then(async (status) => {
      this.#answers.delete(answer);
      this.session.ended(run);
      if (status === 401 && !(await this.#isAllowed())) this.session.revoke();
    });
  }

  close(code: number, reason: string): void {
    this.#socket?.close(code, reason);
  }

  #answering(): AnswerOptions {
    const { serve, warmUp } = this.options;
    return {
      serve,
      warmUp,
      codec: this.codec,
      writer: this,
      url: this.#url,
      headers: this.#headers,
      turnStates: this.#turnStates,
      keepAliveMs: this.limits.keepAliveMs,
      address: this.#address,
    };
  }

  /** A key may have been taken away since the upgrade. */
  async #isAllowed(): Promise<boolean> {
    try {
      await this.options.access()(this.#headers);
      return true;
    } catch {
      return false;
    }
  }
}

/** The headers of the requests on this connection. */
function requestHeaders(upgrade: Headers): FlatHeaders {
  const headers = FlatHeaders.from(upgrade).where((name) => !OF_THE_UPGRADE.test(name));
  const betas = headers
    .get(BETA)
    ?.split(',')
    .map((beta) => beta.trim());
  const others = betas?.filter((beta) => !SOCKET_BETA.test(beta));
  if (others === undefined || others.length === betas?.length) return headers;
  if (others.length > 0) headers.set(BETA, others.join(', '));
  return others.length > 0 ? headers : headers.where((name) => name !== BETA);
}

const notOffered = () =>
  new GatewayError('invalid_request', 'WebSocket is not offered here; use POST with streaming.', {
    status: 426,
  });

const noHandshake = () =>
  new GatewayError(
    'invalid_request',
    'This upgrade is no WebSocket handshake (RFC 6455 §4.2.1): it lacks a field, or has a wrong one.',
  );
