/**
 * Ids of what a vendor keeps: files, containers of code execution, spoken answers. All keys share one account there, so
 * a key may name its own alone.
 */

import { asBuffer, containsAny, needles } from '../lib/bytes/bytes.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../lib/json/json.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { wordSet } from '../lib/text/words.ts';
import { GatewayError } from './errors.ts';
import type { Conversation } from './types.ts';

export type VendorIdKind = 'file' | 'container' | 'audio';

/** Each id, and what it names. */
export type VendorIds = ReadonlyMap<string, VendorIdKind>;

/** Few searches where there is nothing, and the marks to look for behind each that is found. */
type Marks = readonly (readonly [first: readonly Buffer[], then: readonly Buffer[]])[];

/** A name in JSON may be written with escapes. */
const ESCAPED: Marks[number] = [needles('\\u00'), needles('\\u006', '\\u005', '\\u007')];

const holds = (body: Buffer, marks: Marks): boolean =>
  marks.some(([first, then]) => containsAny(body, first) && containsAny(body, then));

const FILES = needles('file_id', 'fileid:', 'mm_file:', '"ms:', '"audio"');

const NAMED: Marks = [
  [FILES, FILES],
  [needles('"container'), needles('"container"', '"container_id"')],
  ESCAPED,
];

/** False: this JSON names nothing that a vendor keeps. Costs native searches. */
export const mayNameVendorIds = (body: Buffer): boolean => holds(body, NAMED);

/**
 * Texts that name a file: Qwen-Long (https://help.aliyun.com/en/model-studio/long-context-qwen-long), Kimi
 * (https://platform.kimi.ai/docs/api/files-upload), MiniMax
 * (https://platform.minimaxi.com/docs/api-reference/file-management-upload).
 */
const FILE_URL = /^\s*(?:fileid|mm_file|ms):\/\//;
const FILE_IN_URL = /(?:fileid|mm_file|ms):\/\/([\w.-]+)/g;

/** All that a request of any protocol names, however deep. Linear in the size of the value. */
export function vendorIdsNamed(value: Json | undefined): VendorIds {
  const ids = new Map<string, VendorIdKind>();
  walk(
    value,
    (name, member) => {
      namedBy(name, member, ids);
      return true;
    },
    (text) => {
      if (!FILE_URL.test(text)) return;
      for (const [, id] of text.matchAll(FILE_IN_URL)) ids.set(id!, 'file');
    },
  );
  return ids;
}

/** Shows every member of every object, and every text. @param enters is what a member holds looked through, too? */
function walk(
  value: Json | undefined,
  enters: (name: string, member: Json | undefined, object: JsonObject) => boolean,
  onText: (text: string) => void = () => {},
): void {
  const open: (Json | undefined)[] = [value];
  while (open.length > 0) {
    const one = open.pop();
    if (typeof one === 'string') onText(one);
    else if (Array.isArray(one)) for (const item of one) open.push(item);
    else if (isObject(one)) {
      for (const [name, member] of Object.entries(one)) {
        if (enters(name, member, one)) open.push(member);
      }
    }
  }
}

function namedBy(name: string, member: Json | undefined, ids: Map<string, VendorIdKind>): void {
  switch (name) {
    case 'file_id':
    case 'container_id':
      if (typeof member === 'string') ids.set(member, name === 'file_id' ? 'file' : 'container');
      break;
    case 'file_ids':
      if (Array.isArray(member)) {
        for (const id of member) if (typeof id === 'string') ids.set(id, 'file');
      }
      break;
    case 'container':
    case 'audio': {
      // Messages and code interpreters take an id alone, too.
      const id = isObject(member) ? member.id : name === 'container' ? member : undefined;
      if (typeof id === 'string') ids.set(id, name);
    }
  }
}

const CODE = needles('code_execution', 'code_interpreter', 'container', '"audio"', '"prompt"');
// Those of Messages that filter their results run code (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool).
const FILTERS = needles('web_search_20', 'web_fetch_20');

const ASKS: Marks = [[CODE, CODE], [FILTERS, FILTERS], ESCAPED];

/** Members that ask for what has an id, or for what the vendor has stored. */
const ASKING = ['container', 'audio', 'prompt'];

/**
 * False: no answer to this request gives out ids.
 * @param conversation as far as it is decoded; else the bytes are searched
 */
export function mayGetVendorIds(body: Buffer, conversation: Conversation | undefined): boolean {
  if (conversation === undefined) return holds(body, ASKS);
  const { tools, origin } = conversation;
  const value = origin?.value;
  return (
    tools.some(({ type }) => type === 'hosted') ||
    ASKING.some((name) => value?.[name] !== undefined)
  );
}

const ISSUED = ['"container"', '"container_id"', '"audio"', 'code_execution_output"', '\\u00'];

/** False: this JSON of an answer gives out nothing. */
export const mayIssueVendorIds = (json: string): boolean =>
  ISSUED.some((mark) => json.includes(mark));

/** Parts of an answer whose members the client or the model names. */
const OTHERS = wordSet('arguments input input_schema metadata parameters schema');

/**
 * All that an answer of Chat, Responses or Messages gives out: whole, or an event of a stream. The files of a search
 * are not among them: it cites those of a store that keys may share.
 */
export function vendorIdsIssued(value: Json | undefined): VendorIds {
  const ids = new Map<string, VendorIdKind>();
  walk(value, (name, member, object) => {
    if (OTHERS.has(name)) return false;
    if (name !== 'file_id' || isMadeByCode(object)) namedBy(name, member, ids);
    return true;
  });
  return ids;
}

/** `code_execution_output` and `bash_code_execution_output` of Messages, `container_file_citation` of Responses. */
const isMadeByCode = ({ type }: JsonObject): boolean =>
  typeof type === 'string' &&
  (type.endsWith('code_execution_output') || type === 'container_file_citation');

/** Those of the ids that other owners have here, and this one has not. Rejects where that cannot be found out. */
export type ForeignIds = (owner: string, ids: readonly string[]) => Promise<readonly string[]>;

/** A 404: one key must not learn which ids another key has. */
export const notMadeHere = (kind: VendorIdKind | 'batch', id: string): GatewayError =>
  new GatewayError(
    'not_found',
    `There is no ${kind} '${printableLine(id, 200)}' that was made with this key through this gateway.`,
    { code: `${kind}_not_found`, retryable: false },
  );

/** @throws GatewayError not_found for what another key has, overloaded where the owners cannot be read */
export async function checkVendorIds(
  ids: VendorIds,
  owner: string,
  foreign: ForeignIds,
): Promise<void> {
  if (ids.size === 0) return;
  let found: readonly string[];
  try {
    found = await foreign(owner, [...ids.keys()]);
  } catch (cause) {
    throw new GatewayError('overloaded', 'The owners of files cannot be read at the moment.', {
      code: 'file_owners_unavailable',
      retryAfter: 5,
      cause,
    });
  }
  const [first] = found;
  if (first !== undefined) throw notMadeHere(ids.get(first) ?? 'file', first);
}

/** {@link checkVendorIds} for a body that is not parsed yet, as those of endpoints. @throws as there */
export async function checkVendorIdsOf(
  body: Uint8Array,
  owner: string,
  foreign: ForeignIds,
): Promise<void> {
  const bytes = asBuffer(body);
  if (mayNameVendorIds(bytes))
    await checkVendorIds(vendorIdsNamed(tryParse(bytes.toString())), owner, foreign);
}
