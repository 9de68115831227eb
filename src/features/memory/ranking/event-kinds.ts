/** The kind of an event's text: statements carry information, requests ask for it, fillers have none. */

import { stem } from '../../../lib/text/stem.ts';
import { folded, STOP_WORDS } from './terms.ts';

/** `request`: a mere question or command. `filler`: acknowledges, thanks or greets. `forget`: asks to forget something. */
export type EventKind = 'statement' | 'request' | 'filler' | 'forget';

const ASKS =
  /^(?:and |so |but |please |hey |hi )?(?:who|whom|whose|what|when|where|which|why|how|do|does|did|is|are|am|was|were|can|could|will|would|shall|should|may|might|have|has|had|don't|doesn't|didn't|isn't|aren't|remember|tell me|remind me|any)\b/i;
const ASKS_CHINESE =
  /什[么麼]|谁|誰|哪|吗|嗎|呢|怎|几[个点岁天]|幾|多少|多大|多久|为何|為何|是不是|有没有|有沒有|能不能|会不会|记得|記得|告诉我|告訴我/;
const COMMANDS =
  /^(?:please |now |then )?(?:write|rewrite|suggest|recommend|translate|summari[sz]e|explain|generate|draft|proofread|tell me|give me|show me|list|describe|help me)\b/i;
const COMMANDS_CHINESE =
  /^(?:请|那|再)?(?:你)?(?:帮我|给我|替我)?(?:写一|推荐|翻译|总结|解释|生成|列出|介绍|润色)/;
const FORGETS =
  /^(?:please |ok |okay |hey |now |just )*(?:(?:can|could|will|would) you )?(?:please )?(?:(?:forget|unlearn|stop remembering|don't remember|do not remember)\b|(?:delete|erase|remove|clear)\b.*\b(?:my|me|i|memory|said|told|that|this|it)\b)/i;
const FORGETS_CHINESE =
  /^(?:请|麻烦)?(?:你)?(?:帮我|给我)?(?:忘[掉记了]|删[除掉]|清除|抹掉|不要再?记|别再?记)|^(?:请|麻烦)?(?:你)?(?:帮我)?把.{1,40}(?:忘[掉记了]|删[除掉了]|清除)/;
/** The beginning of a clause that says something of its own. */
const TELLS = /^\s*(?:(?:i|i'm|i’m|i've|i’ve|we|he|she|they|my|our|there)\b|我|他|她)/i;
const HAN = /\p{Script=Han}/u;
/** The most words, or Chinese characters, of a greeting or name before the question. */
const FEW_WORDS = 2;
const FEW_CHARACTERS = 4;
/** A longer text contains statements even where it asks. */
const MAX_LENGTH = 500;
/** A longer text says something besides a plea to forget. */
const MAX_PLEA = 160;

export function kindOf(text: string): EventKind {
  if (asksToForget(text)) return 'forget';
  if (isRequest(text)) return 'request';
  return isFiller(text) ? 'filler' : 'statement';
}

/** Is the text nothing but questions and commands? In doubt it is a statement. */
export function isRequest(text: string): boolean {
  const trimmed = text.trim();
  if (trimmed.length > MAX_LENGTH) return false;
  let asks = false;
  for (const sentence of trimmed.split(/(?<=[.!?。！？\n])/)) {
    const end = sentence.trim().at(-1) ?? '';
    const marked = end === '?' || end === '？';
    // "What a day." is not a question.
    const isStatement = '.!。！'.includes(end) && end !== '';
    for (const clause of sentence.split(/[,，;；、:：]/)) {
      const words = clause.replace(/[.!?。！？]/g, ' ').trim();
      if (words === '') continue;
      const han = HAN.test(words);
      if (!isStatement && (han ? ASKS_CHINESE : ASKS).test(words)) asks = true;
      else if ((han ? COMMANDS_CHINESE : COMMANDS).test(words)) asks = true;
      else if (han ? words.length > FEW_CHARACTERS : words.split(/\s+/).length > FEW_WORDS) {
        // Without a question word only the mark makes a question, and only where the clause stands alone.
        if (!marked || clause.length !== sentence.length) return false;
        asks = true;
      }
    }
  }
  return asks;
}

/** "Please forget my PIN": it must never be found in the place of what was to be forgotten. */
export function asksToForget(text: string): boolean {
  const trimmed = text.trim();
  if (trimmed.length > MAX_PLEA) return false;
  if (!FORGETS.test(trimmed) && !FORGETS_CHINESE.test(trimmed)) return false;
  return !trimmed
    .split(/[,，;；.!?。！？\n]/)
    .slice(1)
    .some((clause) => TELLS.test(clause));
}

/** A longer text is never taken for a filler. */
const MAX_FILLER = 120;

const WORDS: ReadonlySet<string> = new Set(
  `ok okay okey k kk fine noted note sure great good gotcha got thanks thank thx ty yes yeah yep yup no nope not
  nice right cool alright understood understand certainly absolutely definitely course perfect excellent awesome
  lovely wonderful glad happy help sounds looks done agreed exactly indeed really interesting oh ah aha hm hmm mhm
  wow haha lol hello hi hey bye goodbye welcome sorry problem worries well very much too keep mind count listening
  here pleasure amazing super true it's that's i'll i'm you're`
    .split(/\s+/)
    .map(stem),
);
const CHINESE =
  /^(?:好|滴|嗯|哦|噢|啊|呀|吧|啦|了|呢|的|我|你|会|很|太|都|明白|收到|知道|没问题|沒問題|没关系|谢谢|謝謝|多谢|感谢|不客气|不用谢|记住|记下|記住|記下|了解|当然|當然|可以|行|是|对|對|哈|嘿|棒|赞|不错|您|再见|晚安|早安|早上好)+$/;
const RUNS = /\p{Script=Han}+|[\p{L}\p{N}]+(?:['’][\p{L}]+)?/gu;

/** Does the text consist of nothing but such words and of those that tell nothing? In doubt it does not. */
export function isFiller(text: string): boolean {
  if (text.length > MAX_FILLER) return false;
  for (const [run] of folded(text).matchAll(RUNS)) {
    const known = HAN.test(run) ? CHINESE.test(run) : isEmptyWord(run.replace('’', "'"));
    if (!known) return false;
  }
  return true;
}

const isEmptyWord = (word: string): boolean =>
  STOP_WORDS.has(word) || WORDS.has(word) || WORDS.has(stem(word));
