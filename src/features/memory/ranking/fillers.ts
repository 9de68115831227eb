/** Recognizes fillers: texts that acknowledge, thank or greet, and state nothing ("OK, noted."). */

import { stem } from '../../../lib/text/stem.ts';
import { STOP_WORDS } from './stop-words.ts';
import { folded } from './terms.ts';

/** A longer text is never taken for a filler. */
const MAX_LENGTH = 120;

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
const HAN = /\p{Script=Han}/u;
const RUNS = /\p{Script=Han}+|[\p{L}\p{N}]+(?:['’][\p{L}]+)?/gu;

/** Does the text consist of nothing but such words and of those that tell nothing? In doubt it does not. */
export function isFiller(text: string): boolean {
  if (text.length > MAX_LENGTH) return false;
  for (const [run] of folded(text).matchAll(RUNS)) {
    const known = HAN.test(run) ? CHINESE.test(run) : isEmptyWord(run.replace('’', "'"));
    if (!known) return false;
  }
  return true;
}

const isEmptyWord = (word: string): boolean =>
  STOP_WORDS.has(word) || WORDS.has(word) || WORDS.has(stem(word));
