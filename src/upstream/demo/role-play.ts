/** The demo model as a member of a chat: it recalls when the past is asked about, and plays the role in its instructions. */

import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import type { DemoRequest } from './chat-request.ts';
import { headOf, readIntent } from './intent.ts';
import { type Language, languageOf, quote } from './wording.ts';

const RECALL = 'recall_memory';
const MESSAGES = 'get_other_members_messages';
const MENTION = 'is_mentioned';

const PAST =
  /记得|记不记得|上次|之前|以前|哪天|哪一天|什么时候|叫什么|说过|提过|想去哪|\bremember|\blast time\b|\bearlier\b|\bbefore\b|\bwhen (?:is|was|did)\b|\bwhat (?:is|was) the name\b|\bwhere did\b|\btold\b|\bsaid\b/i;
/** Words of a question that are not its subject. */
const FILLERS = [
  /@\S{1,64}/g,
  /你们?|我们?|他们?|还|记不记得|记得|上次|之前|以前|说过|提过|说的?|那家|那个|哪天|哪一天|什么时候|什么|叫|哪里|哪儿|来着|[吗呢吧啊的是了？?！!，。,.]/g,
  /\b(?:do|you|still|remember|what|when|is|was|the|my|i|did|we|that|last|time|name|of|where|said|say|told|tell|us|me|want|wanted|to)\b/gi,
];
const LIMIT = /(?:最多回忆（recall_memory）|at most )\s*(\d+)/;

interface Told {
  readonly text: string;
  readonly source: string;
}

/** Undefined for a request that is no chat with a memory; there the usual answers are given. */
export function playRole(
  request: DemoRequest,
):
  | { text: string; calls: readonly { kind: 'function'; name: string; input: string }[] }
  | undefined {
  const { tools, results, choice, persona, format } = request;
  const known = (name: string) =>
    tools.some((tool) => tool.name === name) || results.some((result) => result.name === name);
  if (format !== undefined || choice === 'forced' || !known(RECALL)) return undefined;
  if (readIntent(request.question).kind !== 'question') return undefined;
  const question = headOf(request.question);
  const language = languageOf(question);
  const me = nameIn(persona);
  const mention = results.findLast(({ name }) => name === MENTION)?.text;
  const spokenTo = mention === undefined || !/未被|not mentioned/.test(mention);
  const others = results.findLast(({ name }) => name === MESSAGES)?.text ?? '';
  const recalls = results.filter(({ name }) => name === RECALL);
  const asks = PAST.test(question);
  const offered = choice === 'auto' && tools.find(({ name }) => name === RECALL);
  if (asks && spokenTo && offered && recalls.length < Math.min(2, limitIn(request))) {
    const input = JSON.stringify({ query: subject(question) });
    return { text: '', calls: [{ kind: 'function', name: RECALL, input }] };
  }
  const events = recalls.flatMap(({ text }) => eventsIn(text));
  const text = spokenTo
    ? asks
      ? remembered(best(events, question), { question, me, language })
      : answered(question, me, language)
    : aside(question, others, me, language);
  const phrase =
    /口头禅[:：]?\s{0,9}[“"「](.{1,80}?)[”"」]|often say[s]?\s{0,9}["“](.{1,80}?)["”]/i.exec(
      persona,
    );
  const ending = spokenTo ? (phrase?.[1] ?? phrase?.[2] ?? '') : '';
  return { text: ending === '' ? text : `${text} ${ending}`, calls: [] };
}

const limitIn = ({ persona }: DemoRequest): number => Number(LIMIT.exec(persona)?.[1] ?? 99);

const nameIn = (persona: string): string =>
  /你是\s*[“"「]?([\p{L}\p{N}]{1,12})|You are\s+([\p{L}\p{N}]{1,20})/u
    .exec(persona)
    ?.slice(1)
    .find(Boolean) ?? '';

/** What a question is about, for a recall. */
function subject(question: string): string {
  let rest = question;
  for (const filler of FILLERS) rest = rest.replace(filler, ' ');
  rest = rest.replace(/\s+/g, ' ').trim();
  return rest === '' ? question : rest;
}

function eventsIn(text: string): readonly Told[] {
  const value = tryParse(text);
  const events = isObject(value) && Array.isArray(value.events) ? value.events : [];
  return (events as readonly JsonObject[]).flatMap((event) =>
    typeof event.text === 'string'
      ? [{ text: event.text, source: typeof event.source === 'string' ? event.source : '' }]
      : [],
  );
}

/** The event that has most in common with the question, and is not a question itself. */
function best(events: readonly Told[], question: string): Told | undefined {
  const asked = new Set(grams(subject(question)));
  let found: Told | undefined;
  let most = 0;
  for (const event of events) {
    if (PAST.test(event.text) && /[?？]/.test(event.text)) continue;
    const shared = grams(headOf(event.text)).filter((gram) => asked.has(gram)).length;
    if (shared > most) [found, most] = [event, shared];
  }
  return found;
}

/** Pairs of characters of unspaced scripts, and words of others. */
function grams(text: string): readonly string[] {
  const lower = text.toLowerCase();
  const han = (lower.match(/\p{Script=Han}+/gu) ?? []).flatMap((run) => pairsOf([...run]));
  const words = (lower.match(/[a-z0-9]{3,}/g) ?? []).map((word) =>
    word.replace(/(?:ing|ed|s)$/, ''),
  );
  return [...new Set([...han, ...words])];
}

const pairsOf = (chars: readonly string[]) => chars.slice(1).map((char, at) => chars[at]! + char);

interface Scene {
  readonly question: string;
  readonly me: string;
  readonly language: Language;
}

function remembered(event: Told | undefined, { question, me, language }: Scene): string {
  const zh = language === 'zh';
  if (event === undefined) {
    return zh ? '这个我真的不记得了，你再跟我说说？' : 'I honestly do not remember. Tell me again?';
  }
  const words = quote(event.text, 120);
  const own = event.source === me && me !== '';
  const user = event.source === 'user';
  const who = zh
    ? own || event.source === ''
      ? '我记得'
      : user
        ? '你说过'
        : `${event.source}说过`
    : own || event.source === ''
      ? 'I remember'
      : user
        ? 'You said'
        : `${event.source} said`;
  return pick(
    question + me,
    zh
      ? [
          `当然记得！${who}：“${words}”`,
          `让我想想……对了，${who}：“${words}”`,
          `嗯，${who}：“${words}”，我没忘。`,
        ]
      : [
          `Of course! ${who}: “${words}”`,
          `Let me think… right, ${who}: “${words}”`,
          `Yes, ${who}: “${words}”. I have not forgotten.`,
        ],
  );
}

function answered(question: string, me: string, language: Language): string {
  const about = quote(subject(question), 30);
  if (isQuestion(question)) {
    return pick(
      question + me,
      language === 'zh'
        ? [`“${about}”？让我想想再告诉你。`, `问得好，“${about}”我也想知道。`]
        : [`“${about}”? Let me think about it.`, `Good question: “${about}”. I wonder, too.`],
    );
  }
  return pick(
    question + me,
    language === 'zh'
      ? [
          `我在！说到“${about}”，我也很感兴趣。`,
          `好呀，“${about}”算我一个。`,
          `嗯嗯，“${about}”，我记下了。`,
        ]
      : [
          `I am here! “${about}” sounds good to me.`,
          `Count me in for “${about}”.`,
          `Noted: “${about}”.`,
        ],
  );
}

const isQuestion = (said: string): boolean => /[?？]$/.test(said.trimEnd());

/** The member was not asked: a short reply. */
function aside(question: string, others: string, me: string, language: Language): string {
  const last = others.split('\n').at(-1) ?? '';
  const speaker = /^([^:：]{1,20})[:：]/.exec(last)?.[1]?.trim() ?? '';
  // A question is no proposal, so no character agrees with it.
  if (isQuestion(question)) {
    return pick(
      question + me,
      language === 'zh'
        ? ['（好奇地听着）', '我也想知道。', '嗯，这个问题有意思。']
        : ['(listens, curious)', 'I would like to know, too.', 'Now that is a question.'],
    );
  }
  if (language === 'zh') {
    const agree = speaker === '' ? '听起来不错。' : `我同意${speaker}。`;
    return pick(question + me, [
      agree,
      '（在一旁点点头）',
      '哈哈，你们聊，我听着。',
      '嗯，有意思。',
      '真的吗？继续说。',
    ]);
  }
  const agree = speaker === '' ? 'Sounds good.' : `I am with ${speaker}.`;
  return pick(question + me, [
    agree,
    '(nods)',
    'Go on, I am listening.',
    'Interesting.',
    'Really? Tell us more.',
  ]);
}

/** The same words for the same question. */
const pick = (seed: string, choices: readonly string[]): string =>
  choices[Number(Bun.hash.xxHash64(seed) % BigInt(choices.length))]!;
