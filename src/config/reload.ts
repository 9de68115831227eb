/** Reloads the configuration when its file changes, and keeps the old one when the new one has problems. */

import { statSync } from 'node:fs';
import type { Config } from './config.ts';
import type { Problem } from './file/problem.ts';
import { type WatchTimes, watchFile } from './file/watch-file.ts';
import { type LoadOptions, loadConfig, readConfigFile } from './load.ts';
import { homeModelsPath, modelsStamp } from './models/model-facts.ts';
import { Secret } from './secret.ts';
import { schemeOf } from './sections/listen.ts';

export type ReloadResult =
  | {
      readonly ok: true;
      readonly config: Config;
      readonly warnings: readonly Problem[];
      /** Keys whose change shows only after a restart: `listen`, `workers`, `memory.path`, `engines`. */
      readonly restart: readonly string[];
    }
  | {
      readonly ok: false;
      /** Why the old configuration stays in force. */
      readonly problems: readonly Problem[];
      readonly file?: string;
    };

export interface LiveConfig {
  /** The configuration in force. */
  readonly current: Config;
  /** Loads again (the caller does so on SIGHUP). On success the subscribers are called; they must not throw. */
  reload(): Promise<ReloadResult>;
  /** Calls `listener` after every successful reload; returns a function that ends the subscription. */
  subscribe(listener: (config: Config, result: ReloadResult) => void): () => void;
  /**
   * While there is only the demo model, searches for keys and local servers again, at growing intervals:
   * a server may start later. `report` gets the result of the reload after a find.
   */
  seek(report: (result: ReloadResult) => void, times?: Partial<SeekTimes>): void;
  /** Starts to watch the file, if there is one; `report` gets the result of every reload that this causes. */
  watch(report: (result: ReloadResult) => void, times?: Partial<WatchTimes>): void;
  /** Stops watching. */
  close(): void;
}

/** Milliseconds between two searches. */
export interface SeekTimes {
  readonly first: number;
  readonly longest: number;
}

const SEEK_TIMES: SeekTimes = { first: 2000, longest: 60_000 };
const WATCH_TIMES: WatchTimes = { debounceMs: 150, pollMs: 2000 };

/**
 * A configuration that can be loaded again from where `initial` came from.
 * @param refusal why a valid configuration cannot take effect in this process, as a message
 * @param withFlags a configuration as the flags of this process change it; `initial` is one already
 */
export function liveConfig(
  initial: Config,
  options: LoadOptions,
  refusal: (config: Config) => string | undefined = () => undefined,
  withFlags: (config: Config) => Config = (config) => config,
): LiveConfig {
  let current = initial;
  let endWatch: (() => void) | undefined;
  let running: Promise<unknown> = Promise.resolve();
  const listeners = new Set<(config: Config, result: ReloadResult) => void>();
  const file = initial.source.path;
  // The same file as at the start, even if one of higher precedence exists by now.
  const again: LoadOptions = file === undefined ? options : { ...options, path: file };

  async function load(): Promise<ReloadResult> {
    const loaded = await loadConfig(again);
    if (!loaded.ok) return { ok: false, problems: loaded.problems, file: loaded.file };
    if (current.source.kind === 'file' && loaded.config.source.kind !== 'file') {
      // A file that is just being written looks like this.
      const message = 'names no provider any more';
      return { ok: false, problems: [{ path: 'providers', line: 0, column: 0, message }], file };
    }
    const { config, warnings } = loaded;
    const message = refusal(config);
    if (message !== undefined) {
      return { ok: false, problems: [{ path: 'auth.keys', line: 0, column: 0, message }], file };
    }
    const restart = needRestart(initial, withFlags(config));
    const result = { ok: true, config, warnings, restart } as const;
    current = config;
    for (const listener of listeners) listener(config, result);
    return result;
  }

  // One at a time and in order, so that the last reload decides.
  const reload = (): Promise<ReloadResult> => {
    const next = running.then(load);
    running = next.catch(() => undefined);
    return next;
  };

  const isDemo = ({ source }: Config) => source.kind === 'demo';
  let seeking: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  // What changes before the watch begins is found when it does.
  const isWatched = file !== undefined && !isPipe(file);
  let seen = isWatched ? contentOf(file) : undefined;
  const { home } = options.environment;
  let knownModels = modelsStamp(home);

  return {
    seek(report, times) {
      const { first, longest } = { ...SEEK_TIMES, ...times };
      let pause = first;
      const look = async (): Promise<void> => {
        const found = await loadConfig(again);
        if (closed || !isDemo(current)) return;
        if (found.ok && !isDemo(found.config)) report(await reload());
        pause = Math.min(longest, pause * 2);
        if (!closed && isDemo(current)) later();
      };
      const later = () => {
        seeking = setTimeout(() => void look(), pause);
      };
      if (isDemo(current)) later();
    },
    get current() {
      return current;
    },
    reload,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    watch(report, times) {
      if (endWatch !== undefined || closed) return;
      const follow = (path: string, changed: () => void): (() => void) => {
        const end = watchFile(path, changed, { ...WATCH_TIMES, ...times });
        changed();
        return end;
      };
      const endModels = follow(homeModelsPath(home), () => {
        const now = modelsStamp(home);
        if (now === knownModels) return;
        knownModels = now;
        void reload().then(report);
      });
      endWatch = endModels;
      if (!isWatched) return;
      const endFile = follow(file, () => {
        const content = contentOf(file);
        if (content === seen) return;
        seen = content;
        void reload().then(report);
      });
      endWatch = () => {
        endModels();
        endFile();
      };
    },
    close() {
      closed = true;
      clearTimeout(seeking);
      endWatch?.();
      endWatch = undefined;
    },
  };
}

/** A pipe can be read once: it has no later content. */
const isPipe = (file: string) => statSync(file, { throwIfNoEntry: false })?.isFIFO() === true;

function contentOf(file: string): string | undefined {
  const read = readConfigFile(file);
  return typeof read === 'string' ? read : undefined;
}

function revealed(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value).map(([name, inner]) => [name, revealed(inner)]);
}

function needRestart(started: Config, next: Config): readonly string[] {
  const changed: string[] = [];
  const { host, port } = started.listen;
  const scheme = schemeOf(started.listen);
  if (host !== next.listen.host || port !== next.listen.port || scheme !== schemeOf(next.listen)) {
    changed.push('listen');
  }
  if (started.workers !== next.workers) changed.push('workers');
  if (started.memory.path !== next.memory.path) changed.push('memory.path');
  // Secrets print as a mask and are compared by what they hide.
  if (!Bun.deepEquals(revealed(started.engines), revealed(next.engines))) changed.push('engines');
  return changed;
}
