/** Words that questions are made of and that tell nothing of what is asked for. */

import { stem } from '../../../lib/text/stem.ts';

/** English ones as stems, and lone Chinese characters; kept texts have them indexed all the same. */
export const STOP_WORDS: ReadonlySet<string> = new Set([
  ...`a about again all also am an and any are as at be been but by can could did do does doing done else
  ever for from get gets give had has have having he her here hers him his how i if in into is it its
  just know let like me mean my of on or our please remember remind said say says she should so some
  something sort tell than that the their them then there these they thing things this those to told too
  us use used want was we were what when where which who whom whose why will with would you your s t re
  ve ll m d don doesn didn isn wasn`
    .split(/\s+/)
    .flatMap((word) => [word, stem(word)]),
  ...'的了是在吗嗎呢么吧啊呀嘛哦噢和与與或也都就还還很我你您他她它们們这這那个個之其把被给給让讓对對从從到说說过過会會能可要想有没沒谁誰哪几幾吗去来來上下中里裡',
]);

const FILLERS = new RegExp(
  [
    '什[么麼]时候|什[么麼]時候|为什[么麼]|為什[么麼]|[干幹]什[么麼]|[做干]啥|什[么麼]样?|啥|怎[么麼][样樣办辦]?|如何|多少|多大|多久|几点|幾點',
    '哪[里裡儿兒个個些位天年]|谁的|誰的|是不是|有没有|有沒有|能不能|会不会|還記得|还记得|记得|記得|知道|知不知道|请问|請問|告诉我|告訴我|提到|说过|說過|来着|來著',
    '最近|之前|以前|上次|是谁|是誰|叫什么|一下|我们|我們|你们|你們|他们|他們|她们|她們|这个|這個|那个|那個',
    '何時|いつ|どこ|だれ|誰|何|なに|なん|どの|どんな|ですか|ますか|でした|でしょう|教えて',
  ].join('|'),
  'gu',
);

/** A blank in the place of question words of scripts without blanks, so that no pair spans it. */
export const withoutFillers = (text: string): string => text.replace(FILLERS, ' ');
