/** Vision: each memory space has its own descriptions of images, and all other exchanges share one set. */

import type { Config } from '../config/config.ts';
import {
  type DescriptionStore,
  type VisionFeature,
  type VisionOptions,
  visionFeature,
} from '../features/vision/index.ts';
import { type HashedName, nameHash } from '../lib/store/erasures.ts';
import { event } from '../telemetry/log.ts';
import type { FeaturesOptions } from './exchange-setup.ts';

/** So many memory spaces keep their feature ready; the least recently used one goes first. */
const MOST_SPACES = 100;

/** @param descriptions the store on disk, opened when an image comes */
export function visionBySpace(
  { log, ask }: Pick<FeaturesOptions, 'log' | 'ask'>,
  descriptions: DescriptionStore,
  settings: () => Config['serverTools'],
) {
  const shared = {
    allow: settings().webFetch?.allow ?? [],
    settings: () => settings().vision,
    log: (name, fields) => event(log, name, fields),
    askModel: async (target, conversation, signal, payer) => {
      const reply = await ask(target, conversation, signal, payer);
      const texts = reply.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []));
      return { text: texts.join(''), usage: reply.usage };
    },
  } satisfies Omit<VisionOptions, 'store'>;
  const common = visionFeature({ ...shared, store: descriptions });
  const spaces = new Map<string, VisionFeature>();
  const storeOf = (space: string): VisionOptions['store'] => ({
    get: (key) => descriptions.of(space).get(key),
    put: (key, text) => descriptions.of(space).put(key, text),
    settled: async (key) => descriptions.of(space).settled?.(key),
  });
  return {
    /** @param space the memory space of the exchange; undefined: it has none */
    of(space: string | undefined): VisionFeature {
      if (space === undefined) return common;
      const own = spaces.get(space) ?? visionFeature({ ...shared, store: storeOf(space) });
      spaces.delete(space);
      spaces.set(space, own);
      if (spaces.size > MOST_SPACES) spaces.delete(spaces.keys().next().value!);
      return own;
    },
    eraseSpace(space: string | HashedName): void {
      for (const name of spaces.keys()) if (nameHash(name) === nameHash(space)) spaces.delete(name);
      descriptions.eraseSpace(space);
    },
  };
}
