/** MCP tools and results: names that every upstream accepts, every kind of content. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  isAllowed,
  mcpOutcome,
  mcpSchema,
  mcpToolName,
} from '../../../../../src/features/server-tools/tools/mcp/result.ts';

describe('tool names', () => {
  test('are legal, stable, and different for different tools', () => {
    const name = fc.string({ unit: 'binary', maxLength: 90 });
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9-]{1,32}$/), name, name, (server, a, b) => {
        expect(mcpToolName(server, a)).toMatch(/^mcp__[A-Za-z0-9-]+__?[A-Za-z0-9_-]*$/);
        expect(mcpToolName(server, a).length).toBeLessThanOrEqual(64);
        expect(mcpToolName(server, a)).toBe(mcpToolName(server, a));
        fc.pre(a !== b);
        expect(mcpToolName(server, a)).not.toBe(mcpToolName(server, b));
      }),
    );
  });

  test('are unchanged where they are legal', () => {
    expect(mcpToolName('files', 'read_file')).toBe('mcp__files__read_file');
    expect(mcpToolName('files', 'read.file')).toMatch(/^mcp__files__read_file_[0-9a-f]{8}$/);
  });

  test('an allow list contains names and globs; a dot matches only a dot', () => {
    expect(isAllowed('x', undefined)).toBe(true);
    expect(isAllowed('x', [])).toBe(false);
    expect(isAllowed('read_file', ['list', 'read_*'])).toBe(true);
    expect(isAllowed('readXfile', ['read.file'])).toBe(false);
    expect(isAllowed('read.file', ['read.file'])).toBe(true);
    expect(isAllowed('a1', ['a?'])).toBe(true);
    expect(isAllowed('(a', ['(a'])).toBe(true);
  });
});

test('a schema always gets its type and properties', () => {
  expect(mcpSchema({ name: 'x', inputSchema: { type: 'object', $schema: 'y' } })).toEqual({
    type: 'object',
    properties: {},
  });
});

describe('results', () => {
  const outcome = (...content: object[]) => mcpOutcome('t', { content } as never);

  test('texts are joined; an empty result says so', () => {
    expect(outcome({ type: 'text', text: 'a' }, { type: 'text', text: 'b' })).toEqual({
      ok: true,
      payload: 'a\n\nb',
      text: 'a\n\nb',
    });
    expect(outcome().text).toBe('(no content)');
    expect(mcpOutcome('t', {}).text).toBe('(no content)');
  });

  test('structured content is the payload, and the text where the server wrote none', () => {
    const structuredContent = { degrees: 3 };
    expect(mcpOutcome('t', { content: [], structuredContent })).toMatchObject({
      payload: structuredContent,
      text: '{"degrees":3}',
    });
    const both = { content: [{ type: 'text', text: '3°' }], structuredContent };
    expect(mcpOutcome('t', both)).toMatchObject({ payload: structuredContent, text: '3°' });
  });

  test('images and audio become media, in results and in resources', () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' };
    const blob = { uri: 'x:/y', blob: 'BBBB', mimeType: 'image/jpeg' };
    const sound = { type: 'audio', data: 'CCCC', mimeType: 'audio/wav' };
    const { media, text } = outcome(image, { type: 'resource', resource: blob }, sound);
    expect(media).toEqual([
      {
        type: 'media',
        media: 'image',
        source: { type: 'base64', mediaType: 'image/png', data: 'AAAA' },
      },
      {
        type: 'media',
        media: 'image',
        source: { type: 'base64', mediaType: 'image/jpeg', data: 'BBBB' },
      },
      {
        type: 'media',
        media: 'audio',
        source: { type: 'base64', mediaType: 'audio/wav', data: 'CCCC' },
      },
    ]);
    expect(text).toBe('Resource x:/y:');
    expect(outcome(image).text).toBe('');
  });

  const PNG = { type: 'image', mimeType: 'image/png', data: 'AAAA' };
  test.each([
    ['a type in capitals', { ...PNG, mimeType: 'IMAGE/PNG' }, 'image/png'],
    ['a type with parameters', { ...PNG, mimeType: 'image/png; name="a.png"' }, 'image/png'],
    ['image/jpg', { ...PNG, mimeType: 'image/jpg' }, 'image/jpeg'],
    ['a data URL', { ...PNG, data: 'data:image/webp;base64,AAAA' }, 'image/webp'],
    [
      'a data URL in place of the type',
      { type: 'image', data: 'data:image/gif;base64,AAAA' },
      'image/gif',
    ],
    ['base64 in lines', { ...PNG, data: 'AA\nAA\r\n' }, 'image/png'],
  ])('an image with %s is one that vendors take', (_, block, mediaType) => {
    const source = { type: 'base64', mediaType, data: 'AAAA' };
    expect(outcome(block).media).toEqual([{ type: 'media', media: 'image', source } as never]);
  });

  test.each([
    ['a text alone', { content: 'plain' }, 'plain'],
    ['a block alone', { content: { type: 'text', text: 'one' } }, 'one'],
    ['texts without blocks', { content: ['a', 'b'] }, 'a\n\nb'],
    ['the result of the first version', { toolResult: { x: 1 } }, '{"x":1}'],
    ['no structured content', { content: [], structuredContent: null }, '(no content)'],
    [
      'an image without data',
      { content: [{ type: 'image', mimeType: 'image/png' }] },
      '(this image has no data)',
    ],
    ['half a pair of surrogates', { content: [{ type: 'text', text: 'a\ud800' }] }, 'a\ufffd'],
  ])('%s is not lost', (_, result, text) => {
    expect(mcpOutcome('t', result as never).text).toBe(text);
  });

  test('resources, other bytes, links and unknown blocks become text', () => {
    const text = outcome(
      { type: 'resource', resource: { uri: 'f:/a', text: 'inside' } },
      { type: 'resource', resource: { uri: 'f:/b', blob: 'AAAA', mimeType: 'application/zip' } },
      { type: 'resource_link', uri: 'f:/c', name: 'C', description: 'third' },
      { type: 'image', data: 'AAAA', mimeType: 'image/tiff' },
      { type: 'novelty', x: 1 },
    ).text;
    expect(text).toBe(
      'Resource f:/a:\ninside\n\n(f:/b is application/zip, 3 bytes)\n\n[C: third](f:/c)\n\n' +
        '(this image is image/tiff, 3 bytes)\n\n{"type":"novelty","x":1}',
    );
  });

  test('isError becomes a failed outcome with the server’s message', () => {
    const failed = mcpOutcome('t', { isError: true, content: [{ type: 'text', text: 'no disk' }] });
    expect(failed).toEqual({
      ok: false,
      payload: { ok: false, tool: 't', message: 'no disk', retryable: false },
      text: 'no disk',
    });
    expect(mcpOutcome('t', { isError: true }).text).toContain('without saying why');
  });

  test('an endless text is cut, and says so', () => {
    const { text } = outcome({ type: 'text', text: '😀'.repeat(150_000) });
    expect(text).toEndWith('[cut off after 200000 characters]');
    expect((text as string).isWellFormed()).toBe(true);
  });
});
