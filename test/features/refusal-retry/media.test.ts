/** An image or a file that a vendor refuses would end its session: it is left out of the next try, and the model reads a mention. */

import { describe, expect, test } from 'bun:test';
import { GatewayError } from '../../../src/conversation/errors.ts';
import {
  type MediaRefusal,
  refusedMedia,
} from '../../../src/conversation/refusal/refused-media.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { Json } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const features = () => [refusalRetry(), toolPairing, vendorFit()];

const IMAGE = ['image'];
const FILE = ['document'];

interface Sentence {
  readonly status?: number;
  readonly words: string;
  readonly code?: string;
  readonly means: Omit<MediaRefusal, 'kind' | 'media'> & { readonly media?: readonly string[] };
  /** Where it was reported; left out: known from use, not fetched. */
  readonly source?: string;
}

const at = (message: number, block: number, inner?: number) => ({ message, block, inner });
const CLAUDE_CODE = 'https://github.com/anthropics/claude-code/issues';

const SENTENCES: readonly Sentence[] = [
  { words: 'Could not process image', means: { media: IMAGE }, source: `${CLAUDE_CODE}/1747` },
  {
    words:
      'messages.168.content.0.tool_result.content.1.image.source.base64: image exceeds 5 MB maximum: 5649924 bytes > 5242880 bytes',
    means: { media: IMAGE, at: at(168, 0, 1), limit: { of: 'bytes', most: 5_242_880 } },
    source: 'https://github.com/earendil-works/pi/pull/424',
  },
  {
    words:
      'messages.88.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels',
    means: { media: IMAGE, at: at(88, 1), limit: { of: 'longer-side', most: 2000 } },
    source: `${CLAUDE_CODE}/52220`,
  },
  {
    words:
      'messages.7.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels',
    means: { media: IMAGE, at: at(7, 2), limit: { of: 'longer-side', most: 8000 } },
    source: `${CLAUDE_CODE}/4778`,
  },
  {
    words:
      'messages.83.content.0.tool_result.content.1.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image',
    means: { media: IMAGE, at: at(83, 0, 1) },
    source: 'https://github.com/vybestack/llxprt-code/issues/2130',
  },
  {
    words:
      'messages.2.content.0.image.source.base64.data: Image does not match the provided media type image/png',
    means: { media: IMAGE, at: at(2, 0) },
    source: `${CLAUDE_CODE}/6300`,
  },
  {
    words:
      "messages.208.content.0.tool_result.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    means: { media: IMAGE, at: at(208, 0, 0) },
    source: `${CLAUDE_CODE}/3073`,
  },
  {
    words:
      'messages.38.content.0.pdf.source.base64.data: A maximum of 100 PDF pages may be provided.',
    means: { media: FILE, at: at(38, 0), limit: { of: 'pages', most: 100 } },
    source: `${CLAUDE_CODE}/6231`,
  },
  {
    words: 'A maximum of 100 PDF pages may be provided.',
    means: { media: FILE, limit: { of: 'pages', most: 100 } },
    source: `${CLAUDE_CODE}/5707`,
  },
  {
    words: 'messages.4.content.1.pdf.source.base64.data: The PDF specified is password protected.',
    means: { media: FILE, at: at(4, 1) },
    source: `${CLAUDE_CODE}/19013`,
  },
  {
    words:
      "Invalid 'input[284].output[1].image_url'. Expected a valid URL, but got a value with an invalid format.",
    code: 'invalid_value',
    means: { media: IMAGE, at: at(284, 0, 1) },
    source: 'https://github.com/openai/codex/issues/33011',
  },
  { words: 'Could not process PDF', means: { media: FILE } },
  {
    words: 'content blocks are expected to be either text or image_url type',
    means: { media: ['document', 'audio', 'video'] },
    source: 'https://github.com/openai/openai-python/issues/2454',
  },
  {
    words: "Invalid value: 'video_url'. Supported values are: 'text', 'image_url', 'input_audio'.",
    means: { media: ['audio', 'video'] },
  },
  {
    words: 'At most 0 video(s) may be provided in one prompt.',
    means: { media: ['audio', 'video'] },
    source: 'https://github.com/vllm-project/vllm, vllm/multimodal/processing',
  },
  {
    status: 413,
    words: 'Request exceeds the maximum size',
    means: { media: ['image', 'document', 'audio', 'video'], older: true },
    source: `${CLAUDE_CODE}/17510`,
  },
  {
    words:
      "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
    code: 'invalid_image_format',
    means: { media: IMAGE },
    source: 'https://github.com/STranslate/STranslate/issues/277',
  },
  {
    words:
      "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
    means: { media: IMAGE },
    source: 'https://github.com/acoyfellow/my-ax/issues/68',
  },
  { words: 'The image is not usable.', code: 'image_parse_error', means: { media: IMAGE } },
  {
    words:
      'Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
    means: { media: IMAGE },
    source: 'https://github.com/google-gemini/gemini-cli/issues/5064',
  },
  {
    words: 'Provided image is not valid.',
    means: { media: IMAGE },
    source: 'https://github.com/google-gemini/gemini-cli/issues/27244',
  },
  { words: 'The document has no pages.', means: { media: FILE } },
  {
    words:
      '<400> InternalError.Algo.InvalidParameter: The image length and width do not meet the model restrictions. [height:1 or width:1 must be larger than 10]',
    means: { media: IMAGE, limit: { of: 'shorter-side', most: 10 } },
    source: 'https://github.com/QwenLM/qwen-code/issues/2505',
  },
  {
    words: 'input size exceed limit 2048x2048,current input:(1080,2376)',
    means: { media: IMAGE, limit: { of: 'longer-side', most: 2048 } },
    source: 'https://github.com/zai-org/Open-AutoGLM/issues/381',
  },
  {
    words:
      'Image https://static.example/rocks.jpeg has an invalid format.Allowed formats are JPEG,PNG,WEBP,GIF.',
    status: 500,
    means: { media: IMAGE },
    source: 'https://github.com/mistralai/platform-docs-public/issues/149',
  },
  {
    words: 'Failed to load image or audio file',
    means: { media: IMAGE },
    source: 'https://github.com/cline/cline/issues/8203',
  },
  {
    status: 500,
    words: 'cannot identify image file <_io.BytesIO object at 0x7f2>',
    means: { media: IMAGE },
  },
  { words: 'API 调用参数有误：图片输入格式/解析错误', code: '1210', means: { media: IMAGE } },
  {
    words: 'At most 4 image(s) may be provided in one prompt.',
    means: { media: IMAGE, limit: { of: 'count', most: 4 } },
  },
  {
    words: 'Too many images provided. This model supports up to 5 images',
    means: { media: IMAGE, limit: { of: 'count', most: 5 } },
  },
  {
    status: 500,
    words: 'image input is not supported by this server',
    means: { media: IMAGE, facts: { images: false } },
    source: 'https://github.com/ggml-org/llama.cpp/issues/13566',
  },
  {
    words:
      'Failed to deserialize the JSON body into the target type: messages[3]: unknown variant `image_url`, expected `text` at line 1 column 42',
    means: { media: IMAGE, facts: { images: false } },
  },
  {
    status: 404,
    words: 'No endpoints found that support image input',
    means: { media: IMAGE, facts: { images: false } },
  },
  {
    words: 'This model does not support image inputs',
    code: 'invalid_request_error',
    means: { media: IMAGE, facts: { images: false } },
  },
  // What is said of a form, a place or a number teaches nothing about the model.
  { words: 'image format image/bmp is not supported', means: { media: IMAGE } },
  {
    words: 'This model does not support image inputs in system messages',
    means: { media: IMAGE },
  },
  { words: 'This model does not support images larger than 20 MB', means: { media: IMAGE } },
  { words: 'Image input is not supported when stream is true', means: { media: IMAGE } },
  { words: 'Multiple images are not supported', means: { media: IMAGE } },
];

const errorOf = ({ status = 400, words, code }: Sentence) =>
  new GatewayError(status === 413 ? 'too_large' : 'invalid_request', words, {
    status,
    fromUpstream: true,
    ...(code !== undefined && { code }),
  });

describe('sentences by which a vendor refuses images and files', () => {
  test.each(SENTENCES.map((one) => [one.words, one] as const))('%s', (_, one) => {
    const found = refusedMedia(errorOf(one));
    expect(found).toEqual({ kind: 'media', at: undefined, ...one.means } as never);
  });

  test.each([
    ['messages.3.content.0: unexpected `tool_use_id` found in `tool_result` blocks', 400],
    ['prompt is too long: 250000 tokens > 200000 maximum', 400],
    ['max_tokens: 90000 > 8192', 400],
    ['Request too large for model `llama` on tokens per minute (TPM): Limit 6000', 413],
    ['Invalid schema for function describe_image: image is not of type object', 400],
    ['Could not process image', 401],
    ['Could not process image', 429],
    ['Could not process image', 503],
  ])('is about something else: %s (%d)', (words, status) => {
    expect(refusedMedia(errorOf({ words, status, means: {} }))).toBeUndefined();
  });
});

// What the requests hold.

const png = (width: number, height: number, size = 64): string => {
  const bytes = Buffer.alloc(size + 12);
  bytes.writeUInt32BE(0x89504e47, 0);
  bytes.writeUInt32BE(0x0d0a1a0a, 4);
  bytes.write('IHDR', 12, 'latin1');
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  bytes.write('IEND', size, 'latin1');
  return bytes.toString('base64');
};
const GOOD = png(640, 480);
const HUGE = png(2400, 100);
const HEAVY = png(640, 480, 6_000);
const CUT = Buffer.from(GOOD, 'base64').subarray(0, 40).toString('base64');
const JPEG = Buffer.from([
  0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 1, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd9,
]).toString('base64');
const TIFF = Buffer.from('II*\0 a picture of another kind').toString('base64');
const LOCKED = Buffer.from('%PDF-1.7\n… trailer << /Encrypt 5 0 R >>').toString('base64');
const pdfOf = (title: string) =>
  Buffer.from(`%PDF-1.7\n% ${title}\n1 0 obj << /Type /Page >> trailer << >>`).toString('base64');
const PDF = pdfOf('first');

const image = (data: string, mediaType = 'image/png') => ({
  type: 'image',
  source: { type: 'base64', media_type: mediaType, data },
});
const file = (data: string) => ({
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data },
});
const use = (id: string) => ({ type: 'tool_use', id, name: 'read', input: {} });
const result = (id: string, ...content: Json[]) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
});
const TOOLS = [{ name: 'read', input_schema: { type: 'object' } }];

/** A session in which an agent has read these, one result each. */
const session = (...media: Json[]) => ({
  model: 'm',
  max_tokens: 400,
  tools: TOOLS,
  messages: [
    { role: 'user', content: 'look' },
    ...media.flatMap((one, i) => [
      { role: 'assistant', content: [use(`toolu_0${i}`)] },
      { role: 'user', content: [result(`toolu_0${i}`, one)] },
    ]),
  ],
});

const fine = FINE['anthropic-messages'];
const chat = FINE['openai-chat'];
const refuse = (message: string, status = 400): Scripted => ({
  status,
  json: {
    type: 'error',
    error: { type: status === 413 ? 'request_too_large' : 'invalid_request_error', message },
  },
});

type Part = {
  readonly type: string;
  readonly text?: string;
  readonly source?: { readonly data: string; readonly media_type: string };
};

/** What stands in the results of a Messages body, in order: the text of a text, the type of anything else. */
function shown(body: unknown): readonly string[] {
  const { messages } = body as { messages: { content: unknown }[] };
  const results = messages.flatMap(({ content }) =>
    Array.isArray(content)
      ? (content as { type: string; content?: string | Part[] }[]).filter(
          ({ type }) => type === 'tool_result',
        )
      : [],
  );
  return results.flatMap(({ content = [] }) =>
    typeof content === 'string'
      ? [content]
      : content.map(({ type, text, source }) => text ?? source?.media_type ?? type),
  );
}

const MENTION = '[image not shown, the vendor refused it]';
const NO_FILE = '[document not shown, the vendor refused it]';

describe('what is left out of the next try', () => {
  const CASES: readonly (readonly [
    name: string,
    media: readonly Json[],
    refusal: Scripted,
    then: readonly string[],
  ])[] = [
    [
      'the image that the vendor names',
      [image(GOOD), image(png(640, 481)), image(png(640, 482))],
      refuse('messages.4.content.0.tool_result.content.0.image.source.base64.data: bad'),
      ['image/png', MENTION, 'image/png'],
    ],
    [
      'the one that is seen to be cut off, where none is named',
      [image(GOOD), image(CUT), image(JPEG, 'image/jpeg')],
      refuse('Could not process image'),
      ['image/png', MENTION, 'image/jpeg'],
    ],
    [
      'the one of a kind that no vendor takes',
      [image(GOOD), image(TIFF)],
      refuse('Could not process image'),
      ['image/png', MENTION],
    ],
    [
      'all of them, where nothing tells which',
      [image(GOOD), image(JPEG, 'image/jpeg')],
      refuse('Could not process image'),
      [MENTION, MENTION],
    ],
    [
      'nothing of an image that only says the wrong type: it says its own',
      [image(JPEG, 'image/png'), image(GOOD)],
      refuse(
        'messages.2.content.0.tool_result.content.0.image.source.base64: The image was specified using the image/png media type, but the image appears to be a image/jpeg image',
      ),
      ['image/jpeg', 'image/png'],
    ],
    [
      'every one over the limit of pixels, not only the first',
      [image(HUGE), image(GOOD), image(HUGE)],
      refuse(
        'messages.2.content.0.tool_result.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels',
      ),
      [MENTION, 'image/png', MENTION],
    ],
    [
      'every one over the limit of bytes',
      [image(HEAVY), image(GOOD), image(HEAVY)],
      refuse(
        'messages.2.content.0.tool_result.content.0.image.source.base64: image exceeds 5 MB maximum: 8000 bytes > 5000 bytes',
      ),
      [MENTION, 'image/png', MENTION],
    ],
    [
      'the oldest of too many',
      [image(GOOD), image(GOOD), image(GOOD)],
      refuse('At most 2 image(s) may be provided in one prompt.'),
      [MENTION, 'image/png', 'image/png'],
    ],
    [
      'all but the last of a request that is too large',
      [image(GOOD), file(PDF), image(GOOD)],
      refuse('Request exceeds the maximum size', 413),
      [MENTION, NO_FILE, 'image/png'],
    ],
    [
      'files that are locked, and no other',
      [file(PDF), file(LOCKED), image(GOOD), file(LOCKED)],
      refuse(
        'messages.4.content.0.tool_result.content.0.pdf.source.base64.data: The PDF specified is password protected.',
      ),
      ['application/pdf', NO_FILE, 'image/png', NO_FILE],
    ],
  ];

  test.each(CASES)('%s', async (_, media, refusal, then) => {
    const gateway = scriptedGateway('anthropic-messages', [refusal, fine], features());
    const { status } = await gateway.ask('anthropic-messages', session(...media));
    expect(status).toBe(200);
    expect(gateway.sent).toHaveLength(2);
    expect(shown(gateway.sent[1])).toEqual(then);
    const names = gateway.summaries[0]?.notes.map(({ name }) => name);
    expect(names).toContain('stripped_after_refusal');
  });

  test('files that a vendor names one after the other are left out one after the other', async () => {
    const refused = (n: number) =>
      refuse(`messages.${n}.content.0.tool_result.content.0.pdf.source: This file is damaged.`);
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refused(2), refused(6), fine],
      features(),
    );
    const { status } = await gateway.ask(
      'anthropic-messages',
      session(file(PDF), file(pdfOf('second')), file(pdfOf('third'))),
    );
    expect(status).toBe(200);
    expect(shown(gateway.sent[2])).toEqual([NO_FILE, 'application/pdf', NO_FILE]);
  });

  describe('media that a target has refused are not sent to it again', () => {
    const refusal = refuse('Could not process image');
    const asked = (gateway: ReturnType<typeof scriptedGateway>, ...media: Json[]) =>
      gateway.ask('anthropic-messages', session(...media));

    test('a later turn is asked once, and its new image is seen', async () => {
      const gateway = scriptedGateway('anthropic-messages', [refusal, fine, fine], features());
      await asked(gateway, image(CUT), image(GOOD));
      const { status } = await asked(gateway, image(CUT), image(GOOD), image(JPEG, 'image/jpeg'));
      expect(status).toBe(200);
      expect(gateway.sent).toHaveLength(3);
      expect(shown(gateway.sent[2])).toEqual([MENTION, 'image/png', 'image/jpeg']);
      const names = gateway.summaries[1]?.notes.map(({ name }) => name);
      expect(names).toContain('stripped_after_refusal');
    });

    test('an image of the wrong type says its own at once', async () => {
      const gateway = scriptedGateway('anthropic-messages', [refusal, fine, fine], features());
      await asked(gateway, image(JPEG));
      await asked(gateway, image(JPEG), image(GOOD));
      expect(gateway.sent).toHaveLength(3);
      expect(shown(gateway.sent[2])).toEqual(['image/jpeg', 'image/png']);
    });

    test.each([
      ['one of several, where nothing tells which', refusal, [image(GOOD), image(GOOD)]],
      [
        'one of too many',
        refuse('At most 1 image(s) may be provided in one prompt.'),
        [image(GOOD), image(CUT)],
      ],
      [
        'one of a too large request',
        refuse('Request exceeds the maximum size', 413),
        [image(GOOD), image(CUT)],
      ],
    ])('only a suspicion is not remembered: %s', async (_, first, media) => {
      const gateway = scriptedGateway('anthropic-messages', [first, fine, fine], features());
      await asked(gateway, ...media);
      await asked(gateway, image(GOOD));
      expect(gateway.sent).toHaveLength(3);
      expect(shown(gateway.sent[2])).toEqual(['image/png']);
    });

    test('a question that comes alone is asked as it is', async () => {
      const gateway = scriptedGateway('anthropic-messages', [refusal, fine, refusal], features());
      await asked(gateway, image(CUT));
      const content = [image(CUT)];
      const body = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content }] };
      const { status } = await gateway.ask('anthropic-messages', body);
      expect(status).toBe(400);
      expect(gateway.sent[2]).toEqual(body as never);
    });

    test('another model gets the whole', async () => {
      const gateway = scriptedGateway('anthropic-messages', [refusal, fine, fine], features());
      await asked(gateway, image(CUT));
      await gateway.ask('anthropic-messages', { ...session(image(CUT)), model: 'other' });
      expect(gateway.sent).toHaveLength(3);
      expect(shown(gateway.sent[2])).toEqual(['image/png']);
    });
  });

  test('a refusal in the same words again is the client’s answer: nothing is asked for ever', async () => {
    const refusal = refuse('Could not process image');
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refusal, refusal, refusal, refusal, refusal, refusal],
      features(),
    );
    const { status, text } = await gateway.ask('anthropic-messages', session(image(GOOD)));
    expect(status).toBe(400);
    expect(text).toContain('Could not process image');
    expect(gateway.sent).toHaveLength(2);
  });

  test('a person’s own image in a session is left out, and its text stays', async () => {
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse('Could not process image'), fine],
      features(),
    );
    const content = [image(CUT), { type: 'text', text: 'what is this?' }];
    const body = { model: 'm', max_tokens: 9, tools: TOOLS, messages: [{ role: 'user', content }] };
    await gateway.ask('anthropic-messages', body);
    expect((gateway.sent[1] as typeof body).messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: MENTION }, content[1]] },
    ] as never);
  });

  test.each([
    ['an image', 'Could not process image'],
    ['a model without images', 'image input is not supported by this server'],
  ])('a question that comes alone gets the vendor’s error: %s', async (_, words) => {
    const gateway = scriptedGateway('anthropic-messages', [refuse(words), fine], features());
    const content = [image(CUT), { type: 'text', text: 'what is this?' }];
    const body = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content }] };
    const { status, text } = await gateway.ask('anthropic-messages', body);
    expect(status).toBe(400);
    expect(text).toContain(words);
    expect(gateway.sent).toHaveLength(1);
  });

  test('a target that takes a whole request is asked before anything is left out of it', async () => {
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse('Request exceeds the maximum size', 413), fine],
      features(),
      'routes: [{ to: [up/m, up/wide] }]',
    );
    const { status } = await gateway.ask('anthropic-messages', session(image(GOOD), image(GOOD)));
    expect(status).toBe(200);
    expect(gateway.sent).toHaveLength(2);
    expect((gateway.sent[1] as { model: string }).model).toBe('wide');
    expect(shown(gateway.sent[1])).toEqual(['image/png', 'image/png']);
  });

  test('a refusal of an image that the request does not have is the client’s answer', async () => {
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse('Could not process image'), fine],
      features(),
    );
    const { status } = await gateway.ask('anthropic-messages', session(file(PDF)));
    expect(status).toBe(400);
    expect(gateway.sent).toHaveLength(1);
  });

  test('for a client of another protocol the vendor’s indices mean nothing: the broken one goes', async () => {
    const gateway = scriptedGateway(
      'openai-chat',
      [refuse('messages[1].content[0]: Failed to load image or audio file'), chat],
      features(),
    );
    const { status } = await gateway.ask('anthropic-messages', session(image(GOOD), image(CUT)));
    expect(status).toBe(200);
    const sent = JSON.stringify(gateway.sent[1]);
    expect(sent).toContain(GOOD);
    expect(sent).not.toContain(CUT);
    expect(sent).toContain(MENTION);
  });
});

describe('a model that takes no images', () => {
  test.each(['anthropic-messages', 'openai-chat'] as const)(
    'is asked without them, and later ones are not sent at all: %s',
    async (client) => {
      const refusal: Scripted = {
        status: 400,
        json: { error: { message: 'unknown variant `image_url`, expected `text`' } },
      };
      const gateway = scriptedGateway('openai-chat', [refusal, chat, chat], features());
      const body =
        client === 'anthropic-messages'
          ? session(image(GOOD))
          : {
              model: 'm',
              messages: [
                { role: 'user', content: 'look' },
                { role: 'assistant', content: 'at what?' },
                {
                  role: 'user',
                  content: [
                    { type: 'image_url', image_url: { url: `data:image/png;base64,${GOOD}` } },
                  ],
                },
              ],
            };
      for (let turn = 0; turn < 2; turn++) {
        const { status } = await gateway.ask(client, body);
        expect(status).toBe(200);
      }
      expect(gateway.sent.map((sent) => JSON.stringify(sent).includes(GOOD))).toEqual([
        true,
        false,
        false,
      ]);
      expect(JSON.stringify(gateway.sent[1])).toContain('[image not shown]');
    },
  );
});
