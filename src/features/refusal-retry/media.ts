/** Leaves out images, files and recordings that a vendor has refused. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type {
  MediaLimit,
  MediaPlace,
  MediaRefusal,
} from '../../conversation/refusal/refused-media.ts';
import type { Block, Conversation, MediaBlock } from '../../conversation/types.ts';
import { imageHeader } from '../../lib/bytes/image-header.ts';
import type { NoteStripped } from './thinking.ts';

interface Found extends MediaPlace {
  readonly media: MediaBlock;
}

/**
 * Puts a mention in place of each block that the refusal means: the one that it names and those that can be seen to be
 * broken or over the limit, else all of the kind. An image with a wrong media type gets its own.
 * @param own the message's indices are those of this conversation
 */
export function withoutMedia(
  conversation: Conversation,
  refusal: MediaRefusal,
  own: boolean,
  stripped: NoteStripped,
): Conversation {
  const found = mediaIn(conversation, refusal);
  const meant = meantBy(refusal, found, own);
  if (meant.size === 0) return conversation;
  const left = (block: Block): Block => {
    if (block.type === 'tool-result') {
      const content = mapUnchanged(block.content, left);
      return content === block.content ? block : editNode(block, { content });
    }
    if (block.type !== 'media' || !meant.has(block)) return block;
    const named = withItsType(block);
    if (named !== undefined) return named;
    const name = block.filename ?? block.title;
    const more = name === undefined ? '' : `: ${name}`;
    return {
      type: 'text',
      text: `[${block.media} not shown, the vendor refused it${more}]`,
      cache: block.cache,
    };
  };
  const turns = mapUnchanged(conversation.turns, (turn) => mapBlocks(turn, left));
  stripped('/messages', `${meant.size} of ${found.length}: ${refusal.media.join(', ')}`);
  return withParts(conversation, { turns });
}

function mediaIn({ turns }: Conversation, { media }: MediaRefusal): readonly Found[] {
  const found: Found[] = [];
  const add = (one: Block, place: MediaPlace) => {
    if (one.type === 'media' && media.includes(one.media)) found.push({ ...place, media: one });
  };
  turns.forEach(({ blocks }, message) => {
    blocks.forEach((block, at) => {
      add(block, { message, block: at, inner: undefined });
      if (block.type !== 'tool-result') return;
      block.content.forEach((one, inner) => {
        add(one, { message, block: at, inner });
      });
    });
  });
  return found;
}

function meantBy(
  { at, limit, older }: MediaRefusal,
  found: readonly Found[],
  own: boolean,
): ReadonlySet<MediaBlock> {
  const set = (these: readonly Found[]) => new Set(these.map(({ media }) => media));
  if (older === true) {
    const last = found.at(-1)?.message;
    return set(found.filter(({ message }) => message !== last));
  }
  if (limit?.of === 'count') return set(found.slice(0, Math.max(0, found.length - limit.most)));
  const named = own && at !== undefined ? found.filter((one) => isAt(one, at)) : [];
  const others = found.filter(({ media }) =>
    limit === undefined ? isBroken(media) : isOver(media, limit),
  );
  return set(named.length + others.length > 0 ? [...named, ...others] : found);
}

const isAt = (one: Found, at: MediaPlace): boolean =>
  one.message === at.message &&
  one.block === at.block &&
  (at.inner === undefined || one.inner === at.inner);

function isOver({ source }: MediaBlock, limit: MediaLimit): boolean {
  if (source.type !== 'base64') return false;
  if (limit.of === 'bytes') return source.data.length > limit.most;
  if (limit.of === 'pages') return pagesOf(source.data) > limit.most;
  const header = imageHeader(source.data);
  if (header === undefined) return false;
  const { width, height } = header;
  return limit.of === 'longer-side'
    ? Math.max(width, height) > limit.most
    : Math.min(width, height) <= limit.most;
}

/** The pages of a PDF that can be counted without reading it whole as a document. */
const pagesOf = (base64: string): number =>
  Buffer.from(base64, 'base64')
    .toString('latin1')
    .match(/\/Type ?\/Page(?![a-zA-Z])/g)?.length ?? 0;

/** An image whose bytes are of another type than it says, with their type; undefined: it says what it is, or is no image. */
function withItsType(block: MediaBlock): MediaBlock | undefined {
  const { source, media } = block;
  if (media !== 'image' || source.type !== 'base64') return undefined;
  const { mediaType } = imageHeader(source.data) ?? source;
  const same = mediaType === (source.mediaType === 'image/jpg' ? 'image/jpeg' : source.mediaType);
  return same ? undefined : editNode(block, { source: { ...source, mediaType } });
}

/** Base64 characters at both ends of a file in which its marks stand; a multiple of four. */
const EDGE = 65_536;

/** Can this be seen to be no image or PDF, one that is cut off, empty or locked, or one of another type than it says? */
function isBroken(block: MediaBlock): boolean {
  const { source, media } = block;
  if (source.type !== 'base64' || media === 'audio') return false;
  const { data, mediaType } = source;
  if (data === '' || /[^\w+/=\s-]/.test(data)) return true;
  const from = Math.max(0, data.length - EDGE);
  const end = Buffer.from(data.slice(from - (from % 4)), 'base64').toString('latin1');
  if (media === 'document') {
    if (mediaType !== 'application/pdf') return false;
    const start = Buffer.from(data.slice(0, EDGE), 'base64').toString('latin1');
    return !start.includes('%PDF-') || start.includes('/Encrypt') || end.includes('/Encrypt');
  }
  const header = imageHeader(data);
  if (header === undefined || withItsType(block) !== undefined) return true;
  if (header.mediaType === 'image/png') return !end.includes('IEND');
  return header.mediaType === 'image/jpeg' && !end.includes('\xff\xd9');
}
