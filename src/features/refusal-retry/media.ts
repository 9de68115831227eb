/** Leaves out images, files and recordings that a vendor has refused. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type {
  MediaLimit,
  MediaPlace,
  MediaRefusal,
} from '../../conversation/refusal/refused-media.ts';
import { type Target, targetName } from '../../conversation/target.ts';
import type { Block, Conversation, MediaBlock } from '../../conversation/types.ts';
import { imageHeader } from '../../lib/bytes/image-header.ts';
import type { FeatureContext } from '../feature.ts';
import type { NoteStripped } from './thinking.ts';

interface Found extends MediaPlace {
  readonly media: MediaBlock;
}

/**
 * Puts a mention in place of each block that the refusal means: the one that it names and those that can be seen to be
 * broken or over the limit, else all of the kind. An image with a wrong media type gets its own.
 * @param own the message's indices are those of this conversation
 * @param onSure hears of those that would be refused in every request
 */
export function withoutMedia(
  conversation: Conversation,
  refusal: MediaRefusal,
  own: boolean,
  stripped: NoteStripped,
  onSure: (media: MediaBlock) => void,
): Conversation {
  const found = mediaIn(conversation, refusal);
  const { media, isSure } = meantBy(refusal, found, own);
  if (isSure) media.forEach(onSure);
  if (media.size === 0) return conversation;
  stripped('/messages', `${media.size} of ${found.length}: ${refusal.media.join(', ')}`);
  return withMentions(conversation, (one) => media.has(one));
}

/** The same for media that the target has refused before: it is not asked with them again. */
export function withoutKnownMedia(
  conversation: Conversation,
  isKnown: (media: MediaBlock) => boolean,
  stripped: NoteStripped,
): Conversation {
  const left = withMentions(conversation, isKnown);
  if (left !== conversation) stripped('/messages', 'refused before');
  return left;
}

function withMentions(
  conversation: Conversation,
  isRefused: (media: MediaBlock) => boolean,
): Conversation {
  const left = (block: Block): Block => {
    if (block.type === 'tool-result') {
      const content = mapUnchanged(block.content, left);
      return content === block.content ? block : editNode(block, { content });
    }
    if (block.type !== 'media' || !isRefused(block)) return block;
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
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
}

/** So many are remembered; then all are forgotten. */
const MAX_KNOWN = 10_000;

type Asked = Pick<FeatureContext, 'target' | 'owner'>;

/** Media in base64 that targets have refused, by a hash: for the requests of the same owner that bring them again. */
export class RefusedMedia {
  readonly #targets = new Map<string, Set<bigint>>();
  readonly #seed = crypto.getRandomValues(new BigUint64Array(1))[0]!;
  #count = 0;

  /** Has the target refused any? */
  isKnown(target: Target): boolean {
    return this.#targets.has(targetName(target));
  }

  has({ target, owner }: Asked, media: MediaBlock): boolean {
    const hash = this.#hashOf(media, owner);
    return hash !== undefined && this.#targets.get(targetName(target))?.has(hash) === true;
  }

  add(asked: Asked, media: MediaBlock): void {
    const { target, owner } = asked;
    const hash = this.#hashOf(media, owner);
    if (hash === undefined || this.has(asked, media)) return;
    if (++this.#count > MAX_KNOWN) {
      this.#targets.clear();
      this.#count = 1;
    }
    const name = targetName(target);
    const hashes = this.#targets.get(name) ?? new Set();
    this.#targets.set(name, hashes.add(hash));
  }

  #hashOf({ source }: MediaBlock, owner = ''): bigint | undefined {
    if (source.type !== 'base64') return undefined;
    return Bun.hash.wyhash(`${owner}\n${source.mediaType} ${source.data}`, this.#seed);
  }
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

/** `isSure`: they are refused for what they are, not for their number or place, and none is only under suspicion. */
function meantBy(
  { at, limit, older }: MediaRefusal,
  found: readonly Found[],
  own: boolean,
): { readonly media: ReadonlySet<MediaBlock>; readonly isSure: boolean } {
  const these = (list: readonly Found[], isSure: boolean) => ({
    media: new Set(list.map(({ media }) => media)),
    isSure,
  });
  if (older === true) {
    const last = found.at(-1)?.message;
    return these(
      found.filter(({ message }) => message !== last),
      false,
    );
  }
  if (limit?.of === 'count') {
    return these(found.slice(0, Math.max(0, found.length - limit.most)), false);
  }
  const named = own && at !== undefined ? found.filter((one) => isAt(one, at)) : [];
  const others = found.filter(({ media }) =>
    limit === undefined ? isBroken(media) : isOver(media, limit),
  );
  const meant = [...named, ...others];
  return meant.length > 0 ? these(meant, true) : these(found, found.length === 1);
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
  if (source.type !== 'base64' || media === 'audio' || media === 'video') return false;
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
