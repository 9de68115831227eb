/** Puts texts and images in place of a document that holds them, where the target cannot read such a document. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import { refusesImages } from '../../conversation/refusal/refused-media.ts';
import type { Block } from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import type { Feature, FeatureContext } from '../feature.ts';

const MARKS = needles('"document"', '"search_result"');

/** Only Messages has such documents. Its own vendors get them as they are, unless images must be replaced. */
function isNeeded({ client, target, refusals }: FeatureContext): boolean {
  if (client !== 'anthropic-messages') return false;
  const { images, documents } = target.profile;
  if (target.protocol !== client || images === false || documents === false) return true;
  return refusals?.some(refusesImages) === true;
}

/** Place it before every feature that replaces images. */
export const heldParts: Feature = {
  name: 'held-parts',
  mayApply: (body, context) => isNeeded(context) && containsAny(body, MARKS),
  request(conversation, context) {
    if (!isNeeded(context)) return conversation;
    const open = (block: Block): Block | readonly Block[] => {
      if (block.type === 'opaque' && block.parts !== undefined) {
        context.notes.add('content_bridged', '/messages', `${block.name} as its parts`);
        return block.parts;
      }
      if (block.type !== 'tool-result') return block;
      const content = mapUnchanged(block.content, open);
      return content === block.content ? block : editNode(block, { content });
    };
    const turns = mapUnchanged(conversation.turns, (turn) => mapBlocks(turn, open));
    return withParts(conversation, { turns });
  },
};
