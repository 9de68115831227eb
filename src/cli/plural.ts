/** A number with the word that fits it. */

/** `1 model`, `3 models`. */
export const plural = (count: number, word: string): string =>
  `${count} ${word}${count === 1 ? '' : 's'}`;
