/** Forms and answers of endpoints are read in linear time, whatever they hold and however they are cut. */

import { describe, test } from 'bun:test';
import { FormParser } from '../../src/endpoints/form/parser.ts';
import { MediaFilter } from '../../src/endpoints/media.ts';
import { UsageScan } from '../../src/endpoints/usage.ts';
import { BOUNDARY, file, formBytes } from '../endpoints/forms.ts';
import { random } from '../support/chunkings.ts';
import { expectLinear } from '../support/growth.ts';

const TIME = 120_000;
const most = 1024 * 1024;
const small = random(3, 64);
const inPieces = (text: string) => small.cut(Buffer.from(text));

describe('forms', () => {
  test.each(['\r\n--form-boundary-', '-', '\r', 'x', `\r\n\r\n--${BOUNDARY.slice(0, -1)}`])(
    'a file of %j',
    (filler) =>
      expectLinear({
        name: filler,
        most,
        input: (size) => {
          const value = filler.repeat(Math.ceil(size / filler.length));
          return small.cut(formBytes([{ name: 'model', value: 'm' }, file(value)]));
        },
        run(chunks) {
          const parser = new FormParser(BOUNDARY);
          for (const chunk of chunks) parser.push(chunk);
          parser.end();
        },
      }),
    TIME,
  );
});

describe('answers', () => {
  test.each(['"', 'x', '\\', '"\\', '"usage":', '"usage":{', '{', '"usage":null,'])(
    'of %j',
    async (filler) => {
      const input = (size: number) => inPieces(filler.repeat(Math.ceil(size / filler.length)));
      await expectLinear({
        name: `media: ${filler}`,
        most,
        input,
        run(chunks) {
          const filter = new MediaFilter();
          for (const chunk of chunks) filter.push(chunk);
          filter.end();
        },
      });
      await expectLinear({
        name: `usage: ${filler}`,
        most,
        input,
        run(chunks) {
          const scan = new UsageScan();
          for (const chunk of chunks) scan.push(chunk);
          return scan.found;
        },
      });
    },
    TIME,
  );
});
