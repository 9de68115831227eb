/** Vision: each memory space has its own descriptions of images, and outside of spaces each key has. */

import type { Config } from '../config/config.ts';
import { type VisionFeature, type VisionOptions, visionFeature } from '../features/vision/index.ts';
import { NewestMap } from '../lib/loop/newest-map.ts';
import { sha256Hex } from '../lib/text/sha256.ts';
import { type HashedName, nameHash } from '../state/erasures.ts';
import { type Entries, type Prefetch, type Room, renamed } from '../state/key-value/room.ts';
import { event } from '../telemetry/log.ts';
import type { FeaturesOptions } from './exchange-setup.ts';

/** So many memory spaces and keys keep their feature ready; the least recently used one goes first. */
const MAX_SPACES = 100;

/**
 * The key of an image in the store. A description answers to what its user wrote beside the image, so another key must
 * not get it.
 */
const ownKey = (key: string, owner: string): string =>
  owner === '' ? key : sha256Hex(`${owner.length}\n${owner}\n${key}`);

export function visionBySpace(
  { log, ask }: Pick<FeaturesOptions, 'log' | 'ask'>,
  descriptions: Room<string>,
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
  const common = visionFeature({ ...shared, store: () => descriptions });
  const spaces = new NewestMap<string, VisionFeature>(MAX_SPACES);
  const owners = new NewestMap<string, VisionFeature>(MAX_SPACES);
  const entriesOf = (space: string | undefined, owner: string): Entries<string> =>
    space === undefined
      ? renamed(descriptions, (key) => ownKey(key, owner))
      : descriptions.of(nameHash(space));
  function kept(
    features: Map<string, VisionFeature>,
    name: string,
    store: VisionOptions['store'],
  ): VisionFeature {
    const own = features.get(name) ?? visionFeature({ ...shared, store });
    features.set(name, own);
    return own;
  }
  return {
    /** @param space the memory space of the exchange; undefined: it has none */
    of(space: string | undefined, owner: string): VisionFeature {
      if (space !== undefined) return kept(spaces, space, () => entriesOf(space, owner));
      return owner === '' ? common : kept(owners, owner, () => entriesOf(undefined, owner));
    },
    /** Reads ahead the descriptions that the feature looks up. */
    prefetchOf(space: string | undefined, owner: string): Prefetch | undefined {
      if (descriptions.prefetch === undefined) return undefined;
      const { prefetch } = entriesOf(space, owner);
      return (keys) => (keys.length === 0 ? undefined : prefetch?.(keys));
    },
    eraseSpace(space: string | HashedName): void {
      for (const name of spaces.keys()) if (nameHash(name) === nameHash(space)) spaces.delete(name);
    },
  };
}
