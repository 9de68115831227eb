/** Vision: each memory space has its own descriptions of images, and outside of spaces each key has. */

import { createHash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import {
  type DescriptionStore,
  type VisionFeature,
  type VisionOptions,
  visionFeature,
} from '../features/vision/index.ts';
import { type HashedName, nameHash } from '../state/erasures.ts';
import { event } from '../telemetry/log.ts';
import type { FeaturesOptions } from './exchange-setup.ts';

/** So many memory spaces and keys keep their feature ready; the least recently used one goes first. */
const MAX_SPACES = 100;

/**
 * The key of an image in the store. A description answers to what its user wrote beside the image, so another key must
 * not get it.
 */
export const ownKey = (key: string, owner: string): string =>
  owner === ''
    ? key
    : createHash('sha256').update(`${owner.length}\n${owner}\n${key}`).digest('hex');

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
  const owners = new Map<string, VisionFeature>();
  const ofOwner = (owner: string): VisionOptions['store'] => ({
    get: (key) => descriptions.get(ownKey(key, owner)),
    put: (key, text) => descriptions.put(ownKey(key, owner), text),
    settled: async (key) => descriptions.settled?.(ownKey(key, owner)),
  });
  const storeOf = (space: string): VisionOptions['store'] => ({
    get: (key) => descriptions.of(space).get(key),
    put: (key, text) => descriptions.of(space).put(key, text),
    settled: async (key) => descriptions.of(space).settled?.(key),
  });
  function kept(
    features: Map<string, VisionFeature>,
    name: string,
    store: (name: string) => VisionOptions['store'],
  ): VisionFeature {
    const own = features.get(name) ?? visionFeature({ ...shared, store: store(name) });
    features.delete(name);
    features.set(name, own);
    if (features.size > MAX_SPACES) features.delete(features.keys().next().value!);
    return own;
  }
  return {
    /** @param space the memory space of the exchange; undefined: it has none */
    of(space: string | undefined, owner: string): VisionFeature {
      if (space !== undefined) return kept(spaces, space, storeOf);
      return owner === '' ? common : kept(owners, owner, ofOwner);
    },
    eraseSpace(space: string | HashedName): void {
      for (const name of spaces.keys()) if (nameHash(name) === nameHash(space)) spaces.delete(name);
      descriptions.eraseSpace(space);
    },
  };
}
