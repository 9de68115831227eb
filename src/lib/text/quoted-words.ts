/** `login "a b" bug` as its words; quotes hold words together. */
export const quotedWords = (q: string): readonly string[] =>
  q
    .split('"')
    .flatMap((part, i) => (i % 2 === 1 ? [part] : part.split(/\s+/)))
    .map((word) => word.trim())
    .filter((word) => word !== '');

/** One word of a command line, for every shell. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
