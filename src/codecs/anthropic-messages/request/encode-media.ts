/** Encodes images, documents and audio as content blocks of a Messages request. */

import type { Notes } from '../../../conversation/notes.ts';
import type { Profile } from '../../../conversation/profile-facts.ts';
import type { MediaBlock, MediaSource } from '../../../conversation/types.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { encodeCache, ownResidue, rebuilt } from '../wire.ts';

/** Image types that Messages accepts. */
const IMAGES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** The media block, or a line of text and a note if Messages or the vendor does not accept it. */
export function encodeMedia(
  block: MediaBlock,
  where: string,
  profile: Profile,
  notes: Notes,
): JsonObject {
  const source = encodeSource(block, profile);
  if (source === undefined) {
    const name = block.filename ?? block.title;
    notes.add('content_bridged', where, `${block.media} as a line of text`);
    return {
      type: 'text',
      text: `[${block.media}${name === undefined ? '' : ` ${name}`} omitted]`,
    };
  }
  return rebuilt(ownResidue(block), {
    type: block.media,
    source,
    title: block.media === 'document' ? (block.title ?? block.filename) : undefined,
    context: block.context,
    cache_control: encodeCache(block.cache),
  });
}

function encodeSource(block: MediaBlock, profile: Profile): JsonObject | undefined {
  const source = inline(block.source);
  if (block.media === 'image')
    return profile.images === false ? undefined : imageSource(block, source);
  if (block.media === 'document') {
    return profile.documents === false ? undefined : documentSource(block, source);
  }
  return undefined;
}

/** A `data:` URL as a base64 source. */
function inline(source: MediaSource): MediaSource {
  if (source.type !== 'url' || !source.url.startsWith('data:')) return source;
  const comma = source.url.indexOf(',');
  const [mediaType = '', ...flags] = source.url.slice(5, comma).split(';');
  const body = source.url.slice(comma + 1);
  const data = flags.includes('base64')
    ? body
    : Buffer.from(decodeURIComponent(body)).toString('base64');
  return { type: 'base64', mediaType: mediaType === '' ? 'text/plain' : mediaType, data };
}

/** A file id is only valid at the service that issued it. */
const ownFile = (block: MediaBlock) => ownResidue(block) !== undefined;

function imageSource(block: MediaBlock, source: MediaSource): JsonObject | undefined {
  if (source.type !== 'base64') return linkedSource(block, source);
  const type = source.mediaType === 'image/jpg' ? 'image/jpeg' : source.mediaType;
  return IMAGES.has(type) ? { type: 'base64', media_type: type, data: source.data } : undefined;
}

function documentSource(block: MediaBlock, source: MediaSource): JsonObject | undefined {
  if (source.type === 'text') return plainText(source.text);
  if (source.type !== 'base64') return linkedSource(block, source);
  const { mediaType, data } = source;
  if (mediaType === 'application/pdf') return { type: 'base64', media_type: mediaType, data };
  return isText(mediaType) ? plainText(Buffer.from(data, 'base64').toString()) : undefined;
}

function linkedSource(block: MediaBlock, source: MediaSource): JsonObject | undefined {
  if (source.type === 'url') {
    return /^https?:/i.test(source.url) ? { type: 'url', url: source.url } : undefined;
  }
  const isOwnFile = source.type === 'file-id' && ownFile(block);
  return isOwnFile ? { type: 'file', file_id: source.id } : undefined;
}

const isText = (mediaType: string) =>
  mediaType.startsWith('text/') ||
  /^application\/(json|xml|yaml|x-yaml|javascript)/.test(mediaType);

const plainText = (data: string): JsonObject => ({ type: 'text', media_type: 'text/plain', data });
