/** Forms for tests, as bytes. */

export const BOUNDARY = 'form-boundary-1';
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

export interface FormPart {
  readonly name: string;
  readonly value: string | Uint8Array;
  readonly filename?: string;
  readonly headers?: string;
}

/** The bytes of a form, written as browsers and SDKs do. */
export function formBytes(parts: readonly FormPart[], end = '--\r\n'): Buffer {
  const pieces = parts.flatMap(({ name, value, filename, headers = '' }) => {
    const file = filename === undefined ? '' : `; filename="${filename}"`;
    const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n${headers}\r\n`;
    return [Buffer.from(head), Buffer.from(value as string), Buffer.from('\r\n')];
  });
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}${end}`)]);
}

export const file = (value: string | Uint8Array, name = 'file'): FormPart => ({
  name,
  value,
  filename: 'speech.wav',
  headers: 'content-type: audio/wav\r\n',
});
