/** What is wrong with a configuration, as values that point into the file. */

export interface Problem {
  /** `routes[0].when.model`; '' for the file as a whole. */
  readonly path: string;
  /** From 1; 0 when the problem has no place in a file. */
  readonly line: number;
  /** From 1; 0 when the problem has no place in a file. */
  readonly column: number;
  readonly message: string;
  /** What was probably meant: the right key or value. */
  readonly suggestion?: string;
}

/** More of them help nobody, and a file that is none at all can have one for every character. */
export const MOST_TOLD = 100;

/** `unknown key (did you mean "protocol"?)`: what is wrong, without where. */
export function wordsOf({ message, suggestion }: Pick<Problem, 'message' | 'suggestion'>): string {
  if (suggestion === undefined) return message;
  // Where the quotes are what was missing they stand in the suggestion itself.
  const meant = suggestion.startsWith('"') ? suggestion : `"${suggestion}"`;
  return `${message} (did you mean ${meant}?)`;
}

/** `hopgate.yaml:12:3: providers.glm.protocl: unknown key (did you mean "protocol"?)`. */
export function describeProblem(problem: Problem, file?: string): string {
  const place =
    problem.line > 0
      ? `${file ?? 'configuration'}:${problem.line}:${problem.column}: `
      : file === undefined
        ? ''
        : `${file}: `;
  const path = problem.path === '' ? '' : `${problem.path}: `;
  return `${place}${path}${wordsOf(problem)}`;
}
