/** Gives a name to a file that has none. */

import { memberOf } from '../lib/json/json-members.ts';

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
