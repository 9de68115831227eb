/** Classifies a vendor's refusal of a request: thinking, signatures, kept items, call pairs, tools, turn order, settings or unknown fields. */

import { saysNothing } from '../edit.ts';
import type { GatewayError } from '../errors.ts';
import type { Profile } from '../profile-facts.ts';
import type { Target } from '../target.ts';
import { CLIENT_TOOLS } from '../tools/client-tools.ts';
import type { Conversation, Tool } from '../types.ts';
import { type FieldPath, refusedFields } from './refused-fields.ts';
import { hasRefusedMedia, type MediaRefusal, refusedMedia } from './refused-media.ts';
import { refusedSetting, type SettingRefusal } from './refused-settings.ts';
import { knownToolTypes, refusesTools } from './refused-tools.ts';

/**
 * - `thinking`: reasoning that may not be sent in this form; `at` is the block if the vendor names it,
 *   `onwards` means that the reasoning after it is refused too
 * - `thinking-head`: a tool loop must begin with thinking, and does not
 * - `thinking-missing`: assistant messages must carry their reasoning text
 * - `call-signature`: the signature of a call is missing; `invalid`: or one of any part is not the vendor's
 * - `kept`: ids of items that the vendor does not keep, or keeps with reasoning that is not sent with them (`incomplete`)
 * - `encrypted`: encrypted content that the vendor cannot read: of reasoning, of a summary, of either, or of search results
 * - `empty`: texts, messages or results that say nothing
 * - `strict`: schemas of strict tools that are not strict enough, or too large together
 * - `references`: a result of a function that holds `$ref`, which Google takes for one of its own
 * - `action`: what an item of the vendor's own search did, in words that it does not know
 * - `pairing`: calls without results, or results without calls
 * - `tools-missing`: the history has calls, and the request declares no tools
 * - `shape`: an order of turns, a place of images or a form of ids that the vendor does not accept; `facts` are the profile
 *   facts that say so
 * - `media`: images, files or recordings that the vendor or the model does not take
 * - `too-long`: texts, or inputs of calls, of more characters than `most`
 * - `fields`: fields that the vendor does not know
 * - `setting`: a setting, or its value, that the vendor or the model does not take
 */
export type HistoryRefusal =
  | {
      readonly kind: 'thinking';
      readonly at?: { readonly message: number; readonly block: number };
      readonly onwards?: boolean;
      /** Facts that also hold for later requests. */
      readonly facts?: Partial<Profile>;
    }
  | { readonly kind: 'thinking-missing'; readonly message?: number }
  | {
      readonly kind:
        | 'thinking-head'
        | 'pairing'
        | 'tools-missing'
        | 'action'
        | 'references'
        | 'strict'
        | 'empty';
    }
  | { readonly kind: 'call-signature'; readonly invalid: boolean }
  | { readonly kind: 'kept'; readonly incomplete: boolean }
  | { readonly kind: 'encrypted'; readonly of: EncryptedContent }
  | { readonly kind: 'shape'; readonly facts: Partial<Profile> }
  | { readonly kind: 'fields'; readonly paths: readonly FieldPath[] }
  | MediaRefusal
  | { readonly kind: 'too-long'; readonly of: 'input' | 'text'; readonly most: number }
  | SettingRefusal;

export type EncryptedContent = 'reasoning' | 'summary' | 'either' | 'search results';

/** Messages of vendors and of chat templates, and the profile fact that each one shows. */
const SHAPES: readonly (readonly [RegExp, Partial<Profile>])[] = [
  [
    /does not support assistant message prefill|conversation must end with a user message|expected last role user or tool|last message must have role user|last message of .{1,80} must be a user message|last message .{0,40}must not be from the assistant|ending with a model turn are not supported|requests ends? with a user role|2 or more assistant messages at the end|response prefill is incompatible with enable_thinking|continue_final_message is set but the final message does not appear|add_generation_prompt to true when the last message is from the assistant/,
    { assistantLast: false },
  ],
  [
    /first message must use the user role|first (?:message|turn) must be (?:a |from the )?user|first message .{0,80}must be a user message|conversation must start with a user message/,
    { userFirst: true },
  ],
  // Templates of Gemma 2; OpenAI's first reasoning models.
  [
    /system role (?:is )?not supported|does not support system with this model|(?:does not|doesnt) support (?:the )?system (?:role|messages?|prompts?)/,
    { instructions: false },
  ],
  [/no user query found in messages/, { needsUserTurn: true }],
  [
    /roles must alternate|requests alternate between user and model|alternate between user and assistant|does not support successive user or assistant messages/,
    { sameRoleTurns: false },
  ],
  [
    /unexpected role system|invalid message role: system|role system must precede an assistant message|system message must be at the beginning|role: input should be user or assistant|only supports? system as the first/,
    { systemTurns: false },
  ],
  [
    /output of tool call should be input text|image urls? (?:are|is) only allowed (?:for|in) (?:messages with role )?user|invalid value: image_url\. supported values are: text\./,
    { imagesInResults: false },
  ],
  // Servers in Rust, pydantic and zod; templates in Rust and Python.
  [
    /messages\[\d{1,6}\](?:\.content)?: invalid type: sequence, expected a string|content\b.{0,60}(?:str type expected|input should be a valid string|expected a string, but got an array|expected string, received array)|expects a single text element per message|unsupported types string and sequence|can only concatenate str \(not list\) to str/,
    { contentParts: false },
  ],
  // OpenAI; servers in zod, pydantic and Go. Relays in Go (google-gemini/deprecated-generative-ai-python#751).
  [
    /image_url: expected an object, but got a string|image_url\b.{0,40}(?:expected object, received string|input should be (?:a valid dictionary|an object))|cannot unmarshal string into go .{0,80}image_?url|invalid value: (?:input_text|output_text|input_image|image|document|input_file)\. supported values are: text\b|illegal base64 data at input byte/,
    { foreignParts: false },
  ],
  // DeepSeek (deepset-ai/haystack#8194), LM Studio, pydantic.
  [
    /unknown variant function, expected one of system|role field that is in \[user, assistant, system, tool\]\. got function|input tag function found using .{0,10}role/,
    { legacyFunctions: false },
  ],
  [
    /unknown variant tool_reference|input tag tool_reference found|tool_reference\b.{0,40}(?:not supported|unsupported)|(?:unsupported|unknown|invalid) (?:content )?(?:block )?type:? tool_reference/,
    { toolReferences: false },
  ],
  [/only supports single tool-calls at once/, { parallelCalls: false }],
  [/unexpected role user after role tool/, { userAfterTool: false }],
  [
    /tool call ids? (?:should|must) be alphanumeric|must be a-z, a-z, 0-9, with a length of 9/,
    { callIds: 'nine-alphanumeric' },
  ],
];

// Quotes differ between relays of the same vendor, so messages are matched without them.
const QUOTES = /[`'"“”‘’]/g;

const THINKING_HEAD = /expected thinking or redacted_thinking,? but found/;

const THINKING_MISSING =
  /reasoning_(?:content|text|details)\b.{0,60}\b(?:must be (?:passed|sent|provided)|is (?:missing|required))|(?:missing|requires?)\b.{0,20} reasoning_content|must (?:include|contain) reasoning_content/;

const CALL_SIGNATURE =
  /missing a thought_?signature|thought[ _]?signature\b.{0,40}\b(?:(not valid|invalid|corrupted|mismatch)|missing)|(invalid|corrupted) thought[ _]?signature/;

const THINKING = [
  /invalid signature in thinking/,
  /thinking\.signature: /,
  /each thinking block must contain thinking/,
  /(?:redacted_thinking|thinking) blocks? .{0,80}cannot be modified/,
  /thinking block.{0,40}bound to a different conversation/,
  /final position cannot contain thinking/,
  /contains any thinking blocks, the first block must be/,
  /final block in an assistant message cannot be thinking/,
  /invalid data in redacted_thinking|redacted_thinking\.data: /,
];

/** Each sentence is a row of test/features/refusal-retry/kept-by-vendor.test.ts, with its source. In lower case, without quotes. */
const NOT_KEPT = /item with id [\w-]{1,200} not found/;
const INCOMPLETE = /was provided without its required (?:reasoning|following) item/;
const ENCRYPTED: readonly (readonly [RegExp, EncryptedContent])[] = [
  [/could not decode the compaction blob/, 'either'],
  [/encrypted content for item cmp_\w{1,100} could not be verified/, 'summary'],
  [/invalid encrypted_content in (?:web_)?search_result/, 'search results'],
  [
    /invalid_encrypted_content|encrypted[ _]content\b.{0,300}could not be (?:verified|decrypted|parsed)|could not decrypt the provided encrypted_content|encrypted_content was not issued to this caller/,
    'reasoning',
  ],
];

/** Refusals of items that the vendor kept or encrypted, and does not know any more. */
function unknownContent(words: string): HistoryRefusal | undefined {
  if (NOT_KEPT.test(words)) return { kind: 'kept', incomplete: false };
  if (INCOMPLETE.test(words)) return { kind: 'kept', incomplete: true };
  const of = ENCRYPTED.find(([pattern]) => pattern.test(words))?.[1];
  return of && { kind: 'encrypted', of };
}

const PAIRING = [
  /tool_use ids? (?:were|was) found without tool_result/,
  /did not find \d+ tool_result block/,
  /unexpected tool_use_id found in/,
  /each tool_use must have a single result/,
  /tool_?use ids must be unique/,
  /tool use with id .{1,100} was found without/,
  /tool_result blocks can only be in user/,
  /contain duplicate ids/,
  /must be followed by tool messages/,
  /tool_call_ids did not have response/,
  /insufficient tool messages following/,
  /role tool must be a response to a prec/,
  // Kimi has two spaces: tool_call_id  is not found
  /tool_call_id (?:of )?.{0,100}not found/,
  /no tool output found for/,
  /no tool call found for/,
  /function (?:call|response) turn comes immediately after/,
  /number of function response parts is equal/,
  /duplicate (?:tool_use|tool_call|tool call|toolu?se) ids?/,
  /invalid_tool_call_format/,
  // MiniMax
  /tool call result does not follow tool call|tool results tool id\(.{1,100}\) not found|invalid function arguments json string/,
  // Mistral
  /not the same number of function calls and responses|unexpected tool call id .{1,100} in tool results/,
  // Bedrock's Converse, behind relays
  /expected toolresult blocks at|number of toolresult blocks at .{1,60} exceeds/,
];

// https://github.com/openai/codex/issues/13270
const TOO_LONG =
  /invalid (?:\S{0,120}[.\]])?(arguments|input|output|content|text): string too long\. expected a string with maximum length (\d{4,9})/;

/** Clients write what they do not know as `other`: https://github.com/openai/codex/issues/7073 */
const ACTION = /^input\[\d{1,6}\]\.action(?:\.|$)/;

/** Each sentence is a row of test/features/refusal-retry/empty.test.ts, with its source. */
const EMPTY =
  /text content blocks must (?:be non-empty|contain non-whitespace)|messages must have non-empty content|text field in the contentblock object at .{1,60} is blank|content field in the message object at .{1,60} is empty|\btext cannot be empty|role (?:user|tool|system) must not be empty|cannot be set for empty text/;

/** Each sentence is a row of test/features/refusal-retry/strict-tools.test.ts, with its source. */
const STRICT =
  /invalid schema for function .{1,200}: in context=.{0,300}(?:is required to be supplied|is not permitted|is not a valid format)|tools\.\d{1,4}\.custom: for .{1,20} type, (?:propert(?:y|ies) .{1,200} (?:is|are) not supported|additionalproperties must be explicitly set to false)|compiled grammar is too large|schema is too complex for compilation/;

/** https://github.com/NousResearch/hermes-agent/issues/100441, https://github.com/twentyhq/twenty/pull/19412 */
const REFERENCES = /referenced name .{1,300} in function_response\.response does not match/;

/** Anthropic, Bedrock, and LiteLLM before either. */
const TOOLS_MISSING =
  /must define tools|toolconfig field must be defined|tool calling without tools= param/;

/** Vendors name the problem first; a list of ids as long as the history may follow. */
const MAX_READ = 16_384;

const BLOCK = /messages\.(\d+)\.content\.(\d+)/;
const AT_INDEX = /(?:message at index |messages[.[])(\d+)/;

/**
 * The refusal in an error answer. Undefined if the error is not about the history: then the same request
 * with a smaller history would fail too.
 */
export function historyRefusal(error: GatewayError): HistoryRefusal | undefined {
  const { status, fromUpstream } = error;
  // Some servers answer 500 when a chat template fails to render.
  if (!fromUpstream) return undefined;
  if (error.kind === 'context_overflow') return refusedSetting(error);
  const isBadRequest = [400, 402, 422, 500].includes(status);
  const message = `${error.message.slice(0, MAX_READ)} ${error.code ?? ''} ${sentence(error.param)}`;
  const words = message.replace(QUOTES, '').toLowerCase();
  const facts = isBadRequest ? SHAPES.find(([pattern]) => pattern.test(words))?.[1] : undefined;
  if (facts !== undefined) return { kind: 'shape', facts };
  const toolTypes = isBadRequest ? knownToolTypes(words, error.param) : undefined;
  if (toolTypes !== undefined) {
    // A vendor that names one type at a time has a fault for each.
    return { kind: 'setting', setting: `types ${toolTypes.join(' ')}`, facts: { toolTypes } };
  }
  const media = refusedMedia(error);
  if (media !== undefined) return media;
  // OpenAI answers 404 where an item is not found.
  const isUnknown = status === 404 && NOT_KEPT.test(words);
  const unknown = isUnknown || isBadRequest ? unknownContent(words) : undefined;
  if (unknown !== undefined) return unknown;
  if (!isBadRequest || status === 500 || error.kind !== 'invalid_request') return undefined;
  if (THINKING_HEAD.test(words)) return { kind: 'thinking-head' };
  if (THINKING_MISSING.test(words)) {
    const message = AT_INDEX.exec(words)?.[1];
    return { kind: 'thinking-missing', ...(message === undefined ? {} : { message: +message }) };
  }
  const signature = CALL_SIGNATURE.exec(words);
  if (signature !== null) {
    return { kind: 'call-signature', invalid: (signature[1] ?? signature[2]) !== undefined };
  }
  if (THINKING.some((pattern) => pattern.test(words))) {
    const [, message, block] = BLOCK.exec(words) ?? [];
    return {
      kind: 'thinking',
      ...(message === undefined ? {} : { at: { message: +message, block: +block! } }),
      ...(words.includes('bound to a different') ? { onwards: true } : {}),
      ...(words.includes('prefix_mismatch_behavior')
        ? { facts: { boundThinking: 'always' } as const }
        : {}),
    };
  }
  if (ACTION.test(error.param ?? '')) return { kind: 'action' };
  if (EMPTY.test(words)) return { kind: 'empty' };
  if (STRICT.test(words) && !words.includes('output_config')) return { kind: 'strict' };
  if (REFERENCES.test(words)) return { kind: 'references' };
  if (TOOLS_MISSING.test(words)) return { kind: 'tools-missing' };
  if (PAIRING.some((pattern) => pattern.test(words))) return { kind: 'pairing' };
  const [, member, most] = TOO_LONG.exec(words) ?? [];
  if (member !== undefined) {
    const of = member === 'arguments' || member === 'input' ? 'input' : 'text';
    return { kind: 'too-long', of, most: Number(most) };
  }
  const marks = refusedMarks(words);
  if (marks !== undefined) return marks;
  // Google says of a setting that it cannot find the field.
  const setting = words.includes('cannot find field') ? refusedSetting(error) : undefined;
  if (setting !== undefined) return setting;
  const paths = refusedFields(error.message);
  return paths.length > 0 ? { kind: 'fields', paths } : refusedSetting(error);
}

/** MiMo says "Param Incorrect", and what is wrong in `param`. */
const sentence = (param = ''): string => (param.includes(' ') ? param.slice(0, MAX_READ) : '');

/** What a refusal teaches about the target, beyond this one request or only for it. */
interface Lesson {
  readonly facts: Partial<Profile>;
  readonly paths: readonly FieldPath[];
  readonly once: boolean;
}

/** Vendors that miss reasoning by this name speak Messages, too, and check no signatures there. */
const WANTS_REASONING = {
  reasoningReplay: 'all',
  thinkingDefault: 'on',
  anySignature: true,
} as const;

/** Facts about another spelling of the same: no request says less for it, and later ones get it at once. */
const SPELLINGS: ReadonlySet<string> = new Set([
  'foreignParts',
  'legacyFunctions',
  'toolReferences',
]);

const ITEM_IDS: readonly FieldPath[] = [['input', '*', 'id']];

function lessonOf(refusal: HistoryRefusal | undefined): Lesson | undefined {
  switch (refusal?.kind) {
    case 'thinking':
    case 'media':
      return refusal.facts && { facts: refusal.facts, paths: [], once: false };
    case 'shape': {
      const once = !Object.keys(refusal.facts).some((fact) => SPELLINGS.has(fact));
      return { facts: refusal.facts, paths: [], once };
    }
    case 'thinking-missing':
      return { facts: WANTS_REASONING, paths: [], once: false };
    case 'kept':
      return { facts: {}, paths: ITEM_IDS, once: true };
    case 'fields': {
      const facts = refusal.paths.some(isFormat) ? { jsonSchema: false } : {};
      return { facts, paths: refusal.paths, once: false };
    }
    case 'setting':
      return {
        facts: refusal.facts ?? {},
        paths: refusal.paths ?? [],
        once: refusal.once === true,
      };
    default:
      return undefined;
  }
}

/** Without its field, the schema of the answer is said in the prompt. */
const FORMATS: ReadonlySet<string> = new Set(['response_format', 'text', 'text.format']);
const isFormat = (path: FieldPath): boolean => FORMATS.has(path.join('.'));

/** Kinds whose remedy changes the history itself, whatever is known of the target. */
const CHANGES_HISTORY: ReadonlySet<HistoryRefusal['kind']> = new Set([
  'thinking',
  'thinking-missing',
  'media',
]);

/**
 * Would acting on the refusal change the request? Not if it names nothing, and not if the target is known to be so
 * already.
 * @param target as it was asked, with what had been learnt by then
 */
export function canActOn(target: Target, error: GatewayError): boolean {
  const refusal = historyRefusal(error);
  const lesson = lessonOf(refusal);
  if (lesson?.facts.toolTypes !== undefined && target.protocol !== 'openai-responses') return false;
  if (lesson === undefined || CHANGES_HISTORY.has(refusal!.kind)) return refusal !== undefined;
  return taught(target, lesson) !== target;
}

/** Characters of a message that tell it from others. */
const MAX_FAULT = 500;

/** The key of a fault. A request is mended once for each; a vendor names the faults of a history one by one. */
export function faultOf(error: GatewayError): string {
  const refusal = historyRefusal(error);
  if (refusal?.kind === 'setting') return refusal.setting;
  return refusal?.kind === 'fields' ? 'fields' : `history: ${error.message.slice(0, MAX_FAULT)}`;
}

/**
 * May what the refusal names be left out of this request? Of a question that comes alone no content is: its program can
 * act on the error. In a session every later request would fail by it.
 * @param conversation is asked for only where content is at stake
 */
export function mayLeaveOut(error: GatewayError, conversation: () => Conversation): boolean {
  const refusal = historyRefusal(error);
  if (refusal?.kind === 'setting' && refusal.facts?.toolTypes !== undefined) {
    // Without tools it is about the history.
    const { tools } = conversation();
    return tools.length === 0 || tools.some(isClientsOwn);
  }
  if (refusal?.kind === 'empty') return holdsEmpty(conversation());
  if (refusal?.kind === 'strict') return conversation().tools.some(mayBeStrict);
  if (refusal?.kind !== 'media' && refusal?.kind !== 'too-long') return true;
  const asked = conversation();
  return isSession(asked) && (refusal.kind === 'too-long' || hasRefusedMedia(asked, refusal));
}

/** Is there a text, a message or a result of a tool that says nothing? */
const holdsEmpty = ({ system, turns }: Conversation): boolean =>
  system.some(saysNothing) ||
  turns.some(
    ({ blocks }) =>
      blocks.every(({ type }) => type === 'reasoning') ||
      blocks.some(
        (block) =>
          saysNothing(block) ||
          (block.type === 'tool-result' &&
            (block.content.length === 0 || block.content.some(saysNothing))),
      ),
  );

/** A tool of Responses may be strict without saying so. */
const mayBeStrict = (tool: Tool): boolean =>
  tool.type === 'function' &&
  (tool.strict === true ||
    (tool.strict === undefined && tool.wire?.protocol === 'openai-responses'));

/** Does the client run the tool, so that it is left to a vendor that does not run others? */
const isClientsOwn = (tool: Tool): boolean =>
  tool.type !== 'hosted' ||
  tool.kind === 'tool_search' ||
  Object.values(CLIENT_TOOLS).some(({ type }) => type === tool.kind);

/** Will what is asked now come again in later requests? */
export const isSession = ({ tools, turns }: Conversation): boolean =>
  tools.length > 0 || turns.some(({ role }) => role === 'assistant');

/** The target with the facts that its refusals show, for the tries that act on them. */
export function targetAfterRefusals(target: Target, errors?: readonly GatewayError[]): Target {
  let after = target;
  if (errors === undefined) return after;
  for (const error of errors) {
    const lesson = lessonOf(historyRefusal(error));
    if (lesson !== undefined) after = taught(after, lesson);
  }
  return after;
}

/** The model takes none: requests with tools go elsewhere first, and none is sent without them. */
const NO_TOOLS: Lesson = { facts: { maxTools: 0 }, paths: [], once: false };

/** The target with what a refusal shows for every later request, too; the same if that is nothing. */
export function targetLearning(target: Target, error: GatewayError): Target {
  const lesson = lessonOf(historyRefusal(error)) ?? (refusesTools(error) ? NO_TOOLS : undefined);
  return lesson === undefined || lesson.once ? target : taught(target, lesson);
}

/** So many fields are remembered; a vendor that names more has another fault. */
const MAX_FIELDS = 64;

function taught(target: Target, { facts, paths }: Lesson): Target {
  const known = target.profile as unknown as Readonly<Record<string, unknown>>;
  const news = Object.entries(facts)
    .map(([fact, value]) => [fact, joined(fact, known[fact], value)] as const)
    .filter(([fact, value]) => !isKnown(fact, known[fact], value));
  const fields = target.refusedFields ?? [];
  const seen = new Set(fields.map((path) => path.join('.')));
  const added = paths.filter((path) => !seen.has(path.join('.')));
  if (news.length === 0 && (added.length === 0 || fields.length >= MAX_FIELDS)) return target;
  const profile =
    news.length === 0 ? target.profile : { ...target.profile, ...Object.fromEntries(news) };
  if (added.length === 0) return { ...target, profile };
  return { ...target, profile, refusedFields: [...fields, ...added].slice(0, MAX_FIELDS) };
}

/** Facts whose lists grow. */
const GROWING: ReadonlySet<string> = new Set(['refusedBetas', 'reservedTools']);

/** Each refusal names what it refuses alone, so lists of refused things grow, and the list of accepted types of tools shrinks. */
function joined(fact: string, known: unknown, more: unknown): unknown {
  if (GROWING.has(fact)) return [...new Set([known ?? [], more].flat())];
  if (fact !== 'toolTypes' || !Array.isArray(known)) return more;
  return known.filter((type) => (more as readonly unknown[]).includes(type));
}

/** A cap only sinks; a list of stops only becomes shorter; a model that always reasons does so by default, too. */
function isKnown(fact: string, known: unknown, value: unknown): boolean {
  if (fact === 'thinkingDefault' && known === 'always' && value === 'on') return true;
  const sinks = fact === 'maxOutput' || fact === 'maxStops';
  if (sinks && typeof known === 'number' && typeof value === 'number') return known <= value;
  return Bun.deepEquals(known, value);
}

/** Refusals of a single mark, not of marks in general: on thinking or empty text, or too many. */
const ONE_MARK =
  /thinking\.cache_control|empty text|maximum of \d+ blocks|(?:^| )tools\.[\d*]{1,6}\.(?:[a-z]{1,20}\.)?cache_control/;

/** Each sentence is a row of test/features/prompt-cache/refused.test.ts, with its source. In lower case, without quotes. */
const REFUSALS: readonly (readonly [RegExp, Omit<SettingRefusal, 'kind'>])[] = [
  [
    /ttl=1h cache_control block must not come after/,
    { setting: 'cache_control.ttl', paths: [['**', 'ttl']], once: true },
  ],
  [
    /cache_control(?:\.ephemeral)?\.ttl\b.{0,40}(?:extra inputs|not (?:supported|permitted|allowed)|unknown|unexpected|unsupported)/,
    { setting: 'cache_control.ttl', paths: [['**', 'ttl']] },
  ],
  [
    /(?:[\w*\])]\.|property |field |\()cache_control\b.{0,40}(?:extra inputs|unsupported|unexpected|expected one of|not (?:supported|permitted|allowed))|unknown (?:field|parameter):? (?:\S{1,80}\.)?cache_control\b|cache_control (?:is|was|are) (?:not|un)\W?(?:supported|permitted|allowed|available)|(?:not support|did not allow) (?:cache_control|prompt caching)|prompt caching is not (?:supported|available|enabled)/,
    {
      setting: 'cache_control',
      facts: { cacheMarks: false },
      paths: [['**', 'cache_control']],
    },
  ],
  [
    /prompt_cache_breakpoint\b.{0,80}(?:extra inputs|unsupported|unexpected|not (?:supported|permitted|allowed|available))|(?:unknown|unsupported|unrecognized|unexpected)\b.{0,40}\bprompt_cache_breakpoint\b/,
    {
      setting: 'prompt_cache_breakpoint',
      facts: { breakpointsAt: '' },
      paths: [['**', 'prompt_cache_breakpoint']],
    },
  ],
];

/** @param words of the error, in lower case and without quotes */
function refusedMarks(words: string): SettingRefusal | undefined {
  if (!words.includes('cach') || ONE_MARK.test(words)) return undefined;
  for (const [pattern, refusal] of REFUSALS) {
    if (pattern.test(words)) return { kind: 'setting', ...refusal };
  }
  return undefined;
}
