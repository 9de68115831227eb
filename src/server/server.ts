/** Starts listening, reports readiness, and stops gracefully. */

import { stopped } from '../conversation/errors.ts';
import type { ClientAddresses } from '../lib/http/client-address.ts';
import type { KeyPair } from '../lib/http/key-pair.ts';
import { urlHostOf } from '../lib/http/local-address.ts';
import type { Answer, Routes } from '../lib/http/routes.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { type Connections, type Patience, timerSeconds } from './connections.ts';
import type { ErrorResponses } from './errors.ts';
import { handOver } from './process/listening-sockets.ts';
import { localUrl, mendedPath, pathOf, targetOf } from './request-path.ts';
import type { SocketConnection, Sockets, Upgrader } from './websocket/sockets.ts';

/** What a server serves. */
export interface App {
  /** Matched by the server itself. */
  readonly routes: Routes;
  /** Every other path or method. Never rejects. */
  readonly fetch: (request: Request) => Promise<Answer>;
  /** Gets the server when it runs, and a call for every request. */
  readonly connections?: Pick<Connections, 'attach' | 'arrived' | 'cutAll'> | undefined;
  /** Gets the server when it runs. Left out: no WebSocket is served. */
  readonly sockets?: Pick<Sockets, 'attach' | 'handlers' | 'goAway'> | undefined;
}

/**
 * An app of native routes, and of `rest` for every other path or method. A base URL with one slash or `/v1`
 * too many is understood.
 */
export function answerAll(
  routes: Routes,
  rest: (request: Request) => Response | Promise<Response>,
  {
    errors,
    connections,
    addresses,
    sockets,
  }: {
    readonly errors: ErrorResponses;
    readonly addresses: Pick<ClientAddresses, 'restore'>;
  } & Pick<App, 'connections' | 'sockets'>,
): App {
  return {
    routes,
    connections,
    sockets,
    async fetch(request) {
      const refusal = errors.refusalOf(request);
      if (refusal !== undefined) return refusal;
      addresses.restore(request);
      const mended = mendedPath(pathOf(request.url));
      if (mended === undefined) return rest(request);
      const { path, deployment } = mended;
      const answers = memberOf(routes, path);
      const answer = answers?.[request.method as keyof typeof answers];
      if (answer !== undefined) {
        return answer(Object.assign(request, { params: {}, deployment }));
      }
      const query = targetOf(request.url).slice(pathOf(request.url).length);
      return rest(new Request(localUrl(path + query).href, request));
    },
  };
}

/** One request without a server between; paths with named parts are known to a server alone. */
export async function dispatch(app: App, request: Request): Promise<Response> {
  const answers = memberOf(app.routes, pathOf(request.url));
  const answer = answers?.[request.method as keyof typeof answers];
  const given =
    answer === undefined ? app.fetch(request) : answer(Object.assign(request, { params: {} }));
  return (await given) ?? new Response(null, { status: 426 });
}

export interface ServerOptions {
  readonly app: App;
  readonly host: string;
  readonly port: number;
  /** Left out: plain HTTP. */
  readonly tls?: KeyPair | undefined;
  /** Several processes share the port. */
  readonly reusePort: boolean;
  /** It joins those of this program that listen there already; another one's port is taken. */
  readonly joins: boolean;
  /** A connection without a request is closed after so long, at most 255 s; 0 = never. */
  readonly idleMs: number;
  readonly drainMs: number;
}

export interface RunningServer {
  /** `http://127.0.0.1:5520` */
  readonly url: string;
  readonly port: number;
  /**
   * New connections get this certificate. Open ones keep theirs: their streams go on, and each ends with its next
   * answer. No connection is refused or reset.
   * @throws when the system cannot do this; then nothing has changed
   */
  renew(pair: KeyPair): void;
  /** From now on each answer is the last of its connection, so that clients turn to another process. */
  sendAway(): void;
  /** The same for as long as many connections are open. */
  crowded(is: boolean): void;
  /** Closes connections that neither send a request nor wait for an answer. */
  closeIdle(): void;
  /**
   * Takes no new connections and waits for open streams, at most the drain time; a second call ends
   * at once.
   */
  stop(): Promise<void>;
}

/** @throws with a sentence for a person when the address cannot be had */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { host, port } = options;
  try {
    // With reusePort, any other process that sets it too can share the port, such as a gateway left running. So the port must be free first.
    if (options.reusePort && !options.joins && port !== 0) bindAlone(host, port);
    return new Servers(options);
  } catch (thrown) {
    const code = (thrown as { code?: unknown }).code;
    throw new Error(
      code === 'EADDRINUSE'
        ? `Port ${port} on ${host} is taken; is hopgate already running? Choose another with --port.`
        : `Cannot listen on ${host}:${port}: ${thrown instanceof Error ? thrown.message : thrown}`,
      { cause: thrown },
    );
  }
}

/** For the words at the end of exchanges that are cut. */
const LAST_WORDS_MS = 500;
const LOOK_MS = 30;

const HANDS_OVER = process.platform === 'linux';

/** Without a time limit on silent connections, those with an older certificate are closed after so long. */
const MAX_SILENCE_MS = 300_000;

/**
 * The runtime reads a certificate once, when a server begins to listen. So a new certificate is a new server, which
 * gets the listening socket of the one before it; that one goes on with its connections until they have ended.
 */
class Servers implements RunningServer, Patience, Upgrader {
  readonly url: string;
  readonly port: number;
  readonly #options: ServerOptions;
  #newest: Server;
  /** They have open connections and accept no more. */
  readonly #older = new Set<Server>();
  #stopping = false;
  #away = false;
  #crowded = false;

  /** @throws as `Bun.serve` */
  constructor(options: ServerOptions) {
    const { app, host, port, tls } = options;
    // Where a socket cannot be handed over, the next one must be able to join it.
    const reusePort = options.reusePort || (tls !== undefined && !HANDS_OVER);
    this.#options = { ...options, reusePort };
    this.#newest = listen(this.#options);
    this.port = this.#newest.port ?? port;
    const scheme = tls === undefined ? 'http' : 'https';
    this.url = `${scheme}://${urlHostOf(host)}:${this.port}`;
    this.#attach(this.#newest);
    app.sockets?.attach(this);
  }

  /** One server is asked directly, since every request does. */
  #attach(server: Patience): void {
    this.#options.app.connections?.attach(server);
  }

  renew(tls: KeyPair): void {
    const options = { ...this.#options, tls };
    const old = this.#newest;
    if (HANDS_OVER) {
      const next = listen({ ...options, port: 0 });
      if (!handOver(this.port, next.port!)) {
        void next.stop(true);
        throw new Error('the listening socket cannot be handed over on this system');
      }
      this.#newest = next;
    } else {
      this.#newest = listen({ ...options, port: this.port });
    }
    this.#older.add(old);
    this.#attach(this);
    old.reload(handlers(lastAnswers(this.#options.app)));
    this.#setHandlers();
    const { idleMs } = this.#options;
    const retire = () => void old.stop(false).then(() => this.#retired(old));
    // Elsewhere both would accept. Here a connection that is silent now may be about to send a request.
    if (!HANDS_OVER) retire();
    else setTimeout(retire, idleMs > 0 ? idleMs + TIMER_GRAIN_MS : MAX_SILENCE_MS).unref();
  }

  #retired(old: Server): void {
    this.#older.delete(old);
    if (this.#older.size === 0) this.#attach(this.#newest);
  }

  get #all(): readonly Server[] {
    return [this.#newest, ...this.#older];
  }

  get pendingRequests(): number {
    return this.#all.reduce((sum, server) => sum + server.pendingRequests, 0);
  }

  // The runtime finds the connection by the request, whichever of its servers is asked.
  timeout(request: Request, seconds: number): void {
    this.#newest.timeout(request, seconds);
  }

  requestIP(request: Request): Bun.SocketAddress | null {
    return this.#newest.requestIP(request);
  }

  upgrade(request: Request, options: { data: SocketConnection }): boolean {
    for (const server of this.#older) {
      try {
        return server.upgrade(request, options);
      } catch {
        // The request came to another one.
      }
    }
    return this.#newest.upgrade(request, options);
  }

  sendAway(): void {
    this.#away = true;
    this.#setHandlers();
    this.#options.app.sockets?.goAway();
  }

  crowded(is: boolean): void {
    this.#crowded = is;
    if (!this.#away) this.#setHandlers();
  }

  closeIdle(): void {
    for (const server of this.#all) server.closeIdleConnections();
  }

  #setHandlers(): void {
    const { app } = this.#options;
    this.#newest.reload(handlers(this.#away || this.#crowded ? lastAnswers(app) : app));
  }

  async stop(): Promise<void> {
    const stop = (atOnce: boolean) => Promise.all(this.#all.map((server) => server.stop(atOnce)));
    if (this.#stopping) {
      await stop(true);
      return;
    }
    this.#stopping = true;
    this.#options.app.sockets?.goAway();
    const late = Bun.sleep(this.#options.drainMs)
      .then(() => this.#cutAll())
      .then(() => stop(true));
    await Promise.race([stop(false), late]);
  }

  /** Ends what still runs, and waits until that is said. A client that does not read waits in vain. */
  async #cutAll(): Promise<void> {
    this.#options.app.connections?.cutAll(stopped());
    const open = () =>
      this.#all.reduce((sum, one) => sum + one.pendingRequests + one.pendingWebSockets, 0);
    const end = performance.now() + LAST_WORDS_MS;
    do await Bun.sleep(LOOK_MS);
    while (open() > 0 && performance.now() < end);
  }
}

/** Binds the port for a moment. @throws as {@link listen} does, EADDRINUSE also where it could be shared */
function bindAlone(hostname: string, port: number): void {
  Bun.listen({ hostname, port, socket: { data() {} } }).stop(true);
}

// The runtime takes no more.
const MAX_IDLE_S = 255;
// It looks at its timers every four seconds.
const TIMER_GRAIN_MS = 8000;

/**
 * The readers of bodies bound them. The server itself closes idle connections, and connections whose first head
 * is incomplete after twelve seconds; `Connections` says when a request may take longer.
 */
function listen({ app, host, port, tls, reusePort, idleMs }: ServerOptions): Server {
  return Bun.serve<SocketConnection>({
    hostname: host,
    port,
    reusePort,
    ...(tls !== undefined && { tls: { cert: tls.cert, key: tls.key } }),
    idleTimeout: Math.min(MAX_IDLE_S, timerSeconds(idleMs)),
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    ...handlers(app),
  });
}

function handlers(app: App) {
  const { connections } = app;
  const { routes, fetch } =
    connections === undefined
      ? app
      : through(app, (answer) => (request) => {
          connections.arrived();
          return answer(request);
        });
  const all: Record<string, Routes[string]> = {};
  for (const path in routes) {
    all[path] = routes[path]!;
    all[`${path}/`] = routes[path]!;
  }
  return {
    routes: all as Record<string, Bun.Serve.Handler<Request, Server, Answer>>,
    fetch,
    websocket: app.sockets?.handlers() ?? NO_SOCKETS,
  };
}

type Server = Bun.Server<SocketConnection>;

const NO_SOCKETS: Bun.WebSocketHandler<SocketConnection> = { message() {} };

/** Answers in the place of another handler. */
export type Answerer = <R extends Request>(
  answer: (request: R) => Answer | Promise<Answer>,
) => (request: R) => Answer | Promise<Answer>;

/** The same application, each answer made through `around`. */
export function through(app: App, around: Answerer): Pick<App, 'routes' | 'fetch'> {
  const routes: Record<string, Routes[string]> = {};
  for (const path in app.routes) {
    const answers = Object.entries(app.routes[path]!);
    routes[path] = Object.fromEntries(answers.map(([method, answer]) => [method, around(answer)]));
  }
  const fetch = around(app.fetch);
  return { routes, fetch: async (request) => fetch(request) };
}

/** The same application, whose answers each close the connection behind them. */
function lastAnswers(app: App): App {
  const last: Answerer = (answer) => async (request) => {
    const response = await answer(request);
    response?.headers.set('connection', 'close');
    return response;
  };
  return { ...through(app, last), connections: app.connections, sockets: app.sockets };
}
