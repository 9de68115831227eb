/** The demo model as a member of a chat: it recalls when the past is asked about, and plays the role in its instructions. */

import { isObject, tryParse } from '../../lib/json/json.ts';
import { headOf, languageOf, quote, readIntent } from './intent.ts';
import type { Plan } from './reply.ts';
import type { DemoRequest } from './request.ts';

const RECALL = 'recall_memory';

const PAST =
  /记得|记不记得|上次|之前|以前|哪天|哪一天|什么时候|叫什么|说过|提过|想去哪|\bremember|\blast time\b|\bearlier\b|\bbefore\b|\bwhen (?:is|was|did)\b|\bwhat (?:is|was) the name\b|\bwhere did\b|\btold\b|\bsaid\b/i;
/** Words of a question that are not its subject. */
const FILLERS = [
  /@\S{1,64}/g,
  /你们?|我们?|他们?|还|记不记得|记得|上次|之前|以前|说过|提过|说的?|那家|那个|哪天|哪一天|什么时候|什么|叫|哪里|哪儿|来着|[吗呢吧啊的是了？?！!，。,.]/g,
  /\b(?:do|you|still|remember|what|when|is|was|the|my|i|did|we|that|last|time|name|of|where|said|say|told|tell|us|me|want|wanted|to)\b/gi,
];
const LIMIT = /(?:最多回忆（recall_memory）|at most )\s*(\d+)/;
const NAME = /你是\s*[“"「]?([\p{L}\p{N}]{1,12})|You are\s+([\p{L}\p{N}]{1,20})/u;
const PHRASE = /口头禅[:：]?\s{0,9}[“"「](.{1,80}?)[”"」]|often say[s]?\s{0,9}["“](.{1,80}?)["”]/i;

interface Told {
  readonly text: string;
  readonly source: string;
}

/** Undefined for a request that is no chat with a memory; there the usual answers are given. */
export function playRole(request: DemoRequest): Omit<Plan, 'reasoning'> | undefined {
  const { tools, results, choice, persona, format } = request;
  const isKnown = [...tools, ...results].some(({ name }) => name === RECALL);
  if (format !== undefined || choice === 'forced' || !isKnown) return undefined;
  if (readIntent(request.question).kind !== 'question') return undefined;
  const question = headOf(request.question);
  const resultOf = (name: string) => results.findLast((one) => one.name === name)?.text ?? '';
  const isSpokenTo = !/未被|not mentioned/.test(resultOf('is_mentioned'));
  const recalls = results.filter(({ name }) => name === RECALL);
  const asksForPast = PAST.test(question);
  const isOffered = choice === 'auto' && tools.some(({ name }) => name === RECALL);
  const limit = Math.min(2, Number(LIMIT.exec(persona)?.[1] ?? 2));
  if (asksForPast && isSpokenTo && isOffered && recalls.length < limit) {
    const input = JSON.stringify({ query: subjectOf(question) });
    return { text: '', calls: [{ kind: 'function', name: RECALL, input }] };
  }
  const me = firstOf(NAME.exec(persona));
  const found = asksForPast ? best(recalls.flatMap(eventsIn), question) : undefined;
  const said = !isSpokenTo
    ? aside(question, resultOf('get_other_members_messages'))
    : asksForPast
      ? remembered(found, me, languageOf(question) === 'zh')
      : answered(question);
  const text = said[Number(Bun.hash.xxHash64(question + me) % BigInt(said.length))]!;
  const phrase = isSpokenTo ? firstOf(PHRASE.exec(persona)) : '';
  return { text: phrase === '' ? text : `${text} ${phrase}`, calls: [] };
}

const firstOf = (found: RegExpExecArray | null): string => found?.slice(1).find(Boolean) ?? '';

/** The subject of a question, for a recall. */
function subjectOf(question: string): string {
  const bare = FILLERS.reduce((rest, filler) => rest.replace(filler, ' '), question);
  return bare.replace(/\s+/g, ' ').trim() || question;
}

function eventsIn({ text }: { readonly text: string }): readonly Told[] {
  const value = tryParse(text);
  const events = isObject(value) && Array.isArray(value.events) ? value.events : [];
  return events.flatMap((event) =>
    isObject(event) && typeof event.text === 'string'
      ? [{ text: event.text, source: typeof event.source === 'string' ? event.source : '' }]
      : [],
  );
}

/** The event that has most in common with the question, and is not a question itself. */
function best(events: readonly Told[], question: string): Told | undefined {
  const asked = new Set(grams(subjectOf(question)));
  let found: Told | undefined;
  let most = 0;
  for (const event of events) {
    if (PAST.test(event.text) && /[?？]/.test(event.text)) continue;
    const count = grams(headOf(event.text)).filter((gram) => asked.has(gram)).length;
    if (count > most) [found, most] = [event, count];
  }
  return found;
}

/** Pairs of characters of unspaced scripts, and words of others. */
function grams(text: string): readonly string[] {
  const lower = text.toLowerCase();
  const pairs = (lower.match(/\p{Script=Han}+/gu) ?? []).flatMap((run) =>
    [...run].slice(1).map((char, at) => [...run][at]! + char),
  );
  const words = lower.match(/[a-z0-9]{3,}/g) ?? [];
  return [...new Set([...pairs, ...words.map((word) => word.replace(/(?:ing|ed|s)$/, ''))])];
}

// Each gives several ways to say it, of which the question picks one.

function remembered(event: Told | undefined, me: string, zh: boolean): readonly string[] {
  if (event === undefined) {
    return [
      zh ? '这个我真的不记得了，你再跟我说说？' : 'I honestly do not remember. Tell me again?',
    ];
  }
  const { source } = event;
  const words = `“${quote(event.text, 120)}”`;
  const isOwn = source === '' || source === me;
  if (zh) {
    const who = isOwn ? '我记得' : source === 'user' ? '你说过' : `${source}说过`;
    return [
      `当然记得！${who}：${words}`,
      `让我想想……对了，${who}：${words}`,
      `嗯，我没忘。${who}：${words}`,
    ];
  }
  const who = isOwn ? 'I remember' : source === 'user' ? 'You said' : `${source} said`;
  return [
    `Of course! ${who}: ${words}`,
    `Let me think… right, ${who}: ${words}`,
    `Yes, I have not forgotten. ${who}: ${words}`,
  ];
}

const isQuestion = (said: string): boolean => /[?？]$/.test(said.trimEnd());

function answered(question: string): readonly string[] {
  const about = `“${quote(subjectOf(question), 30)}”`;
  if (languageOf(question) === 'zh') {
    return isQuestion(question)
      ? [`${about}？让我想想再告诉你。`, `问得好，${about}我也想知道。`]
      : [
          `我在！说到${about}，我也很感兴趣。`,
          `好呀，${about}算我一个。`,
          `嗯嗯，${about}，我记下了。`,
        ];
  }
  return isQuestion(question)
    ? [`${about}? Let me think about it.`, `Good question: ${about}. I wonder, too.`]
    : [`I am here! ${about} sounds good to me.`, `Count me in for ${about}.`, `Noted: ${about}.`];
}

/** The member was not asked: a short reply. A question is no proposal, so nobody agrees with it. */
function aside(question: string, others: string): readonly string[] {
  const speaker = /^([^:：]{1,20})[:：]/.exec(others.split('\n').at(-1) ?? '')?.[1]?.trim() ?? '';
  if (languageOf(question) === 'zh') {
    if (isQuestion(question)) return ['（好奇地听着）', '我也想知道。', '嗯，这个问题有意思。'];
    const agreed = speaker === '' ? '听起来不错。' : `我同意${speaker}。`;
    return [
      agreed,
      '（在一旁点点头）',
      '哈哈，你们聊，我听着。',
      '嗯，有意思。',
      '真的吗？继续说。',
    ];
  }
  if (isQuestion(question)) {
    return ['(listens, curious)', 'I would like to know, too.', 'Now that is a question.'];
  }
  const agreed = speaker === '' ? 'Sounds good.' : `I am with ${speaker}.`;
  return [agreed, '(nods)', 'Go on, I am listening.', 'Interesting.', 'Really? Tell us more.'];
}
