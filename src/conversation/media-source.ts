import { memberOf } from '../lib/json/json-members.ts';
import type { MediaBlock, MediaSource } from './types.ts';

export function mediaKind(mediaType: string): MediaBlock['media'] {
  const kind = mediaType.slice(0, Math.max(0, mediaType.indexOf('/')));
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document';
}

/**
 * Many clients send PDFs and recordings as `image_url`, so the media type of base64 data decides. Where it tells nothing, the
 * kind of the part does.
 */
export function kindOfData(source: MediaSource, part: MediaBlock['media']): MediaBlock['media'] {
  if (source.type !== 'base64') return part;
  const kind = mediaKind(source.mediaType);
  return kind !== 'document' || source.mediaType === 'application/pdf' ? kind : part;
}

/** The source of a URL: `data:<type>;base64,<data>` becomes a base64 source. */
export function sourceOfUrl(url: string): MediaSource {
  if (!url.startsWith('data:')) return { type: 'url', url };
  const comma = url.indexOf(',');
  const head = url.slice(5, comma < 0 ? 5 : comma).split(';');
  if (comma < 0 || head.at(-1) !== 'base64') return { type: 'url', url };
  const data = usualBase64(url.slice(comma + 1));
  return { type: 'base64', mediaType: head[0] || 'text/plain', data };
}

/**
 * Base64 as every vendor takes it: in the usual alphabet, padded, without line breaks. Google's client for Python writes bytes in
 * the alphabet for URLs (googleapis/python-genai, _common.py: `ser_json_bytes='base64'` of pydantic).
 */
export function usualBase64(given: string): string {
  let data = given;
  if (data.includes('-')) data = data.replaceAll('-', '+');
  if (data.includes('_')) data = data.replaceAll('_', '/');
  if (data.includes('\n')) data = data.replaceAll('\n', '').replaceAll('\r', '');
  const beyond = data.length % 4;
  return beyond < 2 ? data : data + '='.repeat(4 - beyond);
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

const OFFICE = 'application/vnd.openxmlformats-officedocument';
const OPEN = 'application/vnd.oasis.opendocument';

/** File extensions of media types whose subtype is not the extension. Source: IANA's registrations. */
const ENDINGS: Readonly<Record<string, string>> = {
  [`${OFFICE}.wordprocessingml.document`]: 'docx',
  [`${OFFICE}.spreadsheetml.sheet`]: 'xlsx',
  [`${OFFICE}.presentationml.presentation`]: 'pptx',
  [`${OPEN}.text`]: 'odt',
  [`${OPEN}.spreadsheet`]: 'ods',
  [`${OPEN}.presentation`]: 'odp',
  'application/epub+zip': 'epub',
  'application/javascript': 'js',
  'application/msword': 'doc',
  'application/octet-stream': 'bin',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.ms-powerpoint': 'ppt',
  'text/calendar': 'ics',
  'text/javascript': 'js',
  'text/markdown': 'md',
  'text/plain': 'txt',
  'text/tab-separated-values': 'tsv',
  'text/x-python': 'py',
};

/** A name for a file of this media type. Vendors read the kind of file from its extension. */
export function fileName(mediaType: string): string {
  const type = mediaType.split(';')[0]!.trim().toLowerCase();
  const known = memberOf(ENDINGS, type);
  if (known !== undefined) return `document.${known}`;
  const second = (type.split('/')[1] ?? '').replace(/^x-/, '').replace(/^.*\+/, '');
  return `document.${/^[a-z0-9]+$/.test(second) ? second : 'bin'}`;
}
