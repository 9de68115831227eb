/** Eyes for text models: images a target cannot see are put into words by a model that can. */

import { refusesImages } from '../../conversation/refusal.ts';
import { targetName } from '../../conversation/target.ts';
import type { Conversation } from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import type { Feature, FeatureContext } from '../feature.ts';
import {
  type DescriberOptions,
  describer,
  type OnDescribed,
  type VisionSettings,
} from './describer.ts';
import { descriptionText, IMAGE_PLACEHOLDER, imageKey, imagesOf, replaceImages } from './images.ts';

export type { AskVisionModel, VisionSettings } from './describer.ts';
export { openDescriptionStore } from './description-store.ts';

export interface VisionOptions extends Omit<DescriberOptions, 'allow' | 'log'> {
  /** What is configured now; undefined: nobody looks at images, words take their place. */
  readonly settings: () => VisionSettings | undefined;
  readonly allow?: DescriberOptions['allow'];
  readonly log?: DescriberOptions['log'];
}

/**
 * What the body of a request with an image holds, in any of the protocols; the last two bring a
 * history along that is not in the body.
 */
const MARKS = needles(
  '"image',
  '"input_image',
  'data:image',
  '"previous_response_id"',
  '"item_reference"',
);

/** The feature, whose looks at images an exchange may be told of. */
export interface VisionFeature extends Feature {
  prepare(
    conversation: Conversation,
    context: FeatureContext,
    signal: AbortSignal,
    onLook?: OnDescribed,
  ): Promise<void>;
}

/** The feature as one exchange has it: each look that it waits for is told. */
export const withRunReport = (vision: VisionFeature, onLook: OnDescribed | undefined): Feature =>
  onLook === undefined
    ? vision
    : {
        ...vision,
        prepare: (conversation, context, signal) =>
          vision.prepare(conversation, context, signal, onLook),
      };

/**
 * The feature. It concerns targets whose profile says `images: false`, and, where somebody can look, one that
 * has just refused images. `before` has images
 * described that nobody described yet; `request` puts the descriptions (or, without one, a neutral
 * mention) in their place. The text depends on the image's description alone, so that a history stays
 * the same byte for byte on every later turn.
 */
export function visionFeature(options: VisionOptions): VisionFeature {
  const { store } = options;
  const describers = describer({ allow: [], log: () => {}, ...options });
  return {
    name: 'vision',
    repairsRefusal: (refusal) => options.settings() !== undefined && refusesImages(refusal),
    mayApply(body, context) {
      if (!cannotSeeImages(context)) return false;
      return containsAny(body, MARKS);
    },
    async prepare(conversation, context, signal, onLook) {
      const { target } = context;
      const settings = options.settings();
      if (settings === undefined || !cannotSeeImages(context)) return;
      // A model that is named as its own eyes sees nothing either.
      if (settings.target === targetName(target)) return;
      const images = imagesOf(conversation);
      if (images.length > 0) await describers.describe(images, settings, signal, onLook);
    },
    request(conversation, context) {
      if (!cannotSeeImages(context)) return conversation;
      const { client, notes } = context;
      const where = client === 'openai-responses' ? '/input' : '/messages';
      return replaceImages(conversation, (image) => {
        const key = imageKey(image);
        const description = key === undefined ? undefined : store.get(key);
        const what = description === undefined ? 'image as a mention' : 'image as a description';
        notes.add('content_bridged', where, what);
        return description === undefined ? IMAGE_PLACEHOLDER : descriptionText(description);
      });
    },
  };
}

const cannotSeeImages = ({ target, refusal }: FeatureContext) =>
  target.profile.images === false || (refusal !== undefined && refusesImages(refusal));
