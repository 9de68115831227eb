/** The engines that the configuration names; without any, nothing is loaded and nothing runs. */

import type { EnginesConfig } from '../../config/sections/engines.ts';
import { type TextSeal, textSeal } from '../text-seal.ts';
import type { Engine, EngineState, KeyValue, Objects, Sql } from './engine.ts';
import { ObjectStore } from './objects.ts';
import { PostgresDatabase } from './postgres.ts';
import { ValkeyCache } from './valkey.ts';

export interface Engines {
  readonly cache: KeyValue | undefined;
  readonly database: Sql | undefined;
  readonly objects: Objects | undefined;
  /** For texts, before they go to an engine. */
  readonly seal: TextSeal;
  /** Those that are configured. */
  readonly all: readonly Engine[];
  /** Connects in the background. */
  open(): void;
  close(): Promise<void>;
}

/** @param onChange an engine is reached for the first time, is away, or is back */
export function openEngines(
  config: EnginesConfig,
  onChange: (state: EngineState) => void,
): Engines {
  const cache = config.cache && new ValkeyCache(config.cache, onChange);
  const database = config.database && new PostgresDatabase(config.database, onChange);
  const objects = config.objects && new ObjectStore(config.objects, onChange);
  const all = [cache, database, objects].filter((engine) => engine !== undefined);
  return {
    cache,
    database,
    objects,
    seal: textSeal(config.seal.map((secret) => secret.reveal())),
    all,
    open() {
      for (const engine of all) void engine.open();
    },
    async close() {
      await Promise.all(all.map((engine) => engine.close()));
    },
  };
}
