/** Reads a multipart form as it comes, byte by byte where it must: its fields, and where the model's name stands. */

import { type GatewayError, invalid, missing } from '../../conversation/errors.ts';
import { checkedModel } from '../../gateway/client-request.ts';
import { percentDecoded, printableLine } from '../../lib/text/printable-text.ts';

/** A field as a record of the form shows it: never the bytes of a file. */
export interface FormField {
  readonly name: string;
  readonly filename?: string;
  readonly contentType?: string;
  /** Of its value. */
  readonly bytes: number;
  /** The beginning of a text; left out for files. */
  readonly value?: string;
}

/** A field whose value is read. */
interface OpenField {
  readonly name: string;
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
  bytes: number;
  /** Of a text, as far as it is kept. */
  readonly kept: Uint8Array[];
  keptBytes: number;
}

type State = 'opening' | 'boundary-end' | 'headers' | 'value' | 'last-line' | 'done';

/** Fields by which this gateway goes, and those by which vendors charge. Files and lists may be there more than once. */
const SINGLE: ReadonlySet<string> = new Set([
  'model',
  'n',
  'quality',
  'response_format',
  'size',
  'stream',
]);

// More than any form of these endpoints has.
const MAX_FIELDS = 256;
/** Limit for the headers of one field. */
const HEADER_BYTES = 8192;
/** Of a text's value. The names of models are shorter. */
const KEPT_BYTES = 4096;
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{1,70}$/;

const PLAIN = /^[a-z0-9_]*$/;

const CR = 13;
const LF = 10;
const DASH = 45;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A name as a lax parser may read it: without letter case, quotes, escapes, white space and the brackets of a list. */
function plainName(name: string): string {
  if (PLAIN.test(name)) return name;
  const bare = percentDecoded(name).replace(/\[.*/s, '');
  return bare
    .toUpperCase()
    .toLowerCase()
    .replace(/[^a-z0-9_]/g, '');
}

/** The boundary in a `content-type`. @throws GatewayError invalid_request that names the header */
export function boundaryOf(contentType: string): string {
  const boundary = readParameters(contentType)?.get('boundary');
  if (boundary === undefined || !BOUNDARY.test(boundary) || boundary.endsWith(' ')) {
    throw invalid("The 'content-type' of the form has no valid boundary.", 'content-type');
  }
  return boundary;
}

/**
 * A parser of `multipart/form-data` (RFC 7578) that is stricter than it need be: of a form that two parsers could
 * read in two ways the vendor might take another model than this gateway. So there is nothing but line ends before the
 * first boundary and behind the last one, no line ends in a bare LF, no header is folded or repeated, and `model` is there
 * once. Memory and time per byte are bounded. Errors are `invalid_request` and name the field.
 */
export class FormParser {
  readonly fields: FormField[] = [];
  /** Where the values of fields stand in the form, in bytes: the first one of each name. */
  readonly places = new Map<string, readonly [start: number, end: number]>();
  /** The value of `model`; undefined until its field has been read whole. */
  model: string | undefined;
  /** Where that value stands in the form, in bytes. */
  modelStart = 0;
  modelEnd = 0;
  /** `--boundary` of the first line, and with CR and LF before it between fields. */
  readonly #opening: Buffer;
  readonly #delimiter: Buffer;
  #state: State = 'opening';
  /** Bytes of the form before the chunk that is read. */
  #offset = 0;
  /** The line that is read, of the opening or of headers. */
  readonly #line = Buffer.allocUnsafe(HEADER_BYTES);
  #lineBytes = 0;
  /** Bytes of a line end before the first boundary. */
  #opened = 0;
  /** Bytes of this field's headers so far. */
  #headerBytes = 0;
  #headers = new Map<string, string>();
  #field: OpenField | undefined;
  #fieldStart = 0;
  readonly #needsModel: boolean;
  /** The end of the last chunk that may be the beginning of a delimiter. */
  #held: Buffer = Buffer.alloc(0);

  constructor(boundary: string, needsModel = true) {
    this.#needsModel = needsModel;
    this.#opening = Buffer.from(`--${boundary}`, 'latin1');
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  }

  /** Reads the next bytes. @throws GatewayError invalid_request */
  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let at = 0; at < bytes.length; ) {
      if (this.#state === 'value') at = this.#readValue(bytes, at);
      else this.#readByte(bytes[at]!, this.#offset + at++);
    }
    this.#offset += bytes.length;
  }

  /** The form is over. @throws GatewayError invalid_request where it is incomplete, or has no `model` */
  end(): void {
    // The line end behind the last boundary is often left out.
    const isBehind = this.#state === 'done' || this.#state === 'last-line';
    const over = isBehind && this.#lineBytes === 0;
    if (!over) {
      const name = this.#field?.name ?? this.fields.at(-1)?.name;
      throw name === undefined
        ? invalid('The form ends before its first field.', 'body')
        : invalid(
            `The form ends in or behind the field '${shown(name)}', before its last boundary.`,
            name,
          );
    }
    if (this.#needsModel && this.model === undefined) throw missing('model');
  }

  #readByte(byte: number, position: number): void {
    switch (this.#state) {
      case 'opening':
        this.#readOpening(byte);
        return;
      case 'boundary-end':
        this.#readBoundaryEnd(byte);
        return;
      case 'headers':
        this.#readHeader(byte, position);
        return;
      case 'last-line':
      case 'done':
        // Blank lines may follow.
        this.#line[this.#lineBytes++] = byte;
        if (this.#lineBytes === 1 && byte === CR) return;
        if (this.#lineBytes === 2 && byte === LF) {
          this.#lineEnds('done');
          return;
        }
        throw this.#trailing();
      default:
        throw this.#trailing();
    }
  }

  #trailing(): GatewayError {
    return invalid(
      'The form goes on behind its last boundary.',
      this.fields.at(-1)?.name ?? 'body',
    );
  }

  #readOpening(byte: number): void {
    // Some write the line end that stands before every boundary before the first one, too.
    if (this.#lineBytes === 0 && byte === (this.#opened === 0 ? CR : LF) && this.#opened < 2) {
      this.#opened++;
      return;
    }
    if (this.#opened === 1 || byte !== this.#opening[this.#lineBytes]) {
      throw invalid("The form does not begin with the boundary of its 'content-type'.", 'body');
    }
    this.#lineBytes++;
    if (this.#lineBytes === this.#opening.length) this.#lineEnds('boundary-end');
  }

  #lineEnds(next: State): void {
    this.#lineBytes = 0;
    this.#state = next;
  }

  /** CR LF: a field follows; two dashes: the form is over. */
  #readBoundaryEnd(byte: number): void {
    const first = this.#lineBytes === 0 ? undefined : this.#line[0];
    this.#line[this.#lineBytes++] = byte;
    if (first === undefined && (byte === CR || byte === DASH)) return;
    if (first === CR && byte === LF) {
      this.#lineEnds('headers');
      this.#headers = new Map();
      this.#headerBytes = 0;
      return;
    }
    if (first === DASH && byte === DASH) {
      this.#lineEnds('last-line');
      return;
    }
    const name = this.fields.at(-1)?.name;
    throw invalid('A boundary of the form is not followed by a line end.', name ?? 'body');
  }

  #readHeader(byte: number, position: number): void {
    if (++this.#headerBytes > HEADER_BYTES) {
      throw this.#malformed(`has headers of more than ${HEADER_BYTES} bytes`);
    }
    const before = this.#lineBytes === 0 ? undefined : this.#line[this.#lineBytes - 1];
    if (byte === 0 || (byte === LF && before !== CR) || (before === CR && byte !== LF)) {
      throw this.#malformed('has a header that is not a line');
    }
    this.#line[this.#lineBytes++] = byte;
    if (byte !== LF) return;
    const length = this.#lineBytes - 2;
    this.#lineBytes = 0;
    if (length > 0) this.#addHeader(this.#line.toString('utf8', 0, length));
    else this.#openField(position + 1);
  }

  #addHeader(line: string): void {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name))
      throw this.#malformed('has a header without a name');
    if (this.#headers.has(name)) throw this.#malformed(`has the header '${shown(name)}' twice`);
    this.#headers.set(name, line.slice(colon + 1).trim());
  }

  #openField(start: number): void {
    const disposition = this.#headers.get('content-disposition') ?? '';
    const parameters = readParameters(disposition);
    const name = parameters?.get('name');
    if (!/^form-data\s*;/i.test(disposition) || name === undefined || parameters?.has('name*')) {
      throw this.#malformed("has no 'content-disposition: form-data' with a name");
    }
    if (this.fields.length >= MAX_FIELDS) {
      throw invalid(`The form has more than ${MAX_FIELDS} fields.`, name);
    }
    const filename = parameters?.get('filename') ?? parameters?.get('filename*');
    if (SINGLE.has(name) && this.fields.some((field) => field.name === name)) {
      throw invalid(`The form has the field '${name}' twice.`, name);
    }
    const read = plainName(name);
    if (read !== name && SINGLE.has(read)) {
      throw invalid(`The field '${shown(name)}' of the form is '${read}' to some vendors.`, read);
    }
    if (name === 'model') this.#checkModelField(filename, start);
    this.#fieldStart = start;
    this.#field = {
      name,
      filename,
      contentType: this.#headers.get('content-type'),
      bytes: 0,
      kept: [],
      keptBytes: 0,
    };
    this.#state = 'value';
  }

  #checkModelField(filename: string | undefined, start: number): void {
    const encoding = this.#headers.get('content-transfer-encoding')?.toLowerCase();
    const plain = encoding === undefined || ['7bit', '8bit', 'binary'].includes(encoding);
    if (filename !== undefined || !plain) throw invalid("'model' must be a text field.", 'model');
    this.modelStart = start;
  }

  /** The index behind what was read of the field's value and of the delimiter behind it. */
  #readValue(bytes: Buffer, from: number): number {
    const held = this.#held;
    const rest = from === 0 ? bytes : bytes.subarray(from);
    const all = held.length === 0 ? rest : Buffer.concat([held, rest]);
    const end = all.indexOf(this.#delimiter);
    if (end >= 0) {
      this.#take(all.subarray(0, end));
      this.#held = Buffer.alloc(0);
      // The delimiter ends in this chunk: what was held is shorter than one.
      const behind = from + end + this.#delimiter.length - held.length;
      this.#closeField(this.#offset + behind - this.#delimiter.length);
      this.#lineEnds('boundary-end');
      return behind;
    }
    const keep = Math.min(all.length, this.#delimiter.length - 1);
    this.#take(all.subarray(0, all.length - keep));
    // A copy: a view would keep the whole chunk in memory.
    this.#held = Buffer.from(all.subarray(all.length - keep));
    return bytes.length;
  }

  #take(value: Buffer): void {
    const field = this.#field!;
    field.bytes += value.length;
    if (field.filename !== undefined || field.keptBytes >= KEPT_BYTES || value.length === 0) return;
    const kept = Buffer.from(value.subarray(0, KEPT_BYTES - field.keptBytes));
    field.kept.push(kept);
    field.keptBytes += kept.length;
  }

  #closeField(end: number): void {
    const { name, filename, contentType, bytes, kept } = this.#field!;
    this.#field = undefined;
    const value = Buffer.concat(kept);
    if (name === 'model') {
      this.modelEnd = end;
      this.model = modelIn(value, bytes);
    }
    if (!this.places.has(name)) this.places.set(name, [this.#fieldStart, end]);
    this.fields.push({
      name,
      bytes,
      ...(filename === undefined ? { value: value.toString() } : { filename }),
      ...(contentType !== undefined && { contentType }),
    });
  }

  #malformed(why: string): GatewayError {
    const last = this.fields.at(-1)?.name;
    const which = last === undefined ? 'The first field' : `The field behind '${shown(last)}'`;
    return invalid(`${which} of the form ${why}.`, last ?? 'body');
  }
}

/** @throws GatewayError invalid_request for what cannot be a model's name */
function modelIn(value: Buffer, bytes: number): string {
  if (bytes === 0) throw missing('model');
  try {
    // What was not kept whole is too long for a name in any case.
    return checkedModel(bytes > value.length ? value.toString('latin1') : utf8.decode(value));
  } catch (thrown) {
    if (thrown instanceof TypeError) throw invalid("'model' is not valid UTF-8.", 'model');
    throw thrown;
  }
}

const shown = (name: string) => printableLine(name, 60);

/** Names in lower case. */
export type Parameters = ReadonlyMap<string, string>;

const isSpace = (char: string | undefined) => char === ' ' || char === '\t';

/**
 * The parameters behind the first word of a header (RFC 2045 §5.1, RFC 7578 §4.2); undefined where they cannot be
 * read, or where one stands twice: two readers could take different ones.
 */
function readParameters(header: string): Parameters | undefined {
  const found = new Map<string, string>();
  let at = header.indexOf(';');
  while (at >= 0 && at < header.length) {
    at++;
    while (isSpace(header[at])) at++;
    if (at >= header.length) break;
    const equals = header.indexOf('=', at);
    if (equals < 0) return undefined;
    const name = header.slice(at, equals).toLowerCase();
    if (!/^[a-z0-9*_-]{1,40}$/.test(name) || found.has(name)) return undefined;
    const value =
      header[equals + 1] === '"' ? quoted(header, equals + 2) : token(header, equals + 1);
    if (value === undefined) return undefined;
    found.set(name, value.text);
    at = value.end;
    while (isSpace(header[at])) at++;
    if (at < header.length && header[at] !== ';') return undefined;
  }
  return found;
}

interface ReadValue {
  readonly text: string;
  /** The index behind it. */
  readonly end: number;
}

function token(header: string, from: number): ReadValue | undefined {
  let end = from;
  while (end < header.length && header[end] !== ';' && !isSpace(header[end])) {
    if (header[end] === '"') return undefined;
    end++;
  }
  return end === from ? undefined : { text: header.slice(from, end), end };
}

/** Only a quotation mark and a backslash are taken for escaped: clients send file names with bare backslashes. */
function quoted(header: string, from: number): ReadValue | undefined {
  let text = '';
  for (let at = from; at < header.length; at++) {
    const char = header[at]!;
    if (char === '"') return { text, end: at + 1 };
    const next = header[at + 1];
    if (char === '\\' && (next === '"' || next === '\\')) {
      text += next;
      at++;
    } else text += char;
  }
  return undefined;
}
