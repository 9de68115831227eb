/** The end of a stream that is held back: only the end, never for long, and nothing is lost. */

import { describe, expect, test } from 'bun:test';
import { HeldEnd } from '../../../src/gateway/stream/held-end.ts';
import { until } from '../../support/until.ts';

const PREFIXES = ['event: response.completed', 'data: {"type":"response.completed"'];

function held() {
  const written: string[] = [];
  let flushed = 0;
  const end = new HeldEnd(
    {
      write: (chunk) => {
        written.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString());
      },
      flush: () => flushed++,
      close: () => written.push('closed'),
    },
    PREFIXES,
  );
  return { end, text: () => written.join(''), flushed: () => flushed };
}

const BEFORE =
  'event: response.output_text.delta\ndata: {"delta":"event: response.completed?"}\n\n';
const LAST = 'event: response.completed\ndata: {"type":"response.completed"}\n\n';

describe('the end of an answer', () => {
  test('does not go before it may, wherever the chunks are cut', () => {
    const plain = BEFORE.replace(' response.completed?', '');
    const whole = Buffer.from(plain + LAST);
    for (let at = 1; at < whole.length; at++) {
      const { end, text } = held();
      end.write(whole.subarray(0, at));
      end.write(whole.subarray(at));
      // A client acts on a frame when it is whole.
      expect(text().endsWith('\n\n') && text().length > plain.length).toBe(false);
      expect(text().includes(LAST)).toBe(false);
      expect(end.release()).toBeUndefined();
      expect(text()).toBe(plain + LAST);
      end.stop();
    }
  });

  test('goes byte by byte too, and what comes behind it waits with it', () => {
    const { end, text } = held();
    for (const byte of Buffer.from(LAST)) end.write(Buffer.of(byte));
    end.write(': ping\n\n');
    expect(text().includes('}\n\n')).toBe(false);
    end.release();
    end.write('more');
    expect(text()).toBe(`${LAST}: ping\n\nmore`);
  });

  test('goes by itself when nobody lets it go, and a stream that is closed loses nothing', async () => {
    const late = held();
    late.end.write(LAST);
    expect(late.text()).toBe('');
    await until(() => late.text() === LAST);
    expect(late.flushed()).toBe(1);
    const closed = held();
    closed.end.write(LAST);
    closed.end.close();
    expect(closed.text()).toBe(`${LAST}closed`);
  });

  test('a client that goes while it is released is no unhandled rejection', async () => {
    const end = new HeldEnd(
      { write: () => Promise.reject(new Error('gone')), flush() {}, close() {} },
      PREFIXES,
    );
    end.write(LAST);
    const slow = end.release();
    expect(slow).toBeInstanceOf(Promise);
    expect(slow).rejects.toThrow('gone');
    await Bun.sleep(1);
  });
});
