/** Weighs events by kind: statements carry information, questions ask for it, replies repeat it, fillers have none. */

import { isFiller } from './fillers.ts';

/** The shares of relevance that questions and replies keep: a stored question is rarely an answer. */
const QUESTION = 0.25;
const REPLY = 0.4;

const ASKS =
  /^(?:and |so |but |please |hey |hi )?(?:who|whom|whose|what|when|where|which|why|how|do|does|did|is|are|am|was|were|can|could|will|would|shall|should|may|might|have|has|had|don't|doesn't|didn't|isn't|aren't|remember|tell me|remind me|any)\b/i;
const ASKS_CHINESE =
  /什[么麼]|谁|誰|哪|吗|嗎|呢|怎|几[个点岁天]|幾|多少|多大|多久|为何|為何|是不是|有没有|有沒有|能不能|会不会|记得|記得|告诉我|告訴我/;
const HAN = /\p{Script=Han}/u;
/** The most words, or Chinese characters, of a greeting or name before the question. */
const FEW_WORDS = 2;
const FEW_CHARACTERS = 4;
/** A longer text contains statements even where it asks. */
const LONGEST = 500;

/** Is the text nothing but a question? In doubt it is a statement. */
export function isQuestion(text: string): boolean {
  const trimmed = text.trim();
  if (trimmed.length > LONGEST) return false;
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
      else if (han ? words.length > FEW_CHARACTERS : words.split(/\s+/).length > FEW_WORDS) {
        // Without a question word only the mark makes a question, and only where the clause stands alone.
        if (!marked || clause.length !== sentence.length) return false;
        asks = true;
      }
    }
  }
  return asks;
}

/**
 * The share of its relevance that an event keeps, 0 to 1. A reply that is only a filler keeps nothing.
 * @param speaker the model's name in the chat, whose events are replies, as are those of `assistant`
 */
export function kindWeight(
  { text, source }: { readonly text: string; readonly source?: string | undefined },
  speaker?: string,
): number {
  const isReply = source !== undefined && (source === 'assistant' || source === speaker);
  if (isReply && isFiller(text)) return 0;
  if (isQuestion(text)) return QUESTION;
  return isReply ? REPLY : 1;
}
