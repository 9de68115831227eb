/** The listening socket of a process, with its certificate, and with a pause when descriptors run out. */

import type { LimitsConfig } from '../../config/sections/limits.ts';
import type { Listen } from '../../config/sections/listen.ts';
import type { Log } from '../../telemetry/log.ts';
import { type App, type RunningServer, startServer } from '../server.ts';
import { Certificate } from './certificate.ts';
import { type Descriptors, watchDescriptors } from './descriptors.ts';

export interface ListenerOptions {
  readonly app: App;
  readonly log: Log;
  readonly listen: Listen;
  readonly limits: Pick<LimitsConfig, 'idleConnectionMs' | 'drainMs'>;
  /** As of the server's options. */
  readonly reusePort: boolean;
  readonly joins: boolean;
  /** This process warns about the certificate, for all processes of the port. */
  readonly isFirst: boolean;
}

export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: RunningServer;
  readonly #certificate: Certificate | undefined;
  #descriptors: Descriptors | undefined;

  private constructor(
    options: ListenerOptions,
    server: RunningServer,
    certificate: Certificate | undefined,
  ) {
    this.#options = options;
    this.#server = server;
    this.#certificate = certificate;
    certificate?.follow((pair) => {
      server.renew(pair);
      this.#descriptors?.listensAnew();
    });
  }

  /** @throws with a sentence for a person when the address or the certificate cannot be used */
  static async start(options: ListenerOptions): Promise<Listener> {
    const { app, log, listen, limits, reusePort, joins, isFirst } = options;
    const { host, port, tls } = listen;
    const certificate = tls && new Certificate({ files: tls, log, warns: isFirst });
    const server = await startServer({
      app,
      host,
      port,
      tls: certificate?.pair,
      reusePort,
      joins,
      idleMs: limits.idleConnectionMs,
      drainMs: limits.drainMs,
    });
    return new Listener(options, server, certificate);
  }

  get url(): string {
    return this.#server.url;
  }

  get port(): number {
    return this.#server.port;
  }

  /** A reload may name other files of the certificate; everything else of `listen` is that of the start. */
  configure({ tls }: Listen): void {
    if (tls !== undefined) this.#certificate?.configure(tls);
  }

  /** Reads the files of the certificate now, whether or not they have changed. */
  look(): void {
    this.#certificate?.look();
  }

  watchDescriptors(): void {
    this.#descriptors = watchDescriptors({
      log: this.#options.log,
      onCrowded: (crowded) => this.#server.crowded(crowded),
      onFull: () => this.#server.closeIdle(),
    });
  }

  sendAway(): void {
    this.#server.sendAway();
  }

  stop(): Promise<void> {
    this.#certificate?.close();
    return this.#server.stop();
  }

  /** Ends what watches the socket. */
  close(): void {
    this.#certificate?.close();
    this.#descriptors?.close();
  }
}
