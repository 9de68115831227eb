/** Starts listening, reports readiness, and stops gracefully. */

import type { Answer, Routes } from '../lib/http/routes.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { type Connections, timerSeconds } from './connections.ts';
import type { ErrorResponses } from './errors.ts';
import { localUrl, mendedPath, pathOf, targetOf } from './request-path.ts';
import type { SocketConnection, Sockets } from './websocket/sockets.ts';

/** What a server serves. */
export interface App {
  /** Matched by the server itself. */
  readonly routes: Routes;
  /** Every other path or method. Never rejects. */
  readonly fetch: (request: Request) => Promise<Answer>;
  /** Gets the server when it runs, and a call for every request. */
  readonly connections?: Pick<Connections, 'attach' | 'arrived'> | undefined;
  /** Gets the server when it runs. Left out: no WebSocket is served. */
  readonly sockets?: Pick<Sockets, 'attach' | 'handlers' | 'goAway'> | undefined;
}

/**
 * An app of native routes, and of `rest` for every other path or method. A base URL with one slash or `/v1`
 * too many is understood.
 */
export function answerAll(
  routes: Routes,
  rest: { fetch(request: Request): Response | Promise<Response> },
  {
    errors,
    connections,
    sockets,
  }: { readonly errors: ErrorResponses } & Pick<App, 'connections' | 'sockets'>,
): App {
  return {
    routes,
    connections,
    sockets,
    async fetch(request) {
      const refusal = errors.refusalOf(request);
      if (refusal !== undefined) return refusal;
      const path = mendedPath(pathOf(request.url));
      if (path === undefined) return rest.fetch(request);
      const answers = memberOf(routes, path);
      const answer = answers?.[request.method as keyof typeof answers];
      if (answer !== undefined) return answer(Object.assign(request, { params: {} }));
      const query = targetOf(request.url).slice(pathOf(request.url).length);
      return rest.fetch(new Request(localUrl(path + query).href, request));
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
  /** From now on each answer is the last of its connection, so that clients turn to another process. */
  sendAway(): void;
  /** The same for as long as many connections are open. */
  crowded(is: boolean): void;
  /**
   * Takes no new connections and waits for open streams, at most the drain time; a second call ends
   * at once.
   */
  stop(): Promise<void>;
}

/** @throws with a sentence for a person when the address cannot be had */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { host, port } = options;
  let server: ReturnType<typeof listen>;
  try {
    // With reusePort, any other process that sets it too can share the port, such as a gateway left running. So the port must be free first.
    if (options.reusePort && !options.joins && port !== 0) bindAlone(host, port);
    server = listen(options);
    options.app.connections?.attach(server);
    options.app.sockets?.attach(server);
  } catch (thrown) {
    const code = (thrown as { code?: unknown }).code;
    throw new Error(
      code === 'EADDRINUSE'
        ? `Port ${port} on ${host} is taken; is hopgate already running? Choose another with --port.`
        : `Cannot listen on ${host}:${port}: ${thrown instanceof Error ? thrown.message : thrown}`,
      { cause: thrown },
    );
  }
  const bound = server.port ?? port;
  let stopping = false;
  let away = false;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    sendAway() {
      away = true;
      server.reload(handlers(lastAnswers(options.app)));
      options.app.sockets?.goAway();
    },
    crowded(is) {
      if (!away) server.reload(handlers(is ? lastAnswers(options.app) : options.app));
    },
    async stop() {
      if (stopping) {
        await server.stop(true);
        return;
      }
      stopping = true;
      options.app.sockets?.goAway();
      const late = Bun.sleep(options.drainMs).then(() => server.stop(true));
      await Promise.race([server.stop(false), late]);
    },
  };
}

/** Binds the port for a moment. @throws as {@link listen} does, EADDRINUSE also where it could be shared */
function bindAlone(hostname: string, port: number): void {
  Bun.listen({ hostname, port, socket: { data() {} } }).stop(true);
}

// The runtime takes no more.
const MOST_IDLE_S = 255;

/**
 * The readers of bodies bound them. The server itself closes idle connections, and connections whose first head
 * is incomplete after twelve seconds; `Connections` says when a request may take longer.
 */
function listen({ app, host, port, reusePort, idleMs }: ServerOptions) {
  return Bun.serve<SocketConnection>({
    hostname: host,
    port,
    reusePort,
    idleTimeout: Math.min(MOST_IDLE_S, timerSeconds(idleMs)),
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

type Answerer = <R extends Request>(
  answer: (request: R) => Answer | Promise<Answer>,
) => (request: R) => Answer | Promise<Answer>;

/** The same application, each answer made through `around`. */
function through(app: App, around: Answerer): Pick<App, 'routes' | 'fetch'> {
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
