/** Decodes images and documents of Messages into media blocks. */

import type { MediaBlock, MediaSource } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { decodeCache, objects, string, wireOf } from '../wire.ts';

/** An image or document; undefined for a source that only Messages can express. */
export function decodeMedia(type: 'image' | 'document', value: JsonObject): MediaBlock | undefined {
  const source = isObject(value.source) ? decodeSource(value.source) : undefined;
  if (source === undefined) return undefined;
  const cache = decodeCache(value.cache_control);
  const title = string(value.title);
  const context = string(value.context);
  return {
    type: 'media',
    media: type,
    source,
    ...(title === undefined ? {} : { title }),
    ...(context === undefined ? {} : { context }),
    ...(cache ? { cache } : {}),
    wire: wireOf(value),
  };
}

function decodeSource(source: JsonObject): MediaSource | undefined {
  const data = string(source.data);
  switch (source.type) {
    case 'base64':
      return data === undefined
        ? undefined
        : {
            type: 'base64',
            mediaType: string(source.media_type) ?? 'application/octet-stream',
            data,
          };
    case 'url':
      return typeof source.url === 'string' ? { type: 'url', url: source.url } : undefined;
    case 'file':
      return typeof source.file_id === 'string'
        ? { type: 'file-id', id: source.file_id }
        : undefined;
    case 'text':
      return data === undefined
        ? undefined
        : { type: 'text', mediaType: string(source.media_type) ?? 'text/plain', text: data };
    case 'content':
      return contentSource(source.content);
    default:
      return undefined;
  }
}

/** The source of a document made of blocks; undefined if it holds anything but text. */
function contentSource(content: Json | undefined): MediaSource | undefined {
  if (typeof content === 'string') return { type: 'text', mediaType: 'text/plain', text: content };
  const parts = objects(content);
  if (parts.length === 0 || parts.some((part) => part.type !== 'text')) return undefined;
  const text = parts.map((part) => string(part.text) ?? '').join('\n');
  return { type: 'text', mediaType: 'text/plain', text };
}
