import type { MediaSource } from './types.ts';

/** The source of a URL: `data:<type>;base64,<data>` becomes a base64 source. */
export function sourceOfUrl(url: string): MediaSource {
  if (!url.startsWith('data:')) return { type: 'url', url };
  const comma = url.indexOf(',');
  const head = url.slice(5, comma < 0 ? 5 : comma).split(';');
  if (comma < 0 || head.at(-1) !== 'base64') return { type: 'url', url };
  return { type: 'base64', mediaType: head[0] || 'text/plain', data: url.slice(comma + 1) };
}

/** The URL of a source; undefined for a file id. */
export function urlOfSource(source: MediaSource): string | undefined {
  switch (source.type) {
    case 'url':
      return source.url;
    case 'base64':
      return `data:${source.mediaType};base64,${source.data}`;
    case 'text':
      return `data:${source.mediaType};base64,${Buffer.from(source.text).toString('base64')}`;
    case 'file-id':
      return undefined;
  }
}
