/** Replaces images by descriptions from a vision model, for targets that cannot see images. */

import { refusesImages } from '../../conversation/refusal/refused-media.ts';
import { targetName } from '../../conversation/target.ts';
import type { Conversation } from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import { intoEntries } from '../../state/key-value/file-store.ts';
import type { RoomKind } from '../../state/key-value/room.ts';
import { type Feature, type FeatureContext, type ReadAhead, readAhead } from '../feature.ts';
import {
  type DescriberOptions,
  describer,
  type OnDescribed,
  type VisionSettings,
} from './describer.ts';
import {
  descriptionText,
  IMAGE_PLACEHOLDER,
  imageKey,
  imageKeys,
  imagesOf,
  replaceImages,
} from './images.ts';

export type { AskVisionModel, VisionSettings } from './describer.ts';
export interface VisionOptions extends Omit<DescriberOptions, 'allow' | 'log'> {
  /** The current configuration; undefined: no vision model, so a placeholder replaces each image. */
  readonly settings: () => VisionSettings | undefined;
  readonly allow?: DescriberOptions['allow'];
  readonly log?: DescriberOptions['log'];
}

/**
 * A body with an image contains one of these, in any of the protocols. The last two refer to a history
 * that is not in the body.
 */
const MARKS = needles(
  '"image',
  '"input_image',
  'data:image',
  '"previous_response_id"',
  '"item_reference"',
);

/** The feature, whose `prepare` can report descriptions to the exchange. */
export interface VisionFeature extends Feature {
  prepare(
    conversation: Conversation,
    context: FeatureContext,
    signal: AbortSignal,
    onLook?: OnDescribed,
  ): Promise<void>;
}

/** The feature for one exchange, with a callback for each description that it waits for. */
export const withRunReport = (vision: VisionFeature, onLook: OnDescribed): Feature => ({
  ...vision,
  prepare: (conversation, context, signal) => vision.prepare(conversation, context, signal, onLook),
});

/** The feature for one exchange with a store that is elsewhere. */
export const withReadAhead = (vision: VisionFeature, ahead: ReadAhead): VisionFeature => ({
  ...vision,
  async prepare(conversation, context, ...rest) {
    if (!cannotSeeImages(context)) return;
    const reading = readAhead(ahead, conversation, context, imageKeys);
    if (reading !== undefined) await reading;
    await vision.prepare(conversation, context, ...rest);
  },
});

/**
 * Applies to targets whose profile says `images: false` and, with a vision model, to a target that has
 * just refused images. `prepare` has new images described; `request` replaces each image by its
 * description, or by a neutral placeholder without one. The text depends on the description alone, so
 * the history stays the same byte for byte on every later turn.
 */
export function visionFeature(options: VisionOptions): VisionFeature {
  const { store } = options;
  const imageDescriber = describer({ allow: [], log: () => {}, ...options });
  return {
    name: 'vision',
    repairsRefusal: (refusal) => options.settings() !== undefined && refusesImages(refusal),
    mayApply(body, context) {
      if (!cannotSeeImages(context)) return false;
      return containsAny(body, MARKS);
    },
    async prepare(conversation, context, signal, onLook) {
      const { target, payer } = context;
      const settings = options.settings();
      if (settings === undefined || !cannotSeeImages(context)) return;
      // The vision model itself cannot be the target that cannot see.
      if (settings.target === targetName(target)) return;
      const images = imagesOf(conversation);
      if (images.length === 0) return;
      await imageDescriber.describe(images, settings, signal, onLook, payer);
    },
    request(conversation, context) {
      if (!cannotSeeImages(context)) return conversation;
      const { client, notes } = context;
      const descriptions = store();
      const where = client === 'openai-responses' ? '/input' : '/messages';
      return replaceImages(conversation, (image) => {
        const key = imageKey(image);
        const description = key === undefined ? undefined : descriptions.find([key]);
        const what = description === undefined ? 'image as a mention' : 'image as a description';
        notes.add('content_bridged', where, what);
        return description === undefined ? IMAGE_PLACEHOLDER : descriptionText(description);
      });
    },
  };
}

const cannotSeeImages = ({ target, refusals }: FeatureContext) =>
  target.profile.images === false || refusals?.some(refusesImages) === true;

/** The first description of an image stays: a history must not change. */
export const DESCRIPTIONS: RoomKind<string> = {
  name: 'images',
  title: 'image descriptions',
  keep: 'first',
  hasGroups: true,
  ttlMs: 30 * 24 * 3_600_000,
  memory: { entries: 500, bytes: Number.POSITIVE_INFINITY },
  file: {
    name: 'descriptions.db',
    version: 3,
    upgrades: {
      2: intoEntries('SELECT key, text AS value, used FROM descriptions', 'descriptions'),
    },
    entries: 20_000,
    bytes: Number.POSITIVE_INFINITY,
    ageMs: Number.POSITIVE_INFINITY,
    flushAfterMs: 50,
  },
};
