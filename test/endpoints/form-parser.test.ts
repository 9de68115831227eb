/** Multipart forms, whole, in pieces, and malformed. */

import { describe, expect, test } from 'bun:test';
import { boundaryOf, FormParser } from '../../src/endpoints/form/parser.ts';
import { bytewise, type Chunking, everySplit, random, whole } from '../support/chunkings.ts';
import { BOUNDARY, FORM_TYPE, file, formBytes } from './forms.ts';

function parse(bytes: Uint8Array, { cut }: Chunking = whole): FormParser {
  const parser = new FormParser(BOUNDARY);
  for (const chunk of cut(bytes)) parser.push(chunk);
  parser.end();
  return parser;
}

// A value that holds what a careless parser takes for a boundary.
const TRICKY = `\r\n--form\r\n--${BOUNDARY.slice(0, -1)}\r\n\r\n-\r`;
const FORM = formBytes([
  { name: 'language', value: 'de' },
  file(Buffer.concat([Buffer.from(TRICKY), Buffer.from([0, 255, 13, 10, 45, 45])])),
  { name: 'model', value: 'whisper-größe' },
  { name: 'empty', value: '' },
]);

describe('a form', () => {
  test.each([whole, bytewise, random(1), random(2, 7), ...everySplit(FORM)])(
    'says the same however it is cut: $name',
    (chunking) => {
      const parser = parse(FORM, chunking);
      expect(parser.model).toBe('whisper-größe');
      expect(FORM.toString('utf8', parser.modelStart, parser.modelEnd)).toBe('whisper-größe');
      expect(parser.fields).toEqual([
        { name: 'language', bytes: 2, value: 'de' },
        {
          name: 'file',
          bytes: TRICKY.length + 6,
          filename: 'speech.wav',
          contentType: 'audio/wav',
        },
        { name: 'model', bytes: 15, value: 'whisper-größe' },
        { name: 'empty', bytes: 0, value: '' },
      ]);
    },
  );

  test('may end without a line end', () => {
    expect(parse(formBytes([{ name: 'model', value: 'm' }], '--')).model).toBe('m');
  });

  test('keeps no more than the beginning of a text', () => {
    const parser = parse(
      formBytes([
        { name: 'prompt', value: 'x'.repeat(9000) },
        { name: 'model', value: 'm' },
      ]),
    );
    expect(parser.fields[0]).toMatchObject({ bytes: 9000 });
    expect(parser.fields[0]!.value).toHaveLength(4096);
  });

  test('names of files may hold quotation marks and backslashes', () => {
    const headers = '';
    const parts = [{ name: 'file', value: 'x', filename: 'C:\\dir\\a\\"b\\".wav', headers }];
    const parser = parse(formBytes([...parts, { name: 'model', value: 'm' }]));
    expect(parser.fields[0]!.filename).toBe('C:\\dir\\a"b".wav');
  });
});

const MODEL = { name: 'model', value: 'm' };
const raw = (text: string) => Buffer.from(text.replaceAll('BOUNDARY', BOUNDARY));
const head = (lines: string) => raw(`--BOUNDARY\r\n${lines}\r\n\r\nm\r\n--BOUNDARY--\r\n`);
const DISPOSITION = 'content-disposition: form-data; name="model"';

/** How clients write the same form. */
const CLIENTS: Record<string, (part: string, file: string) => string> = {
  'OkHttp, with a length': (part, file) =>
    `--B\r\nContent-Disposition: form-data; name="model"\r\nContent-Length: 1\r\n\r\n${part}\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\nContent-Length: ${file.length}\r\n\r\n${file}\r\n--B--\r\n`,
  '.NET, without quotation marks': (part, file) =>
    `--B\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=model\r\n\r\n${part}\r\n--B\r\nContent-Disposition: form-data; name=file; filename=a.wav; filename*=utf-8''a.wav\r\n\r\n${file}\r\n--B--\r\n`,
  'Dart, with an encoding': (part, file) =>
    `--B\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-transfer-encoding: binary\r\ncontent-disposition: form-data; name="model"\r\n\r\n${part}\r\n--B\r\ncontent-type: application/octet-stream\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n${file}\r\n--B--\r\n`,
  'Apache, with 8bit': (part, file) =>
    `--B\r\nContent-Disposition: form-data; name="model"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${part}\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\n\r\n${file}\r\n--B--\r\n`,
  'urllib3, with a name in UTF-8': (part, file) =>
    `--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n${part}\r\n--B\r\nContent-Disposition: form-data; name="file"; filename*=utf-8''%E4%BD%A0.wav\r\n\r\n${file}\r\n--B--\r\n`,
  'Swift by hand, with a line end in front': (part, file) =>
    `\r\n--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n${part}\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n${file}\r\n--B--\r\n`,
  'a template, with blank lines behind it': (part, file) =>
    `--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n${part}\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n${file}\r\n--B--\r\n\r\n\r\n`,
};

test.each(Object.keys(CLIENTS))('a form as %s writes it', (client) => {
  const form = Buffer.from(CLIENTS[client]!('m', 'RIFF\r\n--'), 'latin1');
  for (const { cut } of [whole, bytewise]) {
    const parser = new FormParser('B');
    for (const chunk of cut(form)) parser.push(chunk);
    parser.end();
    expect(parser.model).toBe('m');
    expect(form.toString('latin1', parser.modelStart, parser.modelEnd)).toBe('m');
    expect(parser.fields.map(({ name, bytes }) => [name, bytes])).toEqual([
      ['model', 1],
      ['file', 8],
    ]);
  }
});

describe('a malformed form names the field', () => {
  test.each<[string, Buffer, string]>([
    ['two line ends before it', Buffer.concat([Buffer.from('\r\n\r\n'), FORM]), 'body'],
    ['half a line end before it', Buffer.concat([Buffer.from('\r'), FORM]), 'body'],
    ['a bare line feed before it', Buffer.concat([Buffer.from('\n'), FORM]), 'body'],
    ['half a line end behind it', Buffer.concat([FORM, Buffer.from('\r')]), 'empty'],
    ['words behind a blank line', Buffer.concat([FORM, Buffer.from('\r\nx')]), 'empty'],
    ['no model', formBytes([file('x')]), 'model'],
    ['no field', raw('--BOUNDARY--\r\n'), 'model'],
    ['an empty model', formBytes([{ name: 'model', value: '' }]), 'model'],
    ['two models', formBytes([MODEL, MODEL]), 'model'],
    ['a model that is a file', formBytes([{ ...MODEL, filename: 'm.txt' }]), 'model'],
    ['a model with a line break', formBytes([{ name: 'model', value: 'a\nb' }]), 'model'],
    ['a model too long', formBytes([{ name: 'model', value: 'm'.repeat(600) }]), 'model'],
    ['a model much too long', formBytes([{ name: 'model', value: 'm'.repeat(9000) }]), 'model'],
    [
      'a model that is no UTF-8',
      formBytes([{ name: 'model', value: Buffer.from([0xff]) }]),
      'model',
    ],
    ['an encoded model', head(`${DISPOSITION}\r\ncontent-transfer-encoding: base64`), 'model'],
    ['nothing', Buffer.alloc(0), 'body'],
    ['another boundary', raw('--other\r\n'), 'body'],
    ['something before it', Buffer.concat([raw('hello\r\n'), formBytes([MODEL])]), 'body'],
    ['something behind it', Buffer.concat([formBytes([MODEL]), raw('x')]), 'model'],
    ['a second form behind it', Buffer.concat([formBytes([MODEL]), formBytes([MODEL])]), 'model'],
    ['a boundary that goes on', raw('--BOUNDARYx\r\n'), 'body'],
    ['a boundary with spaces behind it', raw('--BOUNDARY \r\n'), 'body'],
    ['a cut value', formBytes([MODEL, file('x'.repeat(100))]).subarray(0, -60), 'file'],
    ['a cut end', formBytes([MODEL, file('x')], ''), 'file'],
    ['a header with a bare line feed', head(DISPOSITION).subarray(0, 60), 'body'],
    ['a bare line feed', raw(`--BOUNDARY\r\n${DISPOSITION}\n\r\n\r\nm\r\n--BOUNDARY--`), 'body'],
    ['a NUL in a header', head(`${DISPOSITION}\r\nx-a: \0`), 'body'],
    ['a folded header', head(`${DISPOSITION};\r\n filename="x"`), 'body'],
    ['a header twice', head(`${DISPOSITION}\r\n${DISPOSITION}`), 'body'],
    ['a name twice', head('content-disposition: form-data; name="a"; name="model"'), 'body'],
    [
      'an extended name',
      head("content-disposition: form-data; name*=utf-8''model; name=x"),
      'body',
    ],
    ...['Model', 'model[]', "'model'", 'mo\\del', 'mo%64el', ' model', 'model\t'].map(
      (name): [string, Buffer, string] => [
        `a name that is another to some parsers: ${name}`,
        formBytes([MODEL, { name, value: 'x' }]),
        'model',
      ],
    ),
    ['no name', head('content-disposition: form-data'), 'body'],
    ['no disposition', head('content-type: text/plain'), 'body'],
    ['another disposition', head('content-disposition: attachment; name="model"'), 'body'],
    ['an open quotation', head('content-disposition: form-data; name="model'), 'body'],
    ['headers without end', head(`${DISPOSITION}\r\nx-a: ${'a'.repeat(9000)}`), 'body'],
  ])('%s', (_what, bytes, param) => {
    for (const chunking of [whole, bytewise]) {
      expect(() => parse(bytes, chunking)).toThrow(
        expect.objectContaining({ kind: 'invalid_request', status: 400, param }),
      );
    }
  });

  test('too many fields', () => {
    const many = Array.from({ length: 300 }, (_, i) => ({ name: `f${i}`, value: '' }));
    expect(() => parse(formBytes([MODEL, ...many]))).toThrow('more than 256 fields');
  });
});

describe('the boundary', () => {
  test.each([
    [FORM_TYPE, BOUNDARY],
    ['multipart/form-data; boundary="a b:c"', 'a b:c'],
    ['Multipart/Form-Data;charset=utf-8;BOUNDARY=x', 'x'],
  ])('of %s', (type, boundary) => {
    expect(boundaryOf(type)).toBe(boundary);
  });

  test.each([
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'multipart/form-data; boundary=a; boundary=b',
    `multipart/form-data; boundary=${'x'.repeat(71)}`,
    'multipart/form-data; boundary="a',
    'multipart/form-data; boundary=ä',
  ])('is missing in %s', (type) => {
    expect(() => boundaryOf(type)).toThrow(expect.objectContaining({ param: 'content-type' }));
  });
});
