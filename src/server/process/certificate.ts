/** The certificate of the server: read at the start, followed on disk, and replaced while connections are open. */

import { watchFile } from '../../config/file/watch-file.ts';
import type { CertificateFiles } from '../../config/sections/listen.ts';
import {
  endsSoon,
  isOpenToOthers,
  isSamePair,
  type KeyPair,
  readKeyPair,
} from '../../lib/http/key-pair.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { event, type Log } from '../../telemetry/log.ts';

export interface CertificateOptions {
  readonly files: CertificateFiles;
  readonly log: Log;
  /** Of several processes that use it, the one that warns. */
  readonly warns: boolean;
}

// Both files of a pair are written one after the other.
const WATCH = { debounceMs: 500, pollMs: 5000 };
const DAY_MS = 86_400_000;

export class Certificate {
  readonly #log: Log;
  readonly #warns: boolean;
  #files: CertificateFiles;
  #pair: KeyPair;
  #use: ((pair: KeyPair) => void) | undefined;
  #watches: readonly (() => void)[] = [];
  #daily: ReturnType<typeof setInterval> | undefined;
  /** The last reason why new files were not taken; logged once. */
  #rejected = '';

  /** @throws UnusableKeyPair */
  constructor({ files, log, warns }: CertificateOptions) {
    this.#files = files;
    this.#log = log;
    this.#warns = warns;
    this.#pair = readKeyPair(files.certFile, files.keyFile);
  }

  get pair(): KeyPair {
    return this.#pair;
  }

  /** Watches the files from now on. `use` puts a new pair in force; it throws where that fails. */
  follow(use: (pair: KeyPair) => void): void {
    this.#use = use;
    this.#watch();
    // What was written since the start.
    this.look();
    // What could not be read when it changed is looked at again.
    this.#daily = setInterval(() => {
      this.look();
      if (this.#warns) this.#warnOfEnd();
    }, DAY_MS);
    this.#daily.unref();
    if (this.#warns) this.#warn();
  }

  /** A reload may name other files. */
  configure(files: CertificateFiles): void {
    const { certFile, keyFile } = this.#files;
    if (files.certFile === certFile && files.keyFile === keyFile) return;
    this.#files = files;
    this.#watch();
    this.look();
  }

  /** Reads the files now. A pair that cannot be used is logged, and the old one stays. */
  look(): void {
    if (this.#use === undefined) return;
    const { certFile, keyFile } = this.#files;
    try {
      const pair = readKeyPair(certFile, keyFile);
      this.#rejected = '';
      if (isSamePair(pair, this.#pair)) return;
      this.#use(pair);
      this.#pair = pair;
    } catch (thrown) {
      this.#reject(messageOf(thrown));
      return;
    }
    const { names, until } = this.#pair;
    if (!this.#warns) return;
    event(this.#log, 'tls.renewed', { names, until: new Date(until).toISOString() });
    this.#warn();
  }

  close(): void {
    clearInterval(this.#daily);
    for (const end of this.#watches) end();
    this.#watches = [];
  }

  #watch(): void {
    for (const end of this.#watches) end();
    const { certFile, keyFile } = this.#files;
    this.#watches = [certFile, keyFile].map((file) => watchFile(file, () => this.look(), WATCH));
  }

  #reject(why: string): void {
    if (why === this.#rejected) return;
    this.#rejected = why;
    const kept = 'the certificate that was in force stays in force';
    event(this.#log, 'tls.rejected', { why, kept }, 'error');
  }

  #warn(): void {
    const { keyFile } = this.#files;
    if (isOpenToOthers(keyFile)) event(this.#log, 'tls.key.exposed', { path: keyFile }, 'warn');
    this.#warnOfEnd();
  }

  #warnOfEnd(): void {
    const { names, until } = this.#pair;
    if (!endsSoon(this.#pair, Date.now())) return;
    event(this.#log, 'tls.expires', { names, until: new Date(until).toISOString() }, 'warn');
  }
}
