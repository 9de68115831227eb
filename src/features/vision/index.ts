/** Eyes for text models: images a target cannot see are put into words by a model that can. */

import { type Target, targetName } from '../../conversation/target.ts';
import { holdsAny, marks } from '../../lib/bytes.ts';
import type { Feature } from '../feature.ts';
import { type DescriberOptions, describer, type VisionSettings } from './describe.ts';
import { imageKey, imagesOf, NOT_SHOWN, replaceImages, shownAs } from './images.ts';

export type { AskModel, VisionSettings } from './describe.ts';
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
const MARKS = marks(
  '"image',
  '"input_image',
  'data:image',
  '"previous_response_id"',
  '"item_reference"',
);

/**
 * The feature. It concerns only targets whose profile says `images: false`. `before` has images
 * described that nobody described yet; `request` puts the descriptions (or, without one, a neutral
 * mention) in their place. The text depends on the image's description alone, so that a history stays
 * the same byte for byte on every later turn.
 */
export function visionFeature(options: VisionOptions): Feature {
  const { store } = options;
  const eyes = describer({ allow: [], log: () => {}, ...options });
  return {
    name: 'vision',
    looksAt(body, { target }) {
      if (!isBlind(target)) return false;
      return holdsAny(body, MARKS);
    },
    async before(conversation, { target }, signal) {
      const settings = options.settings();
      if (settings === undefined || !isBlind(target)) return;
      // A model that is named as its own eyes sees nothing either.
      if (settings.target === targetName(target)) return;
      const images = imagesOf(conversation);
      if (images.length > 0) await eyes.describe(images, settings, signal);
    },
    request(conversation, { target, client, notes }) {
      if (!isBlind(target)) return conversation;
      const where = client === 'openai-responses' ? '/input' : '/messages';
      return replaceImages(conversation, (image) => {
        const key = imageKey(image);
        const description = key === undefined ? undefined : store.get(key);
        const what = description === undefined ? 'image as a mention' : 'image as a description';
        notes.add('content_bridged', where, what);
        return description === undefined ? NOT_SHOWN : shownAs(description);
      });
    },
  };
}

const isBlind = ({ profile }: Target) => profile.images === false;
